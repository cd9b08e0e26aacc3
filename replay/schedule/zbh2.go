package schedule

// zeroBubbleH2 fills the bubble of the warm-up too, with the forwards of eager
// 1F1B, and puts off rank r's weight gradients by 2r micro-batches. All ranks
// hold 2p-1 micro-batches.
//
// Source: sail-sg/zero-bubble-pipeline-parallelism, ZB-H2 (there also ZB2P).
//
// With equal stages and m >= 2p, the longest span of a rank is
// m·(forward+backward) + (p-1)(forward + input gradient - 2·weight gradient).
// The ranks begin and end one after the other, so the makespan is longer: the
// next step may begin on a rank that has ended only if the optimizer doesn't
// wait for all.
func zeroBubbleH2(s Shape) (Order, error) {
	return rows(s.Ranks, func(r int) []Action {
		return split(alternate(r, s.Microbatches, 2*(s.Ranks-r)-1), 2*r)
	}), nil
}
