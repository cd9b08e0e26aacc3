package kineto

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
)

// hostComm finds the communication of a rank without a device. The annotation
// of the process group ("gloo:all_reduce") is the operation: on a worker thread
// it lasts as long as the collective ran, and on the program's own thread (send,
// recv) from the call until its wait returned. The c10d operator that issued it
// has the arguments.
type hostComm struct {
	rd   *reading
	nest *nest
}

// find adds the rank's operations and returns the c10d operators that issued them.
func (h *hostComm) find() map[int]bool {
	rank := h.rd.rank
	titles := slices.DeleteFunc(h.sorted(titleRecord), func(i int) bool { return !onHost(&h.nest.records[i]) })
	issuers := h.issuers(titles)
	groups := h.groupsByThread(titles, issuers)
	for n, t := range titles {
		title := &h.nest.records[t]
		op := comm.Operation{
			Issued: title.start, Returned: title.start, Start: title.start, End: title.end,
			Name: title.name, Offset: rank.Events.Offset[title.event],
			Event: title.event, Events: []int{title.event}, RecordFn: title.recordFn,
			Stream: "thread " + rank.Threads[title.thread].TID, Thread: -1,
		}
		records := []*record{nil, title}
		if issuers[n] >= 0 {
			issuer := &h.nest.records[issuers[n]]
			records = append(records, issuer)
			op.Issued, op.Returned, op.Thread = issuer.start, issuer.end, issuer.thread
		}
		s := merge(records, nil)
		if g, ok := groups[title.thread]; ok && !s.hasGroup {
			s.group, s.hasGroup = g, true
			s.sizeWithGroup(records)
		}
		h.rd.fill(&op, s)
		if issuers[n] < 0 && !op.SizeKnown {
			h.rd.diags.Addf("communication-without-record", diagnostic.NoRank, op.Offset,
				"%s has no c10d operator in the trace that issued it", title.name)
		}
		rank.Operations = append(rank.Operations, op)
	}
	taken := map[int]bool{}
	for _, i := range issuers {
		if i >= 0 {
			taken[i] = true
		}
	}
	return taken
}

// sorted lists the records of a kind by start.
func (h *hostComm) sorted(kind recordKind) []int {
	var list []int
	for i := range h.nest.records {
		if h.nest.records[i].kind == kind {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(h.nest.records[a].start, h.nest.records[b].start) })
	return list
}

// issuers gives each annotation the c10d operator that issued it, -1 where none
// is found. The annotation is made inside the operator, so its record function
// id, when the profiler wrote ids, is the next one after the operator's; else
// the queue of a process group is first in, first out, and the oldest operator
// of the same kind and shape that waits for its annotation is the one.
func (h *hostComm) issuers(titles []int) []int {
	operators := h.sorted(c10dRecord)
	byID := slices.Clone(operators)
	slices.SortStableFunc(byID, func(a, b int) int { return cmp.Compare(h.nest.records[a].recordFn, h.nest.records[b].recordFn) })
	taken := map[int]bool{}
	result := make([]int, len(titles))
	for n, t := range titles {
		title := &h.nest.records[t]
		result[n] = -1
		if r := h.nest.enclosing(title.thread, c10dRecord, title.start); r >= 0 && sameOp(title, &h.nest.records[r]) {
			result[n] = r
		} else if title.recordFn > 0 {
			at, _ := slices.BinarySearchFunc(byID, title.recordFn, func(i int, id int64) int { return cmp.Compare(h.nest.records[i].recordFn, id) })
			if at > 0 && sameOp(title, &h.nest.records[byID[at-1]]) && !taken[byID[at-1]] {
				result[n] = byID[at-1]
			}
		} else {
			for _, o := range operators {
				issuer := &h.nest.records[o]
				if issuer.start > title.start {
					break
				}
				if !taken[o] && sameOp(title, issuer) && sameInput(title, issuer) {
					result[n] = o
					break
				}
			}
		}
		if result[n] >= 0 {
			taken[result[n]] = true
		}
	}
	return result
}

func sameOp(a, b *record) bool {
	opA, okA := comm.ParseOp(a.name)
	opB, okB := comm.ParseOp(b.name)
	return okA && okB && opA == opB
}

// sameInput says whether the annotation's tensor is one of the operator's.
func sameInput(title, operator *record) bool {
	if len(title.dims) == 0 || len(operator.dims) == 0 {
		return true
	}
	return slices.ContainsFunc(operator.dims, func(d []int64) bool { return slices.Equal(d, title.dims[0]) })
}

// sizeWithGroup sizes what could not be sized before the group was known.
func (s *facts) sizeWithGroup(records []*record) {
	for _, rec := range records {
		if rec != nil && !s.sized {
			s.sizeFromDims(rec)
		}
	}
}

// glooThread is the name that PyTorch gives the worker threads of its Gloo
// process groups.
const glooThread = "pt_gloo_runloop"

// groupsByThread tells which group a worker thread serves. Gloo's annotations
// name no group, but every group starts the same number of worker threads when
// it is made, and the file lists the groups of this rank in that order: with k
// threads for each of n groups, the i-th k threads by id are group i's. Where
// the numbers do not fit, or a known size contradicts, nothing is concluded.
func (h *hostComm) groupsByThread(titles, issuers []int) map[int]comm.Group {
	rank := h.rd.rank
	var mine []comm.Group
	for _, g := range rank.Distributed.Groups {
		if len(g.Ranks) > 0 && (rank.Rank < 0 || slices.Contains(g.Ranks, rank.Rank)) {
			mine = append(mine, g)
		}
	}
	if len(mine) == 0 || len(titles) == 0 {
		return nil
	}
	byThread := map[int]comm.Group{}
	if len(mine) == 1 { // all there is, the program's own threads included
		for _, t := range titles {
			byThread[h.nest.records[t].thread] = mine[0]
		}
	} else {
		workers := h.workerThreads()
		if len(workers) == 0 || len(workers)%len(mine) != 0 {
			h.rd.diags.Addf("group-unknown", diagnostic.NoRank, diagnostic.NoOffset,
				"%d worker threads for %d groups: which serves which is not known", len(workers), len(mine))
			return nil
		}
		each := len(workers) / len(mine)
		for i, w := range workers {
			byThread[w] = mine[i/each]
		}
	}
	for n, t := range titles {
		title := &h.nest.records[t]
		g, ok := byThread[title.thread]
		if size := groupSizeOf(title, issuers[n], h.nest.records); ok && size > 0 && size != len(g.Ranks) {
			h.rd.diags.Addf("group-unknown", diagnostic.NoRank, rank.Events.Offset[title.event],
				"%s was among %d ranks, but its thread should serve group %q of %d", title.name, size, g.Name, len(g.Ranks))
			return nil
		}
	}
	return byThread
}

// workerThreads lists the threads of Gloo process groups by thread id.
func (h *hostComm) workerThreads() []int {
	var list []int
	for id, name := range h.rd.threadNames {
		if strings.Contains(name, glooThread) {
			list = append(list, int(id))
		}
	}
	slices.SortFunc(list, func(a, b int) int {
		x, _ := strconv.ParseInt(h.rd.rank.Threads[a].TID, 10, 64)
		y, _ := strconv.ParseInt(h.rd.rank.Threads[b].TID, 10, 64)
		return cmp.Compare(x, y)
	})
	return list
}

// groupSizeOf is the number of members that the arguments of a call imply, 0
// when they imply none.
func groupSizeOf(title *record, issuer int, records []record) int {
	if issuer < 0 {
		return 0
	}
	s := merge([]*record{title, &records[issuer]}, nil)
	switch {
	case s.op == comm.AllToAll && len(s.inSplits) > 0:
		return len(s.inSplits)
	case s.op == comm.AllGather && s.sized && s.in > 0 && s.out%s.in == 0:
		return int(s.out / s.in)
	case s.op == comm.ReduceScatter && s.sized && s.out > 0 && s.in%s.out == 0:
		return int(s.in / s.out)
	}
	return 0
}
