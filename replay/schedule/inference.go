package schedule

// inference runs forwards alone, chunk after chunk.
//
// Source: DeepSpeed InferenceSchedule for one chunk per rank; for more, the
// forward half of breadth-first.
//
// With equal stages and m >= p, makespan (mv+p-1)·forward. Nothing is kept for
// a backward: a rank holds one chunk at a time.
func inference(s Shape) (Order, error) {
	return rows(s.Ranks, func(r int) []Action {
		row := make([]Action, 0, s.Loops*s.Microbatches)
		for c := range s.Loops {
			for mb := range s.Microbatches {
				row = append(row, forward(Loop.Stage(s.Ranks, r, c), mb))
			}
		}
		return row
	}), nil
}
