package kineto

import (
	"cmp"
	"slices"

	"mixdown/ingest/trace"
)

// nest finds the communication records that enclose a moment on a thread.
type nest struct {
	// byThread holds indices of records by start, for each thread and kind; most
	// threads have none.
	byThread [][numRecordKind][]int
	records  []record
}

// newNest copies times and threads from the rank's events into the records and
// sorts them.
func newNest(rank *trace.Rank, records []record) *nest {
	n := &nest{byThread: make([][numRecordKind][]int, len(rank.Threads)), records: records}
	for i := range records {
		rec := &records[i]
		rec.thread = int(rank.Events.Thread[rec.event])
		rec.start, rec.end = rank.Events.TS[rec.event], rank.Events.End(rec.event)
		if rec.kind != kernelRecord {
			list := &n.byThread[rec.thread][rec.kind]
			*list = append(*list, i)
		}
	}
	for _, lists := range n.byThread {
		for _, list := range lists {
			slices.SortStableFunc(list, func(a, b int) int {
				return cmp.Or(
					cmp.Compare(records[a].start, records[b].start),
					cmp.Compare(records[b].end, records[a].end), // the enclosing one first
				)
			})
		}
	}
	return n
}

// maxNesting is how many records of one kind may lie inside each other on one
// thread: nccl:coalesced around nccl:send is two.
const maxNesting = 4

// enclosing returns the innermost record of the kind that contains ts on the
// thread, or -1.
func (n *nest) enclosing(thread int, kind recordKind, ts int64) int {
	list := n.byThread[thread][kind]
	after, _ := slices.BinarySearchFunc(list, ts+1, func(i int, t int64) int { return cmp.Compare(n.records[i].start, t) })
	for k := after - 1; k >= 0 && k >= after-maxNesting; k-- {
		if n.records[list[k]].end >= ts {
			return list[k]
		}
	}
	return -1
}

// inside returns the first record of the kind that starts and ends within
// outer on its thread, or -1.
func (n *nest) inside(outer *record, kind recordKind) int {
	list := n.byThread[outer.thread][kind]
	at, _ := slices.BinarySearchFunc(list, outer.start, func(i int, t int64) int { return cmp.Compare(n.records[i].start, t) })
	if at < len(list) && n.records[list[at]].end <= outer.end && n.records[list[at]].start <= outer.end {
		return list[at]
	}
	return -1
}

// call is one communication call of the program: the records around the same
// launch. Each is an index into records, -1 when absent.
type call struct {
	param, c10d, title int
}

// outer is the index of the outermost record of a call.
func (c call) outer() int {
	switch {
	case c.c10d >= 0:
		return c.c10d
	case c.param >= 0:
		return c.param
	}
	return c.title
}

// calls lists the communication calls of all threads, outermost record first,
// by start. A record that another one of the call encloses is part of it.
func (n *nest) calls() []call {
	var calls []call
	taken := map[int]bool{}
	for _, kind := range []recordKind{paramRecord, titleRecord, c10dRecord} {
		for _, lists := range n.byThread {
			for _, i := range lists[kind] {
				if taken[i] {
					continue
				}
				calls = append(calls, n.callOf(i, taken))
			}
		}
	}
	slices.SortFunc(calls, func(a, b call) int {
		if c := cmp.Compare(n.records[a.outer()].start, n.records[b.outer()].start); c != 0 {
			return c
		}
		return a.outer() - b.outer()
	})
	return calls
}

func (n *nest) callOf(i int, taken map[int]bool) call {
	c := call{-1, -1, -1}
	rec := &n.records[i]
	switch rec.kind {
	case paramRecord:
		c.param = i
		c.title = n.inside(rec, titleRecord)
		c.c10d = n.enclosing(rec.thread, c10dRecord, rec.start)
	case titleRecord:
		c.title = i
		c.c10d = n.enclosing(rec.thread, c10dRecord, rec.start)
	case c10dRecord:
		c.c10d = i
	}
	for _, i := range []int{c.param, c.title, c.c10d} {
		if i >= 0 {
			taken[i] = true
		}
	}
	return c
}
