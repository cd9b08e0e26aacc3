package shift

import (
	"math"
	"slices"
)

// outlying is how many times the spread of the middle a value may be away from the
// median before it is no noise but an event of its own (a checkpoint, a page
// fault), in many values. The spread of few is less sure, so there it is more.
const (
	outlying    = 5.0
	outlyingFew = 5.0 // at so many values it is twice that
)

// Outliers are the indices of the values that are no noise.
func Outliers(x []float64) []int {
	middle := Median(x, 0).Median
	distances := make([]float64, len(x))
	for i, v := range x {
		distances[i] = math.Abs(v - middle)
	}
	mad := 1.4826 * Median(distances, 0).Median // of normal values that is the standard deviation
	far := outlying * (1 + outlyingFew/float64(max(len(x), 1))) * mad
	var list []int
	for i, d := range distances {
		if mad > 0 && d > far {
			list = append(list, i)
		}
	}
	return list
}

// Spread is the noise of a sample: the standard deviation of the values but for
// outliers, and how many those are. It is in the unit of the values.
func Spread(x []float64) (sd float64, outliers int) {
	out := Outliers(x)
	var kept []float64
	for i, v := range x {
		if _, is := slices.BinarySearch(out, i); !is {
			kept = append(kept, v)
		}
	}
	return deviation(kept), len(out)
}

func deviation(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	mean, sum := meanOf(x), 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// SpreadBound is what the true standard deviation is below, as sure as
// confidence, when n values have the given one: few values can look calm by
// chance. The quantile of chi-square is Wilson and Hilferty's (Proceedings of the
// National Academy of Sciences 17, 1931), above the exact one by a tenth for
// 5 values and by a hundredth for 20.
func SpreadBound(sd float64, n int, confidence float64) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	f := float64(n - 1)
	root := 1 - 2/(9*f) - quantile(confidence)*math.Sqrt(2/(9*f))
	if root <= 0 {
		return math.Inf(1)
	}
	return sd / math.Sqrt(root*root*root)
}

// ErrorOf is the standard error of the Hodges-Lehmann shift between two runs of n
// and m steps with noise of the given standard deviation: that of normal values,
// whose shift the estimate finds with 3/pi of the efficiency of the means.
func ErrorOf(sd float64, n, m int) float64 {
	if n == 0 || m == 0 {
		return math.Inf(1)
	}
	return sd * math.Sqrt((1/float64(n)+1/float64(m))*math.Pi/3)
}

// Varies says whether the values of a sample differ.
func Varies(x []float64) bool {
	return slices.ContainsFunc(x, func(v float64) bool { return v != x[0] })
}
