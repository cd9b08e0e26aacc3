package algorithms

import (
	"fmt"
	"slices"
	"strings"

	"mixdown/ingest/comm"
)

// UCCCollective is what UCC calls an operation, false for what it has not.
func UCCCollective(op comm.Op) (string, bool) {
	name, ok := map[comm.Op]string{
		comm.AllReduce: "allreduce", comm.Reduce: "reduce", comm.Broadcast: "bcast", comm.AllGather: "allgather",
		comm.AllGatherV: "allgatherv", comm.ReduceScatter: "reduce_scatter", comm.ReduceScatterV: "reduce_scatterv",
		comm.AllToAll: "alltoall", comm.AllToAllV: "alltoallv", comm.Gather: "gather", comm.Scatter: "scatter", comm.Barrier: "barrier",
	}[op]
	return name, ok
}

// uccLayers are UCC's transports, with the algorithms of each by collective.
var uccLayers = map[string]map[string][]string{
	"ucp": {
		"allreduce": {"knomial", "sra_knomial", "dbt", "sliding_window", "ring"}, "allgather": {"knomial", "ring", "neighbor", "bruck", "sparbit", "linear", "batched"},
		"allgatherv": {"ring", "knomial"}, "alltoall": {"pairwise", "bruck", "onesided"}, "alltoallv": {"pairwise", "hybrid", "onesided"},
		"bcast": {"knomial", "sag_knomial", "dbt"}, "reduce": {"knomial", "dbt", "srg"}, "reduce_scatter": {"ring", "knomial"},
	},
	"cuda": {"allreduce": {"auto", "ring", "linear", "nvls"}, "allgather": {"auto", "ring", "linear", "nvls"}, "reduce_scatter": {"auto", "ring", "linear", "nvls"}},
	"nccl": {"allgatherv": {"p2p", "bcopy", "bcast"}},
	"rccl": {}, "sharp": {}, "self": {}, "mlx5": {},
}

// UCCLayers lists UCC's transports.
func UCCLayers() []string {
	var names []string
	for name := range uccLayers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ParseUCC reads a variant "ucp" or "ucp/knomial" and says which transport and
// which algorithm it means.
func ParseUCC(op comm.Op, variant string) (layer, algorithm string, err error) {
	layer, algorithm, _ = strings.Cut(variant, "/")
	algorithms, ok := uccLayers[layer]
	if !ok {
		return "", "", fmt.Errorf("variant %q: unknown transport of UCC: known are %s", variant, strings.Join(UCCLayers(), ", "))
	}
	collective, ok := UCCCollective(op)
	if !ok {
		return "", "", fmt.Errorf("UCC has no %s", op)
	}
	if algorithm != "" && !slices.Contains(algorithms[collective], algorithm) {
		return "", "", fmt.Errorf("variant %q: %s of UCC has no algorithm %s for %s: it has %s", variant, layer, algorithm, collective, strings.Join(algorithms[collective], ", "))
	}
	return layer, algorithm, nil
}
