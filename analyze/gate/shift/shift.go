package shift

import (
	"math"
	"slices"

	"mixdown/analyze/diff"
)

// Estimate says how a sample y lies to a sample x.
type Estimate struct {
	// N and M are the sizes of x and y.
	N, M int
	// Shift is the Hodges-Lehmann estimate of y's shift against x, in the unit of
	// the values (J. L. Hodges, E. L. Lehmann, "Estimates of Location Based on Rank
	// Tests", Annals of Mathematical Statistics 34, 1963).
	Shift float64
	// Low and High enclose the shift with the probability Coverage. That is at
	// least the confidence asked for; where there are too few values for it, it is
	// less, and the interval is from the smallest to the largest difference.
	Low, High, Coverage float64
	// P is the two-sided p-value of the Mann-Whitney U test, exact for small
	// samples, ties or not.
	P float64
}

// Compare estimates the shift of y against x. Without values on both sides it
// knows nothing: P is 1 and Coverage 0.
func Compare(x, y []float64, confidence float64) Estimate {
	e := Estimate{N: len(x), M: len(y), P: 1}
	if e.N == 0 || e.M == 0 {
		return e
	}
	_, e.P = diff.MannWhitney(x, y)
	e.Shift, e.Low, e.High, e.Coverage = Interval(x, y, confidence)
	return e
}

// Interval is the shift and its interval without the test, see Estimate. Both
// samples have values.
func Interval(x, y []float64, confidence float64) (shift, low, high, coverage float64) {
	d := differences{slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y))}
	pairs := len(x) * len(y)
	shift = d.at(pairs / 2)
	if pairs%2 == 0 {
		shift = (shift + d.at(pairs/2-1)) / 2
	}
	k, coverage := orderOf(len(x), len(y), confidence)
	return shift, d.at(k - 1), d.at(pairs - k), coverage
}

// differences are those of every value of y and every value of x, both sorted.
type differences struct{ x, y []float64 }

// at is the i-th smallest difference, from 0. It needs no list of all: it halves
// the range of floating-point numbers until one is left that has i differences
// below it.
func (d differences) at(i int) float64 {
	low, high := ordered(d.y[0]-d.x[len(d.x)-1]), ordered(d.y[len(d.y)-1]-d.x[0])
	for low < high {
		middle := low + (high-low)/2
		if d.upTo(number(middle)) > i {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return number(low) + 0 // a negative zero is zero
}

// upTo counts the differences that are t or less.
func (d differences) upTo(t float64) int {
	n, j := 0, len(d.y)
	for i := len(d.x) - 1; i >= 0; i-- { // as x falls, fewer y are near enough
		for j > 0 && d.y[j-1]-d.x[i] > t {
			j--
		}
		n += j
	}
	return n
}

// ordered maps floating-point numbers to integers of the same order.
func ordered(f float64) uint64 {
	b := math.Float64bits(f)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

// number is the inverse of ordered.
func number(b uint64) float64 {
	if b>>63 == 1 {
		return math.Float64frombits(b &^ (1 << 63))
	}
	return math.Float64frombits(^b)
}
