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
	// lengths are those of the steps, of an operation that is measured within steps, by
	// iteration, ns; else none.
	lengths []int64
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
func (s *series) addMean(times []int64, length int64) {
	s.medians = append(s.medians, mean(times))
	s.all = append(s.all, times...)
	s.lengths = append(s.lengths, length)
}

// usual are the values of iterations whose steps are not far longer than the others:
// by more than three times the quartiles' distance beyond the upper quartile (Tukey,
// Exploratory Data Analysis, 1977: "far out").
func (s *series) usual() []int64 {
	sorted := slices.Sorted(slices.Values(s.lengths))
	lower, upper := sorted[len(sorted)/4], sorted[len(sorted)*3/4]
	var list []int64
	for i, length := range s.lengths {
		if length <= upper+3*(upper-lower) {
			list = append(list, s.medians[i])
		}
	}
	return list
}

func mean(values []int64) int64 {
	var sum int64
	for _, v := range values {
		sum += v
	}
	return sum / int64(len(values))
}

// meanInterval is a confidence interval of the mean, by the normal distribution, as
// the mean of many is near to it. Fewer than six values have none, as with medians.
func meanInterval(values []int64) (lo, hi int64, ok bool) {
	n := len(values)
	if n < 6 {
		return 0, 0, false
	}
	middle, squares := float64(mean(values)), 0.0
	for _, v := range values {
		squares += (float64(v) - middle) * (float64(v) - middle)
	}
	half := int64(math.Ceil(1.96 * math.Sqrt(squares/float64(n-1)/float64(n))))
	return max(1, mean(values)-half), mean(values) + half, true
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

// fill puts the statistics into a row. Of what was measured within steps it is the
// mean: a step is the sum of what its operations take, and the medians of such that are
// short mostly and long at times add up to less than the median step.
func (s *series) fill(r *tune.Row) {
	r.Min, r.N, r.Verified = slices.Min(s.all), int64(len(s.all)), s.checked
	sorted := slices.Sorted(slices.Values(s.all))
	r.P95 = sorted[min(len(sorted)-1, int(math.Ceil(0.95*float64(len(sorted))))-1)]
	values, between := s.medians, interval
	r.Time = middle(values)
	if r.InStep {
		values, between = s.usual(), meanInterval
		r.Time = mean(values)
	}
	if lo, hi, ok := between(values); ok {
		r.CILow, r.CIHigh = lo, hi
	}
}

// spread is half the confidence interval over the time; 1 when there is none.
func spread(r *tune.Row) float64 {
	if r.CIHigh == 0 || r.Time == 0 {
		return 1
	}
	return float64(r.CIHigh-r.CILow) / 2 / float64(r.Time)
}
