package mix_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// write makes a plan from what each rank runs, in words:
//
//	g0        the next collective of group 0, an all_reduce
//	g0=barrier, g0#3  another operation; with sequence number 3
//	s1 r1     a send to, a receive from rank 1
//	x1        both at once, a batch; bs1r2s1 is a batch of those
//	c h w     a span on the device, on the host; a wait
//
// followed by @openmpi (else gloo), /2 for stream 2 (else 0), <0 for a
// dependency on task 0 of the rank. Task i of rank r starts at 1000*i+r us.
// Group -1 for point-to-point is that of all ranks, which is added at the end.
func write(t testing.TB, groups [][]int32, ranks ...string) *planpb.Plan {
	t.Helper()
	w := &planpb.Workload{WorldSize: int32(len(ranks))}
	var world []int32
	for r := range ranks {
		world = append(world, int32(r))
	}
	for i, g := range append(slices.Clone(groups), world) {
		w.Groups = append(w.Groups, &planpb.Group{Name: fmt.Sprint(i), Ranks: g})
	}
	for r, text := range ranks {
		b := &rankWriter{t: t, rank: int32(r), world: int32(len(groups)), next: map[int32]int64{}, transfers: map[string]int64{},
			program: &planpb.Program{Rank: int32(r), Streams: []*planpb.Stream{{Name: "host"}}}}
		for _, word := range strings.Fields(text) {
			b.task(word)
		}
		w.Programs = append(w.Programs, b.program)
	}
	return &planpb.Plan{Name: "test", Workload: w}
}

type rankWriter struct {
	t           testing.TB
	rank, world int32
	next        map[int32]int64
	transfers   map[string]int64
	program     *planpb.Program
}

func (b *rankWriter) task(word string) {
	b.t.Helper()
	i := len(b.program.Tasks)
	at := int64(1000*i) + int64(b.rank)
	task := &planpb.Task{Id: int32(i), Origin: &planpb.Origin{Rank: b.rank, Ts: at * 1000, Dur: 500_000, Name: word}}
	backend := "gloo"
	for cut := strings.LastIndexAny(word, "@/<"); cut >= 0; cut = strings.LastIndexAny(word, "@/<") {
		value := word[cut+1:]
		switch word[cut] {
		case '@':
			backend = value
		case '/':
			task.Stream = b.number(value)
			for len(b.program.Streams) <= int(task.Stream) {
				b.program.Streams = append(b.program.Streams, &planpb.Stream{Name: fmt.Sprint("stream ", len(b.program.Streams))})
			}
		case '<':
			task.Deps = append(task.Deps, b.number(value))
		}
		word = word[:cut]
	}
	slices.Sort(task.Deps)
	c := &planpb.Communication{Dtype: planpb.DType_DTYPE_FLOAT32, Backend: backend, Group: b.world}
	task.Kind = &planpb.Task_Communication{Communication: c}
	switch word[0] {
	case 'c':
		task.Kind = &planpb.Task_Span{Span: &planpb.Span{Kind: planpb.Span_DEVICE, DurationNs: 1000}}
	case 'h':
		task.Kind = &planpb.Task_Span{Span: &planpb.Span{Kind: planpb.Span_HOST, DurationNs: 1000}}
	case 'w':
		task.Kind = &planpb.Task_Wait{Wait: &planpb.Wait{}}
	case 'g':
		word, seq, numbered := strings.Cut(word, "#")
		word, op, named := strings.Cut(word, "=")
		c.Group = b.number(word[1:])
		c.Seq = b.next[c.Group]
		if numbered {
			c.Seq = int64(b.number(seq))
		}
		b.next[c.Group] = c.Seq + 1
		c.Op, c.ReduceOp, c.InCount, c.OutCount = planpb.Op_OP_ALL_REDUCE, planpb.ReduceOp_REDUCE_OP_SUM, 256, 256
		if named {
			c.Op = planpb.Op(planpb.Op_value["OP_"+strings.ToUpper(op)])
		}
	case 's', 'r':
		c.Op = planpb.Op_OP_RECV
		if word[0] == 's' {
			c.Op = planpb.Op_OP_SEND
		}
		b.transfer(c, word)
	case 'x':
		c.Op = planpb.Op_OP_BATCH
		b.transfer(c, "s"+word[1:])
		b.transfer(c, "r"+word[1:])
	case 'b':
		c.Op = planpb.Op_OP_BATCH
		for word = word[1:]; word != ""; word = word[2:] {
			b.transfer(c, word[:2])
		}
	default:
		b.t.Fatalf("word %q", word)
	}
	if c.Op != planpb.Op_OP_UNSPECIFIED && plan.Op(c) == comm.Op("") {
		b.t.Fatalf("operation of %q", word)
	}
	b.program.Tasks = append(b.program.Tasks, task)
}

// transfer adds "s1" or "r1"; those between two ranks are numbered from 1.
func (b *rankWriter) transfer(c *planpb.Communication, word string) {
	b.transfers[word]++
	c.Transfers = append(c.Transfers, &planpb.Transfer{Send: word[0] == 's', Peer: b.number(word[1:]), Count: 16, Match: b.transfers[word]})
}

func (b *rankWriter) number(text string) int32 {
	n, err := strconv.Atoi(text)
	if err != nil {
		b.t.Helper()
		b.t.Fatal(err)
	}
	return int32(n)
}
