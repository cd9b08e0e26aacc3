package kineto

import (
	"cmp"
	"slices"

	"mixdown/ingest/diagnostic"
)

// pairEdges gives events that are written as a begin and an end their lengths.
// On each thread an end closes the begin that was opened last.
func (rd *reading) pairEdges() {
	if len(rd.edges) == 0 {
		return
	}
	ev := &rd.rank.Events
	slices.SortStableFunc(rd.edges, func(a, b edge) int { return cmp.Compare(a.ts, b.ts) })
	open := map[uint32][]int{} // thread -> rows, the innermost last
	var threads []uint32       // of open, in the order they were met
	for _, e := range rd.edges {
		stack, known := open[e.thread]
		if !known {
			threads = append(threads, e.thread)
			open[e.thread] = nil
		}
		switch {
		case e.row >= 0:
			open[e.thread] = append(stack, e.row)
		case len(stack) == 0:
			rd.diags.Addf("unmatched-end", diagnostic.NoRank, e.offset, "an event ends that did not begin")
		default:
			row := stack[len(stack)-1]
			open[e.thread] = stack[:len(stack)-1]
			ev.Dur[row] = e.ts - ev.TS[row]
		}
	}
	for _, t := range threads {
		for _, row := range open[t] {
			rd.diags.Addf("unmatched-begin", diagnostic.NoRank, ev.Offset[row], "%q begins and does not end: taken as 0 long", rd.rank.Name(row))
		}
	}
	rd.edges = nil
}
