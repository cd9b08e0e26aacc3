package shift

import "math"

// Values that resemble their predecessor say less than independent ones: a run
// that heats up or shares a network drifts from step to step, and its steps spread
// less about their median than runs spread about each other.
const (
	// LeastDependent is how many values of a sample can tell dependence from chance.
	LeastDependent = 8
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
		if len(x) < LeastDependent {
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

// DependenceBound is what the dependence is below, about as sure as confidence (of
// 20 values with a dependence of 0.6 one in nine has a bound of 95 % below it): the
// estimate of few values can be much too small by chance. Its standard error is
// sqrt((1-r^2)/n) (M. S. Bartlett, "On the Theoretical Specification and Sampling
// Properties of Autocorrelated Time-Series", Supplement to the Journal of the Royal
// Statistical Society 8, 1946). It is 0 when there are too few values to say.
func DependenceBound(confidence float64, samples ...[]float64) float64 {
	n := 0
	for _, x := range samples {
		if len(x) >= LeastDependent && Varies(x) {
			n += len(x)
		}
	}
	if n == 0 {
		return 0
	}
	return BoundOf(Dependence(samples...), n, confidence)
}

// BoundOf is DependenceBound when n values have the dependence r. It is 0 when so
// few values can't tell.
func BoundOf(r float64, n int, confidence float64) float64 {
	if n < LeastDependent {
		return 0
	}
	return min(r+quantile(confidence)*math.Sqrt((1-r*r)/float64(n)), mostDependent)
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

// Widening is by how much the variance of the mean of n values is underestimated
// from their own spread when each depends on the one before by r: the mean varies
// more (Inflation), and the values spread less about it (G. V. Bayley, J. M.
// Hammersley, "The 'Effective' Number of Independent Observations in an
// Autocorrelated Time Series", Supplement to the Journal of the Royal Statistical
// Society 8, 1946).
func Widening(r float64, n int) float64 {
	v := Inflation(r, n)
	return v * float64(n-1) / (float64(n) - v)
}

// Widen is the estimate when the variance of the shift is so many times what the
// spread of the values says. The interval is wider about the shift. P is at least
// that of a normal deviate, the shift over its standard error, which the width of
// the interval tells (E. L. Lehmann, "Nonparametric Confidence Intervals for a Shift
// Parameter", Annals of Mathematical Statistics 34, 1963): a test of ranks alone
// knows how many values lie above others but not how far, and dependent values hardly
// ever lie between each other.
func (e Estimate) Widen(widening float64) Estimate {
	if widening <= 1 || e.Coverage <= 0 {
		return e
	}
	by := math.Sqrt(widening)
	e.Low, e.High = e.Shift-by*(e.Shift-e.Low), e.Shift+by*(e.High-e.Shift)
	se := (e.High - e.Low) / 2 / quantile((1+e.Coverage)/2)
	if z := math.Abs(e.Shift) / se; z >= 0 { // not 0/0
		e.P = max(e.P, math.Erfc(z/math.Sqrt2))
	}
	return e
}
