package executiontrace

import (
	"math"
	"slices"
)

// resolveSplits returns the elements to and from each member, nil when the
// parts are even. It reports false when the lists do not fit the call's
// tensors.
//
// Which list is which is settled by the tensors: the input's list adds up to
// the input, the output's to the output. Only where both ways add up does the
// position count; c10d operators have the output's first, record_param_comms
// the input's.
func resolveSplits(s splitLists, in, out sized) (inSplits, outSplits []int64, ok bool) {
	if len(s.in) == 0 && len(s.out) == 0 {
		return nil, nil, true
	}
	for _, lists := range []splitLists{s, {in: s.out, out: s.in}} {
		n := max(len(lists.in), len(lists.out))
		a, okIn := in.cut(lists.in, n)
		b, okOut := out.cut(lists.out, n)
		if okIn && okOut {
			return a, b, true
		}
	}
	return nil, nil, false
}

// sized is a tensor that is to be cut.
type sized struct {
	elements int64
	rows     int64 // -1 when unknown
}

// cut returns the elements of n parts. The list counts rows of the tensor; an
// empty one stands for even parts.
func (t sized) cut(list []int64, n int) ([]int64, bool) {
	if len(list) == 0 {
		if t.elements%int64(n) != 0 {
			return nil, false
		}
		return slices.Repeat([]int64{t.elements / int64(n)}, n), true
	}
	if len(list) != n {
		return nil, false
	}
	var rows int64
	for _, r := range list {
		if r < 0 || rows > math.MaxInt64-r {
			return nil, false
		}
		rows += r
	}
	switch {
	case t.rows >= 0 && rows != t.rows:
		return nil, false
	case rows == 0:
		return slices.Clone(list), t.elements == 0
	case t.elements%rows != 0:
		return nil, false
	}
	row := t.elements / rows // the list adds up to the tensor, so no product overflows
	parts := make([]int64, n)
	for i, r := range list {
		parts[i] = r * row
	}
	return parts, true
}

// sameParts tells whether two cuts of one tensor are the same; nil is even.
func sameParts(a, b []int64) bool {
	if a != nil && b != nil {
		return slices.Equal(a, b)
	}
	return isEven(a) && isEven(b)
}

func isEven(parts []int64) bool {
	for _, p := range parts {
		if p != parts[0] {
			return false
		}
	}
	return true
}
