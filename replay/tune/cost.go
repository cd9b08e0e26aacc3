package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"mixdown/ingest/comm"
)

// Query asks what an operation costs.
type Query struct {
	Contender
	Op      comm.Op
	DType   comm.DType // "" when it does not matter
	Bytes   int64      // the larger of what one rank contributes and receives
	Ranks   int
	Nodes   int    // 0: whatever was measured
	Streams int    // groups that run the same at once; 0 means 1
	Device  string // where the buffers are; "": whatever was measured
	// InStep prefers what was measured within steps, at the gap nearest to Gap, to
	// what was measured in a row.
	InStep bool
	Gap    int64 // ns
}

// How an estimate was made.
type How string

// The ways, from the best.
const (
	Measured     How = "measured"
	Interpolated How = "interpolated" // between two measured sizes
	Extrapolated How = "extrapolated" // beyond the measured sizes, by the fitted line
	Modelled     How = "modelled"     // for a group size that was not measured
)

// Estimate is the answer to a query.
type Estimate struct {
	Time     int64 // ns
	How      How
	Fit      *Fit    // where the time is from a fitted line
	Warnings []error // do not stop a decision, but must be shown with it
	// Smallest is the smallest size of the curve that the time was read off, in bytes; 0
	// of a model.
	Smallest int64
	// Spread is half the 95 % interval of what was measured over its time; 0 when
	// not known.
	Spread float64
}

// Words says how the estimate was made.
func (e Estimate) Words() string {
	how := string(e.How)
	for _, w := range e.Warnings {
		how += "; " + w.Error()
	}
	return how
}

// Costs answers what operations cost; Table.Costs makes it. It does not change and
// may be used by several goroutines.
type Costs struct {
	series map[seriesKey][]sample
	// groups lists for an operation on a contender the group sizes measured.
	groups map[groupKey][]seriesKey
}

// seriesKey is what is the same for all sizes of a curve.
type seriesKey struct {
	groupKey
	class, device string
	ranks, nodes  int
	inStep        bool
}

type groupKey struct {
	Contender
	op      comm.Op
	streams int
}

// sample is a point of a curve.
type sample struct {
	bytes int64
	gap   int64 // of what was measured in a step
	time  int64
	row   *Row // one of those it is from
	rows  int  // measurements of this size that the time is the median of
}

// Costs makes the index that look-ups use.
func (t *Table) Costs() *Costs {
	c := &Costs{series: map[seriesKey][]sample{}, groups: map[groupKey][]seriesKey{}}
	for i := range t.Rows {
		r := &t.Rows[i]
		g := groupKey{r.Contender, r.Op, r.Streams}
		k := seriesKey{g, Class(r.Op, r.DType), r.Device, r.Ranks, r.Nodes, r.InStep}
		if c.series[k] == nil {
			c.groups[g] = append(c.groups[g], k)
		}
		c.series[k] = append(c.series[k], sample{r.Size(), r.Gap, r.Time, r, 1})
	}
	for k, list := range c.series {
		c.series[k] = condense(list)
	}
	return c
}

// spread is half the confidence interval over the median, 0 when not known.
func (s sample) spread() float64 {
	if s.row.CIHigh == 0 {
		return 0
	}
	return float64(s.row.CIHigh-s.row.CILow) / 2 / float64(s.row.Time)
}

// condense sorts a curve by size and gap and leaves one point for each: the median
// of what was measured.
func condense(list []sample) []sample {
	slices.SortStableFunc(list, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.gap, b.gap), cmp.Compare(a.time, b.time))
	})
	var out []sample
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].bytes == list[i].bytes && list[j].gap == list[i].gap {
			j++
		}
		s := list[(i+j-1)/2]
		s.rows = j - i
		out = append(out, s)
		i = j
	}
	return out
}

// likeness says which operation's times stand for those of one that was not
// measured. A receive is the other side of a send.
var likeness = map[comm.Op]comm.Op{
	comm.Recv: comm.Send, comm.Batch: comm.Send,
	comm.AllToAllV: comm.AllToAll, comm.AllGatherV: comm.AllGather, comm.ReduceScatterV: comm.ReduceScatter,
}

// Estimate answers a query, false where nothing measured allows an answer.
func (c *Costs) Estimate(q Query) (Estimate, bool) {
	g := groupKey{q.Contender, q.Op, max(q.Streams, 1)}
	keys := c.on(g, q)
	var e Estimate
	if like, ok := likeness[q.Op]; ok && len(keys) == 0 {
		if q.Op != comm.Recv {
			e.warn("%s was not measured: the time of %s", q.Op, like)
		}
		if like == comm.Send {
			q.Ranks, q.Nodes = 2, min(q.Nodes, 2)
		}
		q.Op, g.op = like, like
		keys = c.on(g, q)
	}
	if len(keys) == 0 && g.streams > 1 {
		g.streams = 1
		if keys = c.on(g, q); len(keys) > 0 {
			e.warn("%d groups at once were not measured: the time of one alone", q.Streams)
		}
	}
	if len(keys) == 0 {
		return e, false
	}
	keys = c.ofClass(keys, q, &e)
	best := c.closest(keys, q)
	if best == nil {
		return c.model(keys, q, e)
	}
	e.fill(near(c.series[*best], q.Gap), q)
	return e, true
}

// on lists the curves of an operation on a contender, with buffers on a device,
// and measured as is asked where there are such.
func (c *Costs) on(g groupKey, q Query) []seriesKey {
	list := slices.DeleteFunc(slices.Clone(c.groups[g]), func(k seriesKey) bool { return q.Device != "" && k.device != q.Device })
	// Of other numbers of ranks than were measured so, what was measured otherwise
	// says more.
	as := func(inStep bool) []seriesKey {
		return slices.DeleteFunc(slices.Clone(list), func(k seriesKey) bool { return k.inStep != inStep })
	}
	alike := func(k seriesKey) bool { return k.ranks == q.Ranks || g.op.IsP2P() }
	if asked := as(q.InStep); slices.ContainsFunc(asked, alike) {
		return asked
	}
	if other := as(!q.InStep); slices.ContainsFunc(other, alike) {
		return other
	}
	// A model is of what was measured in a row, at sizes that were chosen for it.
	if row := as(false); len(row) > 0 {
		return row
	}
	return list
}

// near is a curve with one point for each size: that of the gap nearest to the one
// asked for, as logarithms go.
func near(curve []sample, gap int64) []sample {
	far := func(s sample) float64 { return math.Abs(math.Log(float64(s.gap+1)) - math.Log(float64(gap+1))) }
	var out []sample
	for _, s := range curve {
		switch n := len(out); {
		case n == 0 || out[n-1].bytes != s.bytes:
			out = append(out, s)
		case far(s) < far(out[n-1]):
			out[n-1] = s
		}
	}
	return out
}

// overall is a curve with one point for each size: the median over gaps.
func overall(curve []sample) []sample {
	list := slices.Clone(curve)
	for i := range list {
		list[i].gap = 0
	}
	return condense(list)
}

// ofClass keeps the curves of the element type that is asked for, or of one that
// was measured.
func (c *Costs) ofClass(keys []seriesKey, q Query, e *Estimate) []seriesKey {
	of := func(class string) []seriesKey {
		return slices.DeleteFunc(slices.Clone(keys), func(k seriesKey) bool { return k.class != class })
	}
	class := Class(q.Op, q.DType)
	if list := of(class); len(list) > 0 {
		return list
	}
	for _, other := range []string{"float", "half", "integer", "unknown"} {
		if list := of(other); len(list) > 0 {
			if q.DType != "" {
				e.warn("%s was not measured: the time of elements of kind %s", q.DType, other)
			}
			return list
		}
	}
	return keys
}

// closest is the curve of the group size and nodes that are asked for, nil when
// there is none. Where nodes don't matter it is the one with the most sizes.
func (c *Costs) closest(keys []seriesKey, q Query) *seriesKey {
	var best *seriesKey
	for i := range keys {
		k := &keys[i]
		if k.ranks != q.Ranks || q.Nodes != 0 && k.nodes != 0 && k.nodes != q.Nodes {
			continue
		}
		if best == nil || len(c.series[*k]) > len(c.series[*best]) {
			best = k
		}
	}
	return best
}

func (e *Estimate) warn(format string, args ...any) {
	e.Warnings = append(e.Warnings, fmt.Errorf(format, args...))
}

// wide is how far two measured sizes may be apart before a time between them is
// doubtful.
const wide = 64

// fill reads the time off a curve.
func (e *Estimate) fill(curve []sample, q Query) {
	first, last := curve[0], curve[len(curve)-1]
	e.Smallest = first.bytes
	i, found := slices.BinarySearchFunc(curve, q.Bytes, func(s sample, bytes int64) int { return cmp.Compare(s.bytes, bytes) })
	switch {
	case found:
		e.Time, e.How, e.Spread = curve[i].time, Measured, curve[i].spread()
		if curve[i].row.SizeError > 0 {
			e.warn("the size is known to %d bytes only", curve[i].row.SizeError)
		}
	case q.Op == comm.Barrier:
		e.Time, e.How, e.Spread = first.time, Measured, first.spread() // it has no size
	case i > 0 && i < len(curve):
		lo, hi := curve[i-1], curve[i]
		e.Time, e.How, e.Spread = between(lo, hi, q.Bytes), Interpolated, max(lo.spread(), hi.spread())
		if hi.bytes > wide*max(lo.bytes, 1) {
			e.warn("nothing was measured between %d and %d bytes", lo.bytes, hi.bytes)
		}
	default:
		e.How, e.Spread = Extrapolated, last.spread()
		e.warn("%d bytes are outside the measured sizes, %d to %d", q.Bytes, first.bytes, last.bytes)
		e.beyond(curve, q)
	}
}

// between is the time on the straight line through the logarithms of two points.
func between(lo, hi sample, bytes int64) int64 {
	x0, x1, x := logSize(lo.bytes), logSize(hi.bytes), logSize(bytes)
	y0, y1 := math.Log(float64(lo.time)), math.Log(float64(hi.time))
	return int64(math.Round(math.Exp(y0 + (y1-y0)*(x-x0)/(x1-x0))))
}

func logSize(bytes int64) float64 { return math.Log(float64(max(bytes, 1))) }

// beyond is the time outside the measured sizes: below them the least time
// measured, above them the fitted line, moved so that it meets the last point.
func (e *Estimate) beyond(curve []sample, q Query) {
	first, last := curve[0], curve[len(curve)-1]
	if q.Bytes < first.bytes {
		e.Time = first.time
		return
	}
	f, ok := line(curve)
	if !ok || f.Beta == 0 {
		// One size alone: all of its time is taken to grow with the size.
		f = Fit{Beta: float64(last.time) / float64(max(last.bytes, 1)), N: len(curve)}
	}
	e.Fit = &f
	e.Time = last.time + int64(math.Round(f.Beta*float64(q.Bytes-last.bytes)))
}

// line fits alpha + beta x bytes to a curve.
func line(curve []sample) (Fit, bool) {
	var points []point
	for _, s := range curve {
		points = append(points, point{1, float64(s.bytes), float64(s.time)})
	}
	return fit(points)
}

// model answers for a group size that was not measured, from those that were.
func (c *Costs) model(keys []seriesKey, q Query, e Estimate) (Estimate, bool) {
	var points []point
	sizes := []int{}
	for _, k := range keys {
		if q.Nodes != 0 && k.nodes != 0 && k.nodes != q.Nodes {
			continue
		}
		sizes = append(sizes, k.ranks)
		for _, s := range c.series[k] {
			points = append(points, point{steps(k.ranks), float64(s.bytes) * Wire(q.Op, k.ranks), float64(s.time)})
		}
	}
	f, ok := fit(points)
	if !ok {
		return e, false
	}
	e.Time, e.How, e.Fit = int64(math.Round(f.Alpha*steps(q.Ranks)+f.Beta*float64(q.Bytes)*Wire(q.Op, q.Ranks))), Modelled, &f
	slices.Sort(sizes)
	e.warn("groups of %d were not measured: modelled from groups of %v, which the model meets within %.0f %%", q.Ranks, slices.Compact(sizes), 100*f.Residual)
	return e, e.Time > 0
}
