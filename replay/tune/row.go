package tune

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"mixdown/ingest/comm"
)

// Row is one measurement.
type Row struct {
	Contender
	Op      comm.Op
	DType   comm.DType // "" when not known
	Device  string     // where the buffers are: Host or GPU
	InPlace bool       // input and output share memory

	Ranks     int   // members of the group
	Nodes     int   // machines that they are on, 0 when not known
	In, Out   int64 // bytes that one rank contributes and receives
	SizeError int64 // In and Out are right to so many bytes; 0: exact
	Streams   int   // groups that ran the same at once; 1: alone

	// InStep: measured within a job's step, with what runs beside it there and with
	// members that come when they come there; else again and again in a row. Gap is
	// then the time between what a rank communicated before and this, in ns.
	InStep bool
	Gap    int64

	Time      int64  // ns, of the slowest rank
	Statistic string // what Time is: Median, Mean, TrimmedMean or Single
	// Min, P95, N, CILow and CIHigh are 0 when not known: the shortest time and
	// the 95th percentile in ns, the number of measurements, and the 95 %
	// confidence interval of Time in ns, where that is a median or a mean.
	Min, P95      int64
	N             int64
	CILow, CIHigh int64

	Environment string // hash of an Environment of the table, "" when not known
	Source      string // "mixdown tune", "nccl-tests", "osu", ...
	Verified    bool   // the data was compared and right
}

// Contender is a library with its settings.
type Contender struct {
	Backend string // "nccl"
	Variant string // "ring/ll128", "" for the library's own choice
}

// ParseContender reads "nccl" or "nccl:ring/ll128".
func ParseContender(text string) Contender {
	backend, variant, _ := strings.Cut(text, ":")
	return Contender{backend, variant}
}

// String is the contender as a mix names it.
func (c Contender) String() string {
	if c.Variant == "" {
		return c.Backend
	}
	return c.Backend + ":" + c.Variant
}

// Where buffers are.
const (
	Host = "host"
	GPU  = "gpu"
)

// What Row.Time can be.
const (
	Median      = "median"
	Mean        = "mean"
	TrimmedMean = "trimmed mean" // without the highest and the lowest tenth
	Single      = "single"       // of one call
)

// Size is the size that mixes and look-ups go by: the larger of what one rank
// contributes and receives, in bytes.
func (r *Row) Size() int64 { return max(r.In, r.Out) }

// ErrRow: a measurement that can't be.
var ErrRow = errors.New("impossible measurement")

// Check refuses what can't be a measurement.
func (r *Row) Check() error {
	switch {
	case r.Backend == "":
		return fmt.Errorf("%w: no backend", ErrRow)
	case strings.ContainsAny(r.Backend, ":,=@ \n"):
		return fmt.Errorf("%w: backend %q: a name has none of \":,=@\" and no blanks", ErrRow, r.Backend)
	case strings.ContainsAny(r.Variant, ",@\n"):
		return fmt.Errorf("%w: variant %q: a name has no commas, no @ and no line ends", ErrRow, r.Variant)
	case r.Op == "" || r.Op == comm.Unknown:
		return fmt.Errorf("%w: no operation", ErrRow)
	case r.Device != Host && r.Device != GPU:
		return fmt.Errorf("%w: device %q: known are host, gpu", ErrRow, r.Device)
	case r.Ranks < 1 || r.Nodes < 0 || r.Nodes > r.Ranks:
		return fmt.Errorf("%w: %d ranks on %d nodes", ErrRow, r.Ranks, r.Nodes)
	case r.In < 0 || r.Out < 0 || r.SizeError < 0:
		return fmt.Errorf("%w: %d bytes in, %d bytes out", ErrRow, r.In, r.Out)
	case r.Gap < 0 || r.Gap > 0 && !r.InStep:
		return fmt.Errorf("%w: a gap of %d ns", ErrRow, r.Gap)
	case r.Streams < 1:
		return fmt.Errorf("%w: %d streams", ErrRow, r.Streams)
	case r.Time <= 0:
		return fmt.Errorf("%w: %d ns", ErrRow, r.Time)
	case r.Min < 0 || r.P95 < 0 || r.N < 0 || r.CILow < 0 || r.CIHigh < r.CILow:
		return fmt.Errorf("%w: negative statistics", ErrRow)
	}
	return nil
}

// key is what tells measurements apart.
type key struct {
	Contender
	op           comm.Op
	dtype        comm.DType
	device       string
	inPlace      bool
	ranks, nodes int
	in, out      int64
	streams      int
	inStep       bool
	gap          int64
	environment  string
}

func (r *Row) key() key {
	return key{r.Contender, r.Op, r.DType, r.Device, r.InPlace, r.Ranks, r.Nodes, r.In, r.Out, r.Streams, r.InStep, r.Gap, r.Environment}
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.op, o.op), cmp.Compare(k.ranks, o.ranks), cmp.Compare(k.nodes, o.nodes),
		cmp.Compare(max(k.in, k.out), max(o.in, o.out)), cmp.Compare(k.in, o.in), cmp.Compare(k.Backend, o.Backend),
		cmp.Compare(k.Variant, o.Variant), cmp.Compare(k.dtype, o.dtype), cmp.Compare(k.device, o.device),
		cmp.Compare(truth(k.inPlace), truth(o.inPlace)), cmp.Compare(k.streams, o.streams),
		cmp.Compare(truth(k.inStep), truth(o.inStep)), cmp.Compare(k.gap, o.gap), cmp.Compare(k.environment, o.environment))
}

// truth orders false before true.
func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Class says which element types cost the same: what is only moved costs by its
// bytes, what is reduced by its kind and width.
func Class(op comm.Op, dtype comm.DType) string {
	switch {
	case !op.Reduces():
		return "any"
	case dtype == comm.Float16 || dtype == comm.BFloat16:
		return "half"
	case dtype == comm.Float32 || dtype == comm.Float64:
		return "float"
	case dtype == "":
		return "unknown"
	}
	return "integer"
}
