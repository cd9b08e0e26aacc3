package mix

import (
	"fmt"

	"mixdown/replay/plan/planpb"
)

// checkSplits compares what members send with what others receive.
func (m *model) checkSplits(found *collector, o *collective) {
	op := m.communication(o.members[0]).Op
	gathers := op == planpb.Op_OP_ALL_GATHERV || op == planpb.Op_OP_GATHERV
	scatters := op == planpb.Op_OP_REDUCE_SCATTERV || op == planpb.Op_OP_SCATTERV
	if op != planpb.Op_OP_ALL_TO_ALLV && !gathers && !scatters {
		return
	}
	n := len(m.w.Groups[o.group].Ranks)
	if len(o.members) != n {
		return
	}
	views := make([]*planpb.Communication, n)
	at := make([]int32, n)
	for _, task := range o.members {
		t, r := m.task(task)
		position := m.comms[m.commOf[task]].ranks[r]
		views[position], at[position] = t.GetCommunication(), task
	}
	bad := func(i, j int, mine, theirs int64) {
		found.add("E1", fmt.Sprintf("parts/%d", o.group), func() Finding {
			_, a := m.task(at[i])
			_, b := m.task(at[j])
			return m.finding([]int32{at[i], at[j]}, fmt.Sprintf("%s %d of group %s: rank %d says %d elements between it and rank %d, that one says %d",
				opName(views[i]), o.seq, m.groupName(o.group), a, mine, b, theirs),
				"the parts must be the same seen from both sides: take them from execution traces (--execution-traces), or estimate them together")
		})
	}
	for i, c := range views {
		if c.Op != op {
			return // said already
		}
		for _, splits := range [][]int64{c.InSplits, c.OutSplits} {
			if len(splits) != n && (len(splits) > 0 || op == planpb.Op_OP_ALL_TO_ALLV) {
				bad(i, i, int64(len(splits)), int64(n))
				return
			}
		}
		for j, other := range views {
			switch {
			case op == planpb.Op_OP_ALL_TO_ALLV && len(other.OutSplits) == n && c.InSplits[j] != other.OutSplits[i]:
				bad(i, j, c.InSplits[j], other.OutSplits[i])
				return
			case gathers && len(c.OutSplits) == n && c.OutSplits[j] != other.InCount:
				bad(i, j, c.OutSplits[j], other.InCount)
				return
			case scatters && len(c.InSplits) == n && c.InSplits[j] != other.OutCount:
				bad(i, j, c.InSplits[j], other.OutCount)
				return
			}
		}
	}
}
