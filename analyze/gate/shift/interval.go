package shift

import (
	"math"
	"slices"
)

// maxExact is how many pairs of values have their interval from the exact
// distribution of U: 32 against 32. With more the normal approximation is within
// one order statistic.
const maxExact = 1024

// orderOf returns the k for which the k-th smallest and the k-th largest of the
// n x m differences enclose the shift with at least the confidence, and how sure
// that is; k is 1 when none does (M. Hollander, D. A. Wolfe, "Nonparametric
// Statistical Methods", section 4.3).
func orderOf(n, m int, confidence float64) (k int, coverage float64) {
	if n*m > maxExact {
		fn, fm := float64(n), float64(m)
		sd := math.Sqrt(fn * fm * (fn + fm + 1) / 12)
		k = int(math.Floor(fn*fm/2 - quantile(1-(1-confidence)/2)*sd))
		k = max(k, 1)
		return k, 1 - math.Erfc((fn*fm/2-float64(k)+0.5)/sd/math.Sqrt2)
	}
	pmf := distribution(n, m)
	tail := pmf[0] // P(U < k)
	k, coverage = 1, max(1-2*tail, 0)
	for next := 2; next <= n*m/2; next++ {
		tail += pmf[next-1]
		if 1-2*tail < confidence {
			break
		}
		k, coverage = next, 1-2*tail
	}
	return k, coverage
}

// distribution is the probability of every U of two samples of n and m values
// from one distribution, without ties: the share of the choices of n of the
// numbers 0 .. n+m-1 whose sum is U + n(n-1)/2. With ties U spreads less, and the
// interval is wider than it need be.
func distribution(n, m int) []float64 {
	if n > m {
		n, m = m, n
	}
	ways := make([][]float64, n+1) // [chosen][sum less the smallest possible]
	for c := range ways {
		ways[c] = make([]float64, n*m+1)
	}
	ways[0][0] = 1
	for v := range n + m {
		for c := min(n, v+1); c >= 1; c-- {
			add := v - (c - 1) // how far v lies above the c-th smallest number
			for s := n * m; s >= add; s-- {
				ways[c][s] += ways[c-1][s-add]
			}
		}
	}
	total := 0.0
	for _, w := range ways[n] {
		total += w
	}
	for u := range ways[n] {
		ways[n][u] /= total
	}
	return ways[n]
}

// LeastP is the smallest two-sided p-value that samples of n and m values can
// have: that of samples that do not overlap.
func LeastP(n, m int) float64 {
	if n <= 0 || m <= 0 {
		return 1
	}
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(m + 1))
	all, _ := math.Lgamma(float64(n + m + 1))
	return min(2*math.Exp(a+b-all), 1)
}

// Center is the median of a sample with its interval.
type Center struct {
	N int
	// Median is in the unit of the values.
	Median float64
	// Low and High are order statistics that enclose the median of the
	// distribution with the probability Coverage, as in Estimate.
	Low, High, Coverage float64
}

// Median estimates the median of the distribution that x is from, with the
// interval of the sign test (Hollander and Wolfe, section 3.6). Without values N
// is 0 and nothing is known.
func Median(x []float64, confidence float64) Center {
	sorted := slices.Sorted(slices.Values(x))
	n := len(sorted)
	if n == 0 {
		return Center{}
	}
	c := Center{N: n, Median: sorted[n/2]}
	if n%2 == 0 {
		c.Median = (sorted[n/2-1] + sorted[n/2]) / 2
	}
	pmf := math.Exp2(float64(-n)) // of no value below the median
	tail, k := pmf, 1
	c.Coverage = 1 - 2*tail
	for next := 1; next < n/2; next++ {
		pmf *= float64(n-next+1) / float64(next)
		tail += pmf
		if 1-2*tail < confidence {
			break
		}
		k, c.Coverage = next+1, 1-2*tail
	}
	c.Low, c.High = sorted[k-1], sorted[n-k]
	return c
}

// quantile is that of the normal distribution.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
