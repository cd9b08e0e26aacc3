package fold

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// Shrunk counts what Shrink had to change.
type Shrunk struct {
	Resized int // operations of a smaller group, over all kept ranks
	Alone   int // operations of which a single rank was kept: their time, nothing moves
}

// Shrink is the folded workload as workers can run it. Collectives run in the
// groups of the kept ranks: reductions and broadcasts move what they moved; gathers
// and scatters keep the whole size, so that each member's part grows, by at most one
// element a member more; of uneven operations the parts between kept ranks move. An
// operation whose group kept one rank becomes time, as much as it took in the trace,
// by the cost given.
func (f *Folded) Shrink(cost sim.CommunicationCost) (*planpb.Workload, Shrunk) {
	w := proto.CloneOf(f.Workload)
	var count Shrunk
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil || len(c.Transfers) > 0 {
				continue
			}
			ranks := w.Groups[c.Group].Ranks
			if len(ranks) == f.sizes[c.Group] {
				continue
			}
			if len(ranks) == 1 {
				count.Alone++
				ns := f.Cost(cost)(sim.Meeting{Communication: c, Rank: program.Rank})
				t.Origin = nil
				t.Kind = &planpb.Task_Span{Span: &planpb.Span{Kind: kindOf(program), DurationNs: ns}}
				continue
			}
			count.Resized++
			resize(c, program.Rank, ranks, f.sizes[c.Group], f.places[c.Group])
		}
	}
	dropEmpty(w)
	return w, count
}

// dropEmpty drops the groups of which nobody was kept.
func dropEmpty(w *planpb.Workload) {
	number := make([]int32, len(w.Groups))
	var groups []*planpb.Group
	for g, group := range w.Groups {
		number[g] = int32(len(groups))
		if len(group.Ranks) > 0 {
			groups = append(groups, group)
		}
	}
	w.Groups = groups
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			if c := t.GetCommunication(); c != nil {
				c.Group = number[c.Group]
			}
		}
		for _, e := range program.Communicators { // its own groups: it is in them
			e.Group = number[e.Group]
		}
	}
}

// kindOf is the kind of a span beside the others of a program.
func kindOf(p *planpb.Program) planpb.Span_Kind {
	for _, t := range p.Tasks {
		if t.GetSpan().GetKind() == planpb.Span_DEVICE {
			return planpb.Span_DEVICE
		}
	}
	return planpb.Span_HOST
}

// resize makes a collective of a group of `before` ranks one of the kept ranks.
func resize(c *planpb.Communication, rank int32, kept []int32, before int, places []int) {
	n := int64(len(kept))
	if c.Op == planpb.Op_OP_BROADCAST || c.Op == planpb.Op_OP_REDUCE || c.Op == planpb.Op_OP_GATHER || c.Op == planpb.Op_OP_SCATTER ||
		c.Op == planpb.Op_OP_GATHERV || c.Op == planpb.Op_OP_SCATTERV {
		if !slices.Contains(kept, c.Root) {
			c.Root = kept[0]
		}
	}
	whole := func(part int64) (int64, int64) { // the part of each and the sum, at least as large as before
		each := (part*int64(before) + n - 1) / n
		return each, each * n
	}
	switch c.Op {
	case planpb.Op_OP_ALL_GATHER:
		c.InCount, c.OutCount = resized(c, whole, true)
	case planpb.Op_OP_REDUCE_SCATTER:
		c.OutCount, c.InCount = resized(c, whole, false)
	case planpb.Op_OP_ALL_TO_ALL:
		_, sum := whole(c.InCount / int64(before))
		c.InCount, c.OutCount = sum, sum
		for _, p := range c.Parts {
			_, sum := whole(p.InCount / int64(before))
			p.InCount, p.OutCount = sum, sum
		}
	case planpb.Op_OP_GATHER:
		part := c.InCount
		each, sum := whole(part)
		c.InCount = each
		if c.OutCount > 0 || rank == c.Root {
			c.OutCount = sum
		}
	case planpb.Op_OP_SCATTER:
		each, sum := whole(c.OutCount)
		c.OutCount = each
		if c.InCount > 0 || rank == c.Root {
			c.InCount = sum
		}
	case planpb.Op_OP_ALL_TO_ALLV, planpb.Op_OP_ALL_GATHERV, planpb.Op_OP_REDUCE_SCATTERV, planpb.Op_OP_GATHERV, planpb.Op_OP_SCATTERV:
		if len(c.InSplits) > 0 {
			c.InSplits, c.InCount = pick(c.InSplits, places)
		}
		if len(c.OutSplits) > 0 {
			c.OutSplits, c.OutCount = pick(c.OutSplits, places)
		}
	}
}

// resized sets the parts of a coalesced operation, and gives the counts of all.
func resized(c *planpb.Communication, whole func(int64) (int64, int64), gathers bool) (part, sum int64) {
	if len(c.Parts) == 0 {
		if gathers {
			return whole(c.InCount)
		}
		return whole(c.OutCount)
	}
	for _, p := range c.Parts {
		var each, all int64
		if gathers {
			each, all = whole(p.InCount)
			p.InCount, p.OutCount = each, all
		} else {
			each, all = whole(p.OutCount)
			p.OutCount, p.InCount = each, all
		}
		part, sum = part+each, sum+all
	}
	return part, sum
}

// pick keeps the splits of the kept ranks.
func pick(splits []int64, places []int) ([]int64, int64) {
	var kept []int64
	var sum int64
	for _, at := range places {
		if at < len(splits) {
			kept = append(kept, splits[at])
			sum += splits[at]
		}
	}
	return kept, sum
}
