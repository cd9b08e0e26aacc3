package whatif

import (
	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/sim"
)

// took is what an operation takes while what-ifs change it. What they change are parts
// of its time that do not touch each other, so that their order does not matter.
type took struct {
	ns     int64   // as it was
	size   float64 // times that the part takes which depends on the size
	whole  float64 // times that both parts take
	more   float64 // ns beside the transfer: latency, codecs; may be below 0
	free   bool    // nothing at all
	sized  func() float64
	joined bool // size was changed, so that the parts count
}

// scale multiplies what depends on the size.
func (t *took) scale(by float64) {
	t.size *= by
	t.joined = true
}

// total is what it takes now, ns, before it is bounded.
func (t *took) total() float64 {
	if t.free {
		return 0
	}
	parts := 1.0
	if t.joined {
		if a := t.sized(); t.size != 1 { // else rounding would tell
			parts = a + (1-a)*t.size
		}
	}
	return max(float64(t.ns)*parts*t.whole+t.more, 0)
}

// cost is what an operation that took so long takes with all changes, ns.
func (s *Step) cost(m sim.Meeting, ns int64) int64 {
	t := took{ns: ns, size: 1, whole: 1, sized: func() float64 { return s.fixed(m) }}
	for _, change := range s.changed {
		change(m, &t)
	}
	// The smallest part of a ns keeps whole numbers whole.
	return s.bounded.nanoseconds(t.total() + 1e-6)
}

// fixed is the part of an operation's time that does not depend on its size; where
// nothing tells, none, and the answer says so.
func (s *Step) fixed(m sim.Meeting) float64 {
	if plan.Op(m.Communication) == comm.Barrier && !m.Transfer {
		return 1 // it has no size
	}
	if s.Fixed != nil {
		if part, ok := s.Fixed(m); ok {
			return min(max(part, 0), 1)
		}
	}
	s.unfixed = true
	return 0
}

// longest bounds what a single operation, span or message is said to take, in ns, so
// that the sums of a step stay within 64 bits: 13 days.
const longest = int64(1) << 50

// bounded notes whether a time was longer than the longest.
type bounded struct{ hit bool }

// nanoseconds is a time that was computed, within what a step can hold.
func (b *bounded) nanoseconds(ns float64) int64 {
	if !(ns < float64(longest)) {
		b.hit = true
		return longest
	}
	return max(int64(ns), 0)
}

// tooLong is said where a time was bounded.
const tooLong = "what would take longer than 13 days is taken to take 13 days"
