package gate_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"mixdown/analyze/gate"
)

// pairs is how many clean pairs TestTruth makes; the figures in help are of 20,000.
var pairs = flag.Int("pairs", 2000, "clean pairs of the truth test")

// made is a record of a run on one rank whose steps took so long, ns.
func made(steps []float64) *gate.Record {
	r := &gate.Record{Facts: gate.Facts{WorldSize: 1, RanksRead: 1, Device: "gpu"}}
	t := gate.Times{Rank: -1}
	for i, v := range steps {
		r.Steps = append(r.Steps, fmt.Sprint(i))
		t.Step = append(t.Step, int64(v))
	}
	t.Compute, t.Comm, t.Exposed, t.Hidden, t.Memory, t.Idle = t.Step, t.Step, t.Step, t.Step, t.Step, t.Step
	r.Mean, r.Max = &t, &t
	return r
}

// draw makes the steps of a run of 100 ms each, with relative noise; one step in
// fifty is an outlier.
func draw(rng *rand.Rand, n int, noise, regression float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 100e6 * (1 + regression) * (1 + noise*rng.NormFloat64())
		if rng.IntN(50) == 0 {
			out[i] *= 1.5
		}
	}
	return out
}

// judge gates one rule on a pair of runs without warm-up.
func judge(t *testing.T, limit float64, x, y []float64) gate.Outcome {
	t.Helper()
	rule, err := gate.ParseRule(fmt.Sprintf("step +%.6f%%", 100*limit))
	if err != nil {
		t.Fatal(err)
	}
	p := &gate.Policy{Samples: gate.Samples{Min: gate.DefaultMin}, Confidence: gate.DefaultConfidence, Rules: []gate.Rule{rule}}
	r, err := gate.Evaluate(made(x), made(y), p, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Outcome
}

// TestTruth gates pairs of runs whose truth is known: noise of 1 to 10 %, no
// regression to one of 20 %, 10 to 50 steps. Limits are those of a policy that was
// made from the baseline, and fixed ones of people, 2 to 20 %, which noise may
// be too large for.
//
//   - At most 1 % of clean pairs are regressions.
//   - No regression of twice the limit passes (of 10,000 two, within the interval's
//     confidence). With the baseline's own limit it is found; one in a thousand,
//     short runs with several outliers, is inconclusive. With a fixed limit it is inconclusive where noise is too large
//     for the limit.
func TestTruth(t *testing.T) {
	clean, worse := *pairs, *pairs/2
	rng := rand.New(rand.NewPCG(2026, 11))
	for _, c := range []struct {
		name  string
		limit func(x []float64) float64
	}{
		{"limits of gate init", func(x []float64) float64 { n := gate.NoiseOf(x); return n.Limit() / n.Median }},
		{"fixed limits", func([]float64) float64 { return []float64{0.02, 0.05, 0.1, 0.2}[rng.IntN(4)] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := func(regression func(limit float64) float64) gate.Outcome {
				noise := 0.01 + 0.09*rng.Float64()
				n := 10 + rng.IntN(41)
				x := draw(rng, n, noise, 0)
				limit := c.limit(x)
				return judge(t, limit, x, draw(rng, n, noise, regression(limit)))
			}
			got := map[gate.Outcome]int{}
			for range clean {
				got[one(func(float64) float64 { return 0 })]++
			}
			t.Logf("clean: %d pairs, false alarms %.2f %%, inconclusive %.1f %%", clean, share(got[gate.Regression], clean), share(got[gate.Inconclusive], clean))
			if got[gate.Regression] > clean/100 {
				t.Errorf("%d false alarms of %d", got[gate.Regression], clean)
			}
			if c.name == "limits of gate init" && got[gate.Inconclusive] > clean/100 {
				t.Errorf("%d of %d clean pairs are inconclusive", got[gate.Inconclusive], clean)
			}
			twice := map[gate.Outcome]int{}
			for range worse {
				twice[one(func(limit float64) float64 { return 2 * limit })]++
			}
			t.Logf("twice the limit: %d pairs, found %.2f %%, inconclusive %.1f %%, passed %d", worse, share(twice[gate.Regression], worse), share(twice[gate.Inconclusive], worse), twice[gate.Pass]+twice[gate.Improved])
			any := map[gate.Outcome]int{}
			for range worse {
				any[one(func(float64) float64 { return 0.2 * rng.Float64() })]++
			}
			t.Logf("0 to 20 %%: %d pairs, found %.1f %%, inconclusive %.1f %%, below the limit %.1f %%", worse, share(any[gate.Regression], worse), share(any[gate.Inconclusive], worse), share(any[gate.Pass]+any[gate.Improved], worse))
			if missed := twice[gate.Pass] + twice[gate.Improved]; missed > worse/2000 {
				t.Errorf("%d regressions of twice the limit passed", missed)
			}
			if unclear := twice[gate.Inconclusive]; c.name == "limits of gate init" && unclear > worse/500 {
				t.Errorf("%d of %d regressions of twice the limit are inconclusive", unclear, worse)
			}
		})
	}
}

// TestStepsThatDependOnEachOther: real steps drift. With an autocorrelation of 0.3 to
// 0.8 the bars are those of TestTruth: at most 1 % of clean pairs are regressions, and
// no regression of twice the limit passes (at 0.8, of 10 steps that say little about
// each other by chance, up to one in a thousand). More is inconclusive, since such
// steps say less; with the limits of gate init, which know that, little is.
func TestStepsThatDependOnEachOther(t *testing.T) {
	clean, worse := *pairs/2, *pairs/4
	for _, phi := range []float64{0.3, 0.6, 0.8} {
		rng := rand.New(rand.NewPCG(2026, uint64(100*phi)))
		drift := func(n int, noise, regression float64) []float64 {
			out, z := make([]float64, n), rng.NormFloat64()
			for i := range out {
				z = phi*z + math.Sqrt(1-phi*phi)*rng.NormFloat64()
				out[i] = 100e6 * (1 + regression) * (1 + noise*z)
			}
			return out
		}
		for _, name := range []string{"limits of gate init", "fixed limits"} {
			t.Run(fmt.Sprintf("%v, %s", phi, name), func(t *testing.T) {
				one := func(regression float64) gate.Outcome {
					n, noise := 10+rng.IntN(41), 0.01+0.09*rng.Float64()
					x := drift(n, noise, 0)
					own := gate.NoiseOf(x)
					limit := own.Limit() / own.Median
					if name == "fixed limits" {
						limit = []float64{0.02, 0.05, 0.1, 0.2}[rng.IntN(4)]
					}
					return judge(t, limit, x, drift(n, noise, regression*limit))
				}
				same, twice := map[gate.Outcome]int{}, map[gate.Outcome]int{}
				for range clean {
					same[one(0)]++
				}
				for range worse {
					twice[one(2)]++
				}
				passed := twice[gate.Pass] + twice[gate.Improved]
				t.Logf("clean: %d pairs, false alarms %.2f %%, inconclusive %.1f %%", clean, share(same[gate.Regression], clean), share(same[gate.Inconclusive], clean))
				t.Logf("twice the limit: %d pairs, found %.2f %%, inconclusive %.2f %%, passed %d", worse, share(twice[gate.Regression], worse), share(twice[gate.Inconclusive], worse), passed)
				if same[gate.Regression] > clean/100 {
					t.Errorf("%d false alarms of %d", same[gate.Regression], clean)
				}
				if allowed := map[float64]int{0.8: (worse + 999) / 1000}[phi]; passed > max(allowed, worse/2500) {
					t.Errorf("%d regressions of twice the limit passed", passed)
				}
				if unclear := same[gate.Inconclusive] + twice[gate.Inconclusive]; name == "limits of gate init" && unclear > (clean+worse)/20 {
					t.Errorf("%d of %d pairs are inconclusive", unclear, clean+worse)
				}
			})
		}
	}
}

func share(n, of int) float64 { return 100 * float64(n) / float64(of) }
