package export

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/overlap"
	"mixdown/analyze/pipeline"
	"mixdown/analyze/report"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// Input is the analysed run: on one clock, matched, and with its report.
type Input struct {
	Run      *trace.Run
	Match    *collective.Matching
	Clocks   *align.Result
	Analysis *report.Analysis
	Tool     string // program and version, for the files' metadata
	// Pipelines are those of the run, nil when it has none.
	Pipelines []*pipeline.Pipeline

	// Checksums are those of the ranks' traces, SHA-256 in hex; a rank that is not
	// in it has none that is known.
	Checksums map[int]string
}

// operation is one communication of one rank with what the analysis knows of it.
type operation struct {
	*comm.Operation
	number int // index into the rank's operations
	kind   comm.Op
	group  *collective.Group
	label  string // of the group

	step       string // "" outside of any
	phase      trace.Phase
	annotation string // the innermost of the program that issued it, "" when none

	busy, exposed int64 // ns; exposed is the part of busy without computation

	timed          bool  // wait and transfer are known
	wait, transfer int64 // ns

	match int // index into Matching.Collectives, -1 when it is part of none
}

// sized says whether the sizes in bytes are known.
func (o *operation) sized() bool { return o.SizeKnown && o.DType.Size() > 0 }

// exporter holds what is the same for all ranks of an export.
type exporter struct {
	*Input
	labels     []string // of Match.Groups
	impossible map[int]bool
}

func newExporter(in *Input) *exporter {
	x := &exporter{Input: in, impossible: map[int]bool{}}
	for g := range in.Match.Groups {
		x.labels = append(x.labels, in.Match.Groups[g].Label())
	}
	for _, i := range in.Clocks.Impossible {
		x.impossible[i] = true
	}
	return x
}

// operations lists the communication of rank index r, by start. The rules for
// what is exposed and what is waiting are those of the report, so that the rows
// add up to its table.
func (x *exporter) operations(r int, activity overlap.Activity) []operation {
	rank := x.Run.Ranks[r]
	annotations := issuedWithin(rank)
	list := make([]operation, len(rank.Operations))
	for i := range rank.Operations {
		op := &rank.Operations[i]
		o := operation{Operation: op, number: i, kind: op.Op, match: -1, annotation: annotations[i]}
		g := x.Match.GroupOf[r][op.Group]
		o.group, o.label = &x.Match.Groups[g], x.labels[g]
		o.step = rank.StepAt(op.Issued)
		if op.Event >= 0 && op.Event < rank.Events.Len() {
			o.phase = rank.Events.Phase[op.Event]
		}
		var own []overlap.Interval
		for _, e := range op.Events {
			own = append(own, overlap.Interval{Start: rank.Events.TS[e], End: rank.Events.End(e)})
		}
		busy := overlap.Union(own)
		o.busy, o.exposed = busy.Length(), busy.Subtract(activity.Compute).Length()
		member := collective.Member{Rank: r, Operation: i}
		if k, ok := x.Match.Index(member); ok {
			o.match, o.kind = k, x.Match.Collectives[k].Op
		}
		last, known := x.Match.LastStart(x.Run, member)
		if known && x.Clocks.Connected && !x.impossible[o.match] {
			o.timed = true
			o.wait = min(max(last-op.Start, 0), op.Dur())
			o.transfer = op.Dur() - o.wait
		}
		list[i] = o
	}
	slices.SortStableFunc(list, func(a, b operation) int { return cmp.Compare(a.Start, b.Start) })
	return list
}

// issuedWithin names the innermost annotation of the program around the issue of
// each operation. Steps and the annotations that PyTorch puts around the
// communication itself say nothing that other frames don't.
func issuedWithin(rank *trace.Rank) []string {
	names := make([]string, len(rank.Operations))
	byThread := map[trace.ThreadID][]int{} // operations
	for i := range rank.Operations {
		if t := rank.Operations[i].Thread; t >= 0 {
			byThread[trace.ThreadID(t)] = append(byThread[trace.ThreadID(t)], i)
		}
	}
	ev := &rank.Events
	tells := map[trace.NameID]bool{}
	around := map[trace.ThreadID][]int{} // annotations
	for i := range ev.Len() {
		if ev.Category[i] != trace.UserAnnotation || byThread[ev.Thread[i]] == nil {
			continue
		}
		ok, known := tells[ev.Name[i]]
		if !known {
			ok = tellsOrigin(rank.Name(i))
			tells[ev.Name[i]] = ok
		}
		if ok {
			around[ev.Thread[i]] = append(around[ev.Thread[i]], i)
		}
	}
	for thread, list := range around {
		nameIssues(rank, list, byThread[thread], names)
	}
	return names
}

// tellsOrigin says whether an annotation is the program's.
func tellsOrigin(name string) bool {
	for _, prefix := range []string{"ProfilerStep", "nccl:", "gloo:", "mpi:", "ucc:", "c10d::", "record_param_comms"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return name != ""
}

// nameIssues sweeps one thread's annotations and issues by time.
func nameIssues(rank *trace.Rank, annotations, operations []int, names []string) {
	ev := &rank.Events
	slices.SortStableFunc(annotations, func(a, b int) int {
		return cmp.Or(cmp.Compare(ev.TS[a], ev.TS[b]), cmp.Compare(ev.Dur[b], ev.Dur[a])) // the enclosing one first
	})
	slices.SortStableFunc(operations, func(a, b int) int {
		return cmp.Compare(rank.Operations[a].Issued, rank.Operations[b].Issued)
	})
	var open []int
	for _, i := range operations {
		at := rank.Operations[i].Issued
		for len(annotations) > 0 && ev.TS[annotations[0]] <= at {
			for len(open) > 0 && ev.End(open[len(open)-1]) <= ev.TS[annotations[0]] {
				open = open[:len(open)-1]
			}
			open, annotations = append(open, annotations[0]), annotations[1:]
		}
		for len(open) > 0 && ev.End(open[len(open)-1]) <= at {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			names[i] = rank.Name(open[len(open)-1])
		}
	}
}

// sizeClass names the range of sizes that n bytes are in; ranges are powers of 4.
func sizeClass(n int64) string {
	low := int64(1024)
	if n < low {
		return "<1KiB"
	}
	for low <= n/4 && low < 1<<50 { // beyond a PiB it is no size
		low *= 4
	}
	return ">=" + wholeSize(low) + " <" + wholeSize(4*low)
}

// wholeSize writes a size that is a whole number of some unit: 256KiB.
func wholeSize(n int64) string {
	unit := 0
	for ; n >= 1024 && unit < len(units)-1; unit++ {
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + units[unit]
}

var units = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
