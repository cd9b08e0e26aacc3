package plan

import (
	"cmp"
	"slices"
	"strconv"

	"mixdown/ingest/trace"
	"mixdown/replay/plan/planpb"
)

// slack is how much later than a blocking call returned, in ns, the device
// event it waited for may seem to end: the clocks of host and device are
// converted, not shared.
const slack = 20_000

// deviceRank is a rank with a device while its program is built.
type deviceRank struct {
	w    *workload
	r    int
	rank *trace.Rank
	win  window

	latency   int64           // ns, see launchLatency
	hostWaits map[int64]*item // correlation of a call -> what it waited for
	calls     map[int64]int64 // correlation -> ns, when the host made the call
	hosts     *hosts

	items  []*item         // device work of the step, by launch
	lines  map[int64]*line // by device stream
	points []devicePoint   // of the host, by time
}

// item is a kernel, a copy, or a communication.
type item struct {
	stream      int64
	launch      int64 // ns, when the host launched it; valid with launched
	launched    bool
	thread      trace.ThreadID
	start, end  int64
	operation   int     // of the rank, -1 for computation
	computes    bool    // a kernel that does not communicate
	deps        []*item // on other streams
	referenced  bool    // something depends on it
	hostSegment segment // of the host's time in which it was launched
	node        *node   // the task that ends when it ends
	position    int     // on its line
}

// segment is a part of a host stream's time between two waits. Only within one the
// host's time is rigid.
type segment struct{ host, waits int }

// line is a device stream.
type line struct {
	stream int64
	items  []*item
}

// devicePoint is a moment of the host: a launch or a blocking call.
type devicePoint struct {
	at, end int64
	launch  *item // nil for a blocking call
	deps    []*item
	host    int // index of its stream
}

// deviceProgram builds the program of a rank with a device.
func (w *workload) deviceProgram(r int, win window) *builder {
	d := &deviceRank{w: w, r: r, rank: w.run.Ranks[r], win: win, lines: map[int64]*line{}, calls: map[int64]int64{}}
	d.gather()
	d.hosts = w.findHosts(r, win, d.hostThreads(), nil)
	d.latency = d.launchLatency()
	d.linkEvents()
	d.linkCommunication()
	d.inferDependencies()
	d.linkHost()
	return d.emit()
}

// gather collects the device work of the step: what was launched within it, or
// ran within it where the launch is not in the trace.
func (d *deviceRank) gather() {
	ev := &d.rank.Events
	launches := map[int64]int{}
	for i := range ev.Len() {
		if ev.Category[i] == trace.Runtime && ev.Correlation[i] != trace.NoID {
			if _, dup := launches[ev.Correlation[i]]; !dup {
				launches[ev.Correlation[i]] = i
				d.calls[ev.Correlation[i]] = ev.TS[i]
			}
		}
	}
	operation := map[int]int{}
	for i := range d.rank.Operations {
		for _, e := range d.rank.Operations[i].Events {
			operation[e] = i
		}
	}
	first := map[int]*item{} // operation -> its first kernel
	for i := range ev.Len() {
		if !ev.Category[i].OnDevice() {
			continue
		}
		it := &item{stream: ev.Stream[i], start: ev.TS[i], end: ev.End(i), operation: -1}
		if l, ok := launches[ev.Correlation[i]]; ok {
			it.launched, it.launch, it.thread = true, min(ev.TS[l], it.start), ev.Thread[l]
		}
		at := it.start
		if it.launched {
			at = it.launch
		}
		if at < d.win.start || at >= d.win.end {
			continue
		}
		if op, ok := operation[i]; ok {
			if have := first[op]; have != nil { // several kernels carry one operation
				have.end = max(have.end, it.end)
				continue
			}
			it.operation = op
			first[op] = it
		}
		it.computes = it.operation < 0 && ev.Category[i] == trace.Kernel
		d.items = append(d.items, it)
		l := d.lines[it.stream]
		if l == nil {
			l = &line{stream: it.stream}
			d.lines[it.stream] = l
		}
		l.items = append(l.items, it)
	}
	byLaunch := func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.issued(), b.issued()), cmp.Compare(a.start, b.start))
	}
	slices.SortStableFunc(d.items, byLaunch)
	for _, l := range d.lines {
		slices.SortStableFunc(l.items, func(a, b *item) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
		for k, it := range l.items {
			it.position = k
		}
	}
}

func (it *item) issued() int64 {
	if it.launched {
		return it.launch
	}
	return it.start
}

// linkCommunication finds what communication waits for and what waits for it.
//
// A process group lets its stream wait for the stream that was current when the
// collective was issued: the last kernel the same thread launched before it
// must have ended. After a wait of the program, what the same thread launches
// next must not start before the newest collective issued until then has ended.
// A dependency that the times contradict is none.
func (d *deviceRank) linkCommunication() {
	lastCompute := map[trace.ThreadID]*item{}
	var issued []*item // communication so far, by launch
	waits := d.rank.Waits
	pending := map[trace.ThreadID]int64{} // the latest wait that nothing followed yet
	next := 0
	for _, it := range d.items {
		for next < len(waits) && waits[next].TS <= it.issued() {
			pending[waits[next].Thread] = waits[next].TS
			next++
		}
		if it.operation >= 0 {
			if before := lastCompute[it.thread]; it.launched && before != nil {
				if before.end <= it.start+slack {
					d.infer(it, before)
				} else {
					d.w.pb.Dependencies.Rejected++
				}
			}
			issued = append(issued, it)
			continue
		}
		if at, waited := pending[it.thread]; waited && it.launched {
			for _, c := range slices.Backward(issued) {
				if c.issued() <= at && c.end <= it.start+slack && d.hosts.stream(c.thread) == d.hosts.stream(it.thread) {
					d.infer(it, c)
					break
				}
			}
			delete(pending, it.thread)
		}
		if it.launched {
			lastCompute[it.thread] = it
		}
	}
}

// infer makes an item wait for one on another stream.
func (d *deviceRank) infer(it, on *item) {
	if d.depend(it, on) {
		d.w.pb.Dependencies.Inferred++
	}
}

// depend makes an item wait for one on another stream, and says whether it did not
// yet.
func (d *deviceRank) depend(it, on *item) bool {
	if on.stream == it.stream || slices.Contains(it.deps, on) {
		return false
	}
	it.deps = append(it.deps, on)
	on.referenced = true
	return true
}

// name is the stream's name in the plan: the two kinds of work may share one.
func (l *line) name() string {
	kind := "communication stream"
	if slices.ContainsFunc(l.items, func(it *item) bool { return it.operation < 0 }) {
		kind = "device stream"
	}
	if l.stream == trace.NoStream {
		return kind
	}
	return kind + " " + strconv.FormatInt(l.stream, 10)
}

// emit makes the tasks: the host's spans between the points that matter, and
// one or two spans for each run of kernels (compact.go).
func (d *deviceRank) emit() *builder {
	b := newBuilder()
	runs := d.runs()
	host := d.emitHost(b, runs)
	// Runs are emitted by launch so that what they depend on is there already.
	for _, run := range runs {
		d.emitRun(b, run, host)
	}
	for _, wait := range host.waits {
		for _, dep := range wait.deps {
			if dep.node != nil {
				wait.node.deps = append(wait.node.deps, dep.node)
			}
		}
	}
	return b
}

// hostLine is the host's streams once they are emitted.
type hostLine struct {
	launchedAt map[*item]*node // the host task after which an item is launched
	waits      []hostWait
}

type hostWait struct {
	node *node
	deps []*item
}

// emitHost makes the host's streams. Only launches that a run of kernels needs
// cut them.
func (d *deviceRank) emitHost(b *builder, runs []kernelRun) *hostLine {
	needed := map[*item]bool{}
	for _, run := range runs {
		needed[run.items[0]] = true
		needed[run.items[run.critical]] = true
	}
	h := &hostLine{launchedAt: map[*item]*node{}}
	lines := newHostLines(b, d.hosts, d.w.pb.Dependencies, d.win.start)
	for _, p := range d.points {
		switch {
		case p.launch != nil && needed[p.launch]:
			lines.reach(p.host, p.at)
			h.launchedAt[p.launch] = lines.last(p.host)
		case p.launch == nil:
			lines.reach(p.host, p.at)
			n := b.wait(d.hosts.names[p.host], p.at)
			h.waits = append(h.waits, hostWait{n, p.deps})
			for _, dep := range p.deps {
				lines.skip(p.host, min(dep.end, p.end))
			}
		}
	}
	lines.reach(0, d.win.end)
	return h
}

// emitRun makes the tasks of one run.
func (d *deviceRank) emitRun(b *builder, run kernelRun, host *hostLine) {
	first, last := run.items[0], run.items[len(run.items)-1]
	name := d.lines[first.stream].name()
	var deps []*node
	deps = append(deps, host.launchedAt[first])
	for _, dep := range first.deps {
		deps = append(deps, dep.node)
	}
	if first.operation >= 0 {
		d.emitCommunication(b, run, name, deps)
		return
	}
	if run.critical > 0 {
		b.span(name, planpb.Span_DEVICE, first.start, run.total-run.tail, deps...).span.KernelNs = run.kernels - run.tailKernels
		deps = []*node{host.launchedAt[run.items[run.critical]]}
		last.node = b.span(name, planpb.Span_DEVICE, run.items[run.critical].start, run.tail, deps...)
		last.node.span.KernelNs = run.tailKernels
		return
	}
	last.node = b.span(name, planpb.Span_DEVICE, first.start, run.total, deps...)
	last.node.span.KernelNs = run.kernels
}

// emitCommunication makes a communication, after a span for the time between
// when it could have started and when it did. Left-out communication is a span as
// long as it was.
func (d *deviceRank) emitCommunication(b *builder, run kernelRun, name string, deps []*node) {
	it := run.items[0]
	op := &d.rank.Operations[it.operation]
	if lead := run.lead; lead > 0 {
		deps = []*node{b.span(name, planpb.Span_DEVICE, it.start-lead, lead, deps...)}
	}
	c := d.w.communication(d.r, it.operation)
	if c == nil {
		d.w.pb.Dependencies.FixedWaitNs += it.end - it.start
		it.node = b.span(name, planpb.Span_DEVICE, it.start, it.end-it.start, deps...)
		return
	}
	it.node = b.add(name, &node{at: it.start, comm: c, origin: originOf(d.rank.Rank, op)}, deps...)
}
