package perfetto

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"mixdown/ingest/chrome"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

var (
	// ErrEmpty: the input has no bytes.
	ErrEmpty = errors.New("empty file")
	// ErrNotPerfetto: the input is no Perfetto trace in protobuf.
	ErrNotPerfetto = errors.New("not a Perfetto trace")
)

// Codes of diagnostics. The comment says what the Reader did. Those that
// package chrome has, too, mean the same.
const (
	CodeTruncated       = chrome.CodeTruncated      // the file ends or breaks inside a packet; what came before was delivered
	CodeMissingTS       = chrome.CodeMissingTS      // event without time, delivered with HasTS false; an end of a slice left out
	CodeUnmatchedBegin  = chrome.CodeUnmatchedBegin // slice without end, delivered as B
	CodeUnmatchedEnd    = chrome.CodeUnmatchedEnd   // end without slice left out
	CodeEventLimit      = chrome.CodeEventLimit     // one of the limits of Options was reached, the rest was not read
	CodeNoEvents        = chrome.CodeNoEvents       // packets, but no track event
	CodeTimeOverflow    = chrome.CodeTimeOverflow   // time beyond int64 ns taken as missing
	CodeInvalidUTF8     = chrome.CodeInvalidUTF8    // text with invalid UTF-8, replaced by U+FFFD
	CodeBrokenPacket    = "broken-packet"           // packet whose inside is no message; what could not be read of it is lost
	CodePacketTooLarge  = "packet-too-large"        // packet above MaxPacketBytes skipped
	CodePacketLoss      = "packet-loss"             // the writer says that packets before this one are lost
	CodeMissingInterned = "missing-interned"        // reference to a name that was never written or is lost; left empty
	CodeUnknownTrack    = "unknown-track"           // event on a track that no packet describes
	CodeUnknownClock    = "unknown-clock"           // time in a clock that no snapshot ties to the others taken as missing
	CodeUnorderedTrack  = "unordered-track"         // track whose slices were joined after sorting them by time
	CodeUnreadPacket    = "unread-packet"           // packet with events of a kind that is not read
	CodeUnreadEvent     = "unread-event"            // track event of a kind that is not read
	CodeBadAnnotation   = "bad-annotation"          // debug annotation without a usable value taken as null
)

// Options bounds what a Reader takes. The zero value means the defaults.
type Options struct {
	MaxPacketBytes int   // size of one packet, decompressed; default 64 MiB
	MaxEvents      int   // track events held, begin and end apart; default 16 Mi
	MaxHeldBytes   int64 // memory for names and arguments; default 2 GiB
	MaxTracks      int   // default 1 Mi
	MaxDepth       int   // values inside each other in an annotation; default 32
}

func (o Options) withDefaults() Options {
	if o.MaxPacketBytes <= 0 {
		o.MaxPacketBytes = 64 << 20
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = 16 << 20
	}
	o.MaxEvents = min(o.MaxEvents, 1<<31-2) // indices are int32
	if o.MaxHeldBytes <= 0 {
		o.MaxHeldBytes = 2 << 30
	}
	if o.MaxTracks <= 0 {
		o.MaxTracks = 1 << 20
	}
	if o.MaxDepth <= 0 {
		o.MaxDepth = 32
	}
	return o
}

// Reader reads the track events of one Perfetto trace.
type Reader struct {
	in   stream
	opts Options

	names     *trace.Strings
	sequences map[uint32]*sequence
	clocks    clocks
	tracks    tracks
	events    []held
	arena     []byte // holds the args of events
	scratch   []byte // for the args of the event being read
	heldBytes int64
	inflated  int64 // bytes of compressed packets

	good      int64 // packets that were whole
	full      bool  // a limit was reached
	truncated bool
	diags     diagnostic.Set

	read  bool // the whole trace
	next  int  // event to deliver
	named int  // names of tracks delivered: process and thread of each
	out   chrome.Event
	buf   []byte
	done  error
}

// NewReader returns a Reader of the decompressed bytes of r.
func NewReader(r io.Reader, opts Options) *Reader {
	x := &Reader{opts: opts.withDefaults(), names: trace.NewStrings(), sequences: map[uint32]*sequence{}}
	x.in = newStream(r, x.opts.MaxPacketBytes)
	x.clocks = newClocks()
	x.tracks = newTracks(x.names)
	return x
}

// Next returns the next event. It and what it refers to are valid until the
// following call. The first call reads the whole trace.
//
// Slices are X events, with the annotations of their begin and their end;
// instants are i events; names of processes and threads are M events as Chrome
// traces have them. Times count from where the trace's clock does; see
// [Reader.UnixOffset].
//
// At the end, which may be a premature one, the error is io.EOF: damage is
// found in Diagnostics and Truncated. Other errors mean that the input is no
// trace, that it could not be read, or that the source was cancelled.
func (r *Reader) Next() (*chrome.Event, error) {
	if r.done != nil {
		return nil, r.done
	}
	if !r.read {
		if err := r.readAll(); err != nil {
			r.done = err
			return nil, err
		}
		r.read = true
	}
	if ev := r.nextName(); ev != nil {
		return ev, nil
	}
	for r.next < len(r.events) {
		h := &r.events[r.next]
		r.next++
		if h.kind != heldEnd {
			return r.event(h), nil
		}
	}
	r.done = io.EOF
	return nil, io.EOF
}

// Truncated tells whether the file ended before it was complete.
func (r *Reader) Truncated() bool { return r.truncated }

// UnixOffset is what has to be added to times to get Unix time, in ns. It is
// known when the trace's clock is Unix time or a snapshot of the clocks ties it
// to that. PyTorch writes no snapshot; its times are Unix time all the same.
// It is complete only after the first call of Next.
func (r *Reader) UnixOffset() (ns int64, ok bool) { return r.clocks.unixOffset() }

// Diagnostics returns what was found wrong so far, by first offset.
func (r *Reader) Diagnostics() []chrome.Diagnostic {
	var out []chrome.Diagnostic
	for _, d := range r.diags.List() {
		out = append(out, chrome.Diagnostic{Code: d.Code, Count: d.Count, Offset: d.Offset, Example: d.Example})
	}
	slices.SortStableFunc(out, func(a, b chrome.Diagnostic) int { return cmp.Compare(a.Offset, b.Offset) })
	return out
}

// note counts a fault.
func (r *Reader) note(code string, at int64, format string, args ...any) {
	r.diags.Addf(code, diagnostic.NoRank, at, format, args...)
}

// event makes the event of a slice or instant.
func (r *Reader) event(h *held) *chrome.Event {
	ev := &r.out
	*ev = chrome.Event{Phase: 'X', HasTS: h.hasTS, HasDur: h.hasDur, TS: h.ts, Dur: h.dur, Offset: h.offset, End: h.end}
	switch {
	case h.kind == heldInstant:
		ev.Phase, ev.Scope = 'i', 't'
	case !h.hasDur:
		ev.Phase = 'B'
	}
	name := r.names.Get(h.name)
	r.buf = append(append(r.buf[:0], name...), r.names.Get(h.cat)...)
	ev.Name, ev.Cat = r.buf[:len(name)], r.buf[len(name):]
	ev.PID, ev.TID = r.tracks.ids(h.track)
	args := h.args
	if h.partner >= 0 {
		args = mergeArgs(args, r.events[h.partner].args)
	}
	if len(args) > 0 {
		ev.Args = chrome.ArgsOf(args)
	}
	if h.flow != 0 {
		ev.BindID = flowID(h.flow)
	}
	return ev
}
