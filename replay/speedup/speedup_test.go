package speedup_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"mixdown/replay/speedup"
)

// TestCoverage holds the interval against the binomial distribution, as tables
// of the sign test give it.
func TestCoverage(t *testing.T) {
	for _, c := range []struct {
		n        int
		lo, hi   int // order statistics, from 1
		coverage float64
	}{
		{5, 1, 5, 0.9375}, {6, 1, 6, 0.96875}, {8, 1, 8, 0.9921875}, {9, 2, 8, 0.9609375},
		{10, 2, 9, 0.978515625}, {20, 6, 15, 0.958610535}, {30, 10, 21, 0.957226},
	} {
		base, variant := make([]int64, c.n), make([]int64, c.n)
		for i := range base {
			base[i], variant[i] = int64(i+1)*1000, 1000 // ratios 1..n
		}
		s, err := speedup.Compare(base, variant)
		if err != nil {
			t.Fatal(err)
		}
		if s.Interval != [2]float64{float64(c.lo), float64(c.hi)} || math.Abs(s.Coverage-c.coverage) > 1e-6 {
			t.Errorf("n=%d: order statistics %v cover %.6f, want %d and %d, %.6f", c.n, s.Interval, s.Coverage, c.lo, c.hi, c.coverage)
		}
		if warned := len(s.Warnings) > 0; warned != (c.n < 6) {
			t.Errorf("n=%d: warnings %v", c.n, s.Warnings)
		}
	}
}

// TestIntervalHoldsTheTruth draws noisy pairs with a known ratio.
func TestIntervalHoldsTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const truth, rounds = 1.3, 2000
	inside := 0
	for range rounds {
		base, variant := make([]int64, 12), make([]int64, 12)
		for i := range base {
			machine := math.Exp(rng.NormFloat64() * 0.5) // what both runs of a pair share
			variant[i] = int64(1e6 * machine * math.Exp(rng.NormFloat64()*0.05))
			base[i] = int64(truth * 1e6 * machine * math.Exp(rng.NormFloat64()*0.05))
		}
		s, err := speedup.Compare(base, variant)
		if err != nil {
			t.Fatal(err)
		}
		if s.Interval[0] <= truth && truth <= s.Interval[1] {
			inside++
		}
	}
	if share := float64(inside) / rounds; share < 0.94 {
		t.Errorf("the interval held the truth in %.1f %% of %d rounds", 100*share, rounds)
	}
}

func TestImpossiblePairsAreErrors(t *testing.T) {
	for _, c := range [][2][]int64{{nil, nil}, {{1}, {1, 2}}, {{1, 0}, {1, 1}}, {{1}, {-5}}} {
		if s, err := speedup.Compare(c[0], c[1]); err == nil {
			t.Errorf("%v against %v gave %+v, want an error", c[0], c[1], s)
		}
	}
}

func ExampleCompare() {
	s, _ := speedup.Compare([]int64{200, 210, 190, 205, 220, 195}, []int64{100, 100, 100, 100, 100, 100})
	fmt.Printf("%.3f, between %.2f and %.2f\n", s.Speedup, s.Interval[0], s.Interval[1])
	// Output: 2.025, between 1.90 and 2.20
}
