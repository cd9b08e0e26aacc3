package critical

import (
	"cmp"
	"slices"
	"strings"

	"mixdown/ingest/trace"
)

// item is device work of the step: a kernel, a copy, or a communication.
type item struct {
	start, end int64
	issued     int64 // when it was launched; its start where the launch is not in the trace
	ready      int64 // when what it is known to depend on had ended
	moment     int32 // of its launch, none when unknown or before the step
	launch     int32 // event of its launch, none when unknown
	thread     trace.ThreadID
	line       int32
	operation  int32 // of the rank, -1 for computation and copies
	memory     bool
	entry      int32 // node that ends when it starts (communication), else node
	node       int32 // node that ends when it ends
	previous   int32 // item before it on its stream, none for the first
}

// line is a stream of a device. It is named by both: streams of two devices may
// share a number.
type line struct {
	device int32
	stream int64
	items  []int32 // by start
	issued []int64 // of items: the largest until here
	ended  []int64 // of items: the largest until here
}

// addDevice makes the nodes of a rank with a device.
func (p *part) addDevice() {
	launches := indexLaunches(p.rank)
	p.gather(launches)
	p.findBlocking(launches)
	p.addHost()
	p.linkStreams()
	p.linkCommunication()
	p.inferDependencies()
	for i := range p.items {
		it := &p.items[i]
		if it.ready == 0 && !p.g.link(p.root, it.entry, rounding) {
			p.g.reject("before-step", p.r, -1, "device work was launched in the step and ended before it")
		}
	}
}

// gather collects what was launched within the step, or ran into it.
func (p *part) gather(launches *launchIndex) {
	g, ev := p.g, &p.rank.Events
	operation := make([]int32, ev.Len())
	for i := range operation {
		operation[i] = none
	}
	for i := range p.rank.Operations {
		for _, e := range p.rank.Operations[i].Events {
			operation[e] = int32(i)
		}
	}
	devices := 0
	for i := range ev.Len() {
		if ev.Category[i].OnDevice() {
			devices++
		}
	}
	p.items = make([]item, 0, devices)
	momentOf := map[int32]int32{} // launch -> moment: a graph launch starts many kernels
	lineOf := map[streamKey]int32{}
	first := map[int32]int32{} // operation -> item
	for i := range ev.Len() {
		if !ev.Category[i].OnDevice() && operation[i] == none {
			continue
		}
		it := item{
			start: p.rel(ev.TS[i]), end: p.rel(ev.End(i)), operation: operation[i],
			memory: ev.Category[i] == trace.Memcpy || ev.Category[i] == trace.Memset,
			moment: none, launch: launches.find(ev.Correlation[i]), previous: none,
		}
		if have, again := first[it.operation]; again && it.operation >= 0 {
			// Several kernels carry one operation: it lasts from the first to
			// the last of them.
			m := &p.items[have]
			m.start, m.end = min(m.start, max(it.start, p.win.Start, 0)), max(m.end, it.end)
			continue
		}
		it.issued = it.start
		if it.launch != none {
			it.thread, it.issued = ev.Thread[it.launch], p.rel(ev.TS[it.launch])
		}
		early := it.issued < p.win.Start
		if it.issued >= p.win.End || early && it.end <= p.win.Start {
			continue
		}
		if it.end < 0 {
			g.reject("before-step", p.r, ev.Offset[i], "%q was launched in the step and ended before it", p.rank.Name(i))
			continue
		}
		it.start = min(max(it.start, p.win.Start, 0), it.end)
		if !early && it.launch != none {
			m, known := momentOf[it.launch]
			if !known {
				m = int32(len(p.moments))
				momentOf[it.launch] = m
				p.moments = append(p.moments, moment{at: it.issued, thread: it.thread, event: it.launch})
			}
			it.moment = m
		}
		key := streamKey{ev.Device[i], ev.Stream[i]}
		l, known := lineOf[key]
		if !known {
			l = int32(len(p.lines))
			lineOf[key] = l
			p.lines = append(p.lines, line{device: key.device, stream: key.stream})
		}
		it.line = l
		n := int32(len(p.items))
		if it.operation >= 0 {
			first[it.operation] = n
			p.before[it.operation] = early
		}
		p.items = append(p.items, it)
		p.lines[l].items = append(p.lines[l].items, n)
		p.items[n].node = int32(i) // the event, until the nodes are made
	}
	p.addItems()
}

// streamKey is what tells streams apart.
type streamKey struct {
	device int32
	stream int64
}

// addItems makes the items' nodes and sorts the streams.
func (p *part) addItems() {
	g := p.g
	for i := range p.items {
		it := &p.items[i]
		event := it.node
		early := it.moment == none && it.issued < p.win.Start
		kind := NodeCompute
		switch {
		case it.operation >= 0:
			kind = NodeTransfer
			it.entry = g.add(NodeArrival, p.r, it.start, it.start)
			g.event[it.entry], g.operation[it.entry] = event, it.operation
		case it.memory:
			kind = NodeMemory
		}
		it.node = g.add(kind, p.r, it.start, it.end)
		g.event[it.node], g.operation[it.node] = event, it.operation
		if it.operation >= 0 {
			p.arrive[it.operation], p.leave[it.operation] = it.entry, it.node
		} else {
			it.entry = it.node
		}
		if early {
			g.flags[it.node] |= beforeStep
			g.flags[it.entry] |= beforeStep
		}
	}
	for l := range p.lines {
		ln := &p.lines[l]
		slices.SortStableFunc(ln.items, func(a, b int32) int {
			return cmp.Or(cmp.Compare(p.items[a].start, p.items[b].start), cmp.Compare(p.items[a].end, p.items[b].end))
		})
		for k, i := range ln.items {
			issued, ended := p.items[i].issued, p.items[i].end
			if k > 0 {
				issued, ended = max(issued, ln.issued[k-1]), max(ended, ln.ended[k-1])
			}
			ln.issued, ln.ended = append(ln.issued, issued), append(ln.ended, ended)
		}
	}
}

// depend makes item i start (a kernel: end) no earlier than node from ended.
func (p *part) depend(i, from int32, limit int64) bool {
	it := &p.items[i]
	if !p.g.link(from, it.entry, limit) {
		return false
	}
	it.ready = max(it.ready, min(p.g.end[from], it.start))
	return true
}

// linkStreams makes every item wait for its launch and for what ran before it on
// its stream. What lies within the one before ran beside it, whatever the stream
// says, and waits for that one's own predecessor.
func (p *part) linkStreams() {
	ev := &p.rank.Events
	for _, ln := range p.lines {
		last := none
		for _, i := range ln.items {
			it := &p.items[i]
			if it.moment != none && !p.depend(i, p.nodeOf[it.moment], slack) {
				e := p.g.event[it.node]
				p.g.reject("ends-before-launch", p.r, ev.Offset[e], "%q ends before it was launched", p.rank.Name(int(e)))
			}
			if last == none {
				last = i
				continue
			}
			it.previous = last
			if !p.depend(i, p.items[last].node, rounding) {
				e := p.g.event[it.node]
				p.g.reject("stream-overlap", p.r, ev.Offset[e], "%q ran within what came before it on its stream", p.rank.Name(int(e)))
				it.previous = p.items[last].previous
				if it.previous != none {
					p.depend(i, p.items[it.previous].node, rounding)
				}
			}
			if it.end >= p.items[last].end {
				last = i
			}
		}
	}
}

// launchIndex finds the API call that launched device work.
type launchIndex struct {
	low   int64
	dense []int32         // by correlation less low, where those are close together
	rest  map[int64]int32 // else
}

func indexLaunches(rank *trace.Rank) *launchIndex {
	ev := &rank.Events
	x := &launchIndex{}
	var high int64
	n := 0
	for i := range ev.Len() {
		if c := ev.Correlation[i]; ev.Category[i] == trace.Runtime && c != trace.NoID {
			if n == 0 {
				x.low, high = c, c
			}
			x.low, high = min(x.low, c), max(high, c)
			n++
		}
	}
	if n > 0 && x.low >= 0 && high-x.low < 16*int64(n)+1024 {
		x.dense = fill(int(high-x.low) + 1)
	} else {
		x.rest = map[int64]int32{}
	}
	for i := range ev.Len() {
		c := ev.Correlation[i]
		if ev.Category[i] != trace.Runtime || c == trace.NoID || x.find(c) != none {
			continue // the first call of a correlation is the launch
		}
		if x.dense != nil {
			x.dense[c-x.low] = int32(i)
		} else {
			x.rest[c] = int32(i)
		}
	}
	return x
}

// find returns the launch of a correlation, none when the trace has none.
func (x *launchIndex) find(correlation int64) int32 {
	if x.dense != nil {
		if correlation < x.low || correlation-x.low >= int64(len(x.dense)) {
			return none
		}
		return x.dense[correlation-x.low]
	}
	if i, ok := x.rest[correlation]; ok {
		return i
	}
	return none
}

// alwaysBlock are API calls that return when device work has ended, beside
// those named ...Synchronize.
var alwaysBlock = []string{"cudaMemcpy", "hipMemcpy", "hipMemcpyWithStream", "cudaFree", "hipFree", "cudaMemset"}

func blocks(name string) bool {
	return strings.HasSuffix(name, "Synchronize") || slices.Contains(alwaysBlock, name)
}
