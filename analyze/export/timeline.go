package export

import (
	"cmp"
	"slices"

	"mixdown/analyze/collective"
	"mixdown/analyze/overlap"
	"mixdown/analyze/track"
	"mixdown/ingest/trace"
)

// timeline is what one rank did when, as both time line formats show it.
type timeline struct {
	rank       *trace.Rank
	operations []operation
	tracks     []row
	exposed    []share
}

// row is a device stream, a thread, or the steps.
type row struct {
	name   string
	order  int64 // where it stands among its like
	slices []slice
}

// slice is a stretch of time on a track.
type slice struct {
	start, end int64 // ns
	name       string
	category   string
	operation  int      // index into timeline.operations, -1 when it is no communication
	flows      []uint64 // what it is joined to on other ranks
}

// The categories of slices.
const (
	categoryStep          = "step"
	categoryKernel        = "kernel"
	categoryMemory        = "memory"
	categoryCPU           = "cpu_op"
	categoryCommunication = "communication"
)

// categories by kind.
var categories = map[track.Kind]string{track.Compute: categoryKernel, track.Memory: categoryMemory, track.CPU: categoryCPU}

// flowIDs are those of flows in the formats, where 0 is none.
func flowIDs(flows []int) []uint64 {
	var ids []uint64
	for _, n := range flows {
		ids = append(ids, uint64(n+1))
	}
	return ids
}

// share is the part of a window that was exposed communication.
type share struct {
	ts      int64   // ns, start of the window
	percent float64 // 0 to 100
}

// timeline makes the time line of rank index r: its device work, or what its CPU
// did where it has no device, its communication and its steps.
func (x *exporter) timeline(r int, flows *track.Flows) *timeline {
	rank := x.Run.Ranks[r]
	activity := overlap.Measure(rank)
	t := &timeline{rank: rank, operations: x.operations(r, activity), exposed: exposedShares(activity)}
	ev := &rank.Events
	carries := make(map[int]int) // event -> index into operations
	for k := range t.operations {
		for _, e := range t.operations[k].Events {
			carries[e] = k
		}
	}
	b := trackBuilder{index: map[string]int{}}
	for _, s := range rank.Steps {
		b.add("steps", -1, slice{start: s.Start, end: s.End, name: s.Name, category: categoryStep, operation: -1})
	}
	for i := range ev.Len() {
		s := slice{start: ev.TS[i], end: ev.End(i), operation: -1}
		if k, ok := carries[i]; ok {
			s.category, s.operation = categoryCommunication, k
			if o := &t.operations[k]; o.Event == i {
				s.flows = flowIDs(flows.Of(collective.Member{Rank: r, Operation: o.number}))
			}
		} else if kind, drawn := track.KindOf(rank, ev.Category[i]); drawn {
			s.category = categories[kind]
		} else {
			continue
		}
		s.name = rank.Name(i)
		name, order := track.Of(rank, i)
		b.add(name, order, s)
	}
	for k := range t.operations { // those of inputs without events
		if o := &t.operations[k]; len(o.Events) == 0 {
			b.add("stream "+o.Stream, 0, slice{
				start: o.Start, end: o.End, name: string(o.kind), category: categoryCommunication, operation: k,
				flows: flowIDs(flows.Of(collective.Member{Rank: r, Operation: o.number})),
			})
		}
	}
	t.tracks = b.finish()
	return t
}

type trackBuilder struct {
	index  map[string]int
	tracks []row
}

func (b *trackBuilder) add(name string, order int64, s slice) {
	i, ok := b.index[name]
	if !ok {
		i = len(b.tracks)
		b.index[name] = i
		b.tracks = append(b.tracks, row{name: name, order: order})
	}
	b.tracks[i].slices = append(b.tracks[i].slices, s)
}

// finish sorts the tracks, and cuts those whose slices overlap without nesting
// into several of the same name: neither format has overlap on one track.
func (b *trackBuilder) finish() []row {
	slices.SortStableFunc(b.tracks, func(p, q row) int { return cmp.Or(cmp.Compare(p.order, q.order), cmp.Compare(p.name, q.name)) })
	var out []row
	for _, t := range b.tracks {
		slices.SortStableFunc(t.slices, func(p, q slice) int {
			return cmp.Or(cmp.Compare(p.start, q.start), cmp.Compare(q.end, p.end)) // the enclosing one first
		})
		for _, lane := range lanes(t.slices) {
			out = append(out, row{name: t.name, order: t.order, slices: lane})
		}
	}
	return out
}

// lanesTried bounds the work on a broken trace in which everything overlaps:
// beyond it, only the lanes made last are looked at.
const lanesTried = 64

// lanes deals sorted slices out so that those of a lane nest: each goes to the
// first lane where it lies within what is open, or after it.
func lanes(sorted []slice) [][]slice {
	var out [][]slice
	var open [][]int64 // the ends of what is open on each lane
	for _, s := range sorted {
		k := max(0, len(out)-lanesTried)
		for ; k < len(out); k++ {
			for n := len(open[k]); n > 0 && open[k][n-1] <= s.start; n-- {
				open[k] = open[k][:n-1]
			}
			if n := len(open[k]); n == 0 || s.end <= open[k][n-1] {
				break
			}
		}
		if k == len(out) {
			out, open = append(out, nil), append(open, nil)
		}
		out[k], open[k] = append(out[k], s), append(open[k], s.end)
	}
	return out
}

// shareWindows is how many windows the counter has over a rank's span.
const shareWindows = 500

// exposedShares measures exposed communication in windows of equal length.
func exposedShares(a overlap.Activity) []share {
	if a.End-a.Start <= 0 { // nothing, or a broken trace's span that no int64 holds
		return nil
	}
	exposed := a.Comm.Subtract(a.Compute)
	width := max((a.End-a.Start)/shareWindows, 1000)
	var list []share
	k := 0
	for from := a.Start; ; from += width {
		to := a.End
		if to-from > width {
			to = from + width
		}
		var ns int64
		for ; k < len(exposed) && exposed[k].Start < to; k++ {
			ns += max(min(exposed[k].End, to)-max(exposed[k].Start, from), 0)
			if exposed[k].End > to { // goes on in the next window
				break
			}
		}
		list = append(list, share{ts: from, percent: 100 * float64(ns) / float64(to-from)})
		if to == a.End {
			return append(list, share{ts: a.End})
		}
	}
}

// note is an argument of a slice: a number or a text.
type note struct {
	name   string
	number int64
	text   string
	isText bool
}

func numberNote(name string, n int64) note { return note{name: name, number: n} }

func textNote(name, text string) note { return note{name: name, text: text, isText: true} }

// notes are the arguments of a communication; what is not known is left out.
func (o *operation) notes() []note {
	list := []note{textNote("op", string(o.kind)), textNote("group", o.label)}
	for _, n := range []note{
		textNote("dtype", string(o.DType)), textNote("phase", o.phase.String()), textNote("step", o.step), textNote("module", o.Module), textNote("annotation", o.annotation),
	} {
		if n.text != "" && (n.name != "dtype" || o.SizeKnown) {
			list = append(list, n)
		}
	}
	if o.group.Size > 0 {
		list = append(list, numberNote("group_size", int64(o.group.Size)))
	}
	if o.sized() {
		list = append(list, numberNote("in_bytes", o.InBytes()), numberNote("out_bytes", o.OutBytes()))
	}
	if o.SeqKnown {
		list = append(list, numberNote("seq", o.Seq))
	}
	if len(o.Events) > 0 {
		list = append(list, numberNote("exposed_ns", o.exposed))
	}
	if o.timed {
		list = append(list, numberNote("wait_ns", o.wait), numberNote("transfer_ns", o.transfer))
	}
	if o.match >= 0 {
		list = append(list, numberNote("collective_id", int64(o.match)))
	}
	return list
}

// clockNotes say what was done to a rank's clock.
func (x *exporter) clockNotes(r int) []note {
	c := x.Clocks.Clocks[r]
	list := []note{
		textNote("clocks", x.Clocks.Reason), numberNote("offset_ns", c.Offset), numberNote("drift_per_1e12", c.Drift),
		numberNote("component", int64(c.Component)), textNote("source", x.Run.Ranks[r].Source), textNote("tool", x.Tool),
	}
	if c.Matches > 0 {
		list = append(list, numberNote("residual_ns", c.Residual))
	}
	return list
}
