package plan_test

import (
	"math/rand/v2"
	"testing"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// buckets is ranks that issue all_reduces while they compute, as DDP does, and
// wait for all of them at the end; `after` is how many they issue before they wait
// for the first.
func buckets(ranks int32, sizes []int64, after int) *planpb.Workload {
	w := &planpb.Workload{WorldSize: ranks, Groups: []*planpb.Group{{Name: "dp"}}}
	for r := range ranks {
		w.Groups[0].Ranks = append(w.Groups[0].Ranks, r)
		p := &planpb.Program{Rank: r, Streams: []*planpb.Stream{{Name: "host"}, {Name: "group 0"}}}
		add := func(t *planpb.Task) int32 {
			t.Id = int32(len(p.Tasks))
			p.Tasks = append(p.Tasks, t)
			return t.Id
		}
		var reduces []int32
		for i, n := range sizes {
			work := add(&planpb.Task{Kind: &planpb.Task_Span{Span: &planpb.Span{DurationNs: 100}}})
			reduces = append(reduces, add(&planpb.Task{Stream: 1, Deps: []int32{work}, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{
				Seq: int64(i), Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_FLOAT32, ReduceOp: planpb.ReduceOp_REDUCE_OP_SUM, InCount: n, OutCount: n,
			}}}))
			if i+1 == after {
				add(&planpb.Task{Deps: []int32{reduces[0]}, Kind: &planpb.Task_Wait{Wait: &planpb.Wait{}}})
			}
		}
		add(&planpb.Task{Deps: reduces, Kind: &planpb.Task_Wait{Wait: &planpb.Wait{}}})
		w.Programs = append(w.Programs, p)
	}
	return w
}

func elements(w *planpb.Workload) (operations int, sum int64) {
	for _, t := range w.Programs[0].Tasks {
		if c := t.GetCommunication(); c != nil {
			operations++
			sum += c.InCount
		}
	}
	return operations, sum
}

func TestFuse(t *testing.T) {
	for _, c := range []struct {
		name       string
		sizes      []int64
		after      int
		most       int64
		operations int
	}{
		{"all small", []int64{10, 20, 30}, 0, 1 << 20, 1},
		{"a large one between", []int64{10, 20, 1 << 20, 30, 40}, 0, 1024, 3},
		{"sums may grow no further", []int64{100, 100, 100, 100}, 0, 800, 2},
		{"the first is waited for before the third", []int64{10, 20, 30, 40}, 2, 1 << 20, 2},
		{"waited for at once", []int64{10, 20}, 1, 1 << 20, 2},
	} {
		w := buckets(3, c.sizes, c.after)
		_, all := elements(w)
		fused, saved := plan.Fuse(w, c.most)
		n, sum := elements(fused)
		if n != c.operations || sum != all || saved != len(c.sizes)-n {
			t.Errorf("%s: %d operations of %d elements, %d saved; want %d of %d", c.name, n, sum, saved, c.operations, all)
		}
		playAll(t, fused)
		if before, _ := elements(w); before != len(c.sizes) {
			t.Errorf("%s: the workload itself was changed", c.name)
		}
	}
}

// Whatever is fused, the plan runs to its end and moves as much.
func TestFuseRandom(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var sizes []int64
		for range 1 + rng.IntN(8) {
			sizes = append(sizes, 1+rng.Int64N(1000))
		}
		w := buckets(2+rng.Int32N(3), sizes, rng.IntN(len(sizes)+1))
		fused, _ := plan.Fuse(w, rng.Int64N(4000))
		playAll(t, fused)
		_, before := elements(w)
		if _, after := elements(fused); after != before {
			t.Fatalf("seed %d: %d elements, %d before", seed, after, before)
		}
	}
}
