package collective

import (
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// pairUneven pairs gathers and scatters whose members have different sizes, as an
// all_gather of a list has where ranks hold tensors of their own shapes. Sizes tell
// such operations apart on every member, so they are left over between two matches
// (or before the first, after the last). They are one and the same where all
// members have as many left over there, of the same operations and types in the
// same order.
func (m *Matching) pairUneven(run *trace.Run, members []int, sequences [][]int, reference int, aligned [][]int) {
	last := make([]int, len(members)) // behind the last match, in each sequence
	from := 0
	gap := func(to int, ends []int) {
		n := to - from
		for k := range members {
			if ends[k]-last[k] != n {
				return
			}
		}
		for i := range n {
			first := &run.Ranks[members[reference]].Operations[sequences[reference][from+i]]
			for k, r := range members {
				op := &run.Ranks[r].Operations[sequences[k][last[k]+i]]
				if !mayBeUneven(op, first) {
					return
				}
			}
		}
		for i := range n {
			for k := range members {
				aligned[k][from+i] = last[k] + i
			}
		}
	}
	ends := make([]int, len(members))
	for n := range sequences[reference] {
		whole := true
		for k := range members {
			whole = whole && aligned[k][n] >= 0
			ends[k] = aligned[k][n]
		}
		if !whole {
			continue
		}
		gap(n, ends)
		from = n + 1
		for k := range members {
			last[k] = aligned[k][n] + 1
		}
	}
	for k := range members {
		ends[k] = len(sequences[k])
	}
	gap(len(sequences[reference]), ends)
}

// mayBeUneven says whether two members' operations can be one whose parts differ in
// size: nothing else that the traces say contradicts it.
func mayBeUneven(a, b *comm.Operation) bool {
	switch a.Op.Even() {
	case comm.AllGather, comm.ReduceScatter:
	default:
		return false
	}
	return a.Op.Even() == b.Op.Even() && a.SizeKnown && b.SizeKnown && a.DType == b.DType &&
		(a.CommsID == 0 || a.CommsID == b.CommsID) && (!a.SeqKnown || !b.SeqKnown || a.Seq == b.Seq)
}
