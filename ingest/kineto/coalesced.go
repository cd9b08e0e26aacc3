package kineto

import (
	"strings"

	"mixdown/ingest/comm"
)

// coalesced reads the sizes of the tensors of a call that coalesces several, from
// "Input Dims"; outputs is nil where the call does not have them as arguments.
// Operators take the outputs first, or tensors that are both. Annotations have the
// inputs alone. Both are nil for what has one tensor, or is one tensor in several
// pieces, as the list forms of all_gather and all_to_all are.
func (rec *record) coalesced() (inputs, outputs []int64) {
	var list []int64
	for i, d := range rec.dims {
		if rec.kind == titleRecord {
			if _, _, isTensor := rec.tensor(i); !isTensor {
				return nil, nil
			}
		}
		if len(d) > 0 {
			list = append(list, elements(d))
		}
	}
	if len(list) < 2 {
		return nil, nil
	}
	op, _ := comm.ParseOp(rec.name)
	switch {
	case rec.kind == titleRecord && (op == comm.AllReduce || op == comm.AllGather):
		return list, nil
	case rec.kind != c10dRecord || !strings.HasSuffix(rec.name, "_coalesced_"):
		return nil, nil
	case strings.HasSuffix(rec.name, "_tensor_coalesced_") && len(list)%2 == 0 && len(list) > 2:
		return list[len(list)/2:], list[:len(list)/2]
	case op == comm.AllReduce || op == comm.AllGather && !strings.HasSuffix(rec.name, "_tensor_coalesced_"):
		return list, nil
	}
	return nil, nil
}

// tensorsOf pairs the sizes of a coalesced call, nil where they are not known or
// do not add up to what the operation is.
func (s *facts) tensorsOf(op *comm.Operation, group int) []comm.Tensor {
	if len(s.inputs) < 2 || !op.SizeKnown || s.outputs != nil && len(s.outputs) != len(s.inputs) {
		return nil
	}
	var list []comm.Tensor
	var in, out int64
	for i, n := range s.inputs {
		t := comm.Tensor{In: n, Out: n}
		switch {
		case s.outputs != nil:
			t.Out = s.outputs[i]
		case op.Op == comm.AllGather:
			t.Out = n * int64(group)
		case op.Op != comm.AllReduce:
			return nil
		}
		list = append(list, t)
		in += t.In
		out += t.Out
	}
	if in != op.In || out != op.Out {
		return nil
	}
	return list
}
