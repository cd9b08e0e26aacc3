package comm

import "strings"

// Op names an operation the way design and command line do.
type Op string

// The operations of torch.distributed; the v forms have uneven parts. Batch is
// grouped point-to-point: sends and receives that start together.
const (
	AllReduce      Op = "all_reduce"
	Reduce         Op = "reduce"
	Broadcast      Op = "broadcast"
	AllGather      Op = "all_gather"
	AllGatherV     Op = "all_gatherv"
	ReduceScatter  Op = "reduce_scatter"
	ReduceScatterV Op = "reduce_scatterv"
	AllToAll       Op = "all_to_all"
	AllToAllV      Op = "all_to_allv"
	Gather         Op = "gather"
	GatherV        Op = "gatherv"
	Scatter        Op = "scatter"
	ScatterV       Op = "scatterv"
	Barrier        Op = "barrier"
	Send           Op = "send"
	Recv           Op = "recv"
	Batch          Op = "batch"
	Unknown        Op = "unknown"
)

// Ops lists every operation that a mix may name, in the order help shows them.
func Ops() []Op {
	return []Op{AllReduce, Reduce, Broadcast, AllGather, AllGatherV, ReduceScatter,
		ReduceScatterV, AllToAll, AllToAllV, Gather, GatherV, Scatter, ScatterV, Barrier, Send, Recv, Batch}
}

// IsP2P says whether op is point-to-point: matched by peer, not by the order
// of the group.
func (op Op) IsP2P() bool { return op == Send || op == Recv || op == Batch }

// Even is the operation that all_gatherv or reduce_scatterv is with parts of one size;
// any other is itself.
func (op Op) Even() Op {
	switch op {
	case AllGatherV:
		return AllGather
	case ReduceScatterV:
		return ReduceScatter
	}
	return op
}

// Reduces says whether op combines elements, so that a reduce operation applies.
func (op Op) Reduces() bool {
	switch op {
	case AllReduce, Reduce, ReduceScatter, ReduceScatterV:
		return true
	}
	return false
}

// Rooted says whether one rank of the group has a special part.
func (op Op) Rooted() bool {
	return op == Reduce || op == Broadcast || op == Gather || op == GatherV || op == Scatter || op == ScatterV
}

// spellings maps names of collectives, lower-cased and without '_', to
// operations. Sources: the titles of c10d operators, of the annotations of
// ProcessGroupNCCL, ProcessGroupGloo and ProcessGroupMPI, and of the
// "Collective name" argument of record_param_comms.
var spellings = map[string]Op{
	"allreduce": AllReduce, "allreducecoalesced": AllReduce, "allreducesparse": AllReduce,
	"allreducebarrier": Barrier,
	"reduce":           Reduce, "reduceoop": Reduce,
	"broadcast": Broadcast, "broadcastoop": Broadcast,
	"allgather": AllGather, "allgatherbase": AllGather, "allgatherintotensor": AllGather,
	"allgatherintotensorcoalesced": AllGather, "allgathercoalesced": AllGather,
	"allgatherv":    AllGatherV,
	"reducescatter": ReduceScatter, "reducescatterbase": ReduceScatter,
	"reducescattertensor": ReduceScatter, "reducescattertensorcoalesced": ReduceScatter,
	"reducescatterv": ReduceScatterV,
	"alltoall":       AllToAll, "alltoallbase": AllToAll, "alltoallsingle": AllToAll,
	"alltoallv": AllToAllV,
	"gather":    Gather, "scatter": Scatter,
	"gatherv": GatherV, "scatterv": ScatterV,
	"barrier": Barrier, "monitoredbarrier": Barrier,
	"send": Send, "isend": Send,
	"recv": Recv, "irecv": Recv, "recvanysource": Recv,
	"coalesced": Batch,
}

// ParseOp reads the many spellings of one operation: "allreduce", "all_reduce",
// "_allgather_base", "c10d::alltoall_base_", "nccl:send 0->1". It reports
// false, not an error, for names that are no operation, such as "wait".
func ParseOp(name string) (Op, bool) {
	if i := strings.LastIndex(name, ":"); i >= 0 {
		name = name[i+1:]
	}
	if i := strings.IndexByte(name, ' '); i >= 0 { // "send 0->1"
		name = name[:i]
	}
	op, ok := spellings[strings.ReplaceAll(strings.ToLower(name), "_", "")]
	return op, ok
}
