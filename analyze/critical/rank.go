package critical

import (
	"cmp"
	"slices"

	"mixdown/analyze/waiting"
	"mixdown/ingest/trace"
)

// none marks a node that is not there.
const none = int32(-1)

// part is one rank while its nodes are made. Times are ns since the start of
// the step.
type part struct {
	g    *Graph
	r    int // index of the rank
	rank *trace.Rank
	win  Window

	root    int32 // the start of its step
	arrive  []int32
	leave   []int32 // operation -> its arrival and end, none outside the step
	before  []bool  // operation -> issued before the step
	moments []moment
	nodeOf  []int32 // moment -> node

	items []item
	lines []line
}

// moment is a point of the host's time.
type moment struct {
	at     int64
	thread trace.ThreadID
	kind   momentKind
	event  int32   // the API call, -1 for none
	waits  []int32 // nodes that a blocking call waited for
}

type momentKind uint8

const (
	goesOn   momentKind = iota // a launch, or a call that will block
	returned                   // a blocking call returns
	stepEnd
)

// addRank makes the nodes and edges of a rank, those to other ranks excepted.
func (g *Graph) addRank(r int) *part {
	rank := g.run.Ranks[r]
	w := g.windows[r]
	p := &part{
		g: g, r: r, rank: rank, win: Window{w.Start - g.base[r], w.End - g.base[r]},
		arrive: fill(len(rank.Operations)), leave: fill(len(rank.Operations)), before: make([]bool, len(rank.Operations)),
	}
	p.root = g.add(NodeRankStart, r, 0, p.win.Start)
	g.link(0, p.root, 0)
	if rank.CPUOnly {
		p.addHostCommunication()
	} else {
		p.addDevice()
	}
	p.items, p.lines, p.moments, p.nodeOf = nil, nil, nil, nil // joining needs the operations' nodes alone
	return p
}

func fill(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = none
	}
	return list
}

// rel is a time of the rank's clock as ns since the start of the step.
func (p *part) rel(ts int64) int64 { return ts - p.g.base[p.r] }

// addHost makes the nodes of the host. Threads share one line: whichever
// launches next could do so because of what any of them did before. A blocking
// call holds up its own thread only, until it returns; then all goes on.
func (p *part) addHost() {
	p.moments = append(p.moments, moment{at: p.win.End, kind: stepEnd, event: -1})
	index := make([]int32, len(p.moments))
	for i := range index {
		index[i] = int32(i)
	}
	slices.SortStableFunc(index, func(a, b int32) int {
		x, y := &p.moments[a], &p.moments[b]
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.kind, y.kind))
	})
	p.nodeOf = make([]int32, len(p.moments))
	previous := p.root
	onThread := make([]int32, len(p.rank.Threads)+1)
	for i := range onThread {
		onThread[i] = p.root
	}
	for _, i := range index {
		m := &p.moments[i]
		kind := NodeHost
		if m.kind == returned {
			kind = NodeHostWait
		}
		n := p.g.add(kind, p.r, m.at, m.at)
		p.nodeOf[i] = n
		p.g.event[n] = m.event
		own := &onThread[len(onThread)-1]
		if int(m.thread) < len(p.rank.Threads) && m.kind != stepEnd {
			own = &onThread[m.thread]
		}
		switch {
		case m.kind == returned:
			p.g.link(*own, n, rounding)
			for _, d := range m.waits {
				if !p.g.link(d, n, slack) {
					p.g.reject("wait-ends-early", p.r, -1, "a blocking call returns before what it waited for has ended")
				}
			}
		default:
			p.g.link(previous, n, rounding)
			if *own != previous && *own != p.root {
				p.g.link(*own, n, rounding)
			}
		}
		previous, *own = n, n
	}
}

// addHostCommunication makes the nodes of a rank without a device: its program
// works, issues communication to worker threads, and waits for it.
func (p *part) addHostCommunication() {
	g := p.g
	issuedAt := fill(len(p.rank.Operations)) // operation -> moment
	// What runs on the program's own thread ends no earlier than the program
	// began to wait for it, even if it was done long before.
	seen := fill(len(p.rank.Operations)) // operation -> moment
	var order []int
	for i := range p.rank.Operations {
		op := &p.rank.Operations[i]
		issued, end := p.rel(op.Issued), p.rel(op.End)
		inside := issued >= p.win.Start && issued < p.win.End
		if !inside && (issued >= p.win.End || end <= p.win.Start) {
			continue
		}
		if end < 0 {
			g.reject("before-step", p.r, op.Offset, "%s was issued in the step and ended before it", op.Op)
			continue
		}
		start := max(p.rel(op.Start), p.win.Start, 0)
		p.arrive[i] = g.add(NodeArrival, p.r, start, min(start, end))
		p.leave[i] = g.add(NodeTransfer, p.r, start, end)
		for _, n := range []int32{p.arrive[i], p.leave[i]} {
			g.operation[n], g.event[n] = int32(i), int32(op.Event)
		}
		p.before[i] = !inside
		if inside && op.Thread >= 0 {
			issuedAt[i] = int32(len(p.moments))
			p.moments = append(p.moments, moment{at: issued, thread: trace.ThreadID(op.Thread), event: int32(op.Event)})
		}
		order = append(order, i)
	}
	for _, w := range waiting.Find(p.rank) {
		op := &p.rank.Operations[w.Operation]
		start, end := max(p.rel(w.Start), p.win.Start), min(p.rel(w.End), p.win.End)
		if p.leave[w.Operation] == none || end <= start {
			continue
		}
		thread := trace.ThreadID(op.Thread)
		wait := moment{at: end, thread: thread, kind: returned, event: int32(op.Event)}
		if p.rel(w.End) <= p.win.End {
			wait.waits = []int32{p.leave[w.Operation]}
		}
		if p.onProgram(w.Operation) {
			seen[w.Operation] = int32(len(p.moments))
		}
		p.moments = append(p.moments, moment{at: start, thread: thread, event: -1}, wait)
	}
	p.addHost()
	for i, m := range seen {
		if m != none {
			p.g.link(p.nodeOf[m], p.leave[i], 0)
		}
	}
	for i, m := range issuedAt {
		if m != none && !g.link(p.nodeOf[m], p.arrive[i], slack) {
			op := &p.rank.Operations[i]
			g.reject("starts-before-issue", p.r, op.Offset, "%s starts before it was issued", op.Op)
		}
	}
	p.orderWorkers(order)
}

// onProgram says whether an operation ran on the thread that issued it (send and
// recv do), where it ends when the program saw it end.
func (p *part) onProgram(i int) bool {
	op := &p.rank.Operations[i]
	return int(p.rank.Events.Thread[op.Event]) == op.Thread
}

// orderWorkers lets communication wait for what its worker thread did before.
// What runs on the program's own thread waits for nothing there: it overlaps.
func (p *part) orderWorkers(operations []int) {
	last := make([]int, len(p.rank.Threads))
	for i := range last {
		last[i] = -1
	}
	slices.SortStableFunc(operations, func(a, b int) int {
		return cmp.Compare(p.rank.Operations[a].Start, p.rank.Operations[b].Start)
	})
	for _, i := range operations {
		linked := false
		if thread := p.rank.Events.Thread[p.rank.Operations[i].Event]; !p.onProgram(i) {
			linked = last[thread] >= 0 && p.g.link(p.leave[last[thread]], p.arrive[i], rounding)
			last[thread] = i
		}
		if !linked {
			p.g.link(p.root, p.arrive[i], rounding)
		}
	}
}
