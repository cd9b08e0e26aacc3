package exports

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/tune/algorithms"
)

// The configuration of NCCL's example tuner plugin (plugins/tuner/example) is CSV:
//
//	collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
//
// Both ends of a range are included, -1 is any, the first line that matches counts.
// The plugin reads unknown names as others without a word, and where no line
// matches, or one says -1 channels, it leaves NCCL with one channel: so every
// line has its channels, and lines for everything else follow.

// ncclMax is the largest size: 2^64 - 1.
const ncclMax = "18446744073709551615"

// maxLine is the longest line that the plugin reads, in bytes.
const maxLine = 255

// ncclFunctions are the collectives that the plugin knows.
var ncclFunctions = []comm.Op{comm.AllReduce, comm.AllGather, comm.ReduceScatter, comm.Broadcast, comm.Reduce}

func writeNCCLTuner(j *job) (*Output, error) {
	var lines []string
	channels := j.Channels
	for _, g := range groups(j.list) {
		name, ok := algorithms.NCCLFunction(g.op)
		if !ok {
			j.out.warn("%s is left out: NCCL's tuner is not asked about it", g.op)
			continue
		}
		for _, d := range g.list {
			c, err := j.nccl(d)
			if err != nil {
				return nil, err
			}
			channels = max(channels, c.Channels)
			to := ncclMax
			if d.Max < math.MaxInt64 {
				to = fmt.Sprint(d.Max)
			}
			lines = append(lines, fmt.Sprintf("%s,%d,%s,%s,%s,%d,%d,%d,-1,-1", name, d.Min, to, c.Algorithm, c.Protocol, c.Channels, anyIf0(d.Nodes), anyIf0(d.Ranks)))
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%w: no collective that NCCL's tuner is asked about", ErrNothing)
	}
	var b strings.Builder
	b.WriteString("# made by mixdown; use the same file on all ranks\n# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n")
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	b.WriteString("# everything else: without these lines NCCL would use one channel\n")
	for _, op := range ncclFunctions {
		name, _ := algorithms.NCCLFunction(op)
		fmt.Fprintf(&b, "%s,0,%s,ring,simple,%d,-1,-1,-1,-1\n", name, ncclMax, channels)
	}
	for l := range strings.Lines(b.String()) {
		if len(l) > maxLine {
			return nil, fmt.Errorf("%w: a line of %d bytes", ErrInexpressible, len(l))
		}
	}
	j.out.warn("what was not measured gets ring, simple and %d channels: the plugin has no way to leave it to NCCL", channels)
	j.out.Files = []File{{"nccl_tuner.conf", []byte(b.String())}}
	j.out.Apply = []string{"NCCL_TUNER_PLUGIN=/path/to/libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE=FILE"}
	j.out.Proof = []string{"NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING: lines with \"Applied config\""}
	return j.out, nil
}

func anyIf0(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// nccl reads what a decision chooses, with its channels.
func (j *job) nccl(d Decision) (algorithms.NCCLChoice, error) {
	if d.Variant == "" {
		return algorithms.NCCLChoice{}, fmt.Errorf("%w: NCCL's own choice for %s: the plugin needs an algorithm, a protocol and channels: measure variants such as nccl:ring/ll/ch=8", ErrInexpressible, d.Op)
	}
	c, err := algorithms.ParseNCCL(d.Op, d.Variant)
	if err != nil {
		return c, fmt.Errorf("%w: %w", ErrInexpressible, err)
	}
	if c.Channels == 0 {
		c.Channels = j.Channels
	}
	if c.Channels == 0 {
		return c, fmt.Errorf("%w: %s %s has no number of channels, and without it NCCL would use one: give --channels", ErrInexpressible, d.Op, d.Contender)
	}
	return c, nil
}

// NCCL_ALGO and NCCL_PROTO have entries FUNCTION:LIST between semicolons. They
// limit NCCL's choice for a collective at all sizes and in all groups.
func writeNCCLEnv(j *job) (*Output, error) {
	algo, proto := map[string][]string{}, map[string][]string{}
	add := func(m map[string][]string, function, name string) {
		if !slices.Contains(m[function], name) {
			m[function] = append(m[function], name)
		}
	}
	for _, d := range j.list {
		name, ok := algorithms.NCCLFunction(d.Op)
		if !ok || d.Variant == "" {
			continue
		}
		c, err := algorithms.ParseNCCL(d.Op, d.Variant)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInexpressible, err)
		}
		add(algo, name, ncclName(c.Algorithm))
		add(proto, name, c.Protocol)
	}
	if len(algo) == 0 {
		return nil, fmt.Errorf("%w: no collective with an algorithm of NCCL's", ErrNothing)
	}
	text := fmt.Sprintf("NCCL_ALGO=%s\nNCCL_PROTO=%s\n", ncclEntries(algo), ncclEntries(proto))
	for name, list := range algo {
		if len(list) > 1 || len(proto[name]) > 1 {
			j.out.warn("%s: the variables have no sizes: NCCL chooses among %s and %s itself", name, strings.Join(list, ", "), strings.Join(proto[name], ", "))
		}
	}
	j.out.Files = []File{{"nccl.env", []byte(text)}}
	j.out.Apply = []string{"set -a; . FILE; set +a"}
	j.out.Proof = []string{"NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING: the algorithm and protocol of each operation"}
	return j.out, nil
}

// ncclName is an algorithm's name in NCCL_ALGO.
func ncclName(algorithm string) string {
	return map[string]string{"collnet_direct": "collnetdirect", "collnet_chain": "collnetchain", "nvls_tree": "nvlstree"}[algorithm] +
		map[bool]string{true: algorithm}[!strings.Contains(algorithm, "_")]
}

func ncclEntries(m map[string][]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, name+":"+strings.Join(m[name], ","))
	}
	// The file is read by a shell.
	return "'" + strings.Join(parts, ";") + "'"
}
