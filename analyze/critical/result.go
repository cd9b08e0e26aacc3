package critical

import (
	"fmt"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Kind is what a part of the critical path was.
type Kind string

// The kinds of segments.
const (
	KindHost     Kind = "host"    // the program's own work, launches among it
	KindCompute  Kind = "compute" // kernels; on ranks without a device, operators of the CPU
	KindMemory   Kind = "memory"  // copies and sets
	KindWait     Kind = "communication-wait"
	KindTransfer Kind = "communication-transfer"
	KindIdle     Kind = "idle" // between when something could start and its start
)

// Kinds lists all kinds in the order that tables show them.
func Kinds() []Kind {
	return []Kind{KindHost, KindCompute, KindMemory, KindWait, KindTransfer, KindIdle}
}

// Segment is a part of the critical path: what one rank did in a time in which
// nothing else held up the step. Times are ns.
type Segment struct {
	Rank   int    `json:"rank"`   // global; the last member for what follows its arrival
	Stream string `json:"stream"` // "host", "stream 7", "thread 4711"
	Kind   Kind   `json:"kind"`
	// Name is the kernel's, the operator's that the host was in ("" between
	// operators), or the communication event's; of idle time, that of what
	// started after it.
	Name  string `json:"name"`
	Class *Class `json:"class"` // of communication, null else
	Start int64  `json:"start_ns"`
	End   int64  `json:"end_ns"` // both since the start of the step
	Dur   int64  `json:"dur_ns"`
	// Unsplit: communication whose other members or their clocks are not known,
	// so that waiting for them counts as transfer.
	Unsplit bool `json:"unsplit"`
	// BeforeStep: it was launched before the step and ran into it.
	BeforeStep bool `json:"before_step"`
}

// String is the segment as one line of text.
func (s Segment) String() string {
	what := s.Name
	if s.Class != nil {
		what = fmt.Sprintf("%s in group %s (%s)", s.Class.Op, s.Class.Group, s.Name)
	}
	if what != "" {
		what = " " + what
	}
	return fmt.Sprintf("%.3f-%.3f ms rank %d %s: %s%s, %.3f ms", ms(s.Start), ms(s.End), s.Rank, s.Stream, s.Kind, what, ms(s.Dur))
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }

// Result is the critical path of a step and what shortening it could give.
type Result struct {
	Step string `json:"step"` // "" for the whole trace
	// StartTS is when the first rank started the step, ns on its clock less its
	// offset; all other times are since then.
	StartTS int64 `json:"start_ts"`
	// StepNS is the step's time over all ranks: from the first one's start to
	// the end of the last work that the step launched. It is the length of the
	// critical path.
	StepNS int64 `json:"step_ns"`
	// ClocksAligned: ranks are joined by their communication. If not, the path
	// is that of the one rank that took longest.
	ClocksAligned bool `json:"clocks_aligned"`

	Path []Segment `json:"path"` // by time, without gaps

	ByKind  []KindTotal  `json:"by_kind"`
	ByRank  []RankTotal  `json:"by_rank"`  // ranks on the path, the longest first
	ByClass []ClassTotal `json:"by_class"` // communication on the path, the longest first
	ByName  []NameTotal  `json:"by_name"`  // everything on the path, the longest first
	Bound   Bound        `json:"bound"`

	// What the step would take at least if communication cost nothing.
	Free        Gain   `json:"all_free"`
	FreeByOp    []Gain `json:"free_by_op"`
	FreeByGroup []Gain `json:"free_by_group_op"`

	Nodes    int `json:"nodes"`
	Edges    int `json:"edges"`
	Backward int `json:"backward_edges"` // rejected, with a diagnostic
	Inferred int `json:"inferred_edges"` // from times alone: see the package's documentation
}

// KindTotal is the time of one kind on the path, ns.
type KindTotal struct {
	Kind Kind  `json:"kind"`
	NS   int64 `json:"ns"`
}

// RankTotal is the time of one rank on the path, ns.
type RankTotal struct {
	Rank int   `json:"rank"`
	NS   int64 `json:"ns"`
	// Own is NS less transfers: those are of all their members.
	Own int64 `json:"own_ns"`
}

// ClassTotal is the time of one class of communication on the path, ns.
type ClassTotal struct {
	Class
	Count    int   `json:"count"` // operations on the path
	Wait     int64 `json:"wait_ns"`
	Transfer int64 `json:"transfer_ns"`
	Unsplit  bool  `json:"unsplit"` // some of Transfer may be waiting
}

// NameTotal is the time of one thing on the path, ns.
type NameTotal struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"` // of communication: "OP in group GROUP"
	NS   int64  `json:"ns"`
}

// Bound is what bounds the step.
type Bound struct {
	Rank   int    `json:"rank"` // the rank with the most time of its own on the path
	RankNS int64  `json:"rank_ns"`
	Kind   Kind   `json:"kind"` // of the operation with the most time on the path
	Name   string `json:"name"`
	NS     int64  `json:"ns"`
	Text   string `json:"text"` // the same in words
}

// Gain is what a step would gain if the transfers of some communication took no
// time while ranks still waited for each other: no change of its backend alone
// can give more.
type Gain struct {
	Group *string  `json:"group"` // null for all groups
	Op    *comm.Op `json:"op"`    // null for all operations
	// PathTransfer is its transfer on the critical path, ns (more than in Path
	// by what clocks and rounding let overlap). The gain is at most that: without
	// it, another path may be the longest.
	PathTransfer int64 `json:"path_transfer_ns"`
	StepNS       int64 `json:"step_ns"` // then
	GainNS       int64 `json:"gain_ns"`
	// Speedup is the recorded step over the one without; null when nothing would
	// remain.
	Speedup *float64 `json:"speedup_at_most"`
}

// Analyze builds the graph of a step and finds its critical path and gains.
func Analyze(run *trace.Run, match *collective.Matching, opts Options) (*Result, *diagnostic.Set, error) {
	g, diags, err := Build(run, match, opts)
	if err != nil {
		return nil, diags, err
	}
	r, err := g.analyze()
	return r, diags, err
}

// Analyze finds the critical path of the graph and its gains. The events of the
// run are in memory: only loading them could fail.
func (g *Graph) Analyze() *Result {
	r, err := g.analyze()
	if err != nil {
		panic(err)
	}
	return r
}

func (g *Graph) analyze() (*Result, error) {
	r := &Result{
		Step: g.step, StartTS: g.start, StepNS: g.end[last(g.end)], ClocksAligned: g.aligned,
		Nodes: g.Len(), Edges: g.Edges(), Backward: g.backward, Inferred: g.inferred,
	}
	steps := g.walk()
	var err error
	if r.Path, err = g.segments(steps); err != nil {
		return nil, err
	}
	r.sum()
	g.setGains(r, steps)
	return r, nil
}
