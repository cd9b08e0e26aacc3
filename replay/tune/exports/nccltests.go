package exports

import (
	"fmt"
	"math"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// ncclPrograms are the programs of nccl-tests.
var ncclPrograms = map[comm.Op]string{
	comm.AllReduce: "all_reduce_perf", comm.AllGather: "all_gather_perf", comm.ReduceScatter: "reduce_scatter_perf",
	comm.AllToAll: "alltoall_perf", comm.AllToAllV: "alltoallv_perf", comm.Broadcast: "broadcast_perf", comm.Reduce: "reduce_perf",
	comm.Gather: "gather_perf", comm.Scatter: "scatter_perf", comm.Send: "sendrecv_perf",
}

// writeNCCLTests writes a line for each decision: the sizes around it, the maximum
// over ranks, data checked. What nccl-tests calls a size is ours.
func writeNCCLTests(j *job) (*Output, error) {
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# made by mixdown: measures every decision again, where nccl-tests is on PATH\nset -e\n")
	n := 0
	for _, d := range j.list {
		program, ok := ncclPrograms[d.Op]
		if !ok {
			j.out.warn("%s is left out: nccl-tests does not measure it", d.Op)
			continue
		}
		if d.Backend != "nccl" && d.Backend != "rccl" {
			continue
		}
		from, to := d.Min, d.Max
		low, high := d.Measured[0], d.Measured[1]
		if high == 0 { // from a mix
			low, high = 8, 64<<20
		}
		from, to = max(from, low, 1), min(to, high)
		if to == math.MaxInt64 || to < from {
			to = max(from, high)
		}
		env := ""
		if algorithm, protocol, ok := strings.Cut(d.Variant, "/"); ok {
			protocol, channels, _ := strings.Cut(protocol, "/")
			env = fmt.Sprintf("NCCL_ALGO=%s NCCL_PROTO=%s ", algorithm, protocol)
			if c, ok := strings.CutPrefix(channels, "ch="); ok {
				env += fmt.Sprintf("NCCL_MIN_NCHANNELS=%s NCCL_MAX_NCHANNELS=%s ", c, c)
			}
		}
		ranks := ""
		if d.Ranks > 0 {
			ranks = fmt.Sprintf("mpirun -np %d ", d.Ranks)
		}
		fmt.Fprintf(&b, "%s%s%s -b %d -e %d -f 2 -g 1 -a 3 -c 1\n", env, ranks, program, from, to)
		n++
	}
	if n == 0 {
		return nil, fmt.Errorf("%w: no decision about nccl or rccl", ErrNothing)
	}
	j.out.Files = []File{{"nccl-tests.sh", []byte(b.String())}}
	j.out.Apply = []string{"sh FILE > nccl-tests.log"}
	j.out.Proof = []string{"mixdown import --as nccl-tests nccl-tests.log -o again.tune; mixdown tune show again.tune"}
	return j.out, nil
}

// align is what nccl-tests' matrix wants sizes to be a multiple of, in bytes.
const align = 16

// writeMatrices writes each different uneven all_to_all of a plan as nccl-tests'
// alltoallv_perf reads it: row i, column j is what rank i sends to rank j, in bytes.
func writeMatrices(j *job) (*Output, error) {
	w := j.Plan.GetWorkload()
	type key struct {
		group int32
		seq   int64
	}
	matrices := map[key][][]int64{}
	var order []key
	rounded, estimated := false, false
	for _, program := range w.GetPrograms() {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c.GetOp() != planpb.Op_OP_ALL_TO_ALLV || int(c.Group) >= len(w.Groups) {
				continue
			}
			k := key{c.Group, c.Seq}
			members := w.Groups[c.Group].Ranks
			if matrices[k] == nil {
				matrices[k] = make([][]int64, len(members))
				order = append(order, k)
			}
			if len(c.InSplits) != len(members) {
				continue
			}
			row := make([]int64, len(members))
			for i, n := range c.InSplits {
				bytes := n * plan.DType(c).Size()
				row[i] = ceil(bytes, align) * align
				rounded = rounded || row[i] != bytes
			}
			estimated = estimated || c.SplitsEstimated
			for i, r := range members {
				if r == program.Rank {
					matrices[k][i] = row
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, k := range order {
		var b strings.Builder
		complete, largest := true, int64(0)
		columns := make([]int64, len(matrices[k]))
		for _, row := range matrices[k] {
			complete = complete && row != nil
			sum := int64(0)
			for i, n := range row {
				if i > 0 {
					b.WriteByte(' ')
				}
				fmt.Fprint(&b, n)
				sum += n
				columns[i] += n
				largest = max(largest, columns[i])
			}
			largest = max(largest, sum)
			b.WriteByte('\n')
		}
		if !complete {
			j.out.warn("operation %d of group %q is left out: not all members' parts are known", k.seq, w.Groups[k.group].Name)
			continue
		}
		if seen[b.String()] {
			continue
		}
		seen[b.String()] = true
		name := fmt.Sprintf("alltoallv-%d.txt", len(j.out.Files))
		j.out.Files = append(j.out.Files, File{name, []byte(b.String())})
		j.out.Apply = append(j.out.Apply, fmt.Sprintf("NCCL_TESTS_ALLTOALLV_MATRIX_FILE=%s mpirun -np %d alltoallv_perf -b %d -e %d -g 1 -a 3", name, len(matrices[k]), largest, largest))
	}
	if len(j.out.Files) == 0 {
		return nil, fmt.Errorf("%w: the plan has no uneven all_to_all with known parts", ErrNothing)
	}
	if rounded {
		j.out.warn("sizes are rounded up to %d bytes, as nccl-tests wants them", align)
	}
	if estimated {
		j.out.warn("some parts are estimated: their totals are the trace's")
	}
	j.out.Proof = []string{"alltoallv_perf prints the size of each row"}
	return j.out, nil
}
