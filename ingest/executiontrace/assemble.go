package executiontrace

import (
	"cmp"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
)

// layers are the records of one call, nil where there is none.
type layers struct{ c10d, param, title *record }

func (l layers) all() []*record {
	return slices.DeleteFunc([]*record{l.param, l.title, l.c10d}, func(r *record) bool { return r == nil })
}

// issued is the place of a call in the order of execution: of its outermost
// record, which began first.
func (l layers) issued() *record {
	for _, r := range []*record{l.c10d, l.param, l.title} {
		if r != nil {
			return r
		}
	}
	return nil
}

// assemble makes calls of records, in the order they were issued. Nodes are
// written when they end, so the file has the inner one first; record function
// ids, and node ids where those are missing, are given when they begin.
func assemble(records []record, groups *groupTable, rank int, diags *diagnostic.Set) []Call {
	byRF := !slices.ContainsFunc(records, func(r record) bool { return r.rf <= 0 })
	slices.SortStableFunc(records, func(a, b record) int {
		if byRF {
			return cmp.Compare(a.rf, b.rf)
		}
		return cmp.Compare(a.id, b.id)
	})
	var calls []Call
	for _, l := range layer(records) {
		call := describe(l, groups, rank, diags)
		if call.Op == comm.Batch {
			continue // the frame of a group call; its members are calls of their own
		}
		calls = append(calls, call)
	}
	return calls
}

// layer joins the records of each call.
func layer(records []record) []layers {
	byID := make(map[int64]*record, len(records))
	place := make(map[*record]int, len(records))
	for i := range records {
		place[&records[i]] = i
		if _, dup := byID[records[i].id]; !dup {
			byID[records[i].id] = &records[i]
		}
	}
	parent := func(r *record, kind recordKind) *record {
		if p := byID[r.parent]; p != nil && p.kind == kind && p != r {
			return p
		}
		return nil
	}
	taken := map[*record]bool{}
	titles := map[*record]*record{} // what an annotation lies in -> the annotation
	for i := range records {
		r := &records[i]
		switch r.kind {
		case titleRecord:
			// Where the annotation is made by another thread, its parent is
			// whatever that thread or the caller was in, at times a later call.
			p := parent(r, paramRecord)
			if p == nil {
				if p = parent(r, c10dRecord); p != nil && (!belongs(r, p) || place[p] > place[r]) {
					p = nil
				}
			}
			if p != nil && titles[p] == nil {
				titles[p], taken[r] = r, true
			}
		case paramRecord:
			// A barrier that is made of an all_reduce: the inner one is what
			// runs, and what profiler traces show.
			if p := parent(r, paramRecord); p != nil {
				taken[p] = true
			}
		}
	}
	var list []layers
	for i := range records {
		r := &records[i]
		if r.kind != paramRecord || taken[r] || r.name == "wait" {
			continue
		}
		l := layers{param: r, title: titles[r]}
		outer := r
		for range 4 { // bounded: damaged files may have circles
			if p := parent(outer, paramRecord); p != nil {
				outer = p
			}
		}
		l.c10d = parent(outer, c10dRecord)
		if l.c10d != nil && taken[l.c10d] { // one operator, several collectives
			l.c10d = nil
		}
		taken[r] = true
		if l.c10d != nil {
			taken[l.c10d] = true
		}
		list = append(list, l)
	}
	list = append(list, withoutParams(records, titles, taken)...)
	slices.SortStableFunc(list, func(a, b layers) int { return cmp.Compare(place[a.issued()], place[b.issued()]) })
	return list
}

// maxOpen bounds how many operators may wait for their annotation: Gloo's are
// made by the call, so it is a few.
const maxOpen = 64

// withoutParams joins what no record_param_comms holds together: backends such
// as Gloo write none, and their annotation may end on another thread and lie
// beside its operator. It begins behind the operator and before the next one
// of the kind.
func withoutParams(records []record, titles map[*record]*record, taken map[*record]bool) []layers {
	var list []layers
	var open []int // in list, operators without an annotation
	for i := range records {
		r := &records[i]
		switch {
		case taken[r]:
		case r.kind == c10dRecord:
			list = append(list, layers{c10d: r, title: titles[r]})
			if titles[r] == nil {
				if open = append(open, len(list)-1); len(open) > maxOpen {
					open = open[1:]
				}
			}
		case r.kind == titleRecord:
			at := -1
			for k, o := range slices.Backward(open) {
				if belongs(r, list[o].c10d) {
					at = k
					break
				}
			}
			if at < 0 {
				list = append(list, layers{title: r})
				continue
			}
			list[open[at]].title = r
			open = slices.Delete(open, at, at+1)
		}
	}
	return list
}

// belongs tells whether the annotation can be of the operator: the operation is
// the same, and so is the tensor.
func belongs(title, operator *record) bool {
	if !title.opKnown || evenForm(title.op) != evenForm(operator.op) {
		return false
	}
	return title.in.id == 0 || operator.in.id == 0 || title.in.id == operator.in.id
}

// describe takes each fact from the most reliable record that has it.
func describe(l layers, groups *groupTable, rank int, diags *diagnostic.Set) Call {
	call := Call{Op: comm.Unknown, Offset: -1}
	for _, r := range l.all() {
		if call.Op == comm.Unknown && r.opKnown {
			call.Op, call.Name = r.op, r.name
		}
		if call.Name == "" {
			call.Name = r.name
		}
		if r.rf > 0 {
			if r == l.param || call.RecordFn == 0 || r == l.c10d && l.param == nil {
				call.RecordFn = r.rf
			}
			call.RecordFns = append(call.RecordFns, r.rf)
		}
		if call.Offset < 0 || r.offset < call.Offset {
			call.Offset = r.offset
		}
		if !call.SeqKnown && r.seqKnown {
			call.Seq, call.SeqKnown = r.seq, true
		}
	}
	if l.param != nil {
		call.Group = groups.resolve(l.param.group)
	}
	for _, r := range l.all() {
		if call.SizeKnown {
			break
		}
		if call.Op == comm.Barrier { // the tensor behind it is not the caller's
			call.DType, call.SizeKnown = comm.Uint8, true
		} else if r.sized {
			call.DType, call.In, call.Out, call.SizeKnown = r.dtype, r.inN, r.outN, true
		}
	}
	// An operator made of several collectives has the tensors of all.
	for _, r := range l.all() {
		if !call.SizeKnown && r.opKnown && evenForm(r.op) == evenForm(call.Op) {
			call.DType, call.In, call.Out, call.SizeKnown = r.size()
		}
	}
	if evenForm(call.Op) != comm.AllToAll || !call.SizeKnown {
		return call
	}
	in, out := sized{call.In, -1}, sized{call.Out, -1}
	for _, r := range l.all() {
		if r.in.known && !r.in.list && r.in.elements == call.In {
			in.rows = r.in.rows
		}
		if r.out.known && !r.out.list && r.out.elements == call.Out {
			out.rows = r.out.rows
		}
	}
	call.setSplits(l, in, out, rank, diags)
	return call
}

// size is what the record's own tensors say.
func (r *record) size() (dtype comm.DType, in, out int64, ok bool) {
	if !r.in.known {
		if r.op == comm.Recv && r.out.known {
			return r.out.dtype, 0, r.out.elements, r.out.dtype != ""
		}
		return "", 0, 0, false
	}
	n := r.in.elements
	switch r.op {
	case comm.AllReduce, comm.Reduce, comm.Broadcast:
		return r.in.dtype, n, n, r.in.dtype != ""
	case comm.Send:
		return r.in.dtype, n, 0, r.in.dtype != ""
	case comm.Recv:
		return r.in.dtype, 0, n, r.in.dtype != ""
	case comm.AllGather, comm.ReduceScatter, comm.AllToAll, comm.AllToAllV:
		if r.out.known && r.in.dtype != "" && r.in.dtype == r.out.dtype {
			return r.in.dtype, n, r.out.elements, true
		}
	}
	// Gather and scatter have a side that depends on who is root.
	return "", 0, 0, false
}

// setSplits settles how an all_to_all is cut, from everything that its records
// say about it; where two of them contradict each other it stays unknown.
func (call *Call) setSplits(l layers, in, out sized, rank int, diags *diagnostic.Set) {
	for _, r := range []*record{l.c10d, l.param} {
		if r == nil {
			continue
		}
		var found []splitLists // in elements
		if r.in.list || r.out.list {
			// all_to_all of lists of tensors: the tensors are the parts, and
			// empty lists of splits mean nothing.
			if r.in.known && r.out.known && len(r.in.parts) == len(r.out.parts) {
				found = append(found, splitLists{r.in.parts, r.out.parts})
			}
		} else {
			stated := false
			for _, s := range r.splits {
				if a, b, ok := resolveSplits(s, in, out); ok {
					found = append(found, splitLists{a, b})
					stated = true
				}
			}
			if len(r.splits) > 0 && !stated {
				diags.Addf("execution-trace-splits-unfit", rank, r.offset,
					"the splits of %s do not add up to its %d elements in and %d out", r.name, call.In, call.Out)
			}
		}
		for _, f := range found {
			switch {
			case !call.SplitsKnown:
				call.SplitsKnown = true
				call.InSplits, call.OutSplits = f.in, f.out
			case f.in != nil && (!sameParts(call.InSplits, f.in) || !sameParts(call.OutSplits, f.out)):
				diags.Addf("execution-trace-splits-unfit", rank, r.offset,
					"two records of one %s cut it in different ways", r.name)
				call.SplitsKnown, call.InSplits, call.OutSplits = false, nil, nil
				return
			}
		}
	}
	switch {
	case !call.SplitsKnown:
	case l.isListForm() && isEven(call.InSplits) && isEven(call.OutSplits):
		call.InSplits, call.OutSplits = nil, nil
	case call.InSplits != nil:
		call.Op = comm.AllToAllV
	default:
		call.Op = comm.AllToAll
	}
}

func (l layers) isListForm() bool {
	for _, r := range []*record{l.c10d, l.param} {
		if r != nil && (r.in.list || r.out.list) {
			return true
		}
	}
	return false
}

// evenForm is the operation whatever its parts.
func evenForm(op comm.Op) comm.Op {
	switch op {
	case comm.AllToAllV:
		return comm.AllToAll
	case comm.AllGatherV:
		return comm.AllGather
	case comm.ReduceScatterV:
		return comm.ReduceScatter
	}
	return op
}
