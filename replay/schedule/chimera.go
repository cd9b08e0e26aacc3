package schedule

// chimera runs two pipelines in opposite directions, each with half of the
// micro-batches: stage s is on rank s for the first half and on rank p-1-s for
// the second, so that the weights are held twice.
//
// Source: Shigangli/Chimera for the placement; the order is made as opposite
// says, which gives the bubbles known for m = p: (p-2)/(2m+p-2) when forward
// and backward take equally long, (p-2)/(1.5m+p-2) when a backward takes twice
// as long. For other m the rule is the same, the original's order may differ.
func chimera(s Shape) (Order, error) {
	if err := checkEven("chimera", s); err != nil {
		return nil, err
	}
	path := make([]int, s.Ranks)
	for stage := range path {
		path[stage] = stage
	}
	return opposite(s.Ranks, s.Microbatches, path, 1, 1), nil
}
