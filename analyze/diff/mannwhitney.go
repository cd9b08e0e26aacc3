package diff

import (
	"cmp"
	"math"
	"slices"
)

// maxExactWork bounds the additions of an exact test: 18 against 18 steps, or 4
// against 60. Beyond it the normal approximation is good to 0.02.
const maxExactWork = 1 << 20

// MannWhitney returns U, the number of pairs in which x is the larger (ties count
// half), and the two-sided p-value: how likely U is at least as far from its mean
// if x and y are from one distribution (H. B. Mann, D. R. Whitney, "On a test of
// whether one of two random variables is stochastically larger than the other",
// Annals of Mathematical Statistics 18, 1947). Without values on both sides p is 1.
//
// Small samples are tested exactly, given their ties: over all ways to choose
// which of the values are x's (exactP). Larger ones with the normal
// approximation (normalP).
func MannWhitney(x, y []float64) (u, p float64) {
	n, m := int64(len(x)), int64(len(y))
	if n == 0 || m == 0 {
		return 0, 1
	}
	ranks, ties := midRanks(slices.Concat(x, y))
	var sum int64
	for _, r := range ranks[:n] {
		sum += r
	}
	u = float64(sum-n*(n+1)) / 2
	small, all := min(n, m), n+m
	if small*all*all*(all+1) <= maxExactWork {
		return u, exactP(ranks, n)
	}
	return u, normalP(u, n, m, ties)
}

// midRanks returns twice the rank of each value from 1, of equal ones twice their
// mean rank, which is whole, and the sum of t^3 - t over the numbers t of equal
// values.
func midRanks(values []float64) (ranks []int64, ties float64) {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	ranks = make([]int64, len(values))
	for i := 0; i < len(order); {
		j := i
		for j+1 < len(order) && values[order[j+1]] == values[order[i]] {
			j++
		}
		for _, k := range order[i : j+1] {
			ranks[k] = int64(i + j + 2)
		}
		t := float64(j - i + 1)
		ties += t*t*t - t
		i = j + 1
	}
	return ranks, ties
}

// exactP counts the choices of n of the ranks whose sum is at least as far from
// its mean n(N+1)/2 as that of the first n. The counting adds one rank after the
// other (the shift algorithm: B. Streitberg, J. Röhmel, "Exact distributions for
// permutation and rank tests", Statistical Software Newsletter 12, 1986), with
// ranks doubled to be whole.
func exactP(ranks []int64, n int64) float64 {
	all := int64(len(ranks))
	var sum int64
	for _, r := range ranks[:n] {
		sum += r
	}
	far := magnitude(sum - n*(all+1))
	// Choosing x is leaving y: the smaller choice has the same distances.
	n = min(n, all-n)
	highest := all * (all + 1) // of doubled ranks
	ways := make([][]int64, n+1)
	for k := range ways {
		ways[k] = make([]int64, highest+1)
	}
	ways[0][0] = 1
	for i, r := range ranks {
		for k := min(n, int64(i)+1); k >= 1; k-- {
			for s := highest; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	var extreme, total int64
	for s, w := range ways[n] {
		total += w
		if magnitude(int64(s)-n*(all+1)) >= far {
			extreme += w
		}
	}
	return float64(extreme) / float64(total)
}

// normalP is the p-value of the normal approximation with the variance for ties,
//
//	n m / 12 x ((N+1) - sum(t^3 - t) / (N(N-1)))
//
// and a continuity correction of a half (E. L. Lehmann, "Nonparametrics:
// Statistical Methods Based on Ranks", 1975, chapter 1).
func normalP(u float64, n, m int64, ties float64) float64 {
	fn, fm := float64(n), float64(m)
	all := fn + fm
	variance := fn * fm / 12 * ((all + 1) - ties/(all*(all-1)))
	if variance <= 0 { // all values are equal
		return 1
	}
	z := max(math.Abs(u-fn*fm/2)-0.5, 0) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}

func magnitude(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
