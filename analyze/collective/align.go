package collective

import (
	"mixdown/ingest/comm"
)

// signature is what two ranks see alike of one collective. Sizes belong to it
// only where all members have the same.
type signature struct {
	op    comm.Op
	dtype comm.DType
	count int64
	step  int // in which it was issued, where all members have the same steps
}

func signatureOf(op *comm.Operation) signature {
	s := signature{op: op.Op}
	if op.Op == comm.AllToAllV {
		s.op = comm.AllToAll // uneven parts may look even on one member
	}
	if op.SizeKnown {
		s.dtype = op.DType
		switch op.Op {
		case comm.AllReduce, comm.Reduce, comm.Broadcast, comm.AllGather, comm.ReduceScatter:
			s.count = op.In
		}
	}
	return s
}

// maxAlignCells bounds the work of aligning two sequences that differ: beyond
// it only their equal start and end are matched.
const maxAlignCells = 64 << 20

// alignSequences pairs equal elements of a and b in order, as many as possible
// (a longest common subsequence). It returns, for each element of a, the index
// in b or -1.
func alignSequences(a, b []signature) []int {
	match := make([]int, len(a))
	for i := range match {
		match[i] = -1
	}
	lo := 0
	for lo < len(a) && lo < len(b) && a[lo] == b[lo] {
		match[lo] = lo
		lo++
	}
	hiA, hiB := len(a), len(b)
	for hiA > lo && hiB > lo && a[hiA-1] == b[hiB-1] {
		hiA--
		hiB--
		match[hiA] = hiB
	}
	rows, cols := hiA-lo, hiB-lo
	if rows == 0 || cols == 0 || rows*cols > maxAlignCells {
		return match
	}
	// length[i][j]: of the longest common subsequence of a[lo+i:] and b[lo+j:].
	length := make([][]int32, rows+1)
	for i := range length {
		length[i] = make([]int32, cols+1)
	}
	for i := rows - 1; i >= 0; i-- {
		for j := cols - 1; j >= 0; j-- {
			if a[lo+i] == b[lo+j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < rows && j < cols; {
		switch {
		case a[lo+i] == b[lo+j]:
			match[lo+i] = lo + j
			i++
			j++
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return match
}
