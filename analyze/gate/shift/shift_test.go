package shift_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"mixdown/analyze/gate/shift"
)

// figures are those of testdata/oracle.py.
type figures struct {
	Compare []struct {
		X, Y       []float64
		Confidence float64
		Shift      float64
		P          *float64
		Low, High  *float64
	}
	Median []struct {
		X                                       []float64
		Confidence, Median, Low, High, Coverage float64
	}
	Holm  []struct{ P, Adjusted []float64 }
	Bound []struct {
		N                  int
		Confidence, Factor float64
	}
}

func read(t *testing.T) figures {
	t.Helper()
	data, err := os.ReadFile("testdata/oracle.json")
	if err != nil {
		t.Fatal(err)
	}
	var f figures
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func near(a, b, relative float64) bool { return math.Abs(a-b) <= relative*max(math.Abs(b), 1e-9) }

// TestCompareIsScipys: the shift, the interval found by inverting scipy's test,
// and its p.
func TestCompareIsScipys(t *testing.T) {
	intervals := 0
	for i, c := range read(t).Compare {
		e := shift.Compare(c.X, c.Y, c.Confidence)
		if !near(e.Shift, c.Shift, 1e-9) {
			t.Errorf("case %d: shift %v, scipy %v", i, e.Shift, c.Shift)
		}
		if c.P != nil && !near(e.P, *c.P, 1e-6) {
			t.Errorf("case %d (%d x %d): p %v, scipy %v", i, e.N, e.M, e.P, *c.P)
		}
		if c.Low != nil && (!near(e.Low, *c.Low, 1e-9) || !near(e.High, *c.High, 1e-9)) {
			t.Errorf("case %d (%d x %d): %v .. %v (%v), scipy %v .. %v", i, e.N, e.M, e.Low, e.High, e.Coverage, *c.Low, *c.High)
		}
		if c.Low != nil {
			intervals++
		}
	}
	if intervals < 4 {
		t.Errorf("only %d intervals compared", intervals)
	}
}

func TestMedianIsScipys(t *testing.T) {
	for i, c := range read(t).Median {
		m := shift.Median(c.X, c.Confidence)
		if !near(m.Median, c.Median, 1e-9) || m.Low != c.Low || m.High != c.High || !near(m.Coverage, c.Coverage, 1e-9) {
			t.Errorf("case %d: %+v, want %+v", i, m, c)
		}
	}
}

func TestHolmIsStatsmodels(t *testing.T) {
	for _, c := range read(t).Holm {
		for i, p := range shift.Holm(c.P) {
			if !near(p, c.Adjusted[i], 1e-9) {
				t.Errorf("%v: %v, want %v", c.P, shift.Holm(c.P), c.Adjusted)
			}
		}
	}
}

func TestSpreadBoundIsChiSquare(t *testing.T) {
	for _, c := range read(t).Bound {
		if got := shift.SpreadBound(1, c.N, c.Confidence); !near(got, c.Factor, 0.1) {
			t.Errorf("%d values: %v, want %v", c.N, got, c.Factor)
		}
	}
}

// TestDifferencesNeedNoList: the order statistics are those of all differences.
func TestDifferencesNeedNoList(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		x, y := make([]float64, 1+rng.IntN(9)), make([]float64, 1+rng.IntN(9))
		for i := range x {
			x[i] = math.Round(rng.NormFloat64() * 10)
		}
		for i := range y {
			y[i] = math.Round(rng.NormFloat64()*10) * 1e5
		}
		var all []float64
		for _, a := range x {
			for _, b := range y {
				all = append(all, b-a)
			}
		}
		slices.Sort(all)
		n := len(all)
		want := (all[n/2] + all[(n-1)/2]) / 2
		if e := shift.Compare(x, y, 0.95); e.Shift != want || e.Low < all[0] || e.High > all[n-1] {
			t.Fatalf("%v %v: %+v, want %v", x, y, e, want)
		}
	}
}

// TestIntervalCovers the true shift as often as it says.
func TestIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const rounds = 2000
	for _, n := range []int{5, 12, 40} {
		inside := 0
		for range rounds {
			x, y := make([]float64, n), make([]float64, n)
			for i := range x {
				x[i], y[i] = rng.ExpFloat64(), rng.ExpFloat64()+3
			}
			if e := shift.Compare(x, y, 0.95); e.Low <= 3 && 3 <= e.High {
				inside++
			}
		}
		if share := float64(inside) / rounds; share < 0.94 {
			t.Errorf("%d values: the interval held the shift in %.1f %% of %d rounds", n, 100*share, rounds)
		}
	}
}

func TestNoValuesKnowNothing(t *testing.T) {
	if e := shift.Compare(nil, []float64{1}, 0.95); e.P != 1 || e.Coverage != 0 {
		t.Errorf("%+v", e)
	}
	if e := shift.Compare([]float64{1, 1, 1}, []float64{1, 1, 1}, 0.95); e.P != 1 || e.Shift != 0 || e.Low != 0 || e.High != 0 {
		t.Errorf("%+v", e)
	}
	if p := shift.LeastP(5, 5); !near(p, 2.0/252, 1e-9) {
		t.Errorf("least p of 5 against 5: %v", p)
	}
	if sd, n := shift.Spread([]float64{10, 11, 9, 10, 11, 9, 10, 500}); n != 1 || sd > 1 {
		t.Errorf("spread %v, %d outliers", sd, n)
	}
	if r := shift.Dependence([]float64{1, 2, 3, 4, 5, 6, 7, 8}); r < 0.5 {
		t.Errorf("dependence in a trend: %v", r)
	}
}

// TestDependence finds the coefficient of autoregressive values, and the variance
// of their mean.
func TestDependence(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const rounds, n = 1000, 30
	for _, phi := range []float64{0, 0.3, 0.6} {
		var sum, square float64
		for range rounds {
			x, z := make([]float64, n), rng.NormFloat64()
			for i := range x {
				z = phi*z + math.Sqrt(1-phi*phi)*rng.NormFloat64()
				x[i] = z
			}
			sum += shift.Dependence(x, x)
			mean := 0.0
			for _, v := range x {
				mean += v / n
			}
			square += mean * mean
		}
		if got := sum / rounds; math.Abs(got-phi) > 0.1 {
			t.Errorf("%v: estimated as %.2f", phi, got)
		}
		if got, want := shift.Inflation(phi, n), square/rounds*n; math.Abs(got-want) > 0.1*want {
			t.Errorf("%v: inflation %.2f, measured %.2f", phi, got, want)
		}
	}
	e := shift.Estimate{Shift: 10, Low: 8, High: 13, P: 0.01, Coverage: 0.95}.Widen(4)
	if e.Low != 6 || e.High != 16 || e.P != 0.01 { // 10 over 5/1.96 is a z of 3.92, p 0.0001
		t.Errorf("%+v", e)
	}
	e = shift.Estimate{Shift: 2.5, Low: 0.5, High: 5.5, P: 0.01, Coverage: 0.95}.Widen(4)
	if !near(e.P, 0.32709, 1e-3) { // 2.5 over 5/1.96 is a z of 0.98
		t.Errorf("%+v", e)
	}
	if e := (shift.Estimate{P: 1, Coverage: 0.95}).Widen(4); e.P != 1 || e.Low != 0 {
		t.Errorf("without any difference: %+v", e)
	}
}

// TestDependenceBound is below the true coefficient about as rarely as it says, and
// Widening is what the spread of autoregressive values leaves out.
func TestDependenceBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const rounds, n = 2000, 20
	for _, phi := range []float64{0, 0.3, 0.6} {
		below, square, spread := 0, 0.0, 0.0
		for range rounds {
			x, z := make([]float64, n), rng.NormFloat64()
			for i := range x {
				z = phi*z + math.Sqrt(1-phi*phi)*rng.NormFloat64()
				x[i] = z
			}
			if shift.DependenceBound(0.95, x) < phi {
				below++
			}
			mean := 0.0
			for _, v := range x {
				mean += v / n
			}
			square += mean * mean / rounds
			for _, v := range x {
				spread += (v - mean) * (v - mean) / (n - 1) / rounds
			}
		}
		if share := float64(below) / rounds; share > 0.12 {
			t.Errorf("%v: the bound lies below it in %.1f %% of rounds", phi, 100*share)
		}
		if got, want := shift.Widening(phi, n), square/(spread/n); math.Abs(got-want) > 0.12*want {
			t.Errorf("%v: widening %.2f, measured %.2f", phi, got, want)
		}
	}
	if b := shift.DependenceBound(0.95, []float64{1, 2, 1, 2, 1}); b != 0 {
		t.Errorf("of 5 values: %v", b)
	}
}
