package kineto

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// deviceComm finds the communication of a rank with a device: its kernels (and
// copies, where a copy engine moves the data), each joined to the call that
// launched it.
type deviceComm struct {
	rd    *reading
	nest  *nest
	calls []call

	launch  *trace.Launches
	args    map[int]int   // kernel event -> its kernelRecord
	callOf  map[int]int   // record -> call
	kernels map[int][]int // call -> device events

	annotated []int // device annotations that stand in for kernels
}

// issued is what becomes one operation: calls and the device events that carry them.
type issued struct {
	calls   []int // several when grouped into one launch
	kernels []int
	at      int64 // ns, when the CPU issued it
	thread  int
}

func (d *deviceComm) find() {
	rank := d.rd.rank
	ev := &rank.Events
	d.launch, d.args = d.rd.launches, map[int]int{}
	d.callOf, d.kernels = map[int]int{}, map[int][]int{}
	for i, rec := range d.nest.records {
		if rec.kind == kernelRecord {
			d.args[rec.event] = i
		}
	}
	for i, c := range d.calls {
		for _, r := range []int{c.c10d, c.param, c.title} {
			if r >= 0 {
				d.callOf[r] = i
			}
		}
	}

	var loose []int  // communication kernels that no record encloses
	var copies []int // copies and sets issued inside a communication call
	isComm := commNames(rank.Names)
	for i := range ev.Len() {
		if !ev.Category[i].OnDevice() {
			continue
		}
		_, hasArgs := d.args[i]
		communicates := hasArgs || ev.Category[i] == trace.CollectiveActivity ||
			ev.Category[i] == trace.Kernel && isComm(ev.Name[i])
		c := d.enclosingCall(i)
		switch {
		case communicates && c >= 0 && !d.isFrame(c):
			d.kernels[c] = append(d.kernels[c], i)
		case communicates:
			loose = append(loose, i)
		case c >= 0 && ev.Category[i] == trace.Memcpy && d.calls[c].param >= 0:
			copies = append(copies, i)
		}
	}
	// Copies are communication only where the call has no kernel of its own:
	// the copy engine carried it. Else they stage its data.
	byCopy := map[int][]int{}
	for _, i := range copies {
		if c := d.enclosingCall(i); len(d.kernels[c]) == 0 {
			byCopy[c] = append(byCopy[c], i)
		}
	}
	for c, list := range byCopy {
		d.kernels[c] = list
	}
	if len(loose) == 0 && len(d.kernels) == 0 {
		d.useAnnotations()
	}
	d.linkByOrder(&loose)
	d.emit(d.group(loose))
}

// useAnnotations takes the device's own annotations of communication where a
// trace has no communication kernels: some profilers write only those
// (HolisticTraceAnalysis#247). Their spans are estimates.
func (d *deviceComm) useAnnotations() {
	rank := d.rd.rank
	ev := &rank.Events
	for i := range ev.Len() {
		if ev.Category[i] != trace.GPUAnnotation {
			continue
		}
		kind, ok := recordKindOf([]byte(rank.Name(i)))
		if !ok || kind != titleRecord {
			continue
		}
		d.rd.diags.Addf("communication-from-annotation", diagnostic.NoRank, ev.Offset[i],
			"no kernel of %q is in the trace; its span is that of the device's annotation", rank.Name(i))
		d.annotated = append(d.annotated, i)
	}
}

// linkByOrder gives kernels that say nothing of their launch (a correlation of 0,
// rocprofiler's roctracer#100) to the calls that have no kernel, where there are
// as many of both and each kernel starts after its call.
func (d *deviceComm) linkByOrder(loose *[]int) {
	ev := &d.rd.rank.Events
	var kernels, rest []int
	for _, k := range *loose {
		if ev.Correlation[k] == 0 || ev.Correlation[k] == trace.NoID {
			kernels = append(kernels, k)
		} else {
			rest = append(rest, k)
		}
	}
	var open []int
	for c := range d.calls {
		if _, named := d.opOf(c); named && !d.isFrame(c) && !d.isWait(c) && len(d.kernels[c]) == 0 {
			open = append(open, c)
		}
	}
	if len(kernels) == 0 || len(kernels) != len(open) {
		return
	}
	slices.SortStableFunc(kernels, func(a, b int) int { return cmp.Compare(ev.TS[a], ev.TS[b]) })
	for i, k := range kernels {
		if ev.TS[k] < d.nest.records[d.calls[open[i]].outer()].start-clockSlack {
			return
		}
	}
	for i, k := range kernels {
		d.kernels[open[i]] = []int{k}
		d.rd.diags.Addf("communication-linked-by-order", diagnostic.NoRank, ev.Offset[k],
			"kernel %q has no correlation; it is taken as that of the call in the same place", d.rd.rank.Name(k))
	}
	*loose = rest
}

// enclosingCall is the call whose record was open on the launching thread when
// device event i was launched, or -1.
func (d *deviceComm) enclosingCall(i int) int {
	ev := &d.rd.rank.Events
	launch, ok := d.launch.Of(ev.Correlation[i])
	if !ok {
		return -1
	}
	for _, kind := range []recordKind{paramRecord, titleRecord, c10dRecord} {
		if r := d.nest.enclosing(int(ev.Thread[launch]), kind, ev.TS[launch]); r >= 0 {
			if c, ok := d.callOf[r]; ok {
				return c
			}
		}
	}
	return -1
}

// group makes the operations: one for each call with kernels; calls without any
// are given to the next kernel launched on their thread outside of all calls
// (a group call: ncclGroupEnd launches one kernel for all of them).
func (d *deviceComm) group(loose []int) []issued {
	rank := d.rd.rank
	ev := &rank.Events
	var list []issued
	pending := map[int][]int{} // thread -> calls without a kernel, by start
	for c := range d.calls {
		rec := &d.nest.records[d.calls[c].outer()]
		if d.isWait(c) {
			rank.Waits = append(rank.Waits, trace.Wait{TS: rec.start, Thread: trace.ThreadID(rec.thread)})
			continue
		}
		if k := d.kernels[c]; len(k) > 0 {
			list = append(list, issued{calls: []int{c}, kernels: k, at: d.launchTime(k[0], rec.start), thread: rec.thread})
			continue
		}
		if _, named := d.opOf(c); d.isFrame(c) || !named {
			continue
		}
		pending[rec.thread] = append(pending[rec.thread], c)
	}
	slices.SortStableFunc(loose, func(a, b int) int { return cmp.Compare(d.launchTime(a, ev.TS[a]), d.launchTime(b, ev.TS[b])) })
	for _, k := range loose {
		launch, launched := d.launch.Of(ev.Correlation[k])
		at := d.launchTime(k, ev.TS[k])
		one := issued{kernels: []int{k}, at: at, thread: -1}
		if launched {
			one.thread = int(ev.Thread[launch])
			wait := pending[one.thread]
			n, _ := slices.BinarySearchFunc(wait, at+1, func(c int, t int64) int {
				return cmp.Compare(d.nest.records[d.calls[c].outer()].start, t)
			})
			one.calls = wait[:n]
			pending[one.thread] = wait[n:]
		}
		list = append(list, one)
	}
	for _, thread := range slices.Sorted(maps.Keys(pending)) { // the example is the same in every run
		for _, c := range pending[thread] {
			rec := &d.nest.records[d.calls[c].outer()]
			d.rd.diags.Addf("communication-without-kernel", diagnostic.NoRank, ev.Offset[rec.event],
				"%s was called but no kernel of it is in the trace; it is left out", rank.Name(rec.event))
		}
	}
	for _, i := range d.annotated {
		list = append(list, issued{kernels: []int{i}, at: ev.TS[i], thread: -1})
	}
	slices.SortStableFunc(list, func(a, b issued) int { return cmp.Compare(a.at, b.at) })
	return list
}

func (d *deviceComm) launchTime(kernel int, otherwise int64) int64 {
	ev := &d.rd.rank.Events
	if launch, ok := d.launch.Of(ev.Correlation[kernel]); ok {
		return ev.TS[launch]
	}
	return otherwise
}

// isWait says whether the call asks for earlier communication to be finished.
// Work.wait writes a record_param_comms too: named "wait" by today's PyTorch,
// without a name, a tensor or an annotation before 2.2.
func (d *deviceComm) isWait(c int) bool {
	if d.calls[c].param < 0 {
		return false
	}
	rec := &d.nest.records[d.calls[c].param]
	if rec.collective != "" {
		return rec.collective == "wait"
	}
	if d.calls[c].title >= 0 || d.calls[c].c10d >= 0 || len(rec.types) == 0 || len(d.kernels[c]) > 0 {
		return false
	}
	_, isTensor := comm.ParseDType(rec.types[0])
	return !isTensor && rec.types[0] != "TensorList" && rec.types[0] != "GenericList[]"
}

// isFrame says whether the call is the bracket around a group of calls
// ("nccl:coalesced"), not one of them.
func (d *deviceComm) isFrame(c int) bool {
	op, _ := d.opOf(c)
	return op == comm.Batch && d.calls[c].param < 0
}

// opOf is the operation that call c names, from the most to the least reliable.
func (d *deviceComm) opOf(c int) (comm.Op, bool) {
	for _, r := range []int{d.calls[c].param, d.calls[c].title, d.calls[c].c10d} {
		if r < 0 {
			continue
		}
		rec := &d.nest.records[r]
		name := rec.collective
		if name == "" {
			name = rec.name
		}
		if op, ok := comm.ParseOp(name); ok {
			return op, true
		}
	}
	return comm.Unknown, false
}

// emit turns what was found into the rank's operations.
func (d *deviceComm) emit(list []issued) {
	rank := d.rd.rank
	ev := &rank.Events
	for _, is := range list {
		op := comm.Operation{Op: comm.Unknown, Issued: is.at, Thread: is.thread, Event: is.kernels[0], Events: is.kernels}
		op.Start, op.End = ev.TS[is.kernels[0]], ev.End(is.kernels[0])
		for _, k := range is.kernels {
			op.Start, op.End = min(op.Start, ev.TS[k]), max(op.End, ev.End(k))
		}
		first := is.kernels[0]
		op.Name, op.Offset = rank.Name(first), ev.Offset[first]
		if ev.Stream[first] != trace.NoStream {
			op.Stream = strconv.FormatInt(ev.Stream[first], 10)
		}
		op.Returned = op.Issued
		if len(is.calls) > 0 {
			op.Returned = d.nest.records[d.calls[is.calls[len(is.calls)-1]].outer()].end
		}
		described := d.describe(&op, is)
		if !described {
			d.rd.diags.Addf("communication-without-record", diagnostic.NoRank, op.Offset,
				"%q was launched outside the trace: what it did is taken from its name", op.Name)
		}
		rank.Operations = append(rank.Operations, op)
	}
}
