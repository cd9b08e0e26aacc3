package schedule

// oneFOneB begins each backward as soon as it can, so that rank r holds at most
// p-r micro-batches.
//
// Source: Megatron-LM forward_backward_pipelining_without_interleaving,
// DeepSpeed TrainSchedule and PyTorch Schedule1F1B, which agree.
//
// With equal stages and m >= p, makespan and bubble are those of GPipe. A hop
// costs more than there: 2c((p-1)m/p + p-2) when p divides m, growing with m.
func oneFOneB(s Shape) (Order, error) {
	return rows(s.Ranks, func(r int) []Action {
		return alternate(r, s.Microbatches, s.Ranks-r)
	}), nil
}
