package slowdown_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"mixdown/analyze/slowdown"
	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
)

// overlapped is a run with communication beside about half of its kernels.
func overlapped(factor, noise float64, seed uint64) synthetic.Options {
	return synthetic.Options{
		Ranks: 4, Steps: 8, Kernels: 60, KernelNs: 50_000, Noise: noise, Seed: seed, Contention: factor,
		Collectives: []synthetic.Collective{
			{Op: comm.AllReduce, Elements: 1 << 23, Async: true}, {Op: comm.AllGather, Elements: 1 << 16},
			{Op: comm.AllReduce, Elements: 1 << 22, Async: true}, {Op: comm.AllReduce, Elements: 1 << 20},
		},
	}
}

func measure(t *testing.T, opts synthetic.Options) *slowdown.Result {
	t.Helper()
	run, _, err := synthetic.Load(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	r, err := slowdown.Measure(run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The factor by which kernels were made longer is found again.
func TestFactorIsRecovered(t *testing.T) {
	covered, all := 0, 0
	for _, factor := range []float64{1.08, 1.3, 2} {
		for _, noise := range []float64{0, 0.05, 0.1} {
			for seed := range uint64(4) {
				t.Run(fmt.Sprint(factor, noise, seed), func(t *testing.T) {
					r := measure(t, overlapped(factor, noise, seed))
					if !r.Known {
						t.Fatalf("not known: %s", r.Why)
					}
					if math.Abs(r.Factor/factor-1) > 0.03 {
						t.Errorf("factor %.3f [%.3f, %.3f] of %d kernels, in truth %g", r.Factor, r.Low, r.High, r.Kernels, factor)
					}
					all++
					if r.Low <= factor && factor <= r.High {
						covered++
					}
					if r.Low > r.Factor || r.Factor > r.High || r.Kernels < 20 || r.Beside <= 0 {
						t.Errorf("%+v", r)
					}
				})
			}
		}
	}
	t.Logf("%d of %d intervals have the truth in them", covered, all)
	if covered < all*3/4 {
		t.Errorf("%d of %d intervals have the truth in them", covered, all)
	}
}

// Nothing is claimed where kernels take as long as ever.
func TestNoFactorWithoutContention(t *testing.T) {
	for _, noise := range []float64{0, 0.05, 0.1, 0.3} {
		for seed := range uint64(10) {
			if r := measure(t, overlapped(1, noise, seed)); r.Known || r.Why == "" {
				t.Errorf("noise %g, seed %d: factor %.4f [%.4f, %.4f]", noise, seed, r.Factor, r.Low, r.High)
			}
		}
	}
	none := overlapped(1.5, 0.05, 1)
	for i := range none.Collectives {
		none.Collectives[i].Async = false
	}
	if r := measure(t, none); r.Known || r.Kernels > 0 {
		t.Errorf("without overlap: %+v", r)
	}
	host := overlapped(1.5, 0.05, 1)
	host.Host = true
	if r := measure(t, host); r.Known || r.Why != "no rank has a device" {
		t.Errorf("without a device: %+v", r)
	}
}

// random is a rank of kernels at any times, on several streams.
func random(rng *rand.Rand, most int64) *trace.Rank {
	r := &trace.Rank{Names: trace.NewStrings()}
	for i := range 400 {
		row := trace.Row{
			Name: r.Names.InternString(fmt.Sprint("kernel ", rng.IntN(3))), Category: trace.Kernel, TS: rng.Int64N(most), Dur: rng.Int64N(most) * rng.Int64N(2),
			Stream: rng.Int64N(3), Correlation: trace.NoID, Blocks: rng.Int32N(2), Device: rng.Int32N(2) - 1,
		}
		e := r.Events.Append(row)
		if i%5 == 0 {
			r.Operations = append(r.Operations, comm.Operation{Op: comm.AllReduce, Event: e, Events: []int{e}})
		}
	}
	return r
}

// Times that no trace should have do no harm.
func TestImpossibleTimes(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		run := &trace.Run{}
		for _, most := range []int64{10, 10_000, 1 << 61} {
			run.Ranks = append(run.Ranks, random(rng, most))
		}
		r, err := slowdown.Measure(run)
		if err != nil || math.IsNaN(r.Factor) || math.IsInf(r.High, 0) || r.Known != (r.Why == "") {
			t.Errorf("seed %d: %+v, %v", seed, r, err)
		}
	}
	if r, err := slowdown.Measure(&trace.Run{}); err != nil || r.Known {
		t.Errorf("no ranks: %+v, %v", r, err)
	}
}
