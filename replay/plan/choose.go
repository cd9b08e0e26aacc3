package plan

import (
	"slices"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/replay/plan/planpb"
)

// leaveOut counts an operation that is not replayed.
func (w *workload) leaveOut(code string, m collective.Member, reason string) {
	op := &w.run.Ranks[m.Rank].Operations[m.Operation]
	if w.keeps {
		w.diags.Addf(code, w.run.Ranks[m.Rank].Rank, op.Offset, "%s %d of its group is played with its time in the trace alone: %s", op.Op, op.Index, reason)
		return
	}
	w.diags.Addf(code, w.run.Ranks[m.Rank].Rank, op.Offset, "%s %d of its group is not replayed: %s", op.Op, op.Index, reason)
}

// chooseCollectives takes the matched collectives that lie in the step on all
// their members.
func (w *workload) chooseCollectives() {
	next := map[int]int64{} // group -> sequence number
	impossible := map[int]bool{}
	for _, i := range w.clocks.Impossible {
		impossible[i] = true
	}
	for i := range w.match.Collectives {
		c := &w.match.Collectives[i]
		inside := 0
		for _, m := range c.Members {
			if w.inWindow(m) {
				inside++
			}
		}
		if inside == 0 {
			continue
		}
		if inside < len(c.Members) {
			w.leaveOut("communication-outside-step", c.Members[0], "some members issued it in another step")
			continue
		}
		if impossible[i] {
			w.leaveOut("match-impossible", c.Members[0], "a member left it before another one arrived: the match is wrong")
			continue
		}
		w.keeps = w.simulate
		parts := w.convert(c)
		w.keeps = false
		if parts == nil {
			if !w.simulate {
				continue
			}
			parts = bare(c)
		}
		for k, m := range c.Members {
			parts[k].Group = w.group(c.Group)
			parts[k].Seq = next[c.Group]
			w.chosen[m] = parts[k]
		}
		next[c.Group]++
	}
	for _, u := range w.match.Unmatched {
		if w.inWindow(u.Member) {
			w.leaveOut("communication-not-replayed", u.Member, u.Reason)
		}
	}
}

// bare makes the parts of a collective of which no more is known than who took
// part.
func bare(c *collective.Collective) []*planpb.Communication {
	parts := make([]*planpb.Communication, len(c.Members))
	for k := range parts {
		parts[k] = &planpb.Communication{Op: opsToPB[c.Op]}
	}
	return parts
}

// convert makes every member's part of a collective, nil when it can't be
// replayed.
func (w *workload) convert(c *collective.Collective) []*planpb.Communication {
	op, ok := opsToPB[c.Op]
	if !ok {
		w.leaveOut("operation-unknown", c.Members[0], "what it does is not known")
		return nil
	}
	parts := make([]*planpb.Communication, len(c.Members))
	for k, m := range c.Members {
		o := &w.run.Ranks[m.Rank].Operations[m.Operation]
		if !o.SizeKnown {
			w.leaveOut("size-unknown", m, "its size is not in the trace (record_shapes=True records it)")
			return nil
		}
		parts[k] = &planpb.Communication{Op: op, Dtype: dtypesToPB[o.DType], InCount: o.In, OutCount: o.Out, Channels: int32(o.Channels)}
		if c.Op.Reduces() && !o.DType.Reducible() {
			w.leaveOut("communication-not-replayed", m, "no library reduces "+string(o.DType))
			return nil
		}
		// torch.distributed.all_reduce writes over its tensor; the others have an
		// output of their own, or the trace does not say.
		parts[k].InPlace = c.Op == comm.AllReduce
		if c.Op.Reduces() {
			parts[k].ReduceOp = planpb.ReduceOp_REDUCE_OP_SUM // traces do not say; the cost is the same
		}
		if k > 0 && parts[k].Dtype != parts[0].Dtype {
			w.leaveOut("size-mismatch", m, "its members have different element types")
			return nil
		}
	}
	if c.Op.Rooted() && !w.setRoot(c, parts) {
		return nil
	}
	if c.Op == comm.AllToAll || c.Op == comm.AllToAllV {
		return w.convertAllToAll(c, parts)
	}
	root := slices.Index(w.match.Groups[c.Group].Ranks, int(parts[0].Root))
	if reason := settle(c.Op, parts, root); reason != "" {
		w.leaveOut("size-mismatch", c.Members[0], reason)
		return nil
	}
	w.addTensors(c, parts)
	return parts
}

// addTensors gives a coalesced collective its tensors, where every member's trace
// has them and they are each what the operation does; else it stays one of the
// same size in all.
func (w *workload) addTensors(c *collective.Collective, parts []*planpb.Communication) {
	tensors := make([][]comm.Tensor, len(c.Members))
	for k, m := range c.Members {
		tensors[k] = w.run.Ranks[m.Rank].Operations[m.Operation].Tensors
		if len(tensors[k]) == 0 || len(tensors[k]) != len(tensors[0]) {
			return
		}
	}
	n := int64(len(parts))
	for k, p := range parts {
		for i, t := range tensors[k] {
			ok := t.In == tensors[0][i].In && t.Out == tensors[0][i].Out
			switch p.Op {
			case planpb.Op_OP_ALL_REDUCE, planpb.Op_OP_BROADCAST, planpb.Op_OP_REDUCE:
				ok = ok && t.In == t.Out
			case planpb.Op_OP_ALL_GATHER:
				ok = ok && t.Out == t.In*n
			case planpb.Op_OP_REDUCE_SCATTER:
				ok = ok && t.In == t.Out*n
			default:
				ok = false
			}
			if !ok {
				return
			}
		}
	}
	for k, p := range parts {
		for _, t := range tensors[k] {
			p.Parts = append(p.Parts, &planpb.Part{InCount: t.In, OutCount: t.Out})
		}
	}
}

// setRoot takes the root from any member that knows it.
func (w *workload) setRoot(c *collective.Collective, parts []*planpb.Communication) bool {
	root, known := w.match.Groups[c.Group].Ranks[0], false
	for _, m := range c.Members {
		o := &w.run.Ranks[m.Rank].Operations[m.Operation]
		if o.RootKnown && known && o.Root != root {
			w.leaveOut("root-mismatch", m, "its members name different roots")
			return false
		}
		if o.RootKnown {
			root, known = o.Root, true
		}
	}
	if !known {
		w.diags.Addf("root-assumed", diagnostic.NoRank, diagnostic.NoOffset,
			"the trace does not say which rank is the root of %s: the first of the group is taken", c.Op)
	}
	for _, p := range parts {
		p.Root = int32(root)
	}
	return true
}

// settle writes the members' sizes the way plans have them: gathers and scatters
// of uneven parts as their v forms, and what a trace says of a rank that has no
// part in it as nothing. It returns how the sizes contradict the operation, ""
// when they do not. root is a position among the parts.
func settle(op comm.Op, parts []*planpb.Communication, root int) string {
	var in, out int64
	evenIn, evenOut := true, true
	for _, p := range parts {
		in += p.InCount
		out += p.OutCount
		evenIn = evenIn && p.InCount == parts[0].InCount
		evenOut = evenOut && p.OutCount == parts[0].OutCount
	}
	for k, p := range parts {
		switch op {
		case comm.AllReduce, comm.Broadcast, comm.Reduce:
			if !evenIn || !evenOut {
				return "its members have different sizes"
			}
			if p.InCount != p.OutCount {
				return "its input and output differ in size"
			}
		case comm.AllGather, comm.AllGatherV:
			if !evenIn && p.OutCount == p.InCount*int64(len(parts)) {
				p.OutCount = in // the trace has this rank's own input alone
			}
			if p.OutCount != in {
				return "what it gathers is not what its members contribute"
			}
			p.Op = evenOr(evenIn, planpb.Op_OP_ALL_GATHER, planpb.Op_OP_ALL_GATHERV)
		case comm.ReduceScatter, comm.ReduceScatterV:
			if !evenOut && p.InCount == p.OutCount*int64(len(parts)) {
				p.InCount = out // likewise its own output
			}
			if p.InCount != out {
				return "what it scatters is not what its members receive"
			}
			p.Op = evenOr(evenOut, planpb.Op_OP_REDUCE_SCATTER, planpb.Op_OP_REDUCE_SCATTERV)
		case comm.Gather:
			if k == root && p.OutCount != in {
				return "what its root gathers is not what its members contribute"
			}
			p.Op = evenOr(evenIn, planpb.Op_OP_GATHER, planpb.Op_OP_GATHERV)
			if k != root {
				p.OutCount = 0
			}
		case comm.Scatter:
			if k == root && p.InCount != out {
				return "what its root scatters is not what its members receive"
			}
			p.Op = evenOr(evenOut, planpb.Op_OP_SCATTER, planpb.Op_OP_SCATTERV)
			if k != root {
				p.InCount = 0
			}
		}
	}
	return ""
}

func evenOr(even bool, evenOp, unevenOp planpb.Op) planpb.Op {
	if even {
		return evenOp
	}
	return unevenOp
}

// convertAllToAll gives every member its splits: the trace's where all members
// have them, else estimated from the totals.
func (w *workload) convertAllToAll(c *collective.Collective, parts []*planpb.Communication) []*planpb.Communication {
	n := len(parts)
	in, out := make([]int64, n), make([]int64, n)
	exact, even := true, true
	for k, m := range c.Members {
		o := &w.run.Ranks[m.Rank].Operations[m.Operation]
		in[k], out[k] = o.In, o.Out
		exact = exact && o.SplitsKnown && !o.SplitsEstimated
		even = even && len(o.InSplits)+len(o.OutSplits) == 0 && o.In == parts[0].InCount && o.Out == o.In && o.In%int64(n) == 0
	}
	if exact && even {
		for _, p := range parts {
			p.Op = planpb.Op_OP_ALL_TO_ALL
		}
		return parts
	}
	var matrix [][]int64
	if exact {
		matrix = w.exactSplits(c)
	} else {
		var ok bool
		if matrix, ok = collective.EstimateSplits(in, out); !ok {
			w.leaveOut("size-mismatch", c.Members[0], "its members send more or less than they receive in all")
			return nil
		}
		w.diags.Addf("splits-estimated", diagnostic.NoRank, diagnostic.NoOffset,
			"the parts of an all_to_all are not in the trace: estimated from every member's totals (--execution-traces has them)")
	}
	if matrix == nil {
		w.leaveOut("size-mismatch", c.Members[0], "what a member sends to another is not what that one receives")
		return nil
	}
	for k, p := range parts {
		p.Op = planpb.Op_OP_ALL_TO_ALLV
		p.InSplits = matrix[k]
		p.SplitsEstimated = !exact
		for i := range n {
			p.OutSplits = append(p.OutSplits, matrix[i][k])
		}
	}
	return parts
}

// exactSplits is who sends how much to whom, nil when the members contradict
// each other.
func (w *workload) exactSplits(c *collective.Collective) [][]int64 {
	n := len(c.Members)
	matrix := make([][]int64, n)
	for k, m := range c.Members {
		o := &w.run.Ranks[m.Rank].Operations[m.Operation]
		matrix[k] = evenly(o.InSplits, o.In, n)
		if len(matrix[k]) != n {
			return nil
		}
	}
	for k, m := range c.Members {
		o := &w.run.Ranks[m.Rank].Operations[m.Operation]
		received := evenly(o.OutSplits, o.Out, n)
		if len(received) != n {
			return nil
		}
		for i := range n {
			if matrix[i][k] != received[i] {
				return nil
			}
		}
	}
	return matrix
}

func evenly(splits []int64, total int64, n int) []int64 {
	if len(splits) > 0 || total%int64(n) != 0 {
		return splits
	}
	return slices.Repeat([]int64{total / int64(n)}, n)
}

// chooseTransfers takes the point-to-point operations of the step whose every
// transfer has its partner in the step.
func (w *workload) chooseTransfers() {
	type end struct {
		collective.Member
		transfer int
	}
	partner := map[end]end{}
	number := map[end]int64{} // of the pair
	candidates := map[collective.Member]bool{}
	var order []collective.Member // of the candidates, to keep results the same from run to run
	for i, p := range w.match.Pairs {
		s, r := end{p.Send, p.SendTransfer}, end{p.Recv, p.RecvTransfer}
		partner[s], partner[r] = r, s
		number[s], number[r] = int64(i+1), int64(i+1)
		for _, m := range []collective.Member{p.Send, p.Recv} {
			if w.inWindow(m) && (w.simulate || w.run.Ranks[m.Rank].Operations[m.Operation].SizeKnown) && !candidates[m] {
				candidates[m] = true
				order = append(order, m)
			}
		}
	}
	// Leaving one out leaves its partners without one, and so on.
	for changed := true; changed; {
		changed = false
		for _, m := range order {
			if !candidates[m] {
				continue
			}
			for t := range w.run.Ranks[m.Rank].Operations[m.Operation].Transfers {
				p, ok := partner[end{m, t}]
				if !ok || !candidates[p.Member] {
					delete(candidates, m)
					w.leaveOut("communication-outside-step", m, "its partner is not in the step")
					changed = true
					break
				}
			}
		}
	}
	for _, m := range order {
		if !candidates[m] {
			continue
		}
		op := &w.run.Ranks[m.Rank].Operations[m.Operation]
		c := &planpb.Communication{
			Group: w.group(w.match.GroupOf[m.Rank][op.Group]), Op: opsToPB[op.Op], Dtype: dtypesToPB[op.DType],
			InCount: op.In, OutCount: op.Out, Channels: int32(op.Channels),
		}
		for t, tr := range op.Transfers {
			c.Transfers = append(c.Transfers, &planpb.Transfer{
				Send: tr.Send, Peer: int32(tr.Peer), Count: tr.Count, Match: number[end{m, t}],
			})
		}
		w.chosen[m] = c
	}
}
