package shift

import "math"

// Values that resemble their predecessor say less than independent ones: a run
// that heats up or shares a network drifts from step to step, and its steps spread
// less about their median than runs spread about each other.
const (
	// leastDependent is how many values of a sample can tell dependence from chance.
	leastDependent = 8
	// mostDependent bounds the estimate: above it the values say next to nothing.
	mostDependent = 0.9
)

// Dependence is how much a value tells about the next one, from 0 to 0.9: the
// autocorrelation of the samples, each about its own mean, corrected for the bias
// that few values have (M. G. Kendall, "Note on Bias in the Estimation of
// Autocorrelation", Biometrika 41, 1954). It is 0 when there are too few to say.
func Dependence(samples ...[]float64) float64 {
	var with, own, n, used float64
	for _, x := range samples {
		if len(x) < leastDependent {
			continue
		}
		mean := meanOf(x)
		for i, v := range x {
			own += (v - mean) * (v - mean)
			if i > 0 {
				with += (v - mean) * (x[i-1] - mean)
			}
		}
		n, used = n+float64(len(x)), used+1
	}
	if own == 0 {
		return 0
	}
	r := with / own
	r += (1 + 3*r) / (n / used)
	return min(max(r, 0), mostDependent)
}

// Inflation is how many times the variance of the mean of n values is that of n
// independent ones, when each depends on the one before by r.
func Inflation(r float64, n int) float64 {
	v, power := 1.0, 1.0
	for k := 1; k < n && power > 1e-9; k++ {
		power *= r
		v += 2 * (1 - float64(k)/float64(n)) * power
	}
	return v
}

// Widen is the estimate when the variance of the shift is so many times that of
// independent values: the interval is wider about the shift, and p is that of a
// normal deviate as much nearer to 0.
func (e Estimate) Widen(inflation float64) Estimate {
	by := math.Sqrt(inflation)
	e.Low, e.High = e.Shift-by*(e.Shift-e.Low), e.Shift+by*(e.High-e.Shift)
	e.P = math.Erfc(math.Erfcinv(e.P) / by)
	return e
}
