package schedule

// bitPipe runs two V-shaped pipelines in opposite directions, each with half of
// the micro-batches and two chunks per rank: a rank holds four chunks, and the
// weights are held twice.
//
// Source: arXiv 2410.19367 for the placement; the order is made as opposite
// says. When forward and backward take equally long and m = p, the bubble is
// (p-2)/(4m+p-2) for p = 4, 6 and 8. The original's order may differ.
func bitPipe(s Shape) (Order, error) {
	if err := checkEven("bitpipe", s); err != nil {
		return nil, err
	}
	return opposite(s.Ranks, s.Microbatches, vPath(s.Ranks), 1, 1), nil
}

// vPath is the rank of each of the 2p stages of a V.
func vPath(ranks int) []int {
	path := make([]int, 2*ranks)
	for stage := range path {
		path[stage] = V.Rank(ranks, stage)
	}
	return path
}
