package algorithms

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
)

// NCCLChoice is what NCCL lets a tuner choose for a collective.
type NCCLChoice struct {
	Algorithm string // as the tuner's file has it: "ring"
	Protocol  string // "ll", "ll128" or "simple"
	Channels  int    // 0 when not said
}

// String is the choice as a variant: "ring/ll128/ch=8".
func (c NCCLChoice) String() string {
	s := c.Algorithm + "/" + c.Protocol
	if c.Channels > 0 {
		s += fmt.Sprintf("/ch=%d", c.Channels)
	}
	return s
}

// NCCLFunction is what NCCL's tuner calls an operation, false for those that it is
// never asked about: send, recv and all_to_all.
func NCCLFunction(op comm.Op) (string, bool) {
	name, ok := map[comm.Op]string{
		comm.Broadcast: "broadcast", comm.Reduce: "reduce", comm.AllGather: "allgather",
		comm.ReduceScatter: "reducescatter", comm.AllReduce: "allreduce",
	}[op]
	return name, ok
}

// ncclAlgorithms are those that NCCL's cost table has entries for, by operation.
var ncclAlgorithms = map[comm.Op][]string{
	comm.Broadcast: {"ring"}, comm.Reduce: {"ring"},
	comm.AllGather:     {"ring", "pat", "nvls", "collnet_direct"},
	comm.ReduceScatter: {"ring", "pat", "nvls", "collnet_direct"},
	comm.AllReduce:     {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"},
}

var ncclProtocols = []string{"ll", "ll128", "simple"}

// maxChannels is NCCL's MAXCHANNELS.
const maxChannels = 64

// ParseNCCL reads a variant "ring/ll128" or "ring/ll128/ch=8" and refuses what
// NCCL would not do: its tuner reads unknown names as ring, simple, all-reduce
// without a word.
func ParseNCCL(op comm.Op, variant string) (NCCLChoice, error) {
	var c NCCLChoice
	algorithms, ok := ncclAlgorithms[op]
	if !ok {
		return c, fmt.Errorf("NCCL's tuner is not asked about %s", op)
	}
	parts := strings.Split(strings.ToLower(variant), "/")
	if len(parts) < 2 || len(parts) > 3 {
		return c, fmt.Errorf("variant %q: expected ALGORITHM/PROTOCOL/ch=CHANNELS, for example ring/ll128/ch=8", variant)
	}
	c.Algorithm, c.Protocol = parts[0], parts[1]
	if len(parts) == 3 {
		number, ok := strings.CutPrefix(parts[2], "ch=")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 1 || n > maxChannels {
			return c, fmt.Errorf("variant %q: channels %q: expected ch=1 to ch=%d", variant, parts[2], maxChannels)
		}
		c.Channels = n
	}
	if !slices.Contains(algorithms, c.Algorithm) {
		return c, fmt.Errorf("variant %q: NCCL has no algorithm %s for %s: it has %s", variant, c.Algorithm, op, strings.Join(algorithms, ", "))
	}
	if !slices.Contains(ncclProtocols, c.Protocol) {
		return c, fmt.Errorf("variant %q: unknown protocol %s: NCCL has %s", variant, c.Protocol, strings.Join(ncclProtocols, ", "))
	}
	if c.Protocol != "simple" && c.Algorithm != "ring" && c.Algorithm != "tree" {
		return c, fmt.Errorf("variant %q: %s has protocol simple only", variant, c.Algorithm)
	}
	return c, nil
}
