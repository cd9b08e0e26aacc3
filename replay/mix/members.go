package mix

import (
	"fmt"
	"slices"

	"mixdown/replay/plan/planpb"
)

// checkMembers compares the members of every collective (E1, D1, D17), their
// backends (E5, D14), and looks for members that do not run at all (E7, D11).
func (m *model) checkMembers(found *collector) {
	absent := m.absentMembers(found)
	for i := range m.ops {
		o := &m.ops[i]
		group := m.w.Groups[o.group]
		first := m.communication(o.members[0])
		if m.missing(found, o, absent[o.group]) {
			continue
		}
		_, r0 := m.task(o.members[0])
		for k, n := range o.members {
			_, r := m.task(n)
			c := m.communication(n)
			if k > 0 && c.Backend != first.Backend {
				found.add("E5", fmt.Sprintf("members/%d", o.group), func() Finding {
					return m.finding([]int32{o.members[0], n},
						fmt.Sprintf("%s %d of group %s runs on %s for rank %d and on %s for rank %d: neither library ever sees all members",
							opName(c), o.seq, m.groupName(o.group), orNone(first.Backend), r0, orNone(c.Backend), r),
						"decide the backend from what all members know: operation, group, the largest size of any member; \"mixdown plan --mix\" does")
				})
			}
			what := disagreement(first, c, first.Root == r0, c.Root == r)
			if what == "" {
				what = m.countConflict(c, len(group.Ranks), c.Root == r)
			}
			if what != "" {
				found.add("E1", fmt.Sprintf("differ/%d/%s", o.group, what[:min(8, len(what))]), func() Finding {
					return m.finding([]int32{o.members[0], n},
						fmt.Sprintf("operation %d of group %s is not the same on ranks %d and %d: %s", o.seq, m.groupName(o.group), r0, r, what),
						"the ranks submit their operations in different orders, or the trace was matched wrongly: compare the two ranks' operations around these times")
				})
			}
		}
		m.checkSplits(found, o)
	}
}

// absentMembers reports the members of used groups that have no program.
func (m *model) absentMembers(found *collector) []bool {
	absent := make([]bool, len(m.w.Groups))
	for i := range m.comms {
		c := &m.comms[i]
		var without []int32
		for r := range c.ranks {
			if _, ok := m.program[r]; !ok {
				without = append(without, r)
			}
		}
		if len(without) == 0 {
			continue
		}
		slices.Sort(without)
		absent[c.group] = true
		found.add("E7", fmt.Sprint(c.group), func() Finding {
			return Finding{
				Message: fmt.Sprintf("group %s is used, but %s of its %d members do not run: the first use of a communicator waits for all of them",
					m.groupName(c.group), ranksText(without), len(c.ranks)),
				Advice: "give the traces of all ranks, or leave out the operations of this group",
				Ranks:  without, Groups: []string{m.groupLabel(c.group)},
			}
		})
	}
	return absent
}

// missing reports a collective that some members do not run, or run twice.
func (m *model) missing(found *collector, o *collective, absent bool) bool {
	last := int32(-1)
	for _, n := range o.members { // in rank order
		_, r := m.task(n)
		if r != last {
			last = r
			continue
		}
		found.add("E1", fmt.Sprintf("twice/%d", o.group), func() Finding {
			return m.finding([]int32{n}, fmt.Sprintf("rank %d runs operation %d of group %s twice", r, o.seq, m.groupName(o.group)),
				"number the operations of a group from 0 on every member")
		})
		return true
	}
	ranks := m.w.Groups[o.group].Ranks
	if len(o.members) == len(ranks) || absent {
		return false
	}
	var without []int32
	for _, r := range ranks {
		if !slices.ContainsFunc(o.members, func(n int32) bool { _, have := m.task(n); return have == r }) {
			without = append(without, r)
		}
	}
	found.add("E1", fmt.Sprintf("missing/%d", o.group), func() Finding {
		f := m.finding(o.members[:1], fmt.Sprintf("%s %d of group %s has %d members, the group has %d: %s never run it, the others wait for ever",
			opName(m.communication(o.members[0])), o.seq, m.groupName(o.group), len(o.members), len(ranks), ranksText(without)),
			"leave the operation out on all members, or add it on those that lack it")
		f.Ranks = without
		return f
	})
	return true
}

// disagreement says how two members' views of one operation differ.
func disagreement(a, b *planpb.Communication, rootA, rootB bool) string {
	switch {
	case a.Op != b.Op:
		return fmt.Sprintf("operation %s, %s", opName(a), opName(b))
	case a.Op == planpb.Op_OP_BARRIER:
		return ""
	case a.Dtype != b.Dtype:
		return fmt.Sprintf("element type %s, %s", dtypeName(a), dtypeName(b))
	case reduces(a.Op) && a.ReduceOp != b.ReduceOp:
		return fmt.Sprintf("reduction %s, %s", reduceOpName(a), reduceOpName(b))
	case reduces(a.Op) && a.Factor != b.Factor:
		return fmt.Sprintf("factor %g, %g", a.Factor, b.Factor)
	case rooted(a.Op) && a.Root != b.Root:
		return fmt.Sprintf("root %d, %d", a.Root, b.Root)
	case a.InPlace != b.InPlace:
		return fmt.Sprintf("in place %v, %v", a.InPlace, b.InPlace)
	case CodecName(a.Compression) != CodecName(b.Compression):
		return fmt.Sprintf("compression %s, %s", orPlain(a.Compression), orPlain(b.Compression))
	case len(a.Parts) != len(b.Parts):
		return fmt.Sprintf("%d tensors in one, %d", len(a.Parts), len(b.Parts))
	}
	for i := range a.Parts {
		x, y := partOf(a, i), partOf(b, i)
		if m, n := commonCount(x, rootA), commonCount(y, rootB); m != n {
			return fmt.Sprintf("count of tensor %d: %d, %d", i, m, n)
		}
	}
	if x, y := commonCount(a, rootA), commonCount(b, rootB); x != y {
		return fmt.Sprintf("count %d, %d", x, y)
	}
	return ""
}

// partOf is one tensor of a coalesced operation, as an operation.
func partOf(c *planpb.Communication, i int) *planpb.Communication {
	return &planpb.Communication{Op: c.Op, InCount: c.Parts[i].GetInCount(), OutCount: c.Parts[i].GetOutCount()}
}

// commonCount is the number of elements that all members must have alike, 0 for
// operations that have none.
func commonCount(c *planpb.Communication, root bool) int64 {
	switch c.Op {
	case planpb.Op_OP_ALL_REDUCE, planpb.Op_OP_REDUCE, planpb.Op_OP_ALL_GATHER, planpb.Op_OP_ALL_TO_ALL, planpb.Op_OP_GATHER:
		return c.InCount
	case planpb.Op_OP_BROADCAST:
		if root {
			return c.InCount
		}
		return c.OutCount
	case planpb.Op_OP_REDUCE_SCATTER, planpb.Op_OP_SCATTER:
		return c.OutCount
	}
	return 0
}

// countConflict says how a member's counts contradict its operation.
func (m *model) countConflict(c *planpb.Communication, n int, root bool) string {
	in, out, size := c.InCount, c.OutCount, int64(n)
	ok := true
	switch c.Op {
	case planpb.Op_OP_ALL_REDUCE:
		ok = in == out
	case planpb.Op_OP_ALL_GATHER:
		ok = out == in*size
	case planpb.Op_OP_REDUCE_SCATTER:
		ok = in == out*size
	case planpb.Op_OP_ALL_TO_ALL:
		ok = in == out && in%size == 0
	case planpb.Op_OP_GATHER:
		ok = out == in*size || !root && out == 0
	case planpb.Op_OP_SCATTER:
		ok = in == out*size || !root && in == 0
	case planpb.Op_OP_REDUCE:
		ok = in == out || !root && out == 0
	case planpb.Op_OP_BROADCAST:
		ok = in == out || root && out == 0 || !root && in == 0
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("counts %d in and %d out are not those of %s in a group of %d", in, out, opName(c), n)
}

func orPlain(c *planpb.Compression) string {
	if c == nil {
		return "none"
	}
	return CodecName(c)
}

func orNone(backend string) string {
	if backend == "" {
		return "no backend"
	}
	return backend
}
