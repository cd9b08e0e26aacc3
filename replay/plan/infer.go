package plan

import (
	"cmp"
	"slices"
	"sort"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// rounding is by how much, in ns, two moments of one device may seem out of order:
// older profilers write whole microseconds, start and duration rounded each for
// itself.
const rounding = 2_000

// handOver is how soon, in ns, after the end of what it waited for on another
// stream a kernel starts.
const handOver = 5_000

// linkEvents makes the dependencies that the device's profiler recorded: what a
// stream is given after a call that waits for an event runs after what the other
// stream had been given when the event was recorded. The times of some contradict
// it: those calls belong to other work.
func (d *deviceRank) linkEvents() {
	d.hostWaits = map[int64]*item{}
	for _, w := range d.rank.EventWaits {
		asked, known := d.calls[w.Call]
		recorded, known2 := d.calls[w.Record]
		on := d.lines[w.On]
		if !known || !known2 || on == nil {
			continue
		}
		n := sort.Search(len(on.items), func(k int) bool { return on.items[k].issued() > recorded })
		if n == 0 {
			continue // launched before the step
		}
		before := on.items[n-1]
		if w.Stream == trace.NoStream {
			if before.end > asked {
				d.hostWaits[w.Call] = before
			}
			continue
		}
		l := d.lines[w.Stream]
		if l == nil || l == on {
			continue
		}
		n = sort.Search(len(l.items), func(k int) bool { return l.items[k].issued() > asked })
		switch {
		case n == len(l.items):
		case l.items[n].start+slack < before.end:
			d.w.pb.Dependencies.Rejected++
		default:
			d.depend(l.items[n], before)
			d.w.pb.Dependencies.Recorded++
		}
	}
}

// inferDependencies finds waits between streams that the trace does not record.
// Without them what ran after communication would run on while it is late.
func (d *deviceRank) inferDependencies() {
	d.inferFollowers()
	d.inferGaps()
}

// inferFollowers finds the operations that the program's stream waits for at once:
// blocking ones. What the same thread launches next, on another stream, never
// starts before such an operation ends, and starts just then where nothing else
// held it up longer. An operation is taken for blocking when this is so for all of
// its kind in the step and group, and some show it, or several do not contradict
// it. Nor is it contradicted when communication is always over before the next
// launch: then all is taken for blocking if nothing in the step runs beside it.
func (d *deviceRank) inferFollowers() {
	type kind struct {
		group int
		op    comm.Op
	}
	type pair struct{ operation, next *item }
	last := map[trace.ThreadID]*item{}
	followers := map[kind][]pair{}
	shown, against := map[kind]int{}, map[kind]int{}
	var order []kind
	for _, it := range d.items {
		if !it.launched {
			continue
		}
		before := last[it.thread]
		last[it.thread] = it
		if before == nil || before.operation < 0 || before.stream == it.stream {
			continue
		}
		op := &d.rank.Operations[before.operation]
		k := kind{group: op.Group, op: op.Op}
		if len(followers[k]) == 0 && against[k] == 0 {
			order = append(order, k)
		}
		if it.start < before.end-rounding {
			against[k]++
			continue
		}
		followers[k] = append(followers[k], pair{before, it})
		if it.start-before.end <= handOver && it.start-d.ready(it) > rounding && before.end-d.ready(it) > rounding {
			shown[k]++
		}
	}
	const several = 3
	total := 0
	for k := range followers {
		total += len(followers[k])
	}
	for _, k := range order {
		enough := shown[k] > 0 || len(followers[k]) >= several || len(against) == 0 && total >= several
		if against[k] > 0 || !enough {
			d.w.pb.Dependencies.Rejected += int64(against[k])
			continue
		}
		for _, p := range followers[k] {
			d.infer(p.next, p.operation)
		}
	}
}

// ready is when nothing that is known held an item up any more.
func (d *deviceRank) ready(it *item) int64 {
	ready := d.win.start
	if it.launched {
		ready = it.launch
	}
	if it.position > 0 {
		ready = max(ready, d.lines[it.stream].items[it.position-1].end)
	}
	for _, dep := range it.deps {
		ready = max(ready, dep.end)
	}
	return ready
}

// inferGaps explains starts that nothing explains yet. What was launched, finds
// its stream empty, and still starts only when work on another stream ends waited
// for that work. Where communication ended just then, it is taken for the cause.
func (d *deviceRank) inferGaps() {
	byStart := slices.Clone(d.items)
	byEnd := slices.Clone(d.items)
	slices.SortStableFunc(byStart, func(a, b *item) int { return cmp.Compare(a.start, b.start) })
	slices.SortStableFunc(byEnd, func(a, b *item) int { return cmp.Compare(a.end, b.end) })
	var anything, communication *item // what ended last
	k := 0
	for _, it := range byStart {
		for ; k < len(byEnd) && byEnd[k].end <= it.start+rounding; k++ {
			anything = byEnd[k]
			if anything.operation >= 0 {
				communication = anything
			}
		}
		ready := d.ready(it)
		if it.start-ready <= slack {
			continue
		}
		for _, on := range []*item{communication, anything} {
			if on != nil && on != it && on.stream != it.stream && on.end > ready && it.start-on.end <= slack && on.start < it.start && (!it.launched || on.issued() <= it.launch) {
				d.infer(it, on)
				break
			}
		}
	}
}
