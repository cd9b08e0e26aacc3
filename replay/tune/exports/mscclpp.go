package exports

import (
	"fmt"
	"slices"
	"strings"

	"mixdown/ingest/comm"
)

// MSCCLPP_FORCE_NCCL_FALLBACK_OPERATION lists the collectives that MSCCL++, loaded
// in NCCL's place, hands to NCCL: allreduce, allgather, reducescatter, broadcast.
// It knows no sizes.
func writeMSCCLPP(j *job) (*Output, error) {
	names := []struct {
		op   comm.Op
		name string
	}{{comm.Broadcast, "broadcast"}, {comm.AllReduce, "allreduce"}, {comm.ReduceScatter, "reducescatter"}, {comm.AllGather, "allgather"}}
	var fallback []string
	found := false
	for _, n := range names {
		var last Decision
		backends := map[string]bool{}
		for _, d := range j.list {
			if d.Op == n.op && (d.Backend == "mscclpp" || d.Backend == "nccl") {
				backends[d.Backend] = true
				last = d
			}
		}
		if len(backends) == 0 {
			continue
		}
		found = true
		if len(backends) == 2 {
			j.out.warn("%s: nccl and mscclpp win at different sizes, which the switch does not know: %s, which wins at the largest", n.op, last.Backend)
		}
		if last.Backend == "nccl" {
			fallback = append(fallback, n.name)
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: no decision between nccl and mscclpp", ErrNothing)
	}
	if slices.ContainsFunc(j.list, func(d Decision) bool { return d.Nodes > 1 && d.Backend == "mscclpp" }) {
		j.out.warn("MSCCL++ stands in for NCCL within one node only")
	}
	text := "MSCCLPP_ENABLE_NCCL_FALLBACK=TRUE\n"
	if len(fallback) > 0 {
		text += "MSCCLPP_FORCE_NCCL_FALLBACK_OPERATION=" + strings.Join(fallback, ",") + "\n"
	}
	j.out.Files = []File{{"mscclpp.env", []byte(text)}}
	j.out.Apply = []string{"set -a; . FILE; set +a", "LD_PRELOAD=/path/to/libmscclpp_nccl.so MSCCLPP_NCCL_LIB_PATH=/path/to/libnccl.so"}
	j.out.Proof = []string{"MSCCLPP_LOG_LEVEL=INFO: subsystem NCCL says what falls back"}
	return j.out, nil
}
