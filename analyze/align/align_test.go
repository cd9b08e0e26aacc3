package align_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
)

// accuracy is what the project promises of synthetic runs, in ns.
const accuracy = 5_000

func load(t *testing.T, opts synthetic.Options) (*trace.Run, *collective.Matching, *synthetic.Truth) {
	t.Helper()
	run, truth, err := synthetic.Load(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return run, collective.Match(run), truth
}

// randomClocks differ by up to a second and 50 ppm, in hosts of n ranks.
func randomClocks(ranks, n int, seed uint64) []synthetic.Clock {
	rng := rand.New(rand.NewPCG(seed, 99))
	list := make([]synthetic.Clock, ranks)
	for r := range list {
		if r%n == 0 {
			list[r] = synthetic.Clock{Offset: rng.Int64N(2_000_000_001) - 1_000_000_000, DriftPPB: rng.Int64N(100_001) - 50_000}
		} else {
			list[r] = list[r-1]
		}
	}
	return list
}

// worst is the largest error, in ns, of the corrected times of all ranks during
// the run, against those of the reference of the rank's part.
func worst(res *align.Result, truth *synthetic.Truth) int64 {
	var worst int64
	end := truth.Start
	for _, step := range truth.StepEnds {
		end = max(end, step[0])
	}
	for r, c := range res.Clocks {
		ref := res.Components[c.Component][0]
		for i := range int64(9) {
			at := truth.Start + (end-truth.Start)*i/8
			d := c.Correct(truth.Local(r, at)) - res.Clocks[ref].Correct(truth.Local(ref, at))
			worst = max(worst, d, -d)
		}
	}
	return worst
}

// wrongMatches are the matched collectives that are no collective of the run, and
// missed the number of those that all files have but were not matched.
func wrongMatches(run *trace.Run, m *collective.Matching, truth *synthetic.Truth) (wrong []int, missed int) {
	real := map[string]bool{}
	for i := range truth.Collectives {
		ev := &truth.Collectives[i]
		key := ev.Group
		for k, r := range ev.Ranks {
			key += fmt.Sprint(" ", truth.Local(r, ev.End[k]))
		}
		real[key] = ev.Whole()
	}
	for i := range m.Collectives {
		c := &m.Collectives[i]
		key := m.Groups[c.Group].Name
		if m.Groups[c.Group].Inferred {
			key = "0"
		}
		for _, at := range c.Members {
			key += fmt.Sprint(" ", run.Ranks[at.Rank].Operations[at.Operation].End)
		}
		if !real[key] {
			wrong = append(wrong, i)
		}
		delete(real, key)
	}
	for _, whole := range real {
		if whole {
			missed++
		}
	}
	return wrong, missed
}

// TestKnownClocks is the promise: offsets to a second and drifts to 50 ppm are
// found within 5 us, whatever the size of the run, with events dropped, computation
// uneven, clocks of their own or shared by hosts.
func TestKnownClocks(t *testing.T) {
	groupsOnly := []synthetic.Collective{
		{Op: comm.ReduceScatter, Scope: synthetic.Tensor, Elements: 100}, {Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 20},
		{Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 100}, {Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 10},
	}
	host := func(o synthetic.Options) synthetic.Options { o.Host = true; return o }
	for _, c := range []struct {
		name    string
		perHost int
		opts    synthetic.Options
	}{
		{"2 ranks", 1, synthetic.Options{Ranks: 2, Steps: 10}},
		{"2 ranks, short", 1, synthetic.Options{Ranks: 2, Steps: 2}},
		{"2 ranks, 3 s", 1, synthetic.Options{Ranks: 2, Steps: 60, KernelNs: 6_000_000}},
		{"3 ranks, drops", 1, synthetic.Options{Ranks: 3, Steps: 20, DropShare: 0.05}},
		{"8 ranks, noise", 1, synthetic.Options{Ranks: 8, Steps: 20, Noise: 0.5}},
		{"8 ranks, sequence numbers", 1, synthetic.Options{Ranks: 8, Steps: 20, DropShare: 0.1, Generation: synthetic.CommSeq}},
		{"8 ranks on the host", 1, host(synthetic.Options{Ranks: 8, Steps: 20, DropShare: 0.05, Noise: 0.2})},
		{"8 ranks, no arguments", 1, synthetic.Options{Ranks: 8, Steps: 20, Generation: synthetic.NoCommArgs, Collectives: []synthetic.Collective{{Op: comm.AllReduce, Elements: 1 << 20}, {Op: comm.AllToAll, Elements: 1 << 10}}}},
		{"16 ranks of 4 hosts, 1 s", 4, synthetic.Options{Ranks: 16, Steps: 30, KernelNs: 4_000_000, Noise: 0.1, DropShare: 0.02}},
		{"30 ranks, groups only", 1, synthetic.Options{Ranks: 30, Steps: 20, TensorParallel: 3, Noise: 0.2, DropShare: 0.01,
			Collectives: groupsOnly}},
		{"256 ranks of 32 hosts", 8, synthetic.Options{Ranks: 256, Steps: 12, TensorParallel: 8, Kernels: 4, Noise: 0.1, DropShare: 0.001}},
		{"256 ranks", 1, synthetic.Options{Ranks: 256, Steps: 12, Kernels: 4, Noise: 0.1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(3) {
				if c.opts.Ranks > 100 && seed > 0 {
					continue
				}
				c.opts.Seed, c.opts.Clocks = seed, randomClocks(c.opts.Ranks, c.perHost, seed)
				run, m, truth := load(t, c.opts)
				wrong, missed := wrongMatches(run, m, truth)
				if len(wrong)+missed > 0 {
					t.Errorf("seed %d: %d wrong matches, %d missed", seed, len(wrong), missed)
				}
				res := align.Estimate(run, m)
				if !slices.Equal(res.Impossible, wrong) {
					t.Errorf("seed %d: %d matches called impossible, %d are wrong", seed, len(res.Impossible), len(wrong))
				}
				got := worst(res, truth)
				t.Logf("seed %d: worst error %d ns; %d of %d matches wrong; %s", seed, got, len(wrong), len(m.Collectives), res.Reason)
				if got > accuracy || !res.Applied || !res.Connected {
					t.Errorf("seed %d: worst error %d ns, applied %v, connected %v", seed, got, res.Applied, res.Connected)
				}
				for _, clock := range res.Clocks {
					if clock.Residual > 3_000 || clock.Matches < align.MinMatches {
						t.Errorf("residual of rank %d is %d ns over %d matches", clock.Rank, clock.Residual, clock.Matches)
					}
				}
			}
		})
	}
}
