package mix

import (
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// opName is the operation's name, "" when there is none of that number. A plan
// may have operations that no trace has.
func opName(c *planpb.Communication) comm.Op {
	if op := plan.Op(c); op != "" {
		return op
	}
	name, ok := planpb.Op_name[int32(c.Op)]
	if !ok || c.Op == planpb.Op_OP_UNSPECIFIED {
		return ""
	}
	return comm.Op(strings.ToLower(strings.TrimPrefix(name, "OP_")))
}

// dtypeName is the element type's name, "" when there is none of that number.
func dtypeName(c *planpb.Communication) string {
	name, ok := planpb.DType_name[int32(c.Dtype)]
	if !ok || c.Dtype == planpb.DType_DTYPE_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(name, "DTYPE_"))
}

// reduceOpName is the reduction's name.
func reduceOpName(c *planpb.Communication) string {
	return strings.ToLower(strings.TrimPrefix(c.ReduceOp.String(), "REDUCE_OP_"))
}

// reduces says whether an operation combines elements.
func reduces(op planpb.Op) bool {
	switch op {
	case planpb.Op_OP_ALL_REDUCE, planpb.Op_OP_REDUCE, planpb.Op_OP_REDUCE_SCATTER, planpb.Op_OP_REDUCE_SCATTERV:
		return true
	}
	return false
}

// rooted says whether one rank has a special part in an operation.
func rooted(op planpb.Op) bool {
	switch op {
	case planpb.Op_OP_REDUCE, planpb.Op_OP_BROADCAST, planpb.Op_OP_GATHER, planpb.Op_OP_GATHERV, planpb.Op_OP_SCATTER, planpb.Op_OP_SCATTERV:
		return true
	}
	return false
}
