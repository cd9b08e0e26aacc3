package sharding

import "mixdown/replay/schedule"

// Reductions lets each rank reduce its gradients one after the other beside its
// passes, each chunk's once: a reduction takes `each`, in the unit of the
// timeline's costs, and starts when the gradient is complete and the one before
// it is done. The passes are not slowed down by it. For an order that Shard made,
// Timeline.Collectives says more.
//
// They are listed by rank, on each rank in order.
func Reductions(line *schedule.Timeline, each schedule.Rational) []schedule.Collective {
	var list []schedule.Collective
	for i, g := range line.Gradients() {
		start := g.Ready
		if i > 0 && list[i-1].Rank == g.Rank && list[i-1].End.Cmp(start) > 0 {
			start = list[i-1].End
		}
		list = append(list, schedule.Collective{Rank: g.Rank, Stage: g.Stage, Kind: schedule.ReduceGradient, Start: start, End: start.Add(each)})
	}
	return list
}

// Exposed is the time from the end of the last pass of any rank to the end of
// the last collective: what they add to the step after the pipeline is done.
func Exposed(line *schedule.Timeline, collectives []schedule.Collective) schedule.Rational {
	var exposed schedule.Rational
	makespan := line.Makespan()
	for _, c := range collectives {
		if late := c.End.Sub(makespan); late.Cmp(exposed) > 0 {
			exposed = late
		}
	}
	return exposed
}
