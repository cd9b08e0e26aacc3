package diff

import (
	"cmp"
	"slices"
	"strings"

	"mixdown/analyze/overlap"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// Shares of blocking communication from which a run counts as blocking, and up
// to which as not.
const (
	blockingFrom = 0.5
	blockingTo   = 0.25
)

// minBlocking is how many operations must be seen before their share means
// anything.
const minBlocking = 4

// blocking finds how much of a run's communication the program waited for at
// once: after the launch its thread's next call that launches or waits is one
// that waits for the device. DeepSpeed's comms logger does so after every
// operation (deepspeed/comm/comm.py, timed_op), which takes away all overlap
// (DeepSpeed#4738). A barrier does so anyway and doesn't count. It is nil where
// too little can be seen. The second result says whether the logger is named.
func blocking(run *trace.Run) (share *float64, logger bool) {
	var seen, blocked int
	for _, rank := range run.Ranks {
		for id := range rank.Names.Len() {
			logger = logger || strings.Contains(rank.Names.Get(trace.NameID(id)), "comms_log")
		}
		if rank.CPUOnly {
			continue // the host's own communication is waited for in no call
		}
		n, b := blockingOf(rank)
		seen, blocked = seen+n, blocked+b
	}
	if seen < minBlocking {
		return nil, logger
	}
	s := float64(blocked) / float64(seen)
	return &s, logger
}

// call is an API call that launches device work or waits for it.
type call struct {
	ts    int64 // ns
	waits bool
}

func blockingOf(rank *trace.Rank) (seen, blocked int) {
	ev := &rank.Events
	launches, _ := trace.JoinLaunches(rank)
	calls := map[trace.ThreadID][]call{}
	launched := make([]bool, ev.Len())
	for i := range ev.Len() {
		if ev.Category[i].OnDevice() {
			if l, ok := launches.Of(ev.Correlation[i]); ok {
				launched[l] = true
			}
		}
	}
	waits := map[trace.NameID]bool{}
	for i := range ev.Len() {
		if ev.Category[i] != trace.Runtime {
			continue
		}
		w, known := waits[ev.Name[i]]
		if !known {
			w = overlap.Blocks(rank.Name(i))
			waits[ev.Name[i]] = w
		}
		if w || launched[i] {
			calls[ev.Thread[i]] = append(calls[ev.Thread[i]], call{ev.TS[i], w})
		}
	}
	for _, list := range calls {
		slices.SortFunc(list, func(a, b call) int { return cmp.Compare(a.ts, b.ts) })
	}
	for i := range rank.Operations {
		op := &rank.Operations[i]
		if op.Op == comm.Barrier || len(op.Events) == 0 {
			continue
		}
		l, ok := launches.Of(ev.Correlation[op.Events[len(op.Events)-1]])
		if !ok {
			continue
		}
		seen++
		list := calls[ev.Thread[l]]
		next, _ := slices.BinarySearchFunc(list, ev.TS[l]+1, func(c call, t int64) int { return cmp.Compare(c.ts, t) })
		if next < len(list) && list[next].waits {
			blocked++
		}
	}
	return seen, blocked
}
