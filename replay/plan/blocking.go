package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"mixdown/analyze/overlap"
	"mixdown/ingest/trace"
)

// hostThreads is how often each thread launched device work or made a call that
// blocks in the step.
func (d *deviceRank) hostThreads() map[trace.ThreadID]int {
	count := map[trace.ThreadID]int{}
	for _, it := range d.items {
		if it.launched {
			count[it.thread]++
		}
	}
	for i := range d.rank.Events.Len() {
		if d.blocksInStep(i) {
			count[d.rank.Events.Thread[i]]++
		}
	}
	return count
}

// blocksInStep says whether an event is a call of the step that blocks.
func (d *deviceRank) blocksInStep(i int) bool {
	ev := &d.rank.Events
	return ev.Category[i] == trace.Runtime && ev.TS[i] >= d.win.start && ev.TS[i] < d.win.end && overlap.Blocks(d.rank.Name(i))
}

// linkHost lists the host's launches and the calls that blocked it.
func (d *deviceRank) linkHost() {
	for _, it := range d.items {
		if it.launched {
			d.w.pb.Dependencies.Recorded++
			d.points = append(d.points, devicePoint{at: it.launch, launch: it, host: d.hosts.stream(it.thread)})
		}
	}
	ev := &d.rank.Events
	for i := range ev.Len() {
		if !d.blocksInStep(i) {
			continue
		}
		p := devicePoint{at: ev.TS[i], end: ev.End(i), host: d.hosts.stream(ev.Thread[i])}
		recorded := true
		if on := d.hostWaits[ev.Correlation[i]]; on != nil {
			p.deps = []*item{on}
		} else {
			p.deps, recorded = d.blockedBy(i, p)
		}
		if len(p.deps) == 0 {
			continue
		}
		for _, on := range p.deps {
			on.referenced = true
		}
		if recorded {
			d.w.pb.Dependencies.Recorded++
		} else {
			d.w.pb.Dependencies.Inferred += int64(len(p.deps))
		}
		d.points = append(d.points, p)
	}
	slices.SortStableFunc(d.points, func(a, b devicePoint) int { return cmp.Compare(a.at, b.at) })
	waits := make([]int, len(d.hosts.names))
	turns := d.hosts.turns
	for _, p := range d.points {
		for ; len(turns) > 0 && turns[0].end <= p.at; turns = turns[1:] {
			waits[turns[0].to]++
		}
		if p.launch == nil {
			waits[p.host]++
			continue
		}
		p.launch.hostSegment = segment{p.host, waits[p.host]}
	}
}

// blockedBy finds what a call waited for, on the stream that it names (recorded), or
// on any. Where threads work at the same time, what other threads launched ends
// while a call lasts by chance: a call that is not for the whole device waited for
// what its own thread launched, and only where that was done for what ended just
// when the call did.
func (d *deviceRank) blockedBy(i int, p devicePoint) (deps []*item, recorded bool) {
	ev := &d.rank.Events
	stream := ev.Stream[i]
	recorded = stream != trace.NoStream && stream >= 0
	for _, s := range slices.Sorted(maps.Keys(d.lines)) {
		if recorded && stream != s {
			continue
		}
		if last := d.lines[s].lastBefore(p.at, p.end+slack); last != nil && last.end > p.at {
			deps = append(deps, last)
		}
	}
	if recorded || !d.hosts.several() || strings.HasSuffix(d.rank.Name(i), "DeviceSynchronize") {
		return deps, recorded
	}
	others := func(it *item) bool { return d.hosts.stream(it.thread) != p.host }
	if own := slices.DeleteFunc(slices.Clone(deps), others); len(own) > 0 {
		return own, false
	}
	return slices.DeleteFunc(deps, func(it *item) bool { return it.end < p.end-slack }), false
}

// lastBefore is the last item of the line that was issued before at and ended
// by end, nil when there is none.
func (l *line) lastBefore(at, end int64) *item {
	for _, it := range slices.Backward(l.items) {
		if it.issued() <= at && it.end <= end {
			return it
		}
	}
	return nil
}
