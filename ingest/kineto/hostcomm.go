package kineto

import (
	"cmp"
	"fmt"
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

	lastStart map[int]int64 // by thread: when its last event began, ns; made when needed
}

// find adds the rank's operations and returns the c10d operators that issued them.
func (h *hostComm) find() map[int]bool {
	rank := h.rd.rank
	titles := slices.DeleteFunc(h.sorted(titleRecord), func(i int) bool { return !onHost(&h.nest.records[i]) })
	issuers := h.issuers(titles)
	h.orderRuns(titles, issuers)
	groups := h.groupsByThread(titles, issuers)
	for n, t := range titles {
		title := &h.nest.records[t]
		op := comm.Operation{
			Issued: title.start, Returned: title.start, Start: title.start, End: title.end,
			Name: title.name, Offset: rank.Events.Offset[title.event],
			Event: title.event, Events: []int{title.event}, RecordFn: title.recordFn,
			Stream: "thread " + rank.Threads[title.thread].TID, Thread: -1,
		}
		// The operator comes first: a reduce_scatter runs as an all_reduce of
		// the whole input, and is annotated so.
		records := []*record{title}
		if issuers[n] >= 0 {
			issuer := &h.nest.records[issuers[n]]
			records = []*record{issuer, title}
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
	left := map[int]int{} // operator -> annotations it may still have made
	for _, o := range operators {
		left[o] = h.nest.records[o].runs()
	}
	result := make([]int, len(titles))
	for n, t := range titles {
		title := &h.nest.records[t]
		result[n] = -1
		if r := h.nest.enclosing(title.thread, c10dRecord, title.start); r >= 0 && sameOp(title, &h.nest.records[r]) {
			result[n] = r
		} else if title.recordFn > 0 {
			at, _ := slices.BinarySearchFunc(byID, title.recordFn, func(i int, id int64) int { return cmp.Compare(h.nest.records[i].recordFn, id) })
			if at > 0 && sameOp(title, &h.nest.records[byID[at-1]]) && left[byID[at-1]] > 0 {
				result[n] = byID[at-1]
			}
		} else {
			for _, o := range operators {
				issuer := &h.nest.records[o]
				if issuer.start > title.start {
					break
				}
				if left[o] > 0 && sameOp(title, issuer) && sameInput(title, issuer) {
					if !h.beyondCut(title, issuer) {
						result[n] = o
					}
					break
				}
			}
		}
		if result[n] >= 0 {
			left[result[n]]--
		}
	}
	return result
}

// beyondCut says whether an annotation of a file that was cut off began after all that
// is left of the thread of an operator: what issued it, and what that operator issued,
// may be in the part that is lost, so they are not known to belong together.
func (h *hostComm) beyondCut(title, operator *record) bool {
	rank := h.rd.rank
	if !rank.Truncated || title.thread == operator.thread {
		return false
	}
	if h.lastStart == nil {
		h.lastStart = map[int]int64{}
		for i, t := range rank.Events.Thread {
			if last, ok := h.lastStart[int(t)]; !ok || rank.Events.TS[i] > last {
				h.lastStart[int(t)] = rank.Events.TS[i]
			}
		}
	}
	return title.start > h.lastStart[operator.thread]
}

// orderRuns puts the runs of one call that coalesces several tensors into the order
// of its tensors, which is the same on all ranks: worker threads take them in
// whatever order they come to.
func (h *hostComm) orderRuns(titles, issuers []int) {
	places := map[int][]int{} // issuer -> its places in titles
	for n, i := range issuers {
		if i >= 0 {
			places[i] = append(places[i], n)
		}
	}
	for issuer, at := range places {
		inputs, _ := h.nest.records[issuer].coalesced()
		if len(at) < 2 || len(inputs) != len(at) {
			continue
		}
		var runs []int
		for _, n := range at {
			runs = append(runs, titles[n])
		}
		var ordered []int
		for _, size := range inputs {
			k := slices.IndexFunc(runs, func(t int) bool {
				n, _, ok := h.nest.records[t].tensor(0)
				return ok && n == size
			})
			if k < 0 {
				break // not its tensors
			}
			ordered = append(ordered, runs[k])
			runs = slices.Delete(runs, k, k+1)
		}
		if len(runs) > 0 {
			continue
		}
		for k, n := range at {
			titles[n] = ordered[k]
		}
	}
}

// runs is how many times Gloo runs for one call of the operator: a coalesced
// reduce_scatter runs once for each tensor.
func (rec *record) runs() int {
	if !strings.HasSuffix(rec.name, "reduce_scatter_tensor_coalesced_") {
		return 1
	}
	tensors := 0
	for _, d := range rec.dims { // the outputs, then as many inputs
		if len(d) > 0 {
			tensors++
		}
	}
	return max(1, tensors/2)
}

// sameOp says whether the annotation can be that of the operator. Gloo has no
// reduce_scatter: it runs, and is annotated, as an all_reduce.
func sameOp(title, operator *record) bool {
	ran, okRan := comm.ParseOp(title.name)
	called, okCalled := comm.ParseOp(operator.name)
	return okRan && okCalled && (ran == called || ran == comm.AllReduce && called == comm.ReduceScatter)
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
// process groups, glooThreads how many each group starts (ProcessGroupGloo's
// default, which its Python interface does not change).
const (
	glooThread  = "pt_gloo_runloop"
	glooThreads = 2
)

// groupsByThread tells which group a worker thread serves. Gloo's annotations
// name no group, but every group starts its worker threads when it is made, and
// the file lists the groups of this rank in that order. So when the threads of
// all groups are in the file, the i-th pair by thread id is group i's. When only
// some are, a pair could be that of several groups: it is told only who the
// members are, and only where all groups that it could be have the same. Where a
// known size contradicts, nothing is concluded.
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
	workers := h.workerThreads()
	switch {
	case len(mine) == 1: // all there is, the program's own threads included
		for _, t := range titles {
			byThread[h.nest.records[t].thread] = mine[0]
		}
	case len(workers) == glooThreads*len(mine):
		for i, w := range workers {
			byThread[w] = mine[i/glooThreads]
		}
	default:
		h.unnamedGroups(byThread, workers, mine, titles, issuers)
	}
	h.pointToPoint(byThread, mine, titles)
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

// pointToPoint tells the members of the groups that sends and receives are made
// in. They run on the program's own threads, whatever the group; but a group of
// one has no one to send to, and often all others have the same members.
func (h *hostComm) pointToPoint(byThread map[int]comm.Group, mine []comm.Group, titles []int) {
	var could []comm.Group
	for _, g := range mine {
		if len(g.Ranks) < 2 {
			continue
		}
		if len(could) > 0 && !slices.Equal(could[0].Ranks, g.Ranks) {
			return
		}
		could = append(could, g)
	}
	if len(could) == 0 {
		return
	}
	group := could[0]
	if len(could) > 1 { // which of them is not known
		group = comm.Group{Ranks: group.Ranks, Size: len(group.Ranks), Stream: "point-to-point"}
	}
	for _, t := range titles {
		title := &h.nest.records[t]
		if op, ok := comm.ParseOp(title.name); !ok || !op.IsP2P() {
			continue
		}
		if _, known := byThread[title.thread]; !known {
			byThread[title.thread] = group
		}
	}
}

// unnamedGroups tells the members of groups whose names can't be told. Threads
// with ids next to each other were started together, so they serve one group.
func (h *hostComm) unnamedGroups(byThread map[int]comm.Group, workers []int, mine []comm.Group, titles, issuers []int) {
	sizes := map[int]int{} // thread -> members, as far as calls tell
	for n, t := range titles {
		title := &h.nest.records[t]
		if size := groupSizeOf(title, issuers[n], h.nest.records); size > 0 {
			sizes[title.thread] = size
		}
	}
	unknown := 0
	for i := 0; i < len(workers); {
		pair := workers[i : i+1]
		if i+1 < len(workers) && h.threadID(workers[i+1]) == h.threadID(workers[i])+1 {
			pair = workers[i : i+2]
		}
		i += len(pair)
		var members []int
		same := true
		for _, g := range mine {
			fits := true
			for _, w := range pair {
				fits = fits && (sizes[w] == 0 || sizes[w] == len(g.Ranks))
			}
			if !fits {
				continue
			}
			same = same && (members == nil || slices.Equal(members, g.Ranks))
			members = g.Ranks
		}
		if members == nil || !same {
			unknown++
			continue
		}
		h.rd.diags.Addf("group-inferred", diagnostic.NoRank, diagnostic.NoOffset,
			"the name of a group is not known, but all groups it could be have the members %v", members)
		for _, w := range pair {
			// The stream keeps two groups of the same ranks apart, alike on all ranks.
			byThread[w] = comm.Group{Ranks: members, Size: len(members), Stream: fmt.Sprintf("workers %d", i/glooThreads)}
		}
	}
	if unknown > 0 {
		h.rd.diags.Addf("group-unknown", diagnostic.NoRank, diagnostic.NoOffset,
			"%d worker threads are in the trace for %d groups: which serves which is not known", len(workers), len(mine))
	}
}

// workerThreads lists the threads of Gloo process groups by thread id.
func (h *hostComm) workerThreads() []int {
	var list []int
	for id, name := range h.rd.threadNames {
		if strings.Contains(name, glooThread) {
			list = append(list, int(id))
		}
	}
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(h.threadID(a), h.threadID(b)) })
	return list
}

// threadID is the system's number of a thread, 0 where the file has none.
func (h *hostComm) threadID(thread int) int64 {
	id, _ := strconv.ParseInt(h.rd.rank.Threads[thread].TID, 10, 64)
	return id
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
