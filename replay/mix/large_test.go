package mix_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

// large makes a job of data, tensor and pipeline parallelism: every rank runs
// the given number of communications on three streams, with a span before each.
// Messages are shared where they are alike, as a reader of files could not.
func large(ranks, operations int, backends [3]string) *planpb.Plan {
	const tensor, data = 8, 10
	w := &planpb.Workload{WorldSize: int32(ranks)}
	groupOf := make([][2]int32, ranks) // tensor, data
	for first := 0; first < ranks; first += tensor {
		g := &planpb.Group{Name: fmt.Sprint("tensor ", first/tensor)}
		for r := first; r < min(ranks, first+tensor); r++ {
			g.Ranks = append(g.Ranks, int32(r))
			groupOf[r][0] = int32(len(w.Groups))
		}
		w.Groups = append(w.Groups, g)
	}
	stride := max(1, ranks/data)
	for first := range stride {
		g := &planpb.Group{Name: fmt.Sprint("data ", first)}
		for r := first; r < ranks; r += stride {
			g.Ranks = append(g.Ranks, int32(r))
			groupOf[r][1] = int32(len(w.Groups))
		}
		w.Groups = append(w.Groups, g)
	}
	world := &planpb.Group{Name: "world"}
	for r := range ranks {
		world.Ranks = append(world.Ranks, int32(r))
	}
	w.Groups = append(w.Groups, world)
	streams := []*planpb.Stream{{Name: "device stream 7"}, {Name: "communication stream 20"}, {Name: "communication stream 24"}}
	span := &planpb.Task_Span{Span: &planpb.Span{Kind: planpb.Span_DEVICE, DurationNs: 1000}}
	type collective struct {
		group int32
		seq   int64
	}
	alike := map[collective]*planpb.Task_Communication{}
	for r := range ranks {
		p := &planpb.Program{Rank: int32(r), Streams: streams, Tasks: make([]*planpb.Task, 0, 2*operations)}
		tasks := make([]planpb.Task, 2*operations)
		next := map[int32]int64{}
		add := func(stream int32, kind any, deps ...int32) int32 {
			id := int32(len(p.Tasks))
			t := &tasks[id]
			t.Id, t.Stream, t.Deps = id, stream, deps
			switch k := kind.(type) {
			case *planpb.Task_Span:
				t.Kind = k
			case *planpb.Task_Communication:
				t.Kind = k
			}
			p.Tasks = append(p.Tasks, t)
			return id
		}
		for k := range operations {
			before := add(0, span)
			if k%10 == 9 { // to the next of the pipeline's ring, from the one before
				to, from := int32((r+1)%ranks), int32((r+ranks-1)%ranks)
				add(0, &planpb.Task_Communication{Communication: &planpb.Communication{
					Op: planpb.Op_OP_BATCH, Dtype: planpb.DType_DTYPE_BFLOAT16, Group: int32(len(w.Groups) - 1), Backend: backends[2],
					Transfers: []*planpb.Transfer{{Send: true, Peer: to, Count: 4096, Match: int64(k)}, {Peer: from, Count: 4096, Match: int64(k)}},
				}})
				continue
			}
			which := min(k%10/7, 1) // 7 of tensor, then 2 of data parallelism
			c := collective{groupOf[r][which], 0}
			c.seq = next[c.group]
			next[c.group]++
			if alike[c] == nil {
				alike[c] = &planpb.Task_Communication{Communication: &planpb.Communication{
					Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_BFLOAT16, ReduceOp: planpb.ReduceOp_REDUCE_OP_SUM,
					Group: c.group, Seq: c.seq, InCount: 1 << 20, OutCount: 1 << 20, Backend: backends[which],
				}}
			}
			add(int32(1+which), alike[c], before)
		}
		w.Programs = append(w.Programs, p)
	}
	return &planpb.Plan{Name: "large", Workload: w}
}

// TestLargePlans: a job of 1,000 ranks with 1,000 operations each is accepted;
// with two neighbouring operations of one rank exchanged it is refused, and the
// circle is found.
func TestLargePlans(t *testing.T) {
	p := large(1000, 1000, [3]string{"gloo", "openmpi", "gloo"})
	r := mix.Inspect(p, mix.CheckOptions{})
	if r.Operations != 1_000_000 || len(r.Errors) > 0 {
		t.Fatalf("%d operations, %d errors: %v", r.Operations, len(r.Errors), r.Err())
	}
	tasks := p.Workload.Programs[500].Tasks
	// The device's stream waits for tensor communication after data communication.
	for k := 100; k < len(tasks)-20; k++ {
		if tasks[k].Stream == 1 && tasks[k-2].Stream == 1 && tasks[k].Kind != tasks[k-2].Kind {
			tasks[k].Kind, tasks[k-2].Kind = tasks[k-2].Kind, tasks[k].Kind
			break
		}
	}
	r = mix.Inspect(p, mix.CheckOptions{})
	if !r.Has("E1") || len(r.Errors[0].Cycle) != 2 || !r.Errors[0].Shortest {
		t.Fatalf("%v", r.Err())
	}
}

// BenchmarkInspect checks a job of 1,000 ranks with 1,000 operations each, and
// reports what the check itself needs.
func BenchmarkInspect(b *testing.B) {
	for _, c := range []struct {
		name     string
		backends [3]string
	}{{"host", [3]string{"gloo", "openmpi", "gloo"}}, {"gpu", [3]string{"nccl", "nccl", "nccl"}}} {
		b.Run(c.name, func(b *testing.B) {
			p := large(1000, 1000, c.backends)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.ResetTimer()
			for b.Loop() {
				mix.Inspect(p, mix.CheckOptions{})
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "MiB/op")
		})
	}
}

// BenchmarkCheckFile is what "mixdown check" does with the file of such a job:
// reads it, decodes it, checks it. The plan says all that plans can say: places,
// buffers and the lives of communicators too. It is to take 10 s at most.
func BenchmarkCheckFile(b *testing.B) {
	p := large(1000, 1000, [3]string{"nccl", "nccl", "nccl"})
	for _, program := range p.Workload.Programs {
		program.Place = &planpb.Place{Host: fmt.Sprint("node", program.Rank/8), Environment: "e3b0c44298fc1c14"}
		groups := map[int32]bool{}
		for _, task := range program.Tasks {
			if c := task.GetCommunication(); c != nil {
				c.InBuffer, c.OutBuffer, c.Channels = int64(1+c.Group), int64(1+c.Group), 16
				groups[c.Group] = true
			}
		}
		for g := range int32(len(p.Workload.Groups)) { // by number on all ranks
			if groups[g] {
				program.Communicators = append(program.Communicators, &planpb.CommunicatorEvent{Kind: planpb.CommunicatorEvent_MADE, Group: g})
			}
		}
	}
	data, err := mix.Encode(p)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "large.plan")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		exp, err := mix.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		if r := mix.Inspect(exp.Plans[0], mix.CheckOptions{}); r.Has("E0") || r.Has("E7") || r.Has("E9") {
			b.Fatal(r.Err())
		}
	}
}
