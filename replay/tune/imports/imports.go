package imports

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/replay/tune"
)

var (
	// ErrFormat: the input holds nothing of the format.
	ErrFormat = errors.New("nothing to import")
	// ErrMissing: something is in neither the input nor the options.
	ErrMissing = errors.New("not in the log")
	// ErrContradiction: an option says something else than the input.
	ErrContradiction = errors.New("the log says otherwise")
)

// Codes of the diagnostics.
const (
	CodeBadRow    = "import-bad-row"    // looks like a row and can't be read; left out
	CodeWrongData = "import-wrong-data" // the tool found wrong results; left out
	CodeNoTime    = "import-no-time"    // no time above 0; left out
	CodeUnknownOp = "import-unknown-op" // an operation that is not known here; left out
	CodeDType     = "import-dtype"      // an element type that is not known here; kept without it
	CodeSize      = "import-size"       // the size is known within bounds only; kept
	CodeGroup     = "import-group"      // the group of the calls is not known; kept with that of the job
	CodePartial   = "import-partial"    // not all ranks are there; kept, the slowest of those that are
)

// Options say what the input does not. What it does say must not differ.
type Options struct {
	Backend, Variant string
	Op               comm.Op
	DType            comm.DType
	Ranks, Nodes     int
	Device           string
	Hardware         string
	Version          string // of the library
}

// Result is what was imported.
type Result struct {
	Rows        []tune.Row
	Environment tune.Environment
	Diagnostics diagnostic.Set
}

// Table makes a table of the result.
func (r *Result) Table() (*tune.Table, error) {
	t := &tune.Table{}
	rows := slices.Clone(r.Rows)
	hash := ""
	if r.Environment.Hardware != "" || len(r.Environment.Libraries) > 0 {
		hash = t.AddEnvironment(r.Environment)
	}
	for i := range rows {
		rows[i].Environment = hash
	}
	return t, t.Add(rows...)
}

// format reads one tool's output.
type format struct {
	name, about string
	backend     string // that it always measures, "" when it does not say
	device      string
	read        func(*reading) error
}

var formats = []format{
	{"nccl-tests", "output of nccl-tests, text or JSON (-J)", "nccl", tune.GPU, readNCCLTests},
	{"rccl-tests", "output of rccl-tests, text, or JSON or CSV (-x FILE -Z json)", "rccl", tune.GPU, readNCCLTests},
	{"osu", "output of the OSU micro-benchmarks", "", "", readOSU},
	{"param", "output of PARAM's comms.py", "", "", readPARAM},
	{"ucc-perftest", "output of ucc_perftest", "ucc", "", readUCC},
	{"nccl-inspector", "dumps of NCCL's inspector, JSON lines", "nccl", tune.GPU, readInspector},
	{"deepspeed", "DeepSpeed's communication logger, text or JSON", "", "", readDeepSpeed},
}

// Format describes a format.
type Format struct{ Name, About string }

// Formats lists the formats.
func Formats() []Format {
	var list []Format
	for _, f := range formats {
		list = append(list, Format{f.name, f.about})
	}
	return list
}

// ErrUnknownFormat: no format of that name.
var ErrUnknownFormat = errors.New("unknown format")

// maxInput bounds an input, in bytes.
const maxInput = 1 << 30

// Read reads one tool's output. name is the file's, for messages and, where the
// format has no better place, for the operation.
func Read(formatName string, r io.Reader, name string, opts Options) (*Result, error) {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == formatName })
	if i < 0 {
		var names []string
		for _, f := range formats {
			names = append(names, f.name)
		}
		return nil, fmt.Errorf("%w %q: known are %s", ErrUnknownFormat, formatName, strings.Join(names, ", "))
	}
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", name, ErrFormat, maxInput)
	}
	x := &reading{format: formats[i], name: name, data: data, Options: opts, result: &Result{}}
	if x.Backend == "" {
		x.Backend = x.format.backend
	}
	if x.Device == "" {
		x.Device = x.format.device
	}
	if err := x.format.read(x); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(x.result.Rows) == 0 {
		if list := x.result.Diagnostics.List(); len(list) > 0 {
			return nil, fmt.Errorf("%s: %w: every row was left out, the first: %s", name, ErrFormat, list[0])
		}
		return nil, fmt.Errorf("%s: %w: it has no row of %s", name, ErrFormat, formatName)
	}
	x.result.Environment.Hardware = opts.Hardware
	if x.Version != "" {
		x.result.Environment.Libraries = []tune.Library{{Name: x.Backend, Version: x.Version}}
	}
	return x.result, nil
}

// reading is an import in progress.
type reading struct {
	Options
	format format
	name   string
	data   []byte
	result *Result
}

// measured is a measurement as a tool gives it.
type measured struct {
	op        comm.Op
	dtype     comm.DType
	size      int64 // in the tool's convention
	sizeError int64
	ns        int64
	min, p95  int64
	n         int64
	lo, hi    int64 // confidence interval
	statistic string
	inPlace   bool
	ranks     int // 0: the job's
	variant   string
	verified  bool
	offset    int64 // of the row, for messages
}

// ranksKnown fills in the number of ranks and nodes that the input says.
func (x *reading) ranksKnown(ranks, nodes int) error {
	if ranks > 0 && x.Ranks > 0 && x.Ranks != ranks {
		return fmt.Errorf("%w: %d ranks, not %d", ErrContradiction, ranks, x.Ranks)
	}
	if nodes > 0 && x.Nodes > 0 && x.Nodes != nodes {
		return fmt.Errorf("%w: %d nodes, not %d", ErrContradiction, nodes, x.Nodes)
	}
	if ranks > 0 {
		x.Ranks = ranks
	}
	if nodes > 0 {
		x.Nodes = nodes
	}
	return nil
}

// need says which option is missing, if one is.
func (x *reading) need(ranks int) error {
	for _, n := range []struct {
		missing    bool
		what, flag string
	}{
		{x.Backend == "", "which library was measured", "--backend"},
		{ranks == 0, "how many ranks took part", "--ranks"},
		{x.Device == "", "where the buffers were", "--device host or --device gpu"},
	} {
		if n.missing {
			return fmt.Errorf("%w: %s: say so with %s", ErrMissing, n.what, n.flag)
		}
	}
	return nil
}

// add adds a measurement as a row.
func (x *reading) add(m measured, size convention) error {
	ranks := m.ranks
	if ranks == 0 {
		ranks = x.Ranks
	}
	if err := x.need(ranks); err != nil {
		return err
	}
	if m.ns <= 0 {
		x.note(CodeNoTime, m.offset, "%s of %d bytes has no time", m.op, m.size)
		return nil
	}
	n := int64(ranks)
	if m.size < 0 || m.size > math.MaxInt64/n/2 {
		x.note(CodeBadRow, m.offset, "a size of %d bytes on %d ranks", m.size, ranks)
		return nil
	}
	total := size(m.op, m.size, n)
	if m.op == comm.Barrier {
		total = 0
	}
	in, out := inOut(m.op, total, n)
	r := tune.Row{
		Contender: tune.Contender{Backend: x.Backend, Variant: x.Variant}, Op: m.op, DType: m.dtype, Device: x.Device, InPlace: m.inPlace,
		Ranks: ranks, Nodes: min(x.Nodes, ranks), In: in, Out: out, SizeError: m.sizeError, Streams: 1,
		Time: m.ns, Statistic: m.statistic, Min: m.min, P95: m.p95, N: m.n, CILow: m.lo, CIHigh: m.hi, Source: x.format.name, Verified: m.verified,
	}
	if r.Variant == "" {
		r.Variant = m.variant
	}
	if r.DType == "" && r.Op != comm.Barrier {
		r.DType = x.DType
	}
	if err := r.Check(); err != nil {
		return err
	}
	x.result.Rows = append(x.result.Rows, r)
	return nil
}

func (x *reading) note(code string, offset int64, format string, args ...any) {
	x.result.Diagnostics.Addf(code, diagnostic.NoRank, offset, format, args...)
}

// dtypeOf reads an element type; one that is not known is noted.
func (x *reading) dtypeOf(name string, offset int64) comm.DType {
	d, ok := comm.ParseDType(name)
	if !ok {
		x.note(CodeDType, offset, "element type %q", name)
	}
	return d
}

// ns turns a time in microseconds into ns.
func ns(us float64) int64 {
	if math.IsNaN(us) || math.IsInf(us, 0) || us < 0 || us > 1e15 {
		return 0
	}
	return int64(math.Round(us * 1e3))
}

// lines calls each for every line, with its offset.
func (x *reading) lines(each func(line string, offset int64) error) error {
	offset := int64(0)
	for line := range strings.Lines(string(x.data)) {
		if err := each(strings.TrimRight(line, "\r\n"), offset); err != nil {
			return err
		}
		offset += int64(len(line))
	}
	return nil
}
