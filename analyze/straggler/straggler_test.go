package straggler_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/straggler"
	"mixdown/ingest/comm"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
)

// accuracy of aligned clocks, in ns.
const accuracy = 5_000

func analyze(t *testing.T, opts synthetic.Options) (*trace.Run, *collective.Matching, *straggler.Report, *synthetic.Truth) {
	t.Helper()
	run, truth, err := synthetic.Load(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	m := collective.Match(run)
	res := align.Estimate(run, m)
	align.Apply(run, res)
	align.UpdateArrivals(run, m)
	return run, m, straggler.Find(run, m, res), truth
}

// truths are the run's collectives by what identifies them in a report.
func truths(run *trace.Run, m *collective.Matching, truth *synthetic.Truth) map[int]*synthetic.Event {
	byEnd := map[string]*synthetic.Event{}
	for i := range truth.Collectives {
		ev := &truth.Collectives[i]
		byEnd[fmt.Sprint(ev.Group, ev.Step, ev.Collective)] = ev
	}
	found := map[int]*synthetic.Event{}
	for i := range m.Collectives {
		c := &m.Collectives[i]
		first := run.Ranks[c.Members[0].Rank]
		end := first.Operations[c.Members[0].Operation].End
		for _, ev := range byEnd {
			if ev.Group != m.Groups[c.Group].Name {
				continue
			}
			if d := end - truth.Local(0, ev.End[0]); max(d, -d) < 2*accuracy {
				found[i] = ev
			}
		}
	}
	return found
}

// TestInjectedStragglers: all that were made are found, at their place and with
// the time they cost; and whoever is named was the last in truth.
func TestInjectedStragglers(t *testing.T) {
	for name, opts := range map[string]synthetic.Options{
		"2 ranks":   {Ranks: 2},
		"8 ranks":   {Ranks: 8},
		"64 ranks":  {Ranks: 64, TensorParallel: 8, Steps: 4},
		"host":      {Ranks: 8, Host: true},
		"drops":     {Ranks: 6, DropShare: 0.02, Generation: synthetic.CommSeq},
		"one clock": {Ranks: 8, Clocks: make([]synthetic.Clock, 8)},
		"async": {Ranks: 4, Collectives: []synthetic.Collective{
			{Op: comm.AllReduce, Elements: 1 << 20, Async: true}, {Op: comm.AllReduce, Elements: 1 << 18, Async: true}, {Op: comm.AllReduce, Elements: 1 << 10}}},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(opts.Ranks), 3))
			if opts.Steps == 0 {
				opts.Steps = 10
			}
			opts.Noise, opts.Seed = 0.05, 11
			collectives := 6
			if opts.Collectives != nil {
				collectives = len(opts.Collectives)
			}
			for step := range opts.Steps {
				opts.Stragglers = append(opts.Stragglers, synthetic.Straggler{Rank: rng.IntN(opts.Ranks), Step: step, Collective: rng.IntN(collectives), Delay: 3_000_000 + rng.Int64N(5_000_000)})
				if opts.Clocks == nil || len(opts.Clocks) < opts.Ranks {
					for range opts.Ranks {
						opts.Clocks = append(opts.Clocks, synthetic.Clock{Offset: rng.Int64N(1_000_000_000), DriftPPB: rng.Int64N(100_001) - 50_000})
					}
				}
			}
			run, m, rep, truth := analyze(t, opts)
			if rep.Impossible+rep.NotComparable+rep.RootUnknown > 0 || rep.Judged+singles(m) != len(m.Collectives) {
				t.Errorf("not judged: %+v", rep)
			}
			events := truths(run, m, truth)
			seen := map[[2]int]straggler.Late{}
			var wait, attributed int64
			for _, l := range rep.Late {
				ev := events[l.Collective]
				if ev == nil {
					t.Fatalf("no true event of %+v", l)
				}
				order := ev.Order()
				arrivals := slices.Sorted(slices.Values(ev.Arrival))
				by := arrivals[len(arrivals)-1] - arrivals[len(arrivals)-2]
				if order[len(order)-1] != l.Rank && by > accuracy {
					t.Errorf("rank %d is named, rank %d was last by %d ns", l.Rank, order[len(order)-1], by)
				}
				if d := l.By - by; max(d, -d) > accuracy || l.Waiting != len(order)-1 || l.Caused != l.By*int64(l.Waiting) || l.Wait < l.Caused {
					t.Errorf("%+v; true lateness %d of %d ranks", l, by, len(order))
				}
				if want := fmt.Sprint("ProfilerStep#", ev.Step+1); l.Step != want || l.Op != ev.Op {
					t.Errorf("%+v; want %s in %s", l, ev.Op, want)
				}
				attributed += l.Caused
				seen[[2]int{ev.Step*100 + ev.Collective, l.Rank}] = l
			}
			for _, r := range rep.Ranks {
				wait += r.Waited
			}
			if wait != rep.Wait || attributed != rep.Attributed || attributed > wait {
				t.Errorf("sums differ: %d %d, %d %d", wait, rep.Wait, attributed, rep.Attributed)
			}
			for _, s := range opts.Stragglers {
				at := slices.IndexFunc(truth.Collectives, func(ev synthetic.Event) bool {
					return ev.Step == s.Step && ev.Collective == s.Collective && slices.Contains(ev.Ranks, s.Rank)
				})
				l, ok := seen[[2]int{s.Step*100 + s.Collective, s.Rank}]
				if !ok {
					if truth.Collectives[at].Whole() && len(truth.Collectives[at].Ranks) > 1 {
						t.Errorf("not found: %+v", s)
					}
					continue
				}
				if l.By < s.Delay/2 || l.By > s.Delay+1_000_000 {
					t.Errorf("%+v found as %+v", s, l)
				}
			}
		})
	}
}

// singles counts the collectives of one member, in which nobody waits.
func singles(m *collective.Matching) int {
	n := 0
	for i := range m.Collectives {
		if len(m.Collectives[i].Members) < 2 {
			n++
		}
	}
	return n
}

// TestLateBecauseOfAnother: rank 3 holds up rank 2 in their group, so that rank 2
// is late in its other group; the report says whose lateness that is.
func TestLateBecauseOfAnother(t *testing.T) {
	_, m, rep, _ := analyze(t, synthetic.Options{Ranks: 8, Steps: 1, Noise: 0.05, Stragglers: []synthetic.Straggler{{Rank: 3, Collective: 1, Delay: 9_000_000}}})
	first := rep.Late[0]
	if top := rep.Ranks[0].Rank; top != 2 && top != 3 {
		t.Errorf("rank %d caused most", top)
	}
	named := false
	for _, l := range rep.Late {
		if l.Rank == 2 && l.By > 5_000_000 {
			named = l.From == 3 && l.Inherited > 5_000_000 && m.Groups[l.Group].Description == "mesh_dp"
		}
		if l.Rank == 3 && l.Inherited > 1_000_000 {
			t.Errorf("rank 3 waited for nobody: %+v", l)
		}
	}
	if !named {
		t.Errorf("rank 2's lateness is not traced to rank 3; first %+v", first)
	}
}

// TestTies: what the clocks can't resolve names nobody.
func TestTies(t *testing.T) {
	_, _, rep, _ := analyze(t, synthetic.Options{Ranks: 4, Steps: 10}) // no noise: all arrive within the skew
	for _, l := range rep.Late {
		if l.By <= straggler.MinResolution {
			t.Errorf("attributed: %+v", l)
		}
	}
	if rep.Tied == 0 {
		t.Error("no ties in a run without differences")
	}
}

// TestIncomparableClocksAndRoots: what can't be judged is counted, not guessed.
func TestIncomparableClocksAndRoots(t *testing.T) {
	rank := func(n int, starts ...int64) *trace.Rank {
		r := &trace.Rank{Rank: n, Groups: []comm.Group{{Name: "0", Ranks: []int{0, 1, 2}, Size: 3}}}
		for i, s := range starts {
			op := comm.Operation{Op: []comm.Op{comm.AllReduce, comm.Broadcast, comm.Reduce, comm.Broadcast}[i], Start: s, End: s + 1_000_000, SizeKnown: true}
			op.RootKnown = i < 3
			r.Operations = append(r.Operations, op)
		}
		return r
	}
	// Rank 2 is last by 50 us in each; the root is rank 0.
	run := &trace.Run{Ranks: []*trace.Rank{rank(0, 0, 0, 0, 0), rank(1, 10_000, 10_000, 10_000, 0), rank(2, 60_000, 60_000, 60_000, 0)}}
	m := collective.Match(run)
	res := &align.Result{Clocks: make([]align.Clock, 3)}
	rep := straggler.Find(run, m, res)
	if rep.Judged != 3 || rep.RootUnknown != 1 || len(rep.Late) != 2 {
		t.Fatalf("%+v", rep)
	}
	// The all_reduce holds two up; of the reduce only the root waits; of the
	// broadcast nobody waits for a rank that is not its root.
	if rep.Late[0].Caused != 100_000 || rep.Late[1].Caused != 50_000 || rep.Late[1].Op != comm.Reduce || rep.Wait != 60_000+50_000+60_000 {
		t.Errorf("%+v", rep)
	}
	res.Clocks[1].Component = 1
	if rep := straggler.Find(run, m, res); rep.NotComparable != 4 || rep.Judged != 0 || rep.Wait != 0 {
		t.Errorf("%+v", rep)
	}
	res.Clocks[1].Component, res.Impossible = 0, []int{0}
	if rep := straggler.Find(run, m, res); rep.Impossible != 1 || rep.Judged != 2 {
		t.Errorf("%+v", rep)
	}
	if rep := straggler.Find(&trace.Run{}, collective.Match(&trace.Run{}), &align.Result{}); rep.Judged != 0 || len(rep.Ranks) != 0 {
		t.Errorf("%+v", rep)
	}
}

// TestDLRM: the arrival times of a real run, recalculated elsewhere: rank 7 is
// last in the first five of its eight collectives, then 5, 5 and 4.
func TestDLRM(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	run := kinetotest.Load(t, filepath.Join(corpus, "param/dlrm_8rank/kineto"))
	m := collective.Match(run)
	rep := straggler.Find(run, m, align.Estimate(run, m))
	last := map[int]int{}
	for _, r := range rep.Ranks {
		if r.Last > 0 {
			last[r.Rank] = r.Last
		}
	}
	if fmt.Sprint(last) != "map[4:1 5:2 7:5]" || rep.Ranks[0].Rank != 7 || rep.Judged != 8 {
		t.Errorf("last: %v; caused most: rank %d; %d judged", last, rep.Ranks[0].Rank, rep.Judged)
	}
	by := slices.SortedFunc(slices.Values(rep.Late), func(a, b straggler.Late) int { return a.Seq - b.Seq })
	for _, l := range by {
		t.Logf("%d %s: rank %d by %d us, caused %d us of %d", l.Seq, l.Op, l.Rank, l.By/1000, l.Caused/1000, l.Wait/1000)
	}
}
