package collective

import "math/bits"

// EstimateSplits returns who sends how much to whom in an all_to_all of which
// only the totals are known: row i sums to in[i], column j to out[j], and each
// entry is as close to proportional as whole numbers allow. It reports false
// when the totals contradict each other.
//
// The entries are an estimate, the totals are exact; whoever shows the result
// marks it "estimated".
func EstimateSplits(in, out []int64) ([][]int64, bool) {
	var total, received int64
	for _, n := range in {
		total += n
	}
	for _, n := range out {
		received += n
	}
	if total != received {
		return nil, false
	}
	matrix := make([][]int64, len(in))
	rowLeft := append([]int64(nil), in...)
	colLeft := append([]int64(nil), out...)
	for i := range matrix {
		matrix[i] = make([]int64, len(out))
		if total == 0 {
			continue
		}
		for j := range out {
			n := mulDiv(in[i], out[j], total)
			matrix[i][j] = n
			rowLeft[i] -= n
			colLeft[j] -= n
		}
	}
	// What rounding down left over is less than one element a cell; it is dealt
	// out along a diagonal so that no rank collects it all.
	for i := range matrix {
		for k := range out {
			j := (i + k) % len(out)
			n := min(rowLeft[i], colLeft[j])
			matrix[i][j] += n
			rowLeft[i] -= n
			colLeft[j] -= n
		}
	}
	return matrix, true
}

// mulDiv is a*b/c rounded down, exact for all non-negative a, b and c > 0 whose
// result fits; sizes of large tensors overflow a plain product.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 0 // cannot happen: a and b are at most c here
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}
