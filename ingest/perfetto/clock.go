package perfetto

import "math"

// Clocks of builtin_clock.proto.
const (
	clockRealtime = 1
	clockBoottime = 6
)

// Ids from 64 to 127 belong to their sequence; all others are the same
// everywhere.
const (
	firstOwnClock = 64
	lastOwnClock  = 127
)

type clockKey struct {
	seq uint32 // 0 for clocks that are the same everywhere
	id  uint32
}

func keyOf(seq, id uint32) clockKey {
	if id >= firstOwnClock && id <= lastOwnClock {
		return clockKey{seq, id}
	}
	return clockKey{0, id}
}

// clockState is what the last snapshot says of a clock.
type clockState struct {
	unit        int64 // ns
	incremental bool  // time stamps count from the one before
	last        int64 // ns of this clock, when incremental
	lost        bool  // a time stamp in between was lost
	offset      int64 // to the trace's clock, ns; valid with tied
	tied        bool
}

// clocks turns time stamps of all clocks into the trace's: the primary one that
// snapshots name, else BOOTTIME. Clocks are taken to run alike between
// snapshots.
type clocks struct {
	primary     uint32
	primarySaid bool
	state       map[clockKey]*clockState
	unix        int64
	unixKnown   bool
}

func newClocks() clocks {
	return clocks{primary: clockBoottime, state: map[clockKey]*clockState{}}
}

func (c *clocks) unixOffset() (int64, bool) {
	if c.primarySaid && c.primary == clockRealtime {
		return 0, true
	}
	return c.unix, c.unixKnown
}

type reading struct {
	id          uint32
	at          uint64
	unit        int64
	incremental bool
}

// maxReadings bounds the clocks of one snapshot.
const maxReadings = 256

// snapshot takes a ClockSnapshot: the same moment on several clocks.
func (c *clocks) snapshot(b []byte, seq uint32) bool {
	var list []reading
	whole := fields(b, func(x field) bool {
		switch x.num {
		case snapshotPrimary:
			if !c.primarySaid && x.n != 0 {
				c.primary, c.primarySaid = uint32(x.n), true
			}
		case snapshotClocks:
			q := reading{unit: 1}
			if len(list) >= maxReadings || !x.isBytes() || !fields(x.data, func(y field) bool {
				switch y.num {
				case clockID:
					q.id = uint32(y.n)
				case clockTimestamp:
					q.at = y.n
				case clockIncremental:
					q.incremental = y.n != 0
				case clockUnitNS:
					q.unit = int64(y.n)
				}
				return true
			}) {
				return false
			}
			list = append(list, q)
		}
		return true
	})
	if !whole {
		return false
	}
	now, known := c.moment(list, seq)
	for _, q := range list {
		key := keyOf(seq, q.id)
		at, ok := q.ns()
		if !ok {
			continue
		}
		if q.id == clockRealtime && known && !c.unixKnown {
			if d, ok := sub(at, now); ok {
				c.unix, c.unixKnown = d, true
			}
		}
		s := c.state[key]
		if s == nil {
			if len(c.state) >= maxSequences {
				return false
			}
			s = &clockState{}
			c.state[key] = s
		}
		s.unit, s.incremental, s.last, s.lost = max(q.unit, 1), q.incremental, at, false
		if d, ok := sub(now, at); ok && known {
			s.offset, s.tied = d, true
		}
	}
	return true
}

// moment finds the time of a snapshot on the trace's clock: it is read there,
// or on a clock that is tied to it.
func (c *clocks) moment(list []reading, seq uint32) (int64, bool) {
	for _, q := range list {
		if q.id == c.primary {
			return q.ns()
		}
	}
	for _, q := range list {
		s := c.state[keyOf(seq, q.id)]
		if at, ok := q.ns(); ok && s != nil && s.tied && !s.incremental {
			return add(at, s.offset)
		}
	}
	return 0, false
}

func (q reading) ns() (int64, bool) {
	if q.at > math.MaxInt64 {
		return 0, false
	}
	return scaleNS(int64(q.at), max(q.unit, 1))
}

// lost marks the clocks of a sequence that count from the packet before.
func (c *clocks) lost(seq uint32) {
	for id := uint32(firstOwnClock); id <= lastOwnClock; id++ {
		if s := c.state[clockKey{seq, id}]; s != nil {
			s.lost = s.incremental
		}
	}
}

// timeStatus is the outcome of reading a time stamp.
type timeStatus uint8

const (
	timeKnown    timeStatus = iota
	timeUntied              // a clock that is not tied to the trace's, so far
	timeUnknown             // and never will be
	timeOverflow            // does not fit
)

// convert reads a time stamp. One that is not tied yet is returned as it is, or
// added up if its clock is incremental.
func (c *clocks) convert(key clockKey, stamp uint64) (int64, timeStatus) {
	if stamp > math.MaxInt64 {
		return 0, timeOverflow
	}
	s := c.state[key]
	if s == nil {
		if key == (clockKey{0, c.primary}) {
			return int64(stamp), timeKnown
		}
		return int64(stamp), timeUntied
	}
	ns, ok := scaleNS(int64(stamp), s.unit)
	if !ok {
		return 0, timeOverflow
	}
	if s.incremental {
		if ns, ok = add(s.last, ns); !ok {
			return 0, timeOverflow
		}
		s.last = ns
		if s.lost {
			return 0, timeUnknown
		}
	}
	switch {
	case key == (clockKey{0, c.primary}):
		return ns, timeKnown
	case !s.tied && s.incremental:
		return ns, timeUntied
	case !s.tied:
		return int64(stamp), timeUntied
	}
	if ns, ok = add(ns, s.offset); !ok {
		return 0, timeOverflow
	}
	return ns, timeKnown
}

func add(a, b int64) (int64, bool) {
	s := a + b
	return s, (s > a) == (b > 0)
}

func sub(a, b int64) (int64, bool) {
	d := a - b
	return d, (d < a) == (b > 0)
}
