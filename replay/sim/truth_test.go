package sim_test

import (
	"math"
	"slices"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// workloadOf makes the workload of a step as the commands do.
func workloadOf(t *testing.T, run *trace.Run, step string) *planpb.Workload {
	t.Helper()
	match := collective.Match(run)
	clocks := align.Estimate(run, match)
	align.Apply(run, clocks)
	align.UpdateArrivals(run, match)
	w, _, err := plan.Build(run, match, plan.Options{Step: step, Clocks: clocks, Simulate: true})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// generated are runs whose truth is known.
var generated = map[string]synthetic.Options{
	"device": {Ranks: 4, Kernels: 40},
	"device, sequence numbers, deep launch queue": {Ranks: 4, Kernels: 40, KernelNs: 400_000, Generation: synthetic.CommSeq},
	"device, bound by launches":                   {Ranks: 4, Kernels: 60, KernelNs: 3_000, LaunchNs: 20_000},
	"device, asynchronous": {Ranks: 4, Kernels: 40, Collectives: []synthetic.Collective{
		{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 22, Async: true}, {Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 1 << 16},
		{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 23, Async: true}, {Op: comm.AllToAll, Elements: 1 << 16},
	}},
	"device, before arguments": {Ranks: 4, Kernels: 40, Generation: synthetic.NoCommArgs, Collectives: []synthetic.Collective{
		{Op: comm.AllReduce, Elements: 1 << 20}, {Op: comm.AllReduce, Elements: 1 << 16}, {Op: comm.AllReduce, Elements: 1 << 18},
	}},
	// Nothing but the recorded events tells that the second waits for the first: an
	// asynchronous operation of the same kind does not.
	"device, recorded events": {Ranks: 4, Kernels: 60, KernelNs: 3_000, LaunchNs: 20_000, Events: true, Collectives: []synthetic.Collective{
		{Op: comm.AllReduce, Elements: 1 << 10}, {Op: comm.AllReduce, Elements: 1 << 20, Async: true}, {Op: comm.AllReduce, Scope: synthetic.Tensor, Elements: 1 << 10},
		{Op: comm.AllReduce, Elements: 1 << 10},
	}},
	"device, pipeline": {Ranks: 4, Kernels: 40, Collectives: []synthetic.Collective{
		{Op: comm.Send, Scope: synthetic.Forward, Elements: 1 << 16}, {Op: comm.Send, Scope: synthetic.Backward, Elements: 1 << 16}, {Op: comm.AllReduce, Elements: 1 << 20},
	}},
	"device, autograd's thread": {Ranks: 4, Kernels: 40, Engine: true},
	"host":                      {Ranks: 4, Kernels: 40, Host: true},
	"host, asynchronous": {Ranks: 4, Kernels: 40, Host: true, Collectives: []synthetic.Collective{
		{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 25, Async: true}, {Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 1 << 16},
		{Op: comm.AllToAll, Elements: 1 << 16},
	}},
	"host, pipeline": {Ranks: 4, Kernels: 40, Host: true, Collectives: []synthetic.Collective{
		{Op: comm.Send, Scope: synthetic.Forward, Elements: 1 << 16}, {Op: comm.Send, Scope: synthetic.Backward, Elements: 1 << 16}, {Op: comm.AllReduce, Elements: 1 << 20},
	}},
}

// length is how long a step took on all ranks, from the first start to the last
// end, in true ns.
func length(truth *synthetic.Truth, step int) int64 {
	start := truth.Start
	if step > 0 {
		start = slices.Min(truth.StepEnds[step-1])
	}
	return slices.Max(truth.StepEnds[step]) - start
}

// kernelNs is how long a kernel of a generated run computes.
func kernelNs(opts synthetic.Options) int64 {
	if opts.KernelNs == 0 {
		return 100_000
	}
	return opts.KernelNs
}

// operations is how many each step of a generated run has.
func operations(opts synthetic.Options) int {
	if opts.Collectives == nil {
		return 6
	}
	return len(opts.Collectives)
}

// played compares the length of a played step with the truth.
func played(t *testing.T, what string, w *planpb.Workload, truth *synthetic.Truth) {
	t.Helper()
	run, err := sim.PlayWorkload(w, sim.TracedCosts(w))
	if err != nil {
		t.Fatal(err)
	}
	want := length(truth, 0)
	off := float64(run.Step)/float64(want) - 1
	t.Logf("%s: %.3f ms, in truth %.3f ms (%+.2f %%)", what, float64(run.Step)/1e6, float64(want)/1e6, 100*off)
	if math.Abs(off) > 0.01 {
		t.Errorf("%s: %.3f ms, in truth %.3f ms (%+.2f %%)", what, float64(run.Step)/1e6, float64(want)/1e6, 100*off)
	}
}

// A run in which one rank computes a fifth longer is generated, and predicted from
// the run in which it does not.
func TestSlowerRankAgainstTruth(t *testing.T) {
	const slow, pace = 2, 1.2
	for name, opts := range generated {
		t.Run(name, func(t *testing.T) {
			opts.Seed = 11
			opts.Clocks = []synthetic.Clock{{}, {Offset: 3_000_000, DriftPPB: 2_000}, {Offset: -70_000_000}}
			run, truth, err := synthetic.Load(t.TempDir(), opts)
			if err != nil {
				t.Fatal(err)
			}
			w := workloadOf(t, run, "ProfilerStep#1")
			played(t, "unchanged", w, truth)
			// The generator computes between communication: a part of it before each.
			n := operations(opts)
			var more []int64
			for i := range n + 1 {
				kernels := opts.Kernels*(i+1)/(n+1) - opts.Kernels*i/(n+1)
				more = append(more, int64(float64(int64(kernels)*kernelNs(opts))*(pace-1)))
			}
			opts.Pace = []float64{1, 1, slow: pace}
			if truth, err = synthetic.WriteFiles(t.TempDir(), opts); err != nil {
				t.Fatal(err)
			}
			if got := lengthen(w.Programs[slow], more, kernelNs(opts)); got < n+1 {
				t.Fatalf("%d of %d parts found", got, n+1)
			}
			played(t, "slower rank", w, truth)
		})
	}
}

// Each operation has another rank that comes a millisecond late: who does not wait
// for the late one of the operation before is early for the next.
func TestLateRanksAgainstTruth(t *testing.T) {
	const late = 1_000_000
	for name, opts := range generated {
		t.Run(name, func(t *testing.T) {
			opts.Seed, opts.Noise = 12, 0.05
			run, truth, err := synthetic.Load(t.TempDir(), opts)
			if err != nil {
				t.Fatal(err)
			}
			w := workloadOf(t, run, "ProfilerStep#1")
			played(t, "unchanged", w, truth)
			n := operations(opts)
			more := make([][]int64, opts.Ranks)
			for r := range more {
				more[r] = make([]int64, n+1)
			}
			for i := range n {
				r := (3*i + 1) % opts.Ranks
				more[r][i] = late
				opts.Stragglers = append(opts.Stragglers, synthetic.Straggler{Rank: r, Collective: i, Delay: late})
			}
			if truth, err = synthetic.WriteFiles(t.TempDir(), opts); err != nil {
				t.Fatal(err)
			}
			for r, p := range w.Programs {
				if got := lengthen(p, more[r], kernelNs(opts)/2); got < n+1 {
					t.Fatalf("%d of %d parts found", got, n+1)
				}
			}
			played(t, "late ranks", w, truth)
		})
	}
}

// lengthen makes what a rank computes before each of its operations longer, and
// says before how many it found computation. A span shorter than a kernel is none.
// Operations of groups to skip are another thread's.
func lengthen(p *planpb.Program, delays []int64, kernel int64, skip ...int32) int {
	kind := planpb.Span_HOST
	for _, t := range p.Tasks {
		if t.GetSpan().GetKind() == planpb.Span_DEVICE {
			kind = planpb.Span_DEVICE
		}
	}
	found, next := 0, 0
	used := map[*planpb.Task]bool{} // a rank of a pipeline receives and sends with nothing between
	for _, t := range p.Tasks {
		if t.GetCommunication() == nil || slices.Contains(skip, t.GetCommunication().Group) {
			continue
		}
		// The latest span of computation that it comes after.
		var before *planpb.Task
		var visit func(t *planpb.Task)
		visit = func(t *planpb.Task) {
			for i := t.Id - 1; i >= 0; i-- {
				d := p.Tasks[i]
				if d.Stream != t.Stream && !slices.Contains(t.Deps, i) {
					continue
				}
				if d.GetSpan().GetKind() == kind && d.GetSpan().DurationNs >= kernel && (kind == planpb.Span_HOST || len(p.Streams[d.Stream].Name) > 6 && p.Streams[d.Stream].Name[:6] == "device") {
					if before == nil || d.Id > before.Id {
						before = d
					}
					continue
				}
				if d.GetSpan() != nil && d.GetSpan().Kind != kind || d.GetCommunication() != nil {
					continue
				}
				visit(d)
			}
		}
		visit(t)
		if before != nil && !used[before] && next < len(delays)-1 {
			used[before] = true
			before.GetSpan().DurationNs += delays[next]
			found++
			next++
		}
	}
	for _, t := range slices.Backward(p.Tasks) {
		if name := p.Streams[t.Stream].Name; t.GetSpan().GetKind() == kind && (len(skip) == 0 || name == plan.HostStream || name == "device stream 7") {
			t.GetSpan().DurationNs += delays[next]
			return found + 1
		}
	}
	return found
}
