package perfetto

import (
	"cmp"
	"slices"
)

// settle decides what could not be decided before the trace was read: times of
// clocks that a later snapshot ties, and which end belongs to which begin.
func (r *Reader) settle() {
	r.settleClocks()
	byTrack := make([][]int32, len(r.tracks.list))
	used := make([]bool, len(r.tracks.list))
	for i := range r.events {
		h := &r.events[i]
		if t := &r.tracks.list[h.track]; !used[h.track] {
			used[h.track] = true
			if !t.described && t.uuid != 0 {
				r.note(CodeUnknownTrack, h.offset, "track %d", t.uuid)
			}
		}
		if h.kind == heldBegin || h.kind == heldEnd {
			if h.hasTS {
				byTrack[h.track] = append(byTrack[h.track], int32(i))
			} else if h.kind == heldEnd {
				r.note(CodeUnmatchedEnd, h.offset, "an end without time")
			}
		}
	}
	for _, events := range byTrack {
		r.pairTrack(events)
	}
	for i := range r.events {
		if h := &r.events[i]; h.kind == heldBegin && !h.hasDur {
			r.note(CodeUnmatchedBegin, h.offset, "%+.80q", r.names.Get(h.name))
		}
	}
}

// settleClocks converts the times of clocks that were tied too late, and takes
// those of a file with a single clock as they are.
func (r *Reader) settleClocks() {
	seen := map[clockKey]bool{}
	untied := false
	for i := range r.events {
		if h := &r.events[i]; h.hasTS {
			seen[h.clock] = true
			untied = untied || h.untied
		}
	}
	if !untied {
		return
	}
	for i := range r.events {
		h := &r.events[i]
		if !h.untied {
			continue
		}
		s := r.clocks.state[h.clock]
		switch {
		case s != nil && s.tied && !s.incremental:
			ns, ok := scaleNS(h.ts, s.unit)
			if ok {
				ns, ok = add(ns, s.offset)
			}
			if h.ts, h.hasTS = ns, ok; !ok {
				r.note(CodeTimeOverflow, h.offset, "clock %d", h.clock.id)
			}
		case len(seen) == 1:
			if h.clock == (clockKey{0, clockRealtime}) {
				r.clocks.unix, r.clocks.unixKnown = 0, true
			}
		default:
			h.ts, h.hasTS = 0, false
			r.note(CodeUnknownClock, h.offset, "clock %d", h.clock.id)
		}
	}
}

// pairTrack joins the begins and ends of one track, given in file order.
//
//   - In order of time, as tracing services write them, they nest.
//   - Out of order, but in batches of n begins and then n ends, as PyTorch
//     writes them, the i-th end belongs to the i-th begin. Slices may then
//     overlap and take no time.
//   - Otherwise they are sorted by time and nest.
func (r *Reader) pairTrack(events []int32) {
	ts := func(i int32) int64 { return r.events[i].ts }
	switch {
	case slices.IsSortedFunc(events, func(a, b int32) int { return cmp.Compare(ts(a), ts(b)) }):
		r.nest(events, false)
	case r.pairBatches(events):
	default:
		r.note(CodeUnorderedTrack, r.events[events[0]].offset, "%d begins and ends", len(events))
		slices.SortStableFunc(events, func(a, b int32) int {
			// Ends first: a slice that begins where another ends is its neighbour.
			return cmp.Or(cmp.Compare(ts(a), ts(b)), cmp.Compare(r.events[b].kind, r.events[a].kind))
		})
		r.nest(events, true)
	}
}

// pairBatches joins batches, if that is what events are.
func (r *Reader) pairBatches(events []int32) bool {
	var pairs [][2]int32
	for i := 0; i < len(events); {
		begins := r.run(events[i:], heldBegin)
		ends := r.run(events[i+begins:], heldEnd)
		if begins == 0 || begins != ends {
			return false
		}
		for k := range begins {
			b, e := events[i+k], events[i+begins+k]
			if r.events[e].ts < r.events[b].ts {
				return false
			}
			pairs = append(pairs, [2]int32{b, e})
		}
		i += begins + ends
	}
	for _, p := range pairs {
		r.join(p[0], p[1])
	}
	return true
}

// run is how many events of a kind events begins with.
func (r *Reader) run(events []int32, kind heldKind) int {
	n := 0
	for n < len(events) && r.events[events[n]].kind == kind {
		n++
	}
	return n
}

// nest joins events that are in order: an end closes the slice that began last.
// If they were sorted, an end without slice waits for a begin at the same time:
// of a slice that takes no time, the end was sorted first.
func (r *Reader) nest(events []int32, sorted bool) {
	var open, early []int32
	for _, i := range events {
		for len(early) > 0 && r.events[early[0]].ts < r.events[i].ts {
			r.unmatchedEnd(early[0])
			early = early[1:]
		}
		switch {
		case r.events[i].kind == heldBegin && len(early) > 0:
			r.join(i, early[0])
			early = early[1:]
		case r.events[i].kind == heldBegin:
			open = append(open, i)
		case len(open) > 0:
			r.join(open[len(open)-1], i)
			open = open[:len(open)-1]
		case sorted:
			early = append(early, i)
		default:
			r.unmatchedEnd(i)
		}
	}
	for _, i := range early {
		r.unmatchedEnd(i)
	}
}

func (r *Reader) unmatchedEnd(i int32) {
	h := &r.events[i]
	r.note(CodeUnmatchedEnd, h.offset, "at %d ns", h.ts)
}

// join makes a slice of a begin and an end.
func (r *Reader) join(b, e int32) {
	begin, end := &r.events[b], &r.events[e]
	dur, ok := sub(end.ts, begin.ts)
	if !ok {
		r.note(CodeTimeOverflow, end.offset, "%+.80q", r.names.Get(begin.name))
		return
	}
	begin.dur, begin.hasDur = dur, true
	begin.partner = e
}
