package speedup

import (
	"fmt"
	"math"
	"slices"
)

// Confidence is the level of the intervals.
const Confidence = 0.95

// Summary is the outcome of comparing a variant with its baseline.
type Summary struct {
	N        int
	Speedup  float64    // above 1: the variant is faster
	Interval [2]float64 // of the speedup
	Coverage float64    // what the interval really covers, at least Confidence where N allows
	Warnings []error    // do not stop the analysis, but must be shown
}

// Compare compares paired iterations, in ns. Both have the same length.
func Compare(baseline, variant []int64) (Summary, error) {
	n := len(baseline)
	if n == 0 || n != len(variant) {
		return Summary{}, fmt.Errorf("compare %d iterations of the baseline with %d of the variant: expected as many of both, and at least one", n, len(variant))
	}
	ratios := make([]float64, n)
	for i := range baseline {
		if baseline[i] <= 0 || variant[i] <= 0 {
			return Summary{}, fmt.Errorf("iteration %d took %d and %d ns: expected positive times", i, baseline[i], variant[i])
		}
		ratios[i] = float64(baseline[i]) / float64(variant[i])
	}
	slices.Sort(ratios)
	s := Summary{N: n, Speedup: medianOf(ratios)}
	rank, coverage := orderStatistic(n)
	s.Interval = [2]float64{ratios[rank-1], ratios[n-rank]}
	s.Coverage = coverage
	if coverage < Confidence {
		s.Warnings = append(s.Warnings, fmt.Errorf("%d iterations: the interval covers %.1f %%, not %.0f %%; use at least 6", n, 100*coverage, 100*Confidence))
	}
	return s, nil
}

func medianOf(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// orderStatistic returns the largest r for which the r-th smallest and r-th
// largest of n values enclose the median with at least the wanted confidence,
// and the coverage; r is 1 when none does. The number of values below the
// median is binomial with probability 1/2.
func orderStatistic(n int) (r int, coverage float64) {
	pmf := math.Exp2(float64(-n)) // of 0 successes; underflows beyond a thousand, where the tail is nil anyway
	tail := pmf                   // P(fewer than r values below)
	r, coverage = 1, 1-2*tail
	for k := 1; k < n/2; k++ {
		pmf *= float64(n-k+1) / float64(k)
		tail += pmf
		if 1-2*tail < Confidence {
			break
		}
		r, coverage = k+1, 1-2*tail
	}
	return r, coverage
}

// Median is the middle of the iterations, in ns.
func Median(iterations []int64) int64 {
	if len(iterations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(iterations))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return sorted[n/2-1] + (sorted[n/2]-sorted[n/2-1])/2
}
