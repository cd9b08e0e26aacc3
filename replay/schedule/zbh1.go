package schedule

// zeroBubbleH1 is 1F1B with the weight gradients of rank r put off by r
// micro-batches, where they fill the bubble of the cool-down. All ranks hold as
// much as rank 0 of 1F1B does.
//
// Source: sail-sg/zero-bubble-pipeline-parallelism, ZB-H1 (there also ZB1P).
//
// With equal stages and m >= 2p, makespan is
// m·(forward+backward) + (p-1)(forward + input gradient - weight gradient).
func zeroBubbleH1(s Shape) (Order, error) {
	return rows(s.Ranks, func(r int) []Action {
		return split(alternate(r, s.Microbatches, s.Ranks-r), r)
	}), nil
}
