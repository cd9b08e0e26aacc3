package html

import (
	"cmp"
	"slices"

	"mixdown/analyze/collective"
	"mixdown/analyze/overlap"
	"mixdown/analyze/report"
	"mixdown/analyze/track"
	"mixdown/ingest/trace"
)

// TimelineOptions bound the time line. The zero value is for a page of a few MB.
type TimelineOptions struct {
	// Slices is how many are kept of all ranks together; 0 means DefaultSlices.
	Slices int
}

// DefaultSlices is how many slices a page has, one of communication counted as
// four: some 20 bytes each, so that the time line stays below 6 MB.
const DefaultSlices = 250_000

// Timeline is what each rank did when, as the script draws it. Times are ns since
// the earliest start; lists are columns, one value for each slice.
type Timeline struct {
	End   int64          `json:"end"`
	Names []TimelineName `json:"names"`
	Ranks []TimelineRank `json:"ranks"`

	Slices int   `json:"slices"` // that are drawn
	Events int   `json:"events"` // that they stand for
	Merged int64 `json:"merged"` // ns: neighbours shorter than this were drawn together; 0: none
	Left   int   `json:"left"`   // nested too deep to be drawn
}

// TimelineName is a name and what kind of thing has it.
type TimelineName struct {
	Name string `json:"t"`
	Kind Kind   `json:"k"`
}

// Kind is what a slice is; the script has a colour for each.
type Kind = track.Kind

// TimelineRank is one rank's lanes.
type TimelineRank struct {
	Rank  int    `json:"rank"`
	Lanes []Lane `json:"lanes"`
}

// Lane is a row of slices that don't overlap.
type Lane struct {
	Name  string  `json:"name"` // "" for what is nested in the lane above
	Start []int64 `json:"s"`    // since the slice before
	Dur   []int64 `json:"d"`
	Of    []int   `json:"n"` // index into Timeline.Names

	// Counts are pairs: a slice, and how many events it stands for.
	Counts []int `json:"q,omitempty"`
	// Comm is what is known of the slices that are communication.
	Comm *CommColumns `json:"c,omitempty"`
}

// CommColumns describe communication; what is not known is -1 here and null
// nowhere, for numbers pack better.
type CommColumns struct {
	Slice    []int   `json:"i"`
	Match    []int   `json:"m"` // the same number: matched with each other
	Group    []int   `json:"g"` // index into Timeline.Names
	Op       []int   `json:"o"`
	Bytes    []int64 `json:"b"` // the larger of in and out
	Wait     []int64 `json:"w"`
	Exposed  []int64 `json:"x"`
	Transfer []int64 `json:"t"`
}

// slice is a stretch of time before it is packed.
type slice struct {
	start, end int64
	name       int
	kind       Kind
	comm       int // index into laneMaker.comm, -1
	count      int // events
}

// depths is how many nested rows a thread gets, by the number of ranks: a page
// with many of them shows less of each.
func depths(ranks int) int {
	switch {
	case ranks <= 8:
		return 4
	case ranks <= 16:
		return 2
	}
	return 1
}

func newTimeline(in Source, opts TimelineOptions) *Timeline {
	if opts.Slices <= 0 {
		opts.Slices = DefaultSlices
	}
	t := &Timeline{Ranks: []TimelineRank{}}
	names := nameTable{index: map[TimelineName]int{}}
	start, end, ok := bounds(in.Run)
	if !ok {
		return nil
	}
	t.End = end - start
	flows := track.NewFlows(in.Match)
	impossible := map[int]bool{}
	for _, i := range in.Clocks.Impossible {
		impossible[i] = true
	}
	for r := range in.Run.Ranks {
		m := &laneMaker{in: in, r: r, names: &names, flows: flows, impossible: impossible, index: map[string]int{}}
		m.collect()
		rank, merged := m.pack(start, max(opts.Slices/len(in.Run.Ranks), 64), depths(len(in.Run.Ranks)))
		t.Merged = max(t.Merged, merged)
		t.Left += m.left
		for i := range rank.Lanes {
			t.Slices += len(rank.Lanes[i].Start)
		}
		t.Events += m.events
		t.Ranks = append(t.Ranks, rank)
	}
	t.Names = names.list
	return t
}

// bounds is the time that all drawn events span; false when there are none, or
// when a broken trace spans more than an int64.
func bounds(run *trace.Run) (start, end int64, ok bool) {
	add := func(s, e int64) {
		if !ok {
			start, end, ok = s, e, true
		}
		start, end = min(start, s), max(end, e)
	}
	for _, rank := range run.Ranks {
		ev := &rank.Events
		for i := range ev.Len() {
			if _, drawn := track.KindOf(rank, ev.Category[i]); drawn {
				add(ev.TS[i], ev.End(i))
			}
		}
		for i := range rank.Operations {
			add(rank.Operations[i].Start, rank.Operations[i].End)
		}
		for _, s := range rank.Steps {
			add(s.Start, s.End)
		}
	}
	return start, end, ok && end-start > 0
}

// nameTable numbers names.
type nameTable struct {
	index map[TimelineName]int
	list  []TimelineName
}

// maxName is how much of a name the time line shows.
const maxName = 120

func (t *nameTable) of(name string, kind Kind) int {
	key := TimelineName{Name: cut(report.Printable(name), maxName), Kind: kind}
	i, ok := t.index[key]
	if !ok {
		i = len(t.list)
		t.index[key] = i
		t.list = append(t.list, key)
	}
	return i
}

// cut shortens text to n runes.
func cut(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}

// commOf is what is known of one communication.
type commOf struct {
	match, group, op               int
	bytes, wait, exposed, transfer int64
}

// laneMaker makes the lanes of one rank.
type laneMaker struct {
	in         Source
	r          int
	names      *nameTable
	flows      *track.Flows
	impossible map[int]bool

	index  map[string]int
	tracks []row
	comm   []commOf
	events int
	left   int
}

// row is a stream or thread.
type row struct {
	name   string
	order  int64
	slices []slice
}

func (m *laneMaker) add(track_ string, order int64, s slice) {
	i, ok := m.index[track_]
	if !ok {
		i = len(m.tracks)
		m.index[track_] = i
		m.tracks = append(m.tracks, row{name: track_, order: order})
	}
	s.count = 1
	m.events++
	m.tracks[i].slices = append(m.tracks[i].slices, s)
}

// collect takes the rank's steps, work and communication.
func (m *laneMaker) collect() {
	rank := m.in.Run.Ranks[m.r]
	for _, s := range rank.Steps {
		m.add("steps", -1, slice{start: s.Start, end: s.End, name: m.names.of(s.Name, track.Step), kind: track.Step, comm: -1})
	}
	ev := &rank.Events
	carries := map[int]int{} // event -> operation
	compute := overlap.Measure(rank).Compute
	for i := range rank.Operations {
		op := &rank.Operations[i]
		for _, e := range op.Events {
			carries[e] = i
		}
		m.comm = append(m.comm, m.describe(i, compute))
		if len(op.Events) == 0 {
			m.add(cut(report.Printable("stream "+op.Stream), 40), 0, slice{start: op.Start, end: op.End, name: m.names.of(string(op.Op), track.Communication), kind: track.Communication, comm: i})
		}
	}
	for i := range ev.Len() {
		s := slice{start: ev.TS[i], end: ev.End(i), comm: -1}
		if k, ok := carries[i]; ok {
			s.kind, s.comm = track.Communication, k
		} else if s.kind, ok = track.KindOf(rank, ev.Category[i]); !ok {
			continue
		}
		s.name = m.names.of(rank.Name(i), s.kind)
		name, order := track.Of(rank, i)
		m.add(cut(report.Printable(name), 40), order, s)
	}
	slices.SortStableFunc(m.tracks, func(a, b row) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.name, b.name)) })
}

// describe says of a communication what its tooltip shows; the rules for waiting
// are those of the report.
func (m *laneMaker) describe(i int, compute overlap.Set) commOf {
	rank := m.in.Run.Ranks[m.r]
	op := &rank.Operations[i]
	at := collective.Member{Rank: m.r, Operation: i}
	kind := op.Op
	c, matched := m.in.Match.Index(at)
	if matched {
		kind = m.in.Match.Collectives[c].Op
	}
	group := &m.in.Match.Groups[m.in.Match.GroupOf[m.r][op.Group]]
	d := commOf{
		match: -1, bytes: -1, wait: -1, transfer: -1, exposed: -1,
		group: m.names.of(group.Label(), track.Communication), op: m.names.of(string(kind), track.Communication),
	}
	if numbers := m.flows.Of(at); len(numbers) > 0 {
		d.match = numbers[len(numbers)-1]
	}
	if op.SizeKnown && op.DType.Size() > 0 {
		d.bytes = max(op.InBytes(), op.OutBytes())
	}
	if last, known := m.in.Match.LastStart(m.in.Run, at); known && m.in.Clocks.Connected && !(matched && m.impossible[c]) {
		d.wait = min(max(last-op.Start, 0), op.Dur())
		d.transfer = op.Dur() - d.wait
	}
	if len(op.Events) > 0 {
		var own []overlap.Interval
		for _, e := range op.Events {
			own = append(own, overlap.Interval{Start: rank.Events.TS[e], End: rank.Events.End(e)})
		}
		d.exposed = overlap.Union(own).Subtract(compute).Length()
	}
	return d
}
