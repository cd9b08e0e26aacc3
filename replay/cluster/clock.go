package cluster

import "time"

// Clock estimates how far another host's clock is from this one's, from questions and
// answers (D. Mills, RFC 5905, section 8): the answer was given somewhere between
// asking and hearing it, so the offset is known to half of the time between. The
// quickest answer of the last ones counts. The zero value knows nothing.
type Clock struct {
	last []sample
}

type sample struct{ offset, roundTrip int64 }

// window is how many answers count: clocks drift.
const window = 64

// Observe takes an answer: asked and heard on this host's clock, answered on the
// other's, in ns.
func (c *Clock) Observe(asked, answered, heard int64) {
	if heard < asked {
		return
	}
	c.last = append(c.last, sample{answered - asked - (heard-asked)/2, heard - asked})
	if len(c.last) > window {
		c.last = c.last[1:]
	}
}

func (c *Clock) best() (sample, bool) {
	if len(c.last) == 0 {
		return sample{}, false
	}
	best := c.last[0]
	for _, s := range c.last[1:] {
		if s.roundTrip < best.roundTrip {
			best = s
		}
	}
	return best, true
}

// Offset is what to add to a time of this host to have the other's, and how far off
// that may be; false when nothing was observed.
func (c *Clock) Offset() (offset, bound time.Duration, known bool) {
	s, ok := c.best()
	return time.Duration(s.offset), time.Duration((s.roundTrip + 1) / 2), ok
}

// RoundTrip is the shortest time from a question to its answer.
func (c *Clock) RoundTrip() time.Duration {
	s, _ := c.best()
	return time.Duration(s.roundTrip)
}
