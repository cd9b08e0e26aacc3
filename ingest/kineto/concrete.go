package kineto

import (
	"strconv"
	"strings"

	"mixdown/ingest/comm"
)

// readConcrete reads the scalar arguments of a c10d operator. Their positions
// are those of the operators' schemas in PyTorch's c10d/Ops.cpp:
//
//	alltoall_base_(output, input, group, output_split_sizes, input_split_sizes, ...)
//	broadcast_(tensors, group, root_rank, root_tensor, ...)
//	reduce_(tensors, group, op, root_rank, root_tensor, ...)
//	send(tensors, group, dst, tag), recv_(tensors, group, src, tag)
//
// Ranks among them are positions in the group. Splits count rows of the first
// dimension.
func (s *facts) readConcrete(rec *record) {
	arg := func(i int) string {
		if i < len(rec.concrete) {
			return rec.concrete[i]
		}
		return ""
	}
	switch strings.TrimPrefix(rec.name, "c10d::") {
	case "alltoall_base_":
		outRows, okOut := parseInts(arg(3))
		inRows, okIn := parseInts(arg(4))
		if arg(3) == "" && arg(4) == "" && len(rec.concrete) > 4 {
			s.op = comm.AllToAllV // lists of more than 30 numbers are not written; even parts are "[]"
		}
		if !okOut || !okIn || s.hasSplits || len(rec.dims) < 2 {
			return
		}
		s.hasSplits = true
		s.outSplits = scale(outRows, rowElements(rec.dims[0]))
		s.inSplits = scale(inRows, rowElements(rec.dims[1]))
	case "broadcast_":
		s.setRank(arg(2))
	case "reduce_":
		s.setRank(arg(3))
	case "send", "recv_":
		s.setRank(arg(2))
	}
}

func (s *facts) setRank(arg string) {
	if n, err := strconv.Atoi(arg); err == nil && n >= 0 && s.rank < 0 {
		s.rank = n
	}
}

// rowElements is the number of elements of one row of the first dimension.
func rowElements(sizes []int64) int64 {
	if len(sizes) == 0 {
		return 1
	}
	n := int64(1)
	for _, s := range sizes[1:] {
		n *= s
	}
	return n
}

// scale multiplies a list; an empty one (even splits) stays nil.
func scale(list []int64, by int64) []int64 {
	if len(list) == 0 {
		return nil
	}
	scaled := make([]int64, len(list))
	for i, n := range list {
		scaled[i] = n * by
	}
	return scaled
}
