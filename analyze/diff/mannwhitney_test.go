package diff

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// bruteForce goes through all ways to choose which values are x's.
func bruteForce(x, y []float64) (u, p float64) {
	pairs := func(x, y []float64) (u float64) {
		for _, a := range x {
			for _, b := range y {
				switch {
				case a > b:
					u++
				case a == b:
					u += 0.5
				}
			}
		}
		return u
	}
	u = pairs(x, y)
	mean := float64(len(x)*len(y)) / 2
	all := append(append([]float64{}, x...), y...)
	extreme, total := 0, 0
	for mask := range 1 << len(all) {
		if bits.OnesCount(uint(mask)) != len(x) {
			continue
		}
		var a, b []float64
		for i, v := range all {
			if mask>>i&1 == 1 {
				a = append(a, v)
			} else {
				b = append(b, v)
			}
		}
		total++
		if math.Abs(pairs(a, b)-mean) >= math.Abs(u-mean) {
			extreme++
		}
	}
	return u, float64(extreme) / float64(total)
}

func TestMannWhitneyIsThePermutationTest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		values := 2 + rng.IntN(20) // few: ties
		draw := func(n int) []float64 {
			list := make([]float64, n)
			for i := range list {
				list[i] = float64(rng.IntN(values))
			}
			return list
		}
		x, y := draw(1+rng.IntN(6)), draw(1+rng.IntN(5))
		u, p := MannWhitney(x, y)
		wantU, wantP := bruteForce(x, y)
		if u != wantU || math.Abs(p-wantP) > 1e-12 {
			t.Fatalf("%v %v: U %g, p %g, want %g, %g", x, y, u, p, wantU, wantP)
		}
		if other, same := MannWhitney(y, x); other+u != float64(len(x)*len(y)) || math.Abs(same-p) > 1e-12 {
			t.Fatalf("%v %v: not symmetric", x, y)
		}
	}
}

func TestMannWhitneyKnownValues(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		p    float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2.0 / 70},
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 2.0 / 20},
		{[]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 1},
		{nil, []float64{1}, 1},
	} {
		if _, p := MannWhitney(c.x, c.y); math.Abs(p-c.p) > 1e-12 {
			t.Errorf("%v %v: p %g, want %g", c.x, c.y, p, c.p)
		}
	}
	// U = 1 of 36: z = (17 - 0.5) / sqrt(39) = 2.64211.
	if p := normalP(1, 6, 6, 0); math.Abs(p-0.00824) > 1e-5 {
		t.Errorf("p %g", p)
	}
}

// TestTiesOfLargeSamples: 15 of 20 against 5 of 20 are 0, the others 1: U = 100,
// variance 400/12 x (41 - 2 x 7980 / 1560), z = 99.5 / 32.025.
func TestTiesOfLargeSamples(t *testing.T) {
	x, y := make([]float64, 20), make([]float64, 20)
	for i := range x {
		if i >= 15 {
			x[i] = 1
		}
		if i >= 5 {
			y[i] = 1
		}
	}
	if u, p := MannWhitney(x, y); u != 100 || math.Abs(p-0.0018907) > 1e-6 {
		t.Errorf("U %g, p %g", u, p)
	}
}

// TestApproximation: where both can be had, they agree.
func TestApproximation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		x, y := make([]float64, 14), make([]float64, 12)
		for i := range x {
			x[i] = float64(rng.IntN(30))
		}
		for i := range y {
			y[i] = float64(rng.IntN(30) + rng.IntN(8))
		}
		ranks, ties := midRanks(append(append([]float64{}, x...), y...))
		u, exact := MannWhitney(x, y)
		if normal := normalP(u, 14, 12, ties); math.Abs(normal-exact) > 0.02 {
			t.Errorf("%v: exact %g, normal %g", ranks, exact, normal)
		}
	}
}

// TestLevel: of equal samples p < 0.05 in no more than one of twenty.
func TestLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{4, 10, 60} {
		const runs = 2000
		below := 0
		for range runs {
			x, y := make([]float64, n), make([]float64, n)
			for i := range n {
				x[i], y[i] = rng.NormFloat64(), rng.NormFloat64()
			}
			if _, p := MannWhitney(x, y); p < 0.05 {
				below++
			}
		}
		if share := float64(below) / runs; share > 0.066 { // 3.3 standard errors
			t.Errorf("%d values: %g", n, share)
		}
	}
}
