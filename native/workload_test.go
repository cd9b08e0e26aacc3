// Making workloads, a collective of all members at a time.
package native_test

import (
	"mixdown/replay/plan/planpb"
)

type builder struct {
	w       *planpb.Workload
	backend string
	seq     map[int]int64
	match   int64
}

// newBuilder makes a world of size ranks, all with a program of that many
// streams, and a group 0 of all of them.
func newBuilder(size, streams int, backend string) *builder {
	b := &builder{w: &planpb.Workload{WorldSize: int32(size)}, backend: backend, seq: map[int]int64{}}
	all := make([]int, size)
	for r := range size {
		all[r] = r
		p := &planpb.Program{Rank: int32(r)}
		for range streams {
			p.Streams = append(p.Streams, &planpb.Stream{})
		}
		b.w.Programs = append(b.w.Programs, p)
	}
	b.group(all...)
	return b
}

func (b *builder) group(ranks ...int) int {
	g := &planpb.Group{}
	for _, r := range ranks {
		g.Ranks = append(g.Ranks, int32(r))
	}
	b.w.Groups = append(b.w.Groups, g)
	return len(b.w.Groups) - 1
}

func (b *builder) members(group int) []int {
	var ranks []int
	for _, r := range b.w.Groups[group].Ranks {
		ranks = append(ranks, int(r))
	}
	return ranks
}

// add appends a task to the rank's program and returns its id.
func (b *builder) add(rank, stream int, task *planpb.Task, deps ...int32) int32 {
	p := b.w.Programs[rank]
	task.Id, task.Stream, task.Deps = int32(len(p.Tasks)), int32(stream), deps
	p.Tasks = append(p.Tasks, task)
	return task.Id
}

func (b *builder) span(rank, stream int, ns int64, deps ...int32) int32 {
	span := &planpb.Span{Kind: planpb.Span_HOST, DurationNs: ns}
	return b.add(rank, stream, &planpb.Task{Kind: &planpb.Task_Span{Span: span}}, deps...)
}

func (b *builder) communication(rank, stream int, c *planpb.Communication, deps ...int32) int32 {
	c.Backend = b.backend
	return b.add(rank, stream, &planpb.Task{Kind: &planpb.Task_Communication{Communication: c}}, deps...)
}

// call is one collective of all members.
type call struct {
	op            planpb.Op
	dtype         planpb.DType
	red           planpb.ReduceOp
	group, root   int     // root: position in the group
	count         int64   // per member or, for operations without blocks, in all
	parts         []int64 // in place of count, of a coalesced one
	stream        int
	inPlace       bool
	factor        float64 // of premul_sum
	withoutSplits bool    // the worker takes them from the members where it can
}

// collective adds one operation to the programs of all members. count is per
// member or, for operations without blocks, in all.
func (b *builder) collective(op planpb.Op, d planpb.DType, red planpb.ReduceOp, group, root int, count int64, stream int) {
	b.call(call{op: op, dtype: d, red: red, group: group, root: root, count: count, stream: stream,
		withoutSplits: b.seq[group]%2 == 1})
}

// call adds one operation to the programs of all members.
func (b *builder) call(x call) {
	ranks := b.members(x.group)
	seq := b.seq[x.group]
	b.seq[x.group]++
	for i, rank := range ranks {
		c := &planpb.Communication{Group: int32(x.group), Seq: seq, Op: x.op, Dtype: x.dtype, Root: int32(ranks[x.root]),
			ReduceOp: x.red, InPlace: x.inPlace, Factor: x.factor}
		for _, count := range x.parts {
			part := &planpb.Part{}
			part.InCount, part.OutCount = evenCounts(x.op, count, int64(len(ranks)), i == x.root)
			c.Parts = append(c.Parts, part)
			c.InCount += part.InCount
			c.OutCount += part.OutCount
		}
		if len(x.parts) == 0 {
			c.InCount, c.OutCount = evenCounts(x.op, x.count, int64(len(ranks)), i == x.root)
			unevenCounts(c, x, i, len(ranks))
		}
		b.communication(rank, x.stream, c)
	}
}

// evenCounts are what a member contributes and receives of an operation whose
// blocks are all of one size.
func evenCounts(op planpb.Op, count, n int64, isRoot bool) (in, out int64) {
	switch op {
	case planpb.Op_OP_ALL_REDUCE:
		return count, count
	case planpb.Op_OP_REDUCE:
		if isRoot {
			return count, count
		}
		return count, 0
	case planpb.Op_OP_BROADCAST:
		if isRoot {
			return count, count
		}
		return 0, count
	case planpb.Op_OP_ALL_GATHER:
		return count, count * n
	case planpb.Op_OP_REDUCE_SCATTER:
		return count * n, count
	case planpb.Op_OP_ALL_TO_ALL:
		return count * n, count * n
	case planpb.Op_OP_GATHER:
		if isRoot {
			return count, count * n
		}
		return count, 0
	case planpb.Op_OP_SCATTER:
		if isRoot {
			return count * n, count
		}
		return 0, count
	}
	return 0, 0
}

// split is how many elements member i of n has with member j in uneven
// operations; some are none.
func split(i, j int, count int64) int64 { return count * int64((i+2*j)%3) }

// unevenCounts sets counts and splits of member i of n, for the v operations.
func unevenCounts(c *planpb.Communication, x call, i, n int) {
	each := make([]int64, n) // of every member's block
	for j := range each {
		each[j] = split(j, 1, x.count)
	}
	splits := each
	if x.withoutSplits {
		splits = nil
	}
	switch x.op {
	case planpb.Op_OP_ALL_TO_ALLV:
		for j := range n {
			if x.inPlace { // symmetric
				c.InSplits = append(c.InSplits, split(i+j, 1, x.count))
				c.OutSplits = append(c.OutSplits, split(i+j, 1, x.count))
			} else {
				c.InSplits = append(c.InSplits, split(i, j, x.count))
				c.OutSplits = append(c.OutSplits, split(j, i, x.count))
			}
		}
		c.InCount, c.OutCount = sum(c.InSplits), sum(c.OutSplits)
	case planpb.Op_OP_ALL_GATHERV:
		c.InCount, c.OutCount, c.OutSplits = each[i], sum(each), splits
	case planpb.Op_OP_REDUCE_SCATTERV:
		c.InCount, c.OutCount, c.InSplits = sum(each), each[i], splits
	case planpb.Op_OP_GATHERV:
		c.InCount = each[i]
		if i == x.root {
			c.OutCount, c.OutSplits = sum(each), splits
		}
	case planpb.Op_OP_SCATTERV:
		c.OutCount = each[i]
		if i == x.root {
			c.InCount, c.InSplits = sum(each), splits
		}
	}
}

func sum(x []int64) int64 {
	var s int64
	for _, v := range x {
		s += v
	}
	return s
}

// ring adds a batch in which each member sends to its right and receives from
// its left neighbour, which is itself in a group of one.
func (b *builder) ring(group int, d planpb.DType, count int64, stream int) {
	ranks := b.members(group)
	n := len(ranks)
	base := b.match
	b.match += int64(n)
	for i, rank := range ranks {
		left, right := (i+n-1)%n, (i+1)%n
		c := &planpb.Communication{Group: int32(group), Op: planpb.Op_OP_BATCH, Dtype: d, InCount: count, OutCount: count}
		c.Transfers = []*planpb.Transfer{
			{Send: true, Peer: int32(ranks[right]), Count: count, Match: base + int64(i)},
			{Peer: int32(ranks[left]), Count: count, Match: base + int64(left)},
		}
		b.communication(rank, stream, c)
	}
}

// sendRecv adds a send and the receive of it.
func (b *builder) sendRecv(group, from, to int, d planpb.DType, count int64, stream int) {
	match := b.match
	b.match++
	send := &planpb.Communication{Group: int32(group), Op: planpb.Op_OP_SEND, Dtype: d, InCount: count,
		Transfers: []*planpb.Transfer{{Send: true, Peer: int32(to), Count: count, Match: match}}}
	recv := &planpb.Communication{Group: int32(group), Op: planpb.Op_OP_RECV, Dtype: d, OutCount: count,
		Transfers: []*planpb.Transfer{{Peer: int32(from), Count: count, Match: match}}}
	b.communication(from, stream, send)
	b.communication(to, stream, recv)
}

func experiment(workloads ...*planpb.Workload) *planpb.Experiment {
	e := &planpb.Experiment{SchemaVersion: 1, Settings: &planpb.Settings{
		Iterations: 2, Warmup: 1, Verify: true, SpanMode: planpb.SpanMode_SPAN_MODE_SLEEP, Samples: 1, Seed: 1}}
	for _, w := range workloads {
		e.Plans = append(e.Plans, &planpb.Plan{Name: "test", Workload: w})
	}
	return e
}
