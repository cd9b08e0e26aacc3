package shift

import (
	"cmp"
	"slices"
)

// Holm corrects p-values of tests that are made together, so that the chance of
// any false alarm among them is what one test's would be (S. Holm, "A Simple
// Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
// Statistics 6, 1979). The results are in the order of p, and at most 1.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	adjusted := make([]float64, len(p))
	highest := 0.0
	for i, at := range order {
		highest = max(highest, min(float64(len(p)-i)*p[at], 1))
		adjusted[at] = highest
	}
	return adjusted
}
