package kineto

import (
	"slices"

	"mixdown/ingest/comm"
)

// fill sets what s knows on op and finds its group.
func (rd *reading) fill(op *comm.Operation, s facts) {
	op.Op = s.op
	op.DType, op.In, op.Out, op.SizeKnown = s.dtype, s.in, s.out, s.sized
	if s.op == comm.Barrier && !s.sized {
		op.DType, op.SizeKnown = comm.Uint8, true
	}
	if s.op == comm.Barrier {
		op.In, op.Out = 0, 0 // the tensor of an all_reduce behind it is not the caller's
	}
	if s.hasSplits {
		op.SplitsKnown = true
		op.InSplits, op.OutSplits = s.inSplits, s.outSplits
	}
	op.Seq, op.SeqKnown, op.CommsID, op.RecordFn = s.seq, s.hasSeq, s.commsID, s.recordFn
	op.Group = rd.groupIndex(s, op.Stream)
	group := rd.rank.Groups[op.Group]
	op.Tensors = s.tensorsOf(op, group.Size)
	switch {
	case s.op == comm.Send || s.op == comm.Recv:
		if t, ok := transfer(s, group); ok {
			op.Transfers = []comm.Transfer{t}
		}
	case s.op.Rooted():
		if s.rank >= 0 && s.rank < len(group.Ranks) {
			op.Root, op.RootKnown = group.Ranks[s.rank], true
		}
	case s.op == comm.AllToAll && (len(s.inSplits) > 0 || len(s.outSplits) > 0):
		op.Op = comm.AllToAllV
	}
	if op.Op == comm.AllToAllV && s.hasSplits {
		// One side may be even, which the trace writes as an empty list.
		op.InSplits = evenSplits(rows(op.InSplits, op.In), op.In, group.Size)
		op.OutSplits = evenSplits(rows(op.OutSplits, op.Out), op.Out, group.Size)
		if sum(op.InSplits) != op.In || sum(op.OutSplits) != op.Out {
			op.SplitsKnown, op.InSplits, op.OutSplits = false, nil, nil
		}
	}
}

// rows turns splits that count rows of the first dimension, as
// all_to_all_single takes them, into elements. Splits that add up to the total
// are elements already.
func rows(splits []int64, total int64) []int64 {
	n := sum(splits)
	if n == 0 || n == total || total%n != 0 {
		return splits
	}
	return scale(splits, total/n)
}

func evenSplits(splits []int64, total int64, n int) []int64 {
	if len(splits) > 0 || n <= 0 || total%int64(n) != 0 {
		return splits
	}
	return slices.Repeat([]int64{total / int64(n)}, n)
}

func sum(list []int64) int64 {
	var total int64
	for _, n := range list {
		total += n
	}
	return total
}

// transfer is the direction and peer of a send or recv, in global ranks. The
// profiler writes them as Src Rank and Dst Rank; before, Rank was the peer's
// position in the group.
func transfer(s facts, group comm.Group) (comm.Transfer, bool) {
	t := comm.Transfer{Send: s.op == comm.Send, Peer: -1, Count: s.out}
	if t.Send {
		t.Count = s.in
		t.Peer = s.dst
	} else {
		t.Peer = s.src
	}
	if t.Peer < 0 && s.rank >= 0 && s.rank < len(group.Ranks) {
		t.Peer = group.Ranks[s.rank]
	}
	return t, t.Peer >= 0
}

// fillGrouped makes one operation of several calls launched together: a batch
// of sends and receives, or coalesced collectives of one kind, whose sizes add up.
func (rd *reading) fillGrouped(op *comm.Operation, sources []facts) {
	first := sources[0]
	if !first.op.IsP2P() {
		merged := first
		merged.inputs, merged.outputs = nil, nil
		for _, s := range sources {
			merged.inputs, merged.outputs = append(merged.inputs, s.in), append(merged.outputs, s.out)
		}
		for _, s := range sources[1:] {
			if s.op != first.op || s.dtype != first.dtype {
				merged.op, merged.sized = comm.Unknown, false
				break
			}
			merged.in += s.in
			merged.out += s.out
			merged.sized = merged.sized && s.sized
		}
		merged.hasSplits = false
		rd.fill(op, merged)
		return
	}
	batch := first
	batch.op, batch.in, batch.out, batch.hasSplits = comm.Batch, 0, 0, false
	batch.inputs, batch.outputs = nil, nil
	for _, s := range sources {
		batch.in += s.in
		batch.out += s.out
		batch.sized = batch.sized && s.sized && s.dtype == first.dtype
	}
	rd.fill(op, batch)
	group := rd.rank.Groups[op.Group]
	for _, s := range sources {
		t, ok := transfer(s, group)
		if !ok {
			op.Transfers = nil
			return
		}
		op.Transfers = append(op.Transfers, t)
	}
}

// groupIndex finds or adds the group of an operation. Members come from the
// record, else from the file's list of groups.
func (rd *reading) groupIndex(s facts, stream string) int {
	want := comm.Group{Stream: stream}
	if s.hasGroup {
		want = s.group
	}
	if s.hasGroup && s.group.Name != "" {
		for _, g := range rd.rank.Distributed.Groups {
			if g.Name != want.Name {
				continue
			}
			if want.Ranks == nil {
				want.Ranks = g.Ranks
			}
			if want.Description == "" {
				want.Description = g.Description
			}
			want.Size = max(want.Size, g.Size)
		}
		want.Size = max(want.Size, len(want.Ranks))
	}
	for i, g := range rd.rank.Groups {
		if g.Name == want.Name && g.Stream == want.Stream {
			if g.Ranks == nil {
				rd.rank.Groups[i].Ranks = want.Ranks
			}
			rd.rank.Groups[i].Size = max(g.Size, want.Size)
			return i
		}
	}
	rd.rank.Groups = append(rd.rank.Groups, want)
	return len(rd.rank.Groups) - 1
}

// number gives every operation its position in its group, in issue order.
func (rd *reading) number() {
	next := make([]int, len(rd.rank.Groups))
	for i := range rd.rank.Operations {
		op := &rd.rank.Operations[i]
		op.Index = next[op.Group]
		next[op.Group]++
	}
}
