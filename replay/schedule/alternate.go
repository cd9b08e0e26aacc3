package schedule

// alternate is the order of a rank with one stage that runs `ahead` forwards and
// from then on a backward before each further forward. 1F1B, its eager form and
// the zero-bubble orders H1 and H2 differ in `ahead` alone, and in the last two
// splitting the backward.
func alternate(stage, microbatches, ahead int) []Action {
	row := make([]Action, 0, 2*microbatches)
	ahead = min(ahead, microbatches)
	for mb := range ahead {
		row = append(row, forward(stage, mb))
	}
	for mb := range microbatches {
		row = append(row, backward(stage, mb))
		if ahead+mb < microbatches {
			row = append(row, forward(stage, ahead+mb))
		}
	}
	return row
}

// split cuts each full backward of a row into its two gradients: the input's,
// which the stage before waits for, in its place, and the weights', for which
// nobody waits, after the input gradient `delay` micro-batches later.
func split(row []Action, delay int) []Action {
	cut := make([]Action, 0, 2*len(row))
	var pending []Action
	for _, a := range row {
		if a.Kind != Backward {
			cut = append(cut, a)
			continue
		}
		pending = append(pending, weight(int(a.Stage), int(a.Microbatch)))
		a.Kind = Input
		cut = append(cut, a)
		if len(pending) > delay {
			cut = append(cut, pending[0])
			pending = pending[1:]
		}
	}
	return append(cut, pending...)
}
