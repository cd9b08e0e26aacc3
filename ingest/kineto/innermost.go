package kineto

import (
	"cmp"
	"math"
	"slices"

	"mixdown/ingest/trace"
)

// marker is an interval on a thread that means something for what runs in it.
type marker struct {
	start, end int64
	value      int // not 0
}

// innermost answers which marker is the innermost around a moment of a thread.
type innermost struct {
	byThread map[trace.ThreadID][]change
}

// change is where the answer changes, in time order; value 0: no marker.
type change struct {
	ts    int64
	value int
}

// newInnermost lays the markers of each thread out once, so that every question
// is one search.
func newInnermost(markers map[trace.ThreadID][]marker) *innermost {
	in := &innermost{byThread: map[trace.ThreadID][]change{}}
	for thread, list := range markers {
		slices.SortStableFunc(list, func(a, b marker) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
		var changes []change
		var open []marker // around the current moment, the innermost last
		leave := func(until int64) {
			for len(open) > 0 && open[len(open)-1].end <= until {
				end := open[len(open)-1].end
				open = open[:len(open)-1]
				value := 0
				if len(open) > 0 {
					value = open[len(open)-1].value
				}
				changes = append(changes, change{end, value})
			}
		}
		for _, m := range list {
			leave(m.start)
			open = append(open, m)
			changes = append(changes, change{m.start, m.value})
		}
		leave(math.MaxInt64)
		in.byThread[thread] = changes
	}
	return in
}

// at is the value of the innermost marker, 0 when there is none.
func (in *innermost) at(thread trace.ThreadID, ts int64) int {
	changes := in.byThread[thread]
	i, _ := slices.BinarySearchFunc(changes, ts+1, func(c change, t int64) int { return cmp.Compare(c.ts, t) })
	if i == 0 {
		return 0
	}
	return changes[i-1].value
}
