package slowdown

import (
	"cmp"
	"slices"
	"sort"

	"mixdown/analyze/overlap"
	"mixdown/ingest/trace"
)

// kind is what kernels that do the same have in common.
type kind struct {
	device int32
	name   trace.NameID
	blocks int32 // of the grid; where that is not known
	nth    int   // which of its name it is in its step, from 1
}

// kernel is a kernel that computes.
type kernel struct {
	start, end int64
	stream     int64
	kind       kind
}

// classesOf sorts the kernels of a rank, whose events are in memory, into those that
// began beside communication and those that began beside none.
func classesOf(rank *trace.Rank) []class {
	ev := &rank.Events
	kernels := map[int32][]kernel{} // by device
	talk := map[int32][]overlap.Interval{}
	communicates := map[int]bool{}
	for i := range rank.Operations {
		for _, e := range rank.Operations[i].Events {
			if communicates[e] = true; ev.Category[e].OnDevice() {
				talk[ev.Device[e]] = append(talk[ev.Device[e]], overlap.Interval{Start: ev.TS[e], End: ev.End(e)})
			}
		}
	}
	if len(talk) == 0 {
		return nil
	}
	for i := range ev.Len() {
		if ev.Category[i] == trace.Kernel && !communicates[i] && ev.Dur[i] > 0 && ev.End(i) > ev.TS[i] {
			d := ev.Device[i]
			kernels[d] = append(kernels[d], kernel{ev.TS[i], ev.End(i), ev.Stream[i], kind{d, ev.Name[i], ev.Blocks[i], 0}})
		}
	}
	found := map[kind]*class{}
	var order []kind // in which they were found: maps have none
	for _, d := range devicesOf(kernels) {
		comm := newCover(overlap.Union(talk[d]))
		list := kernels[d]
		slices.SortFunc(list, func(a, b kernel) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.stream, b.stream))
		})
		number(rank, list)
		crowded := newCover(together(list))
		for _, k := range list {
			if crowded.within(k.start, k.end) > 0 {
				continue
			}
			c := found[k.kind]
			if c == nil {
				c = &class{}
				found[k.kind] = c
				order = append(order, k.kind)
			}
			o := observation{k.end - k.start, comm.within(k.start, k.end)}
			if comm.within(k.start, k.start+1) == 0 {
				c.alone = append(c.alone, o)
				continue
			}
			c.beside = append(c.beside, o)
			c.weight += o.beside
		}
	}
	var classes []class
	for _, k := range order {
		if c := found[k]; len(c.beside) >= minEach && len(c.alone) >= minEach && even(c.alone) {
			c.beside, c.alone = thinned(c.beside, maxEach), thinned(c.alone, maxEach)
			classes = append(classes, *c)
		}
	}
	return classes
}

func devicesOf(kernels map[int32][]kernel) []int32 {
	var list []int32
	for d := range kernels {
		list = append(list, d)
	}
	slices.Sort(list)
	return list
}

// number counts the kernels of which no grid is known, by their start: those of a
// name in a step.
func number(rank *trace.Rank, list []kernel) {
	type counted struct {
		name trace.NameID
		step int
	}
	seen := map[counted]int{}
	for i := range list {
		if k := &list[i]; k.kind.blocks == 0 {
			at := counted{k.kind.name, rank.StepsBegun(k.start)}
			seen[at]++
			k.kind.nth = seen[at]
		}
	}
}

// together is when two streams or more compute. The kernels are sorted by start.
func together(list []kernel) overlap.Set {
	busy := map[int64]overlap.Set{}
	for _, k := range list {
		s := busy[k.stream]
		if n := len(s); n > 0 && k.start <= s[n-1].End {
			s[n-1].End = max(s[n-1].End, k.end)
		} else {
			busy[k.stream] = append(s, overlap.Interval{Start: k.start, End: k.end})
		}
	}
	var all, crowded []overlap.Interval
	for _, s := range busy {
		all = append(all, s...)
	}
	slices.SortFunc(all, func(a, b overlap.Interval) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	var latest int64
	for i, iv := range all {
		if i > 0 && iv.Start < latest {
			crowded = append(crowded, overlap.Interval{Start: iv.Start, End: min(iv.End, latest)})
		}
		if i == 0 || iv.End > latest {
			latest = iv.End
		}
	}
	return overlap.Union(crowded)
}

// cover is a set of moments of which any part's length is found at once.
type cover struct {
	set    overlap.Set
	before []int64 // by interval: the length of those before it
}

func newCover(s overlap.Set) cover {
	c := cover{s, make([]int64, len(s)+1)}
	for i, iv := range s {
		c.before[i+1] = c.before[i] + iv.End - iv.Start
	}
	return c
}

// until is the length of what lies before a moment.
func (c cover) until(t int64) int64 {
	i := sort.Search(len(c.set), func(i int) bool { return c.set[i].End > t })
	ns := c.before[i]
	if i < len(c.set) && c.set[i].Start < t {
		ns += t - c.set[i].Start
	}
	return ns
}

// within is how much of the set lies from start to end, ns.
func (c cover) within(start, end int64) int64 { return c.until(end) - c.until(start) }

// even says whether kernels take about as long as each other.
func even(list []observation) bool {
	durs := make([]int64, len(list))
	for i, o := range list {
		durs[i] = o.dur
	}
	slices.Sort(durs)
	n := len(durs)
	return float64(durs[n-1-n/4]-durs[n/4]) <= maxSpread*float64(durs[n/2])
}

// thinned leaves so many at most, spread over the list.
func thinned(list []observation, most int) []observation {
	if len(list) <= most {
		return list
	}
	out := make([]observation, most)
	for i := range out {
		out[i] = list[i*len(list)/most]
	}
	return out
}
