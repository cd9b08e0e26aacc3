package imports

import (
	"mixdown/ingest/comm"
)

// A convention says what a tool means by the size of an operation: it returns the
// larger of what one rank contributes and receives, n being the ranks.
type convention func(op comm.Op, size, n int64) int64

// whole: the whole vector, for gathers and scatters all ranks' parts together.
// nccl-tests (src/*.cu, GetCollByteCount) and PARAM (comms.py, memSize).
func whole(_ comm.Op, size, _ int64) int64 { return size }

// osuSize: one rank's part of gathers and scatters, one peer's of all-to-alls, all
// of a reduce-scatter (OMB 7.4, c/mpi/collective).
func osuSize(op comm.Op, size, n int64) int64 {
	switch op {
	case comm.AllGather, comm.AllGatherV, comm.Gather, comm.Scatter, comm.AllToAll, comm.AllToAllV:
		return size * n
	}
	return size
}

// partSize: one rank's part wherever there are parts. UCC's perftest
// (tools/perf/generator/ucc_pt_generator_exp.cc).
func partSize(op comm.Op, size, n int64) int64 {
	if hasParts(op) {
		return size * n
	}
	return size
}

// inspectorSize: one rank's part of all-gathers and reduce-scatters (NCCL's
// inspector, inspectorComputeCollBw).
func inspectorSize(op comm.Op, size, n int64) int64 {
	if op == comm.AllGather || op == comm.ReduceScatter {
		return size * n
	}
	return size
}

// deepSpeedSize: the tensor that is passed in. Of all-gathers and gathers that is one
// rank's part, of reduce-scatters and all-to-alls all of them (deepspeed/utils/
// comms_logging.py, get_msg_size_from_args).
func deepSpeedSize(op comm.Op, size, n int64) int64 {
	switch op {
	case comm.AllGather, comm.AllGatherV, comm.Gather:
		return size * n
	}
	return size
}

// hasParts says whether the operation's size is cut into one part for each rank.
func hasParts(op comm.Op) bool {
	switch op {
	case comm.AllGather, comm.AllGatherV, comm.ReduceScatter, comm.ReduceScatterV, comm.AllToAll, comm.AllToAllV, comm.Gather, comm.Scatter:
		return true
	}
	return false
}

// inOut is what one rank contributes and receives, of an operation of that size.
func inOut(op comm.Op, size, n int64) (in, out int64) {
	switch op {
	case comm.AllGather, comm.AllGatherV, comm.Gather:
		return size / n, size
	case comm.ReduceScatter, comm.ReduceScatterV, comm.Scatter:
		return size, size / n
	}
	return size, size
}
