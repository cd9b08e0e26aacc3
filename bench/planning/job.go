package main

import (
	"fmt"

	"mixdown/replay/plan/planpb"
)

// width is the ranks of a tensor-parallel group.
const width = 8

// job is a step in which each rank has so many operations: computation on one
// stream, communication on another.
func job(ranks, operations int) *planpb.Workload {
	w := &planpb.Workload{WorldSize: int32(ranks), Groups: []*planpb.Group{{Name: "world"}}}
	replicas := ranks / width
	for t := range replicas { // groups 1 ...: tensor
		w.Groups = append(w.Groups, &planpb.Group{Name: fmt.Sprint("tensor ", t)})
	}
	for d := range width { // then data
		w.Groups = append(w.Groups, &planpb.Group{Name: fmt.Sprint("data ", d)})
	}
	for r := range int32(ranks) {
		t, d := 1+r/width, int32(1+replicas)+r%width
		for _, g := range []int32{0, t, d} {
			w.Groups[g].Ranks = append(w.Groups[g].Ranks, r)
		}
		w.Programs = append(w.Programs, program(r, int32(ranks), operations, t, d))
	}
	return w
}

// program is one rank's: of ten operations six are tensor parallel, two of data
// parallelism, one an exchange, one a message along a ring; the sizes of data
// parallel ones are those of fifty buckets.
func program(rank, ranks int32, operations int, tensor, data int32) *planpb.Program {
	p := &planpb.Program{Rank: rank, Streams: []*planpb.Stream{{Name: "device stream 7"}, {Name: "communication stream 20"}}}
	p.Tasks = make([]*planpb.Task, 0, 2*operations)
	seq := map[int32]int64{}
	// One for all: a job of this size should fit beside what it is planned with.
	computation := &planpb.Task_Span{Span: &planpb.Span{DurationNs: 100_000 + int64(rank%7)*1000}}
	for i := range operations {
		id := int32(len(p.Tasks))
		span := &planpb.Task{Id: id, Kind: computation}
		if i > 0 && i%4 == 0 { // computation needs what was communicated
			span.Deps = []int32{id - 1}
		}
		c := &planpb.Communication{Dtype: planpb.DType_DTYPE_BFLOAT16}
		switch k := i % 10; {
		case k < 6:
			c.Op, c.Group, c.InCount = [3]planpb.Op{planpb.Op_OP_ALL_REDUCE, planpb.Op_OP_ALL_GATHER, planpb.Op_OP_REDUCE_SCATTER}[k%3], tensor, 4<<20
			if k == 0 {
				c.InCount = 32 << 10
			}
		case k < 8:
			c.Op, c.Group, c.InCount = planpb.Op_OP_ALL_REDUCE, data, int64(i/10%50+1)<<17
		case k == 8:
			c.Op, c.Group, c.InCount = planpb.Op_OP_ALL_TO_ALL, tensor, 2<<20
		default:
			c.Op, c.InCount, c.OutCount = planpb.Op_OP_BATCH, 1<<18, 1<<18
			c.Transfers = []*planpb.Transfer{
				{Send: true, Peer: (rank + 1) % ranks, Count: 1 << 18, Match: int64(i)},
				{Peer: (rank + ranks - 1) % ranks, Count: 1 << 18, Match: int64(i)},
			}
		}
		if c.Op == planpb.Op_OP_ALL_REDUCE || c.Op == planpb.Op_OP_REDUCE_SCATTER {
			c.ReduceOp = planpb.ReduceOp_REDUCE_OP_SUM
		}
		if c.Transfers == nil {
			c.OutCount = c.InCount
			switch c.Op {
			case planpb.Op_OP_ALL_GATHER:
				c.InCount /= width
			case planpb.Op_OP_REDUCE_SCATTER:
				c.OutCount /= width
			}
			c.Seq = seq[c.Group]
			seq[c.Group]++
		}
		p.Tasks = append(p.Tasks, span, &planpb.Task{Id: id + 1, Stream: 1, Deps: []int32{id}, Kind: &planpb.Task_Communication{Communication: c}})
	}
	return p
}
