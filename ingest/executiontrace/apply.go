package executiontrace

import (
	"maps"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Apply adds to the operations of a run what the execution traces of its ranks
// know: splits, sizes, the operation, the process group. What the run has
// already stays. An all_to_all with lists of splits becomes an all_to_allv, as
// PyTorch calls it, whether or not the lists are even on this rank.
//
// What cannot be joined is counted as execution-trace-unmatched, what is in
// the execution trace only as execution-trace-unused, and what contradicts the
// run as execution-trace-contradiction; nothing is taken from either.
func Apply(run *trace.Run, traces map[int]*Trace) diagnostic.Set {
	var diags diagnostic.Set
	joins := make([]joined, len(run.Ranks))
	for r, rank := range run.Ranks {
		t := traces[rank.Rank]
		if t == nil {
			if n := int64(len(rank.Operations)); n > 0 {
				diags.Add(diagnostic.Diagnostic{Code: "execution-trace-unmatched", Rank: rank.Rank, Count: n,
					Offset: diagnostic.NoOffset, Example: "there is no execution trace of this rank"})
			}
			continue
		}
		joins[r] = join(rank, t)
		joins[r].report(rank, t, &diags)
		for i, c := range joins[r].call {
			if c >= 0 {
				fill(rank, &rank.Operations[i], &t.Calls[c], &diags)
			}
		}
		sizeGroups(rank, t, &joins[r])
	}
	for _, r := range slices.Sorted(maps.Keys(traces)) {
		if n := int64(len(traces[r].Calls)); run.ByRank(r) == nil && n > 0 {
			diags.Add(diagnostic.Diagnostic{Code: "execution-trace-unused", Rank: r, Count: n,
				Offset: diagnostic.NoOffset, Example: traces[r].Source + " is of a rank that is not in the run"})
		}
	}
	nameGroups(run, traces, joins)
	return diags
}

// report counts what was not joined.
func (j *joined) report(rank *trace.Rank, t *Trace, diags *diagnostic.Set) {
	contradicted := map[int]bool{}
	for _, c := range j.contradicted {
		contradicted[c.operation] = true
		diags.Addf("execution-trace-contradiction", rank.Rank, rank.Operations[c.operation].Offset, "%s", c.why)
	}
	for i, c := range j.call {
		if c < 0 && !contradicted[i] {
			diags.Addf("execution-trace-unmatched", rank.Rank, rank.Operations[i].Offset, "%s: %s", rank.Operations[i].Op, j.reason[i])
		}
	}
	if j.unused > 0 {
		diags.Add(diagnostic.Diagnostic{Code: "execution-trace-unused", Rank: rank.Rank, Count: int64(j.unused),
			Offset: diagnostic.NoOffset, Example: "calls in " + t.Source + " that no operation of the profiler trace belongs to"})
	}
}

// fill sets what op lacks. The two agree in all that both know.
func fill(rank *trace.Rank, op *comm.Operation, call *Call, diags *diagnostic.Set) {
	if op.Op == comm.Unknown && !call.Op.IsP2P() { // of those the peer is not known
		op.Op = evenForm(call.Op)
	}
	if !op.SizeKnown && call.SizeKnown && op.Op != comm.Unknown {
		op.DType, op.In, op.Out, op.SizeKnown = call.DType, call.In, call.Out, true
	}
	if !call.SplitsKnown || !op.SizeKnown || evenForm(op.Op) != comm.AllToAll {
		return
	}
	contradict := func(format string, args ...any) {
		diags.Addf("execution-trace-contradiction", rank.Rank, op.Offset, format, args...)
	}
	n := len(call.InSplits)
	if size := groupSize(rank.Groups[op.Group]); n > 0 && size > 0 && n != size {
		contradict("%s has splits for %d ranks in the execution trace, its group has %d", op.Op, n, size)
		return
	}
	if op.SplitsKnown && !op.SplitsEstimated {
		if !sameParts(op.InSplits, call.InSplits) || !sameParts(op.OutSplits, call.OutSplits) {
			contradict("%s is cut in another way in the execution trace", op.Op)
		}
		return
	}
	op.SplitsKnown, op.SplitsEstimated = true, false
	op.InSplits, op.OutSplits = slices.Clone(call.InSplits), slices.Clone(call.OutSplits)
	if n > 0 {
		op.Op = comm.AllToAllV
	} else {
		op.Op = comm.AllToAll
	}
}

func groupSize(g comm.Group) int { return max(g.Size, len(g.Ranks)) }

// sizeGroups sets the size of groups where it is not known: what the calls in
// them say, if they agree.
func sizeGroups(rank *trace.Rank, t *Trace, j *joined) {
	sizes := make([]int, len(rank.Groups))
	for i, c := range j.call {
		if c < 0 {
			continue
		}
		call := &t.Calls[c]
		g := rank.Operations[i].Group
		for _, n := range []int{len(call.InSplits), groupSize(call.Group)} {
			switch {
			case n == 0 || sizes[g] == n:
			case sizes[g] == 0:
				sizes[g] = n
			default:
				sizes[g] = -1
			}
		}
	}
	for g, n := range sizes {
		if n > 0 && groupSize(rank.Groups[g]) == 0 {
			rank.Groups[g].Size = n
		}
	}
}

// nameGroups gives names and members to groups that have none. The run must
// stay consistent, for groups are matched across ranks: it is done for all
// operations of all ranks whose group has no name, or for none.
func nameGroups(run *trace.Run, traces map[int]*Trace, joins []joined) {
	complete := true
	for r, rank := range run.Ranks {
		for i := range rank.Operations {
			if rank.Groups[rank.Operations[i].Group].Name == "" {
				complete = complete && joins[r].call != nil && joins[r].call[i] >= 0 &&
					traces[rank.Rank].Calls[joins[r].call[i]].Group.Name != ""
			}
		}
	}
	for r, rank := range run.Ranks {
		if joins[r].call == nil {
			continue
		}
		moved := false
		for i, c := range joins[r].call {
			if c < 0 {
				continue
			}
			op, known := &rank.Operations[i], traces[rank.Rank].Calls[c].Group
			have := &rank.Groups[op.Group]
			switch {
			case have.Name == "" && complete:
				op.Group, moved = groupNamed(rank, known), true
			case have.Name != "" && have.Name == known.Name:
				complement(have, known)
			}
		}
		if moved {
			renumber(rank)
		}
	}
}

// complement adds what is known of a group of the same name.
func complement(g *comm.Group, known comm.Group) {
	if g.Ranks == nil && (g.Size == 0 || g.Size == len(known.Ranks)) {
		g.Ranks = slices.Clone(known.Ranks)
	}
	if g.Size == 0 {
		g.Size = groupSize(known)
	}
	if g.Description == "" {
		g.Description = known.Description
	}
}

// groupNamed finds or adds the group in the rank's groups.
func groupNamed(rank *trace.Rank, known comm.Group) int {
	for i := range rank.Groups {
		if rank.Groups[i].Name == known.Name {
			complement(&rank.Groups[i], known)
			return i
		}
	}
	g := comm.Group{Name: known.Name}
	complement(&g, known)
	rank.Groups = append(rank.Groups, g)
	return len(rank.Groups) - 1
}

// renumber drops groups that no operation is of any more and gives every
// operation its position in its group.
func renumber(rank *trace.Rank) {
	used := make([]bool, len(rank.Groups))
	for i := range rank.Operations {
		used[rank.Operations[i].Group] = true
	}
	to := make([]int, len(rank.Groups))
	var groups []comm.Group
	for g := range rank.Groups {
		to[g] = len(groups)
		if used[g] || rank.Groups[g].Name != "" {
			groups = append(groups, rank.Groups[g])
		}
	}
	rank.Groups = groups
	next := make([]int, len(groups))
	for i := range rank.Operations {
		op := &rank.Operations[i]
		op.Group = to[op.Group]
		op.Index = next[op.Group]
		next[op.Group]++
	}
}
