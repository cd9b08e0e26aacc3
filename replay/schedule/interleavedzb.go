package schedule

import "fmt"

// interleavedZeroBubble is depth-first with one forward less ahead for each rank
// further on, not two, and with the weight gradients of rank r put off by r
// backwards, where they fill the bubble of the cool-down.
//
// Source: torch.distributed.pipelining ScheduleInterleavedZeroBubble, which
// calls it ZB1P of arXiv 2401.10241. The group is its microbatches_per_round:
// micro-batches over rounds, of which there are max(1, m div p). With one chunk
// per rank it is ZB-H1.
func interleavedZeroBubble(s Shape) (Order, error) {
	group := s.Group
	if group == 0 {
		group = torchGroup(s.Ranks, s.Microbatches)
	}
	if s.Microbatches%group != 0 {
		return nil, fmt.Errorf("group=%d does not divide the %d micro-batches (PyTorch takes micro-batches / max(1, micro-batches div ranks), which must be whole)", group, s.Microbatches)
	}
	if group < min(s.Ranks, s.Microbatches) {
		return nil, fmt.Errorf("group=%d is fewer than the %d ranks: the first of a group would wait for itself; group=%d is all in one", group, s.Ranks, s.Microbatches)
	}
	groups := newGroups(s, group)
	return rows(s.Ranks, func(r int) []Action {
		return split(groups.row(r, s.Ranks-1-r+(s.Loops-1)*group), r)
	}), nil
}

// torchGroup is how many micro-batches PyTorch takes through a chunk before the
// next one, the remainder of the division left out.
func torchGroup(ranks, microbatches int) int {
	return microbatches / max(1, microbatches/ranks)
}
