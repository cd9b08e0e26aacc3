package critical

import (
	"cmp"
	"slices"
)

// maxLookBack bounds how many operations a wait is searched among.
const maxLookBack = 64

// linkCommunication links computation and communication of a rank the way
// PyTorch does. Issuing a collective makes its stream wait for the stream that
// is current: for the last kernel that the same thread launched before. After a
// wait of the program, what the thread launches next waits for the newest
// collective issued until then that had ended. Dependencies that the times
// contradict are not the program's and are not made.
func (p *part) linkCommunication() {
	order := make([]int32, len(p.items))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &p.items[a], &p.items[b]
		return cmp.Or(cmp.Compare(x.issued, y.issued), cmp.Compare(x.start, y.start))
	})
	latest := fill(len(p.rank.Threads)) // thread -> the last computation it launched
	pending := make([]int64, len(p.rank.Threads))
	waiting := make([]bool, len(p.rank.Threads)) // thread -> it waited, at pending, and launched nothing since
	waits := p.rank.Waits
	var communication []int32
	next := 0
	for _, i := range order {
		it := &p.items[i]
		for next < len(waits) && p.rel(waits[next].TS) <= it.issued {
			pending[waits[next].Thread], waiting[waits[next].Thread] = p.rel(waits[next].TS), true
			next++
		}
		launched := it.launch != none
		switch {
		case it.operation >= 0:
			if launched && latest[it.thread] != none {
				p.across(i, latest[it.thread])
			}
			communication = append(communication, i)
		case launched:
			if waiting[it.thread] {
				p.afterWait(i, pending[it.thread], communication)
				waiting[it.thread] = false
			}
			latest[it.thread] = i
		}
	}
}

// afterWait makes item i wait for the newest operation issued until at.
func (p *part) afterWait(i int32, at int64, communication []int32) {
	for k := range min(len(communication), maxLookBack) {
		c := communication[len(communication)-1-k]
		if p.items[c].issued <= at && p.items[c].end <= p.items[i].start+slack {
			p.across(i, c)
			return
		}
	}
}

// across makes item i wait for item on, on another stream.
func (p *part) across(i, on int32) {
	a, b := &p.items[i], &p.items[on]
	if a.line == b.line || b.end > a.start+slack {
		return
	}
	p.depend(i, b.node, slack)
}

// inferDependencies explains starts that nothing explains yet. What was launched,
// finds its stream empty, and still starts only when work on another stream ends
// waited for that work: events between streams are not all in the trace. Where
// communication ended just then, it is taken for the cause.
//
// Without the dependency the gap would be the kernel's own time, which nothing
// shortens; with it, gains can only be larger, as those of a bound may.
func (p *part) inferDependencies() {
	byStart := make([]int32, len(p.items))
	for i := range byStart {
		byStart[i] = int32(i)
	}
	byEnd := slices.Clone(byStart)
	slices.SortStableFunc(byStart, func(a, b int32) int { return cmp.Compare(p.items[a].start, p.items[b].start) })
	slices.SortStableFunc(byEnd, func(a, b int32) int { return cmp.Compare(p.items[a].end, p.items[b].end) })
	anything, communication := none, none // what ended last
	k := 0
	for _, i := range byStart {
		it := &p.items[i]
		for ; k < len(byEnd) && p.items[byEnd[k]].end <= it.start+rounding; k++ {
			anything = byEnd[k]
			if p.items[anything].operation >= 0 {
				communication = anything
			}
		}
		if it.start-it.ready <= slack {
			continue
		}
		if p.waitedAcross(i, communication) || p.waitedAcross(i, anything) {
			p.g.inferred++
		}
	}
}

// waitedAcross makes item i wait for item on, on another stream, if the times
// say so. Where the launch of i is not in the trace, that it was before on is
// taken for granted.
func (p *part) waitedAcross(i, on int32) bool {
	if on == none || on == i {
		return false
	}
	a, b := &p.items[i], &p.items[on]
	if a.line == b.line || b.end <= a.ready || a.start-b.end > slack || b.start >= a.start || a.launch != none && b.issued > a.issued {
		return false
	}
	return p.depend(i, b.node, rounding)
}
