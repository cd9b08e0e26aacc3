package perfetto

import (
	"bytes"
	"math"
	"strconv"

	"mixdown/ingest/chrome"
	"mixdown/ingest/trace"
)

// heldKind is what an event does on its track.
type heldKind uint8

const (
	heldBegin    heldKind = iota
	heldEnd               // delivered as part of the begin
	heldInstant           //
	heldComplete          // with a duration of its own: legacy events
)

// held is a track event as it is kept until the trace is read.
type held struct {
	kind    heldKind
	hasTS   bool
	hasDur  bool
	untied  bool // ts is of a clock that was not tied to the trace's yet
	track   trackID
	partner int32 // the end of a begin, -1 when there is none
	name    trace.NameID
	cat     trace.NameID
	clock   clockKey
	ts, dur int64
	flow    uint64
	args    []byte // JSON object

	offset, end int64
}

// trackEvent is what is read of one before it is kept.
type trackEvent struct {
	kind, legacyPhase   uint64
	name                trace.NameID
	cats                [][]byte
	track               uint64
	hasTrack            bool
	flow                uint64
	hasDelta, hasMicros bool
	delta, micros       int64
	legacyDur           int64
	hasLegacyDur        bool
	pid, tid            int64
	hasPID, hasTID      bool
}

// trackEvent reads the track event of a packet; false when it is no message.
func (r *Reader) trackEvent(p *packet) bool {
	var e trackEvent
	notes := annotations{r: r, seq: p.seq, at: p.at, out: r.scratch[:0]}
	whole := fields(p.event, func(x field) bool {
		switch x.num {
		case eventType:
			e.kind = x.n
		case eventName:
			e.name = r.text(x.data, p.at)
		case eventNameIID:
			e.name = r.lookup(p.seq.names, x.n, p.at)
		case eventCategories:
			e.cats = append(e.cats, x.data)
		case eventCategoryIIDs:
			return x.each(func(iid uint64) {
				e.cats = append(e.cats, []byte(r.names.Get(r.lookup(p.seq.categories, iid, p.at))))
			})
		case eventTrackUUID:
			e.track, e.hasTrack = x.n, true
		case eventFlowIDs, eventFlowIDsOld:
			if !x.isBytes() && e.flow == 0 {
				e.flow = x.n
			}
		case eventAnnotations:
			return x.isBytes() && notes.add(x.data)
		case eventDeltaMicros:
			e.delta, e.hasDelta = int64(x.n), true
		case eventAbsoluteMicros:
			e.micros, e.hasMicros = int64(x.n), true
		case eventLegacy:
			return x.isBytes() && r.legacy(&e, x.data, p)
		}
		return true
	})
	r.scratch = notes.out
	h := held{partner: -1, name: e.name, flow: e.flow, offset: p.at, end: p.end}
	if !whole || !e.kindOf(&h) {
		if whole {
			r.note(CodeUnreadEvent, p.at, "event of type %d, phase %d", e.kind, e.legacyPhase)
		}
		return whole
	}
	r.keep(h, &e, p, notes.out)
	return true
}

// keep adds an event to those that are held.
func (r *Reader) keep(h held, e *trackEvent, p *packet, args []byte) {
	if len(r.events) >= r.opts.MaxEvents {
		r.stop(p.at, "more than %d track events", r.opts.MaxEvents)
		return
	}
	h.track = r.trackOf(e, p)
	h.cat = r.text(bytes.Join(e.cats, []byte(",")), p.at)
	r.setTime(&h, e, p)
	if h.kind == heldComplete {
		h.dur, h.hasDur = e.duration()
	}
	if len(args) > 0 {
		h.args = r.store(append(args, '}'), p.at)
	}
	r.events = append(r.events, h)
}

// kindOf decides what an event does, by its type or its legacy phase.
func (e *trackEvent) kindOf(h *held) bool {
	switch {
	case e.kind == typeSliceBegin, e.kind == 0 && e.legacyPhase == 'B':
		h.kind = heldBegin
	case e.kind == typeSliceEnd, e.kind == 0 && e.legacyPhase == 'E':
		h.kind = heldEnd
	case e.kind == typeInstant, e.kind == 0 && (e.legacyPhase == 'i' || e.legacyPhase == 'I'):
		h.kind = heldInstant
	case e.kind == 0 && e.legacyPhase == 'X':
		h.kind = heldComplete
	default:
		return false
	}
	return true
}

func (e *trackEvent) duration() (int64, bool) {
	ns, ok := scaleNS(e.legacyDur, 1000)
	return ns, ok && e.hasLegacyDur && ns >= 0
}

// legacy reads what Chrome's own writers put into a LegacyEvent.
func (r *Reader) legacy(e *trackEvent, b []byte, p *packet) bool {
	return fields(b, func(x field) bool {
		switch x.num {
		case legacyNameIID:
			e.name = r.lookup(p.seq.names, x.n, p.at)
		case legacyPhase:
			e.legacyPhase = x.n
		case legacyDuration:
			e.legacyDur, e.hasLegacyDur = int64(x.n), true
		case legacyPID:
			e.pid, e.hasPID = int64(int32(x.n)), true
		case legacyTID:
			e.tid, e.hasTID = int64(int32(x.n)), true
		}
		return true
	})
}

// trackOf decides which track an event is on.
func (r *Reader) trackOf(e *trackEvent, p *packet) trackID {
	s := p.seq
	switch {
	case e.hasPID || e.hasTID:
		pid, tid := s.pid, s.tid
		if e.hasPID {
			pid = e.pid
		}
		if e.hasTID {
			tid = e.tid
		}
		return r.legacyTrack(pid, tid, p.at)
	case e.hasTrack:
		return r.track(e.track, p.at)
	case s.hasTrack:
		return r.track(s.track, p.at)
	case s.hasThread:
		return r.legacyTrack(s.pid, s.tid, p.at)
	}
	return r.track(0, p.at)
}

// setTime gives an event its time on the trace's clock.
func (r *Reader) setTime(h *held, e *trackEvent, p *packet) {
	var ok bool
	switch {
	case e.hasMicros:
		h.ts, ok = scaleNS(e.micros, 1000)
	case e.hasDelta:
		h.ts, ok = p.seq.microsToNS(e.delta)
	case !p.hasTime:
		r.note(CodeMissingTS, p.at, "%+.80q", r.names.Get(h.name))
		return
	default:
		id := p.clock
		if id == 0 {
			id = p.seq.clock
		}
		if id == 0 {
			id = r.clocks.primary
		}
		h.clock = keyOf(p.seq.id, id)
		var status timeStatus
		h.ts, status = r.clocks.convert(h.clock, p.time)
		switch status {
		case timeUnknown:
			r.note(CodeUnknownClock, p.at, "clock %d after packets were lost", id)
			return
		case timeUntied:
			h.untied = true
		}
		ok = status != timeOverflow
	}
	if !ok {
		r.note(CodeTimeOverflow, p.at, "%+.80q", r.names.Get(h.name))
		return
	}
	h.hasTS = true
}

const arenaSize = 256 << 10

// store keeps a copy of b.
func (r *Reader) store(b []byte, at int64) []byte {
	r.hold(len(b), at)
	if len(b) > cap(r.arena)-len(r.arena) {
		r.arena = make([]byte, 0, max(arenaSize, len(b)))
	}
	n := len(r.arena)
	r.arena = append(r.arena, b...)
	return r.arena[n:len(r.arena):len(r.arena)]
}

// flowID makes the id of a flow.
func flowID(n uint64) chrome.ID {
	if n <= math.MaxInt64 {
		return chrome.IntID(int64(n))
	}
	return chrome.StringID(strconv.FormatUint(n, 10))
}
