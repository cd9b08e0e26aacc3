package measure

import (
	"fmt"

	"mixdown/ingest/comm"
	"mixdown/replay/plan/planpb"
)

// program is a plan of a point on a backend, and how to read its times.
type program struct {
	plan *planpb.Plan
	// steps of stream s: steps[s][i] is the task of each rank that ends the i-th
	// step, in order. The first is warm-up.
	steps [][][]int32
	// mean: a step does not end on all ranks before the next begins on some, so that
	// only all steps together have a time.
	mean  bool
	parts int64 // operations that a step stands for: 2 for a message there and back
}

// repetitions is how often an operation runs in one iteration, the first not
// counted: often where starting costs more than running, seldom where one fills
// the caches of the whole machine.
func repetitions(p Point) int {
	switch {
	case p.Bytes*int64(p.Ranks)*int64(max(p.Streams, 1)) > 128<<20:
		return 3
	case p.Bytes <= 64<<10:
		return 17
	case p.Bytes <= 1<<20:
		return 9
	}
	return 5
}

var opsToPB = map[comm.Op]planpb.Op{
	comm.AllReduce: planpb.Op_OP_ALL_REDUCE, comm.Reduce: planpb.Op_OP_REDUCE, comm.Broadcast: planpb.Op_OP_BROADCAST,
	comm.AllGather: planpb.Op_OP_ALL_GATHER, comm.ReduceScatter: planpb.Op_OP_REDUCE_SCATTER,
	comm.AllToAll: planpb.Op_OP_ALL_TO_ALL, comm.AllToAllV: planpb.Op_OP_ALL_TO_ALLV,
	comm.Gather: planpb.Op_OP_GATHER, comm.Scatter: planpb.Op_OP_SCATTER, comm.Barrier: planpb.Op_OP_BARRIER,
}

var dtypesToPB = map[comm.DType]planpb.DType{
	comm.Float32: planpb.DType_DTYPE_FLOAT32, comm.Float64: planpb.DType_DTYPE_FLOAT64, comm.Float16: planpb.DType_DTYPE_FLOAT16,
	comm.BFloat16: planpb.DType_DTYPE_BFLOAT16, comm.Int8: planpb.DType_DTYPE_INT8, comm.Uint8: planpb.DType_DTYPE_UINT8,
	comm.Int16: planpb.DType_DTYPE_INT16, comm.Int32: planpb.DType_DTYPE_INT32, comm.Int64: planpb.DType_DTYPE_INT64,
	comm.Bool: planpb.DType_DTYPE_BOOL,
}

// newProgram makes the plan of a point.
func newProgram(name string, p Point, backend string) *program {
	w := &planpb.Workload{WorldSize: int32(p.Ranks), Step: p.String()}
	g := &program{plan: &planpb.Plan{Name: name, Mix: "*=" + backend, Schedule: "traced", Workload: w}, parts: 1}
	for r := range p.Ranks {
		w.Programs = append(w.Programs, &planpb.Program{Rank: int32(r)})
	}
	g.mean = p.rotates()
	for s := range p.Streams {
		group := &planpb.Group{Name: fmt.Sprint(s)}
		for r := range p.Ranks {
			group.Ranks = append(group.Ranks, int32(r))
			w.Programs[r].Streams = append(w.Programs[r].Streams, &planpb.Stream{Name: fmt.Sprintf("stream %d", s)})
		}
		w.Groups = append(w.Groups, group)
	}
	g.steps = make([][][]int32, p.Streams)
	for i := range repetitions(p) {
		for s := range p.Streams {
			if p.Op == comm.Send {
				g.pingPong(s, p, backend, int64(i))
				continue
			}
			g.add(s, func(rank int) *planpb.Communication { return communication(p, backend, i, rank) })
		}
	}
	return g
}

// rotates says whether the operation has a root: then the root is another rank
// each time, so that no rank can run ahead of the others.
func (p Point) rotates() bool {
	return p.Op == comm.Broadcast || p.Op == comm.Reduce || p.Op == comm.Gather || p.Op == comm.Scatter
}

// add appends a task to every rank's stream.
func (g *program) add(stream int, of func(rank int) *planpb.Communication) {
	var ends []int32
	for r, program := range g.plan.Workload.Programs {
		c := of(r)
		c.Group = int32(stream)
		ends = append(ends, push(program, stream, c))
	}
	g.steps[stream] = append(g.steps[stream], ends)
}

func push(program *planpb.Program, stream int, c *planpb.Communication) int32 {
	id := int32(len(program.Tasks))
	program.Tasks = append(program.Tasks, &planpb.Task{Id: id, Stream: int32(stream), Kind: &planpb.Task_Communication{Communication: c}})
	return id
}

// communication is a rank's part of the i-th collective.
func communication(p Point, backend string, i, rank int) *planpb.Communication {
	c := &planpb.Communication{Op: opsToPB[p.Op], Dtype: dtypesToPB[p.DType], Seq: int64(i), Backend: backend}
	root := 0
	if p.rotates() {
		root = i % p.Ranks
		c.Root = int32(root)
	}
	if p.Op == comm.Barrier {
		c.Dtype = planpb.DType_DTYPE_FLOAT32
		return c
	}
	if p.Op.Reduces() {
		c.ReduceOp = planpb.ReduceOp_REDUCE_OP_SUM
	}
	in, out := p.InOut()
	c.InCount, c.OutCount = in/p.DType.Size(), out/p.DType.Size()
	if p.Op == comm.AllToAllV {
		for range p.Ranks {
			c.InSplits = append(c.InSplits, c.InCount/int64(p.Ranks))
			c.OutSplits = append(c.OutSplits, c.OutCount/int64(p.Ranks))
		}
	}
	if p.Op == comm.Gather && rank != root {
		c.OutCount = 0
	}
	if p.Op == comm.Scatter && rank != root {
		c.InCount = 0
	}
	return c
}

// pingPong sends a message to the other rank and back; the way there is half the
// time.
func (g *program) pingPong(stream int, p Point, backend string, i int64) {
	g.parts = 2
	count := p.Bytes / p.DType.Size()
	var ends []int32
	for r, program := range g.plan.Workload.Programs {
		var last int32
		for leg := range int64(2) {
			sends := int64(r) == leg
			op := planpb.Op_OP_RECV
			if sends {
				op = planpb.Op_OP_SEND
			}
			last = push(program, stream, &planpb.Communication{
				Group: int32(stream), Op: op, Dtype: dtypesToPB[p.DType], Backend: backend,
				Transfers: []*planpb.Transfer{{Send: sends, Peer: int32(1 - r), Count: count, Match: 2*i + leg}},
			})
		}
		ends = append(ends, last)
	}
	g.steps[stream] = append(g.steps[stream], ends)
}
