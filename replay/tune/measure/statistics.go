package measure

import (
	"math"
	"slices"

	"mixdown/replay/tune"
)

// series is all that was measured of a point on a contender.
type series struct {
	medians []int64 // of each iteration, or its mean, ns: the values that are independent
	all     []int64 // ns
	checked bool
}

// add adds the iterations of one run.
func (s *series) add(o outcome) {
	for _, times := range o.iterations {
		s.medians = append(s.medians, middle(times))
		s.all = append(s.all, times...)
	}
}

// addMean adds an iteration of a step, which has an operation once or many times:
// the step takes the sum of them, so their mean is what counts.
func (s *series) addMean(times []int64) {
	var sum int64
	for _, t := range times {
		sum += t
	}
	s.medians = append(s.medians, sum/int64(len(times)))
	s.all = append(s.all, times...)
}

// middle is the median.
func middle(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return sorted[(n-1)/2] + (sorted[n/2]-sorted[(n-1)/2])/2
}

// confidence is the level of the intervals.
const confidence = 0.95

// interval is a confidence interval of the median by order statistics, which
// assume nothing about how times are distributed. Fewer than six values can't
// give 95 %: then there is none.
func interval(values []int64) (lo, hi int64, ok bool) {
	n := len(values)
	if n < 6 {
		return 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	if n > 1000 { // the binomial is normal enough
		half := int(math.Ceil(0.98 * math.Sqrt(float64(n))))
		return sorted[n/2-half], sorted[min(n-1, n/2+half)], true
	}
	pmf := math.Exp2(float64(-n)) // of no value below the median
	tail, rank := pmf, 1
	for k := 1; k < n/2; k++ {
		pmf *= float64(n-k+1) / float64(k)
		if 1-2*(tail+pmf) < confidence {
			break
		}
		tail += pmf
		rank = k + 1
	}
	return sorted[rank-1], sorted[n-rank], true
}

// fill puts the statistics into a row.
func (s *series) fill(r *tune.Row) {
	r.Time, r.Min, r.N, r.Verified = middle(s.medians), slices.Min(s.all), int64(len(s.all)), s.checked
	sorted := slices.Sorted(slices.Values(s.all))
	r.P95 = sorted[min(len(sorted)-1, int(math.Ceil(0.95*float64(len(sorted))))-1)]
	if lo, hi, ok := interval(s.medians); ok {
		r.CILow, r.CIHigh = lo, hi
	}
}

// spread is half the confidence interval over the median; 1 when there is none.
func spread(r *tune.Row) float64 {
	if r.CIHigh == 0 || r.Time == 0 {
		return 1
	}
	return float64(r.CIHigh-r.CILow) / 2 / float64(r.Time)
}
