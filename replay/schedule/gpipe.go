package schedule

// gpipe runs all forwards, then all backwards, of one stage per rank.
//
// Source: torch.distributed.pipelining ScheduleGPipe, whose backwards begin
// with micro-batch 0.
//
// With equal stages, makespan (m+p-1)(forward+backward), bubble (p-1)/(m+p-1),
// m micro-batches in flight.
func gpipe(s Shape) (Order, error) {
	return rows(s.Ranks, func(r int) []Action {
		row := make([]Action, 0, 2*s.Microbatches)
		for mb := range s.Microbatches {
			row = append(row, forward(r, mb))
		}
		for mb := range s.Microbatches {
			row = append(row, backward(r, mb))
		}
		return row
	}), nil
}
