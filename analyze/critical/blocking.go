package critical

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"mixdown/ingest/trace"
)

// findBlocking adds the moments of API calls that returned when device work had
// ended. Calls that show no such work are the host's own time.
func (p *part) findBlocking(launches *launchIndex) {
	ev := &p.rank.Events
	known := map[trace.NameID]bool{}
	streams := map[int32]int64{} // API call -> the stream it synchronised
	for i := range ev.Len() {
		if ev.Category[i] != trace.Sync || ev.Stream[i] == trace.NoStream || ev.Stream[i] < 0 ||
			!strings.HasPrefix(p.rank.Name(i), "Stream Sync") {
			continue
		}
		if l := launches.find(ev.Correlation[i]); l != none {
			streams[l] = ev.Stream[i]
		}
	}
	for i := range ev.Len() {
		if ev.Category[i] != trace.Runtime {
			continue
		}
		at, end := p.rel(ev.TS[i]), min(p.rel(ev.End(i)), p.win.End)
		if at < p.win.Start || at >= p.win.End {
			continue
		}
		block, seen := known[ev.Name[i]]
		if !seen {
			block = blocks(p.rank.Name(i))
			known[ev.Name[i]] = block
		}
		if !block {
			continue
		}
		stream, named := streams[int32(i)]
		if !named && ev.Stream[i] != trace.NoStream && ev.Stream[i] >= 0 {
			stream, named = ev.Stream[i], true
		}
		if !named {
			stream = trace.NoStream
		}
		p.addBlock(i, at, end, p.waitedFor(at, end, stream))
	}
	p.findBlockingCopies()
}

// findBlockingCopies adds the asynchronous copies that were none: between pages
// that are not pinned, the call returns when the copy is done.
func (p *part) findBlockingCopies() {
	ev := &p.rank.Events
	for i := range p.items {
		it := &p.items[i]
		if !it.memory || it.operation >= 0 || it.moment == none {
			continue
		}
		end := min(p.rel(ev.End(int(it.launch))), p.win.End)
		if it.end <= end && strings.Contains(p.rank.Name(int(it.launch)), "Memcpy") && !blocks(p.rank.Name(int(it.launch))) {
			p.addBlock(int(it.launch), it.issued, end, []int32{it.node})
		}
	}
}

func (p *part) addBlock(event int, at, end int64, waits []int32) {
	if len(waits) == 0 || end <= at {
		return
	}
	thread := p.rank.Events.Thread[event]
	p.moments = append(p.moments,
		moment{at: at, thread: thread, event: int32(event)},
		moment{at: end, thread: thread, kind: returned, event: int32(event), waits: waits})
}

// waitedFor lists the ends of the device work that a call from at to end waited
// for: on each stream, or on the one that is named, the last item issued before
// the call, if it ended while the call lasted.
//
// Which stream a call waited for is often not said. Streams that were done with
// all of it when the call returned are the likely ones; where there are none,
// the call waited for an event within a stream: the item that ended last before
// it returned.
func (p *part) waitedFor(at, end int64, stream int64) []int32 {
	var drained, within []int32
	for l := range p.lines {
		ln := &p.lines[l]
		if stream != trace.NoStream && ln.stream != stream {
			continue
		}
		issued := sort.Search(len(ln.issued), func(k int) bool { return ln.issued[k] > at })
		if issued == 0 {
			continue
		}
		if latest := ln.ended[issued-1]; latest <= end+slack {
			if latest > at {
				drained = append(drained, p.endsAt(ln, issued, latest))
			}
			continue
		}
		done := sort.Search(issued, func(k int) bool { return ln.ended[k] > end })
		if done > 0 && ln.ended[done-1] > at {
			within = append(within, p.endsAt(ln, done, ln.ended[done-1]))
		}
	}
	if len(drained) > 0 {
		return drained
	}
	// Only the one nearest to the return: the others ran on by chance.
	if len(within) > 1 {
		best := slices.MaxFunc(within, func(a, b int32) int { return cmp.Compare(p.g.end[a], p.g.end[b]) })
		within = []int32{best}
	}
	return within
}

// endsAt is the node of the item among the first n of a stream that ended at t,
// the largest end of them: it is near the end but where items overlap.
func (p *part) endsAt(ln *line, n int, t int64) int32 {
	k := sort.Search(n, func(k int) bool { return ln.ended[k] >= t })
	return p.items[ln.items[k]].node
}
