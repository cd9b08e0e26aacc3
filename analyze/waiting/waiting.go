// Package waiting finds when the program of a rank without a device stood still
// until communication had finished.
//
// PyTorch records the call that issues a collective and the collective itself,
// on a worker thread, but not the wait between them. It shows as a hole: the
// program's thread starts and ends nothing, outside of any innermost operator,
// up to the moment the collective ends. Such a hole is a wait when it follows
// the issuing call directly, or when it lasts at least MinAsync; shorter ones
// are the interpreter at work between two operators.
package waiting

import (
	"cmp"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// early is by how much, in ns, a program may be seen to go on before the operation
// that it waited for is seen to end: the thread that ran the operation wakes the
// program first and notes the end then. It had stood still for at least minEarly.
const (
	early    = 500_000
	minEarly = 1_000_000
	// minLonger is how many times as long as the hole at the end it must have been.
	minLonger = 10
)

// MinAsync is the shortest hole, in ns, that counts as a wait for an operation
// that was issued earlier than directly before it.
const MinAsync = 50_000

// Wait is a time in which the program of a rank waited for an operation.
type Wait struct {
	Start, End int64 // ns
	Operation  int   // index into the rank's operations
}

// boundary is the start or end of an event on the program's thread.
type boundary struct {
	ts int64
	// leafStart: an operator without operators inside starts here, so that what
	// follows is work, not a hole.
	leafStart bool
	// wait: an operator that waits for communication starts here.
	wait bool
}

// waitTensor is the operator with which functional collectives are waited for.
const waitTensor = "_c10d_functional::wait_tensor"

// Find returns the waits by end. Ranks with a device have none: their program
// waits on the device, not in holes.
func Find(rank *trace.Rank) []Wait {
	if !rank.CPUOnly || len(rank.Operations) == 0 {
		return nil
	}
	lines := boundaries(rank)
	// What directly follows an issuing call is the wait for that call. Another
	// operation that ends in the same hole does so by chance.
	type holeOf struct{ thread, hole int }
	direct := map[holeOf]bool{}
	var waits []Wait
	for _, wantDirect := range []bool{true, false} {
		for i := range rank.Operations {
			op := &rank.Operations[i]
			if op.Thread < 0 {
				continue
			}
			h, ok := holeBefore(lines[trace.ThreadID(op.Thread)], &rank.Events, op)
			if !ok || h.direct != wantDirect || !h.direct && direct[holeOf{op.Thread, h.index}] {
				continue
			}
			if h.direct {
				direct[holeOf{op.Thread, h.index}] = true
			}
			waits = append(waits, Wait{Start: h.start, End: h.end, Operation: i})
		}
	}
	slices.SortStableFunc(waits, func(a, b Wait) int { return cmp.Compare(a.End, b.End) })
	return waits
}

// hole is a time in which a thread started and ended nothing.
type hole struct {
	index  int   // of the boundary before it
	start  int64 // ns, no earlier than the operation that it waits for was issued
	end    int64 // ns
	direct bool  // it follows the call that issued the operation
}

// holeBefore looks for the hole that the end of op closes on a thread's line.
func holeBefore(line []boundary, ev *trace.Events, op *comm.Operation) (hole, bool) {
	at, _ := slices.BinarySearchFunc(line, op.End, func(b boundary, t int64) int { return cmp.Compare(b.ts, t) })
	k := at - 1 // the last boundary before the end
	if k < 0 {
		return hole{}, false
	}
	h := hole{index: k, start: max(line[k].ts, op.Issued), end: op.End}
	own := int(ev.Thread[op.Event]) == op.Thread
	// An annotation on the program's own thread ends when its wait returned.
	h.direct = own || line[k].wait || line[k].ts <= op.Returned
	found := !line[k].leafStart && h.start < op.End && (h.direct || op.End-h.start >= MinAsync)
	if found && h.direct || own {
		return h, found
	}
	if n := closedEarly(line, k, op); n >= 0 {
		e := hole{index: n, start: max(line[n].ts, op.Issued), end: line[n+1].ts, direct: line[n].ts <= op.Returned}
		// The short one after it is the program between two operators, or its next wait.
		if !found || e.end-e.start > minLonger*(op.End-h.start) {
			return e, true
		}
	}
	return h, found
}

// closedEarly looks for a long hole that closes shortly before op ends, and gives the
// boundary before it, -1 where there is none. k is the last boundary before the end.
func closedEarly(line []boundary, k int, op *comm.Operation) int {
	for ; k > 0 && op.End-line[k].ts <= early; k-- {
		if since := max(line[k-1].ts, op.Issued); !line[k-1].leafStart && line[k].ts-since >= minEarly {
			return k - 1
		}
	}
	return -1
}

// boundaries lists the starts and ends of CPU operators and annotations on each
// thread that issues communication, by time.
func boundaries(rank *trace.Rank) map[trace.ThreadID][]boundary {
	ev := &rank.Events
	byThread := map[trace.ThreadID][]int{}
	for i := range rank.Operations {
		if t := rank.Operations[i].Thread; t >= 0 {
			byThread[trace.ThreadID(t)] = nil
		}
	}
	for i := range ev.Len() {
		list, program := byThread[ev.Thread[i]]
		if c := ev.Category[i]; program && (c == trace.CPUOp || c == trace.UserAnnotation) {
			byThread[ev.Thread[i]] = append(list, i)
		}
	}
	lines := map[trace.ThreadID][]boundary{}
	for thread, events := range byThread {
		lines[thread] = line(rank, events)
	}
	return lines
}

func line(rank *trace.Rank, events []int) []boundary {
	ev := &rank.Events
	slices.SortStableFunc(events, func(a, b int) int {
		return cmp.Or(cmp.Compare(ev.TS[a], ev.TS[b]), cmp.Compare(ev.Dur[b], ev.Dur[a])) // the enclosing one first
	})
	var list []boundary
	for n, i := range events {
		inner := n+1 < len(events) && ev.TS[events[n+1]] < ev.End(i)
		wait := ev.Category[i] == trace.CPUOp && rank.Name(i) == waitTensor
		leaf := !inner && !wait && ev.Category[i] == trace.CPUOp
		list = append(list, boundary{ts: ev.TS[i], leafStart: leaf, wait: wait}, boundary{ts: ev.End(i)})
	}
	slices.SortStableFunc(list, func(a, b boundary) int { return cmp.Compare(a.ts, b.ts) })
	return list
}
