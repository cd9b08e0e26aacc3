package main

import (
	"fmt"

	"mixdown/replay/plan/planpb"
)

// benchCase is one operation of one size on one library.
type benchCase struct {
	library string
	ranks   int
	op      string
	bytes   int64 // each rank's input
	calls   int   // that are timed; a send_recv is a message there and one back
	before  int   // calls before them
	pairs   []pair
	dropped int // pairs in which one side ran into the other's time
}

// pair is one turn of both: ns of one operation. What is compared is the median of
// a turn's calls, as other programs may interrupt some of them; the mean is shown.
type pair struct {
	start                 uint64 // of the processes
	alone, worker         float64
	aloneMean, workerMean float64
}

// perCall is how many operations one call is.
func (c *benchCase) perCall() int {
	if c.op == "send_recv" {
		return 2
	}
	return 1
}

var sizes = []int64{8, 512, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20}

func casesOf(library string, ranks int, o options) []*benchCase {
	var list []*benchCase
	for _, op := range o.ops {
		if library == "ucx" && op != "send_recv" {
			continue // UCX has no collectives of its own
		}
		for _, bytes := range sizes {
			if bytes < o.smallest || bytes > o.largest {
				continue
			}
			c := &benchCase{library: library, ranks: ranks, op: op, bytes: bytes}
			c.calls, c.before = callsOf(library, ranks, bytes)
			list = append(list, c)
		}
	}
	return list
}

// callsOf is how many calls make a turn of a few milliseconds.
func callsOf(library string, ranks int, bytes int64) (calls, before int) {
	switch {
	case bytes >= 16<<20:
		return int(64 << 20 / bytes), 0
	case bytes >= 1<<20:
		return 8, 1
	case bytes >= 64<<10:
		return 40, 4
	case library == "gloo" || ranks > 2:
		return 100, 10
	}
	return 1000, 100
}

// plan is what the worker runs: a span in which the library has its turn alone, a
// barrier, and the calls.
func (c *benchCase) plan(span int64) *planpb.Plan {
	w := &planpb.Workload{WorldSize: int32(c.ranks), Groups: []*planpb.Group{{}}}
	for r := range c.ranks {
		w.Groups[0].Ranks = append(w.Groups[0].Ranks, int32(r))
		p := &program{library: c.library, pb: &planpb.Program{Rank: int32(r), Streams: []*planpb.Stream{{Name: "host"}}}}
		p.add(&planpb.Task{Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: planpb.Span_HOST, DurationNs: span}}})
		p.collective(planpb.Op_OP_BARRIER, 0, 0)
		for range c.before + c.calls {
			p.call(c.op, c.bytes)
		}
		w.Programs = append(w.Programs, p.pb)
	}
	return &planpb.Plan{Name: fmt.Sprintf("%s %d", c.op, c.bytes), Mix: "*=" + c.library, Schedule: "traced", Workload: w}
}

// first is the first of the timed tasks.
func (c *benchCase) first() int { return 2 + c.before*c.perCall() }

// program is a rank's program in the making.
type program struct {
	library string
	pb      *planpb.Program
	seq     int64
	match   int64
}

func (p *program) add(t *planpb.Task) {
	t.Id = int32(len(p.pb.Tasks))
	p.pb.Tasks = append(p.pb.Tasks, t)
}

func (p *program) communication(c *planpb.Communication) {
	c.Backend = p.library
	p.add(&planpb.Task{Kind: &planpb.Task_Communication{Communication: c}})
}

func (p *program) collective(op planpb.Op, dtype planpb.DType, count int64) {
	c := &planpb.Communication{Op: op, Seq: p.seq, Dtype: dtype, InCount: count, OutCount: count}
	if op == planpb.Op_OP_ALL_REDUCE {
		c.ReduceOp = planpb.ReduceOp_REDUCE_OP_SUM
	}
	p.communication(c)
	p.seq++
}

func (p *program) call(op string, bytes int64) {
	switch op {
	case "all_reduce":
		p.collective(planpb.Op_OP_ALL_REDUCE, planpb.DType_DTYPE_FLOAT32, bytes/4)
	case "all_to_all":
		p.collective(planpb.Op_OP_ALL_TO_ALL, planpb.DType_DTYPE_UINT8, bytes)
	case "send_recv":
		even := p.pb.Rank%2 == 0
		p.transfer(even, bytes)
		p.transfer(!even, bytes)
	}
}

// transfer is a message to or from the neighbour in the pair of ranks. Both sides
// count them alike.
func (p *program) transfer(send bool, bytes int64) {
	c := &planpb.Communication{Op: planpb.Op_OP_RECV, Dtype: planpb.DType_DTYPE_UINT8, OutCount: bytes,
		Transfers: []*planpb.Transfer{{Send: send, Peer: p.pb.Rank ^ 1, Count: bytes, Match: p.match}}}
	if send {
		c.Op, c.InCount, c.OutCount = planpb.Op_OP_SEND, bytes, 0
	}
	p.match++
	p.communication(c)
}
