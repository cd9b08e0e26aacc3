package imports

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// osuTitle is "# OSU MPI-CUDA Allreduce Latency Test v7.4".
var osuTitle = regexp.MustCompile(`^#\s*OSU\s+(\S+)\s+(.*?)\s*(?:Latency\s+)?Test(?:\s+v\S+)?\s*$`)

// osuOps are titles by their beginnings, the longer first.
var osuOps = []struct {
	title string
	op    comm.Op
}{
	{"all-to-allv", comm.AllToAllV}, {"all-to-all", comm.AllToAll}, {"alltoallv", comm.AllToAllV}, {"alltoall", comm.AllToAll},
	{"allgatherv", comm.AllGatherV}, {"allgather", comm.AllGather}, {"allreduce", comm.AllReduce},
	{"broadcast", comm.Broadcast}, {"bcast", comm.Broadcast},
	{"reduce_scatter_block", comm.ReduceScatter}, {"reduce_scatter", comm.ReduceScatter}, {"reduce", comm.Reduce},
	{"gatherv", comm.Unknown}, {"gather", comm.Gather}, {"scatterv", comm.Unknown}, {"scatter", comm.Scatter}, {"barrier", comm.Barrier},
}

// readOSU reads the output of the OSU micro-benchmarks: latencies of collectives
// and of point-to-point. With -f the maximum over ranks is the time, without it
// the average over ranks.
func readOSU(x *reading) error {
	o := osu{reading: x, op: x.Op}
	return x.lines(o.line)
}

type osu struct {
	*reading
	op       comm.Op
	dtype    comm.DType
	skip     bool // a bandwidth or a non-blocking test: no times of one operation
	columns  []string
	haveHead bool
}

func (o *osu) line(line string, offset int64) error {
	switch {
	case strings.HasPrefix(line, "# OSU"):
		return o.title(line, offset)
	case strings.HasPrefix(line, "# Datatype:"):
		o.dtype = o.mpiType(strings.Trim(strings.TrimPrefix(line, "# Datatype:"), " ."), offset)
		return nil
	case strings.HasPrefix(line, "#") && strings.Contains(line, "Latency"), strings.HasPrefix(line, "#") && strings.Contains(line, "(us)"):
		o.columns, o.haveHead = osuColumns(line), true
		return nil
	case strings.HasPrefix(line, "#") && (strings.Contains(line, "Bandwidth") || strings.Contains(line, "Overall")):
		o.skip = true
		o.note(CodeUnknownOp, offset, "%s", line)
		return nil
	}
	if o.skip || !o.haveHead {
		return nil
	}
	return o.row(strings.Fields(line), offset)
}

func (o *osu) title(line string, offset int64) error {
	o.haveHead, o.skip, o.dtype = false, false, o.DType
	m := osuTitle.FindStringSubmatch(line)
	if m == nil {
		o.skip = true
		o.note(CodeUnknownOp, offset, "%s", line)
		return nil
	}
	if o.Backend == "" && strings.Contains(m[1], "NCCL") {
		o.Backend = "nccl"
	}
	if o.Device == "" && (strings.Contains(m[1], "CUDA") || strings.Contains(m[1], "ROCM") || strings.Contains(m[1], "NCCL") || strings.Contains(m[1], "OPENACC")) {
		o.Device = tune.GPU
	}
	name := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(m[2]), " ", "_"))
	if name == "" { // the point-to-point latency test has no name
		o.op = comm.Send
		return nil
	}
	o.op = ""
	for _, t := range osuOps {
		if strings.HasPrefix(name, t.title) {
			o.op = t.op
			break
		}
	}
	if o.op == "" || o.op == comm.Unknown {
		o.skip = true
		o.note(CodeUnknownOp, offset, "%s", line)
	}
	return nil
}

// mpiType is the element type of an MPI datatype.
func (o *osu) mpiType(name string, offset int64) comm.DType {
	switch name {
	case "MPI_CHAR", "ncclChar", "ncclInt8":
		return comm.Int8
	case "MPI_INT", "ncclInt":
		return comm.Int32
	case "MPI_FLOAT", "ncclFloat":
		return comm.Float32
	case "MPI_DOUBLE":
		return comm.Float64
	}
	return o.dtypeOf(name, offset)
}

// osuColumns are the names of the columns: two blanks or more are between them.
func osuColumns(line string) []string {
	var list []string
	for _, name := range regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(strings.TrimPrefix(line, "#")), -1) {
		list = append(list, strings.TrimSpace(name))
	}
	return list
}

// row reads a row. What libraries log may stand before it or between rows.
func (o *osu) row(f []string, offset int64) error {
	if len(f) == 0 {
		return nil
	}
	sized := len(o.columns) > 0 && strings.HasPrefix(o.columns[0], "Size")
	if len(f) > len(o.columns) { // a library's words before the row
		f = f[len(f)-len(o.columns):]
	}
	if len(f) < 1 || sized && len(f) < 2 {
		return nil
	}
	m := measured{op: o.op, dtype: o.dtype, statistic: tune.Mean, offset: offset, inPlace: o.op == comm.Broadcast}
	values := map[string]string{}
	for i, name := range o.columns {
		if i < len(f) {
			values[name] = f[i]
		}
	}
	if sized {
		size, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			return nil // no row
		}
		m.size = size
	}
	if values["Validation"] == "Fail" {
		o.note(CodeWrongData, offset, "%s", strings.Join(f, " "))
		return nil
	}
	m.verified = values["Validation"] == "Pass"
	us, err := osuTime(values)
	if err != nil {
		o.note(CodeBadRow, offset, "%s: %v", strings.Join(f, " "), err)
		return nil
	}
	m.ns = ns(us)
	m.n, _ = strconv.ParseInt(values["Iterations"], 10, 64) // 0: not said
	return o.add(m, osuSize)
}

// osuTime is the slowest rank's time, else the average.
func osuTime(values map[string]string) (float64, error) {
	for _, name := range []string{"Max Latency(us)", "Avg Latency(us)", "Latency (us)", "Latency(us)"} {
		if text, ok := values[name]; ok {
			us, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0, fmt.Errorf("%s is %q", name, text)
			}
			return us, nil
		}
	}
	return 0, fmt.Errorf("no column of latencies")
}
