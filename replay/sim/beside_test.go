package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// besides are generated runs whose ranks have a second thread that works while the
// program does.
var besides = map[string]synthetic.Options{
	"device, second thread": {Ranks: 4, Kernels: 40, Collectives: largeCollectives, Beside: &synthetic.Beside{WorkNs: 150_000, CopyNs: 200_000, Collective: 1 << 20}},
	"device, bound by launches, second thread": {Ranks: 4, Kernels: 60, KernelNs: 3_000, LaunchNs: 20_000, Collectives: largeCollectives,
		Beside: &synthetic.Beside{WorkNs: 60_000, CopyNs: 90_000, Collective: 1 << 20}},
	"device, autograd's thread and a second": {Ranks: 4, Kernels: 60, KernelNs: 3_000, LaunchNs: 20_000, Collectives: largeCollectives, Engine: true,
		Beside: &synthetic.Beside{WorkNs: 60_000, CopyNs: 90_000, Collective: 1 << 20}},
	"device, bound by the second thread": {Ranks: 4, Kernels: 40, Collectives: largeCollectives, Beside: &synthetic.Beside{Rounds: 9, WorkNs: 250_000, CopyNs: 200_000, Collective: 1 << 22}},
	"host, second thread":                {Ranks: 4, Kernels: 40, Host: true, Collectives: largeCollectives, Beside: &synthetic.Beside{WorkNs: 300_000, Collective: 1 << 24}},
	"host, bound by the second thread":   {Ranks: 4, Kernels: 40, Host: true, Collectives: largeCollectives, Beside: &synthetic.Beside{Rounds: 9, WorkNs: 400_000, Collective: 1 << 22}},
}

// A run of two threads is generated, changed, and predicted from the run as it was.
func TestSecondThreadAgainstTruth(t *testing.T) {
	const slow, pace = 2, 1.3
	paces := []float64{1, 1, slow: pace}
	for name, opts := range besides {
		t.Run(name, func(t *testing.T) {
			opts.Seed = 13
			opts.Clocks = []synthetic.Clock{{}, {Offset: 3_000_000, DriftPPB: 2_000}, {Offset: -70_000_000}}
			run, truth, err := synthetic.Load(t.TempDir(), opts)
			if err != nil {
				t.Fatal(err)
			}
			of := func() (*planpb.Workload, int32) {
				w := workloadOf(t, run, "ProfilerStep#1")
				return w, int32(slices.IndexFunc(w.Groups, func(g *planpb.Group) bool { return g.Description == "second" }))
			}
			w, _ := of()
			for _, p := range w.Programs {
				var hosts []string
				for _, s := range p.Streams {
					if plan.IsHost(s.Name) {
						hosts = append(hosts, s.Name)
					}
				}
				if !slices.Equal(hosts, []string{"host", "host 2"}) {
					t.Errorf("rank %d: streams of hosts %q", p.Rank, hosts)
				}
			}
			played(t, "unchanged", w, truth)
			changed := func(what string, opts synthetic.Options, w *planpb.Workload, cost sim.CommunicationCost) {
				t.Helper()
				truth, err := synthetic.WriteFiles(t.TempDir(), opts)
				if err != nil {
					t.Fatal(err)
				}
				run, err := sim.PlayWorkload(w, cost)
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

			w, second := of()
			n := operations(opts)
			var more []int64
			for i := range n + 1 {
				kernels := opts.Kernels*(i+1)/(n+1) - opts.Kernels*i/(n+1)
				more = append(more, int64(float64(int64(kernels)*kernelNs(opts))*(pace-1)))
			}
			with := opts
			with.Pace = paces
			if got := lengthen(w.Programs[slow], more, kernelNs(opts), second); got < n+1 {
				t.Fatalf("%d of %d parts found", got, n+1)
			}
			changed("the program of a rank slower", with, w, sim.TracedCosts(w))

			w, _ = of()
			with, beside := opts, *opts.Beside
			with.Beside = &beside
			beside.Pace = paces
			rounds := 0
			for _, task := range w.Programs[slow].Tasks {
				stream := w.Programs[slow].Streams[task.Stream].Name
				if span := task.GetSpan(); span != nil && span.GetDurationNs() >= beside.WorkNs && plan.IsHost(stream) && stream != plan.HostStream {
					span.DurationNs += int64(float64(beside.WorkNs)*pace) - beside.WorkNs
					rounds++
				}
			}
			if want := max(beside.Rounds, 4); rounds != want {
				t.Errorf("%d of %d rounds of the second thread found", rounds, want)
			}
			changed("the second thread of a rank slower", with, w, sim.TracedCosts(w))

			w, second = of()
			with, beside = opts, *opts.Beside
			with.Beside = &beside
			beside.Free = true
			changed("operations of the second thread free", with, w, func(m sim.Meeting) int64 {
				if m.Communication.Group == second {
					return 0
				}
				return m.Traced
			})

			with = opts
			with.Collectives = nil
			for _, c := range opts.Collectives {
				c.Free = c.Elements >= largest
				with.Collectives = append(with.Collectives, c)
			}
			changed("large operations of the program free", with, w, func(m sim.Meeting) int64 {
				if m.Communication.Group != second && m.Communication.InCount >= largest {
					return 0
				}
				return m.Traced
			})
		})
	}
}

// largeCollectives are operations of which some take long: largest elements and more.
var largeCollectives = []synthetic.Collective{
	{Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 1 << 16}, {Op: comm.AllReduce, Scope: synthetic.Data, Elements: largest},
	{Op: comm.AllToAll, Elements: 1 << 15}, {Op: comm.AllReduce, Elements: largest},
}

const largest = 1 << 23

// Whatever the two threads do, the unchanged run takes what it took. Where all
// operations are free, no more is missed than the program's waking up and its last two
// calls: that it waits for the second thread does not show in a trace in which that
// was done before.
func TestSecondThreadsOfAllKinds(t *testing.T) {
	const wakeUp = 20_000
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 60 {
		opts := synthetic.Options{
			Ranks: 2 + 2*rng.IntN(2), Kernels: 10 + rng.IntN(60), KernelNs: 2_000 + rng.Int64N(150_000), LaunchNs: 4_000 + rng.Int64N(20_000),
			Host: rng.IntN(2) == 0, Noise: 0.1, Seed: uint64(n), Collectives: largeCollectives,
		}
		beside := synthetic.Beside{Rounds: 1 + rng.IntN(12), WorkNs: 10_000 + rng.Int64N(400_000), Collective: 1 << (10 + rng.IntN(14))}
		if !opts.Host {
			opts.Engine, beside.CopyNs, beside.Collective = rng.IntN(2) == 0, 5_000+rng.Int64N(300_000), beside.Collective*rng.Int64N(2)
		}
		opts.Beside = &beside
		what := fmt.Sprintf("run %d", n)
		run, truth, err := synthetic.Load(t.TempDir(), opts)
		if err != nil {
			t.Fatal(err)
		}
		w := workloadOf(t, run, "ProfilerStep#1")
		played(t, what, w, truth)
		if opts.Host {
			continue // each wait is some us of waking up, which a program does not need whose operation is done
		}
		beside.Free, opts.Collectives = true, nil
		for _, c := range largeCollectives {
			c.Free = true
			opts.Collectives = append(opts.Collectives, c)
		}
		if truth, err = synthetic.WriteFiles(t.TempDir(), opts); err != nil {
			t.Fatal(err)
		}
		free, err := sim.PlayWorkload(w, func(sim.Meeting) int64 { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		want := length(truth, 0)
		if missed := max(free.Step-want, want-free.Step); missed > want/100+wakeUp+2*opts.LaunchNs {
			t.Errorf("%s: all free %.3f ms, in truth %.3f ms", what, float64(free.Step)/1e6, float64(want)/1e6)
		}
	}
}
