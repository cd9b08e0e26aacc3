package plan

import (
	"mixdown/ingest/comm"
	"mixdown/replay/plan/planpb"
)

var opsToPB = map[comm.Op]planpb.Op{
	comm.AllReduce: planpb.Op_OP_ALL_REDUCE, comm.Reduce: planpb.Op_OP_REDUCE, comm.Broadcast: planpb.Op_OP_BROADCAST,
	comm.AllGather: planpb.Op_OP_ALL_GATHER, comm.AllGatherV: planpb.Op_OP_ALL_GATHERV,
	comm.ReduceScatter: planpb.Op_OP_REDUCE_SCATTER, comm.ReduceScatterV: planpb.Op_OP_REDUCE_SCATTERV,
	comm.AllToAll: planpb.Op_OP_ALL_TO_ALL, comm.AllToAllV: planpb.Op_OP_ALL_TO_ALLV,
	comm.Gather: planpb.Op_OP_GATHER, comm.Scatter: planpb.Op_OP_SCATTER, comm.Barrier: planpb.Op_OP_BARRIER,
	comm.GatherV: planpb.Op_OP_GATHERV, comm.ScatterV: planpb.Op_OP_SCATTERV,
	comm.Send: planpb.Op_OP_SEND, comm.Recv: planpb.Op_OP_RECV, comm.Batch: planpb.Op_OP_BATCH,
}

var opsFromPB = func() map[planpb.Op]comm.Op {
	m := map[planpb.Op]comm.Op{}
	for op, pb := range opsToPB {
		m[pb] = op
	}
	return m
}()

var dtypesToPB = map[comm.DType]planpb.DType{
	comm.Float32: planpb.DType_DTYPE_FLOAT32, comm.Float64: planpb.DType_DTYPE_FLOAT64,
	comm.Float16: planpb.DType_DTYPE_FLOAT16, comm.BFloat16: planpb.DType_DTYPE_BFLOAT16,
	comm.Int8: planpb.DType_DTYPE_INT8, comm.Uint8: planpb.DType_DTYPE_UINT8, comm.Int16: planpb.DType_DTYPE_INT16,
	comm.Int32: planpb.DType_DTYPE_INT32, comm.Int64: planpb.DType_DTYPE_INT64, comm.Bool: planpb.DType_DTYPE_BOOL,
	comm.Uint16: planpb.DType_DTYPE_UINT16, comm.Uint32: planpb.DType_DTYPE_UINT32, comm.Uint64: planpb.DType_DTYPE_UINT64,
	comm.Complex64: planpb.DType_DTYPE_COMPLEX64, comm.Complex128: planpb.DType_DTYPE_COMPLEX128,
	comm.Float8E4M3FN: planpb.DType_DTYPE_FLOAT8_E4M3FN, comm.Float8E5M2: planpb.DType_DTYPE_FLOAT8_E5M2,
}

var dtypesFromPB = func() map[planpb.DType]comm.DType {
	m := map[planpb.DType]comm.DType{}
	for d, pb := range dtypesToPB {
		m[pb] = d
	}
	return m
}()

// Op is the operation of a communication in the vocabulary of package comm.
func Op(c *planpb.Communication) comm.Op { return opsFromPB[c.GetOp()] }

// DType is the element type of a communication.
func DType(c *planpb.Communication) comm.DType { return dtypesFromPB[c.GetDtype()] }

// Sized says whether the size of a communication is known. One without is in
// workloads to be simulated alone (Options.Simulate), where it takes what it took.
func Sized(c *planpb.Communication) bool {
	return c.GetDtype() != planpb.DType_DTYPE_UNSPECIFIED || c.GetOp() == planpb.Op_OP_BARRIER
}

// Bytes is the larger of what this rank contributes and receives.
func Bytes(c *planpb.Communication) int64 {
	return max(c.GetInCount(), c.GetOutCount()) * DType(c).Size()
}

// CostOp is the operation by whose cost a communication is judged: receives and
// batches are made of messages.
func CostOp(c *planpb.Communication) comm.Op {
	if op := Op(c); !op.IsP2P() {
		return op
	}
	return comm.Send
}
