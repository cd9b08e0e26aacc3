package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"mixdown/analyze/slowdown"
	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
	"mixdown/replay/whatif"
)

// contended is a run in which communication beside kernels makes them take so many
// times as long.
func contended(factor float64, seed uint64) synthetic.Options {
	return synthetic.Options{
		Ranks: 4, Steps: 4, Kernels: 60, KernelNs: 50_000, Seed: seed, Noise: 0.03, Contention: factor,
		Collectives: []synthetic.Collective{
			{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 24, Async: true}, {Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 1 << 16},
			{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 23, Async: true}, {Op: comm.AllToAll, Elements: 1 << 16},
		},
	}
}

// both makes the workload of a step with the factor that the traces show, and without
// one.
func both(t *testing.T, run *trace.Run, step string) (with, without *planpb.Workload) {
	t.Helper()
	without = workloadOf(t, run, step)
	with = proto.CloneOf(without)
	r, err := slowdown.Measure(run)
	if err != nil || !r.Known {
		t.Fatalf("not measured: %+v, %v", r, err)
	}
	if err := sim.Contend(with, []*planpb.Slowdown{{Factor: r.Factor}}); err != nil {
		t.Fatal(err)
	}
	return with, without
}

// off is by how much a played step differs from the truth, as a share.
func off(t *testing.T, w *planpb.Workload, cost sim.CommunicationCost, truth *synthetic.Truth) float64 {
	t.Helper()
	run, err := sim.PlayWorkload(w, cost)
	if err != nil {
		t.Fatal(err)
	}
	return float64(run.Step)/float64(length(truth, 0)) - 1
}

// asked is the same of a what-if.
func asked(t *testing.T, text string, w *planpb.Workload, truth *synthetic.Truth) float64 {
	t.Helper()
	q, err := whatif.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	a, err := q.Step(whatif.Step{Workload: w, Costs: sim.TracedCosts})
	if err != nil {
		t.Fatal(err)
	}
	return float64(a.Run.Step)/float64(length(truth, 0)) - 1
}

// Runs that differ from the traced one are generated, and predicted from it with the
// slowdown that its traces show, and without.
func TestSlowdownAgainstTruth(t *testing.T) {
	const slow, pace = 2, 1.2
	launches, long := contended(1.4, 3), contended(1.4, 4)
	launches.KernelNs, launches.LaunchNs, launches.Kernels = 10_000, 12_000, 120
	long.KernelNs = 200_000
	noisy := contended(2, 5)
	noisy.Noise = 0.1
	for seed, opts := range []synthetic.Options{contended(1.4, 0), contended(1.4, 1), contended(1.15, 2), launches, long, noisy} {
		run, truth, err := synthetic.Load(t.TempDir(), opts)
		if err != nil {
			t.Fatal(err)
		}
		with, without := both(t, run, "ProfilerStep#1")
		changed := func(change func(*synthetic.Options)) *synthetic.Truth {
			o := opts
			o.Collectives = append([]synthetic.Collective{}, opts.Collectives...)
			change(&o)
			truth, err := synthetic.WriteFiles(t.TempDir(), o)
			if err != nil {
				t.Fatal(err)
			}
			return truth
		}
		free := func(m sim.Meeting) int64 {
			if m.Communication.Op == planpb.Op_OP_ALL_REDUCE {
				return 8_000 // what the generator takes for none
			}
			return m.Traced
		}
		freed := changed(func(o *synthetic.Options) { // nothing of all_reduces but their start
			for i := range o.Collectives {
				if o.Collectives[i].Op == comm.AllReduce {
					o.Collectives[i].Elements = 1
				}
			}
		})
		apart := changed(func(o *synthetic.Options) {
			for i := range o.Collectives {
				o.Collectives[i].Async = false
			}
		})
		quick := changed(func(o *synthetic.Options) { o.BytesPerNs = 200 })
		slower := changed(func(o *synthetic.Options) { o.Pace = []float64{1, 1, slow: pace} })
		for _, c := range []struct {
			what          string
			with, without float64
		}{
			{"unchanged", off(t, with, sim.TracedCosts(with), truth), off(t, without, sim.TracedCosts(without), truth)},
			{"all_reduces free", off(t, with, free, freed), off(t, without, free, freed)},
			{"no overlap", asked(t, "overlap=none", with, apart), asked(t, "overlap=none", without, apart)},
			{"twice the bandwidth", asked(t, "bandwidth=x2,latency=+4us", with, quick), asked(t, "bandwidth=x2,latency=+4us", without, quick)},
			{"slower rank", slowerRank(t, with, slow, pace, slower), slowerRank(t, without, slow, pace, slower)},
		} {
			t.Logf("seed %d, %s: %+.2f %%, without the factor %+.2f %%", seed, c.what, 100*c.with, 100*c.without)
			if math.Abs(c.with) > 0.02 {
				t.Errorf("seed %d, %s: %+.2f %% off", seed, c.what, 100*c.with)
			}
			if c.what == "unchanged" {
				if c.with != c.without {
					t.Errorf("seed %d: the unchanged run changes: %+.4f %%, %+.4f %%", seed, 100*c.with, 100*c.without)
				}
				continue
			}
			if math.Abs(c.with) >= math.Abs(c.without) {
				t.Errorf("seed %d, %s: %+.2f %% with the factor, %+.2f %% without", seed, c.what, 100*c.with, 100*c.without)
			}
		}
	}
}

// slowerRank makes the kernels of one rank slower, and nothing else of it.
func slowerRank(t *testing.T, w *planpb.Workload, rank int, pace float64, truth *synthetic.Truth) float64 {
	t.Helper()
	w = proto.CloneOf(w)
	for _, task := range w.Programs[rank].Tasks {
		if span := task.GetSpan(); span.GetKind() == planpb.Span_DEVICE && span.KernelNs > 0 {
			plan.Resize(span, span.DurationNs+int64(float64(span.KernelNs)*(pace-1)))
		}
	}
	return off(t, w, sim.TracedCosts(w), truth)
}

// A kernel between what runs beside it, by hand: 100 ns, of which communication ran
// beside for 50 with a factor of 2, so that it takes 75 alone.
func TestSlowdownByHand(t *testing.T) {
	made := func() *planpb.Workload {
		span := func(id, stream int32, kind planpb.Span_Kind, ns, kernels int64) *planpb.Task {
			return &planpb.Task{Id: id, Stream: stream, Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: kind, DurationNs: ns, KernelNs: kernels}}}
		}
		return &planpb.Workload{WorldSize: 1, Groups: []*planpb.Group{{Ranks: []int32{0}}}, Programs: []*planpb.Program{{
			Streams: []*planpb.Stream{{Name: "device stream 7"}, {Name: "communication stream 8"}},
			Tasks: []*planpb.Task{
				span(0, 0, planpb.Span_DEVICE, 100, 100),
				{Id: 1, Stream: 1, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{Op: planpb.Op_OP_ALL_REDUCE}}, Origin: &planpb.Origin{Dur: 50}},
			},
		}}}
	}
	for _, c := range []struct {
		what    string
		change  func(w *planpb.Workload)
		factors []*planpb.Slowdown
		took    int64 // the communication
		want    int64
	}{
		{what: "as it was", took: 50, want: 100},
		{what: "nothing beside it", took: 0, want: 75},
		{what: "less beside it", took: 20, want: 85},
		{what: "communication throughout", took: 1000, want: 150},
		{what: "another backend slows it as much", took: 50, want: 100, change: func(w *planpb.Workload) { w.Programs[0].Tasks[1].GetCommunication().Backend = "other" }},
		{
			what: "another backend slows it more", took: 50, want: 75 + 40, change: func(w *planpb.Workload) { w.Programs[0].Tasks[1].GetCommunication().Backend = "other" },
			factors: []*planpb.Slowdown{{Factor: 2}, {Backend: "other", Factor: 5}}, // 10 ns in the first 50
		},
		{
			what: "another backend does not slow it", took: 50, want: 75, change: func(w *planpb.Workload) { w.Programs[0].Tasks[1].GetCommunication().Backend = "other" },
			factors: []*planpb.Slowdown{{Factor: 2}, {Backend: "other", Factor: 1}},
		},
		{what: "twice as much to compute", took: 0, want: 150, change: func(w *planpb.Workload) { plan.Resize(w.Programs[0].Tasks[0].GetSpan(), 200) }},
		{what: "no factor", took: 1000, want: 100, factors: []*planpb.Slowdown{{Factor: 1}}},
	} {
		w := made()
		if c.factors == nil {
			c.factors = []*planpb.Slowdown{{Factor: 2}}
		}
		if err := sim.Contend(w, c.factors); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(w)
		}
		run, err := sim.PlayWorkload(w, func(sim.Meeting) int64 { return c.took })
		if err != nil {
			t.Fatal(err)
		}
		if got := run.Ends[0][0]; got != c.want {
			t.Errorf("%s: %d ns, want %d", c.what, got, c.want)
		}
	}
}

// On any workload: the unchanged run takes what it took, and the same question has
// the same answer.
func TestSlowdownKeepsWhatIs(t *testing.T) {
	for name, opts := range generated {
		t.Run(name, func(t *testing.T) {
			opts.Noise, opts.Seed = 0.2, 5
			run, _, err := synthetic.Load(t.TempDir(), opts)
			if err != nil {
				t.Fatal(err)
			}
			w := workloadOf(t, run, "ProfilerStep#2")
			before, err := sim.PlayWorkload(w, sim.TracedCosts(w))
			if err != nil {
				t.Fatal(err)
			}
			if err := sim.Contend(w, []*planpb.Slowdown{{Factor: 3}}); err != nil {
				t.Fatal(err)
			}
			after, err := sim.PlayWorkload(w, sim.TracedCosts(w))
			if err != nil || fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("the unchanged run changes: %d, %d, %v", before.Step, after.Step, err)
			}
			twice := func(m sim.Meeting) int64 { return 2 * m.Traced }
			one, _ := sim.PlayWorkload(w, twice)
			two, _ := sim.PlayWorkload(w, twice)
			if fmt.Sprint(one) != fmt.Sprint(two) {
				t.Error("two plays of the same differ")
			}
		})
	}
}

// A chain of spans, each followed by an operation that runs beside the next: in the
// end every span is as long as what runs beside it makes it, recounted here.
func TestSpansAgreeWithWhatRunsBesideThem(t *testing.T) {
	const factor, links = 1.6, 60
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		p := &planpb.Program{Streams: []*planpb.Stream{{Name: "device stream 7"}, {Name: "communication stream 8"}}}
		w := &planpb.Workload{WorldSize: 1, Groups: []*planpb.Group{{Ranks: []int32{0}}}, Programs: []*planpb.Program{p}}
		for i := range int32(links) {
			ns := 1_000 + rng.Int64N(2_000)
			p.Tasks = append(p.Tasks,
				&planpb.Task{Id: 2 * i, Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: planpb.Span_DEVICE, DurationNs: ns, KernelNs: ns - rng.Int64N(300)}}},
				&planpb.Task{Id: 2*i + 1, Stream: 1, Deps: []int32{2 * i}, Origin: &planpb.Origin{Dur: rng.Int64N(1_500)},
					Kind: &planpb.Task_Communication{Communication: &planpb.Communication{Seq: int64(i), Op: planpb.Op_OP_ALL_REDUCE}}})
		}
		if err := sim.Contend(w, []*planpb.Slowdown{{Factor: factor}}); err != nil {
			t.Fatal(err)
		}
		run, err := sim.PlayWorkload(w, func(m sim.Meeting) int64 { return 2*m.Traced + rng.Int64N(500) })
		if err != nil {
			t.Fatal(err)
		}
		if run.Unsettled {
			t.Errorf("seed %d: not settled", seed)
		}
		var off float64
		for i, task := range p.Tasks {
			span := task.GetSpan()
			if span == nil {
				continue
			}
			var beside int64
			for at := run.Starts[0][i]; at < run.Ends[0][i]; at++ {
				for k := range p.Tasks {
					if p.Tasks[k].GetCommunication() != nil && run.Starts[0][k] <= at && at < run.Ends[0][k] {
						beside++
						break
					}
				}
			}
			lost := (1 - 1/factor) * float64(span.KernelNs) / float64(span.DurationNs)
			want := float64(span.DurationNs) + lost*float64(beside-span.BesideNs)
			off += math.Abs(float64(run.Ends[0][i]-run.Starts[0][i]) - want)
		}
		if off > 0.002*float64(run.Step) {
			t.Errorf("seed %d: spans are %.0f ns off, of a step of %d", seed, off, run.Step)
		}
	}
}

// However often a step is played, what an operation costs is asked for once: whoever
// counts what a table does not know counts right.
func TestCostsAreAskedForOnce(t *testing.T) {
	run, _, err := synthetic.Load(t.TempDir(), contended(1.4, 1))
	if err != nil {
		t.Fatal(err)
	}
	with, without := both(t, run, "ProfilerStep#1")
	var asked [2]int
	for i, w := range []*planpb.Workload{with, without} {
		if _, err := sim.PlayWorkload(w, func(m sim.Meeting) int64 { asked[i]++; return 2 * m.Traced }); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(sim.NewGraph(with).Meetings()); asked != [2]int{n, n} || n == 0 {
		t.Errorf("asked %d times, %d operations", asked, n)
	}
}

// Spans and factors that no trace should have are played without a panic.
func TestImpossibleSlowdowns(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Ranks: []int32{0, 1}}}}
		for r := range int32(2) {
			p := &planpb.Program{Rank: r, Streams: []*planpb.Stream{{Name: "device stream 7"}, {Name: "communication stream 8"}}}
			for i := range int32(20) {
				any := func() int64 { return rng.Int64N(1<<uint(1+rng.IntN(55))) - 2 }
				task := &planpb.Task{Id: i, Stream: rng.Int32N(2), Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: planpb.Span_DEVICE, DurationNs: any(), KernelNs: any(), BesideNs: any()}}}
				if i%3 == 0 {
					task.Kind = &planpb.Task_Communication{Communication: &planpb.Communication{Seq: int64(i), Op: planpb.Op_OP_BARRIER}}
					task.Origin = &planpb.Origin{Rank: r, Ts: any(), Dur: any()}
				}
				p.Tasks = append(p.Tasks, task)
			}
			w.Programs = append(w.Programs, p)
		}
		factors := []float64{0, -1, math.NaN(), math.Inf(1), 1e300, 1.5}
		list := []*planpb.Slowdown{{Factor: factors[rng.IntN(6)]}, {Backend: "x", Factor: factors[rng.IntN(6)]}}
		if err := sim.Contend(w, list); err != nil {
			continue // such times may contradict each other
		}
		if _, err := sim.PlayWorkload(w, func(m sim.Meeting) int64 { return m.Traced / 2 }); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
