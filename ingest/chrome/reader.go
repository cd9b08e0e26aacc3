package chrome

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Options bounds what a Reader takes. The zero value means the defaults.
type Options struct {
	MaxDepth         int   // nesting of brackets in an event or top-level value; default 128
	MaxEventBytes    int   // size of one event; default 64 MiB
	MaxEvents        int64 // events delivered before the Reader stops; default no limit
	MaxMetadataBytes int   // memory for top-level values; default 16 MiB
	BufferSize       int   // bytes read at a time; default 256 KiB

	// Of Scan alone.
	Workers   int // parts of the file read at once; default 1, which is one after the other
	PartBytes int // size of a part; default 512 KiB
}

const minBufferSize = 64

func (o Options) withDefaults() Options {
	if o.MaxDepth <= 0 {
		o.MaxDepth = 128
	}
	if o.MaxEventBytes <= 0 {
		o.MaxEventBytes = 64 << 20
	}
	if o.MaxMetadataBytes <= 0 {
		o.MaxMetadataBytes = 16 << 20
	}
	if o.BufferSize <= 0 {
		o.BufferSize = 256 << 10
	}
	if o.PartBytes <= 0 {
		o.PartBytes = 512 << 10
	}
	o.BufferSize = max(o.BufferSize, minBufferSize)
	o.MaxDepth = max(o.MaxDepth, 2)
	return o
}

// Reader reads the events of one Chrome trace JSON file as a stream, in file
// order. Its memory is bounded by the sum of the sizes in its Options, twice
// over for an event that has to be repaired, whatever the file holds.
type Reader struct {
	window
	opts  Options
	p     parser
	fix   []byte // repaired event
	meta  Metadata
	diags diagnostics

	state     readerState
	inObject  bool  // the event array is a member of an object
	arrays    int   // event arrays begun
	values    int   // top-level values begun
	events    int64 // delivered
	elements  int64 // of the current array
	sep       separator
	truncated bool

	repairWork int64 // bytes rewritten so far

	parts *parts // what Scan has others read ahead; nil otherwise
	split bool   // Next stops before the second event, for Scan

	done error // what Next returns from now on
}

// separator is what stands before the current place in the event array.
type separator uint8

const (
	sepNone    separator = iota // an element, or the bracket
	sepComma                    // a comma
	sepUnknown                  // bytes that were skipped
)

type readerState uint8

const (
	stTop    readerState = iota // between top-level values
	stObject                    // inside the top-level object
	stEvents                    // inside an event array
)

// NewReader returns a Reader of the decompressed bytes of r.
func NewReader(r io.Reader, opts Options) *Reader {
	opts = opts.withDefaults()
	x := &Reader{opts: opts}
	x.src = r
	x.buf = make([]byte, opts.BufferSize)
	x.max = max(opts.MaxEventBytes, opts.BufferSize, 4*lookAhead)
	x.p.maxDepth = opts.MaxDepth
	return x
}

// Next returns the next event. It and what it refers to are valid until the
// following call.
//
// At the end, which may be a premature one, the error is io.EOF: damage is
// found in Diagnostics and Truncated. Other errors mean that the input is no
// trace ([ErrEmpty], [ErrNotJSON], [ErrNotTrace], [ErrExecutionTrace]), that it
// could not be read before its first event, or that the source was cancelled.
func (r *Reader) Next() (*Event, error) {
	if r.done != nil {
		return nil, r.done
	}
	if r.opts.MaxEvents > 0 && r.events >= r.opts.MaxEvents {
		r.note(cEventLimit)
		r.done = io.EOF
		return nil, io.EOF
	}
	if r.values == 0 {
		r.skipBOM()
	}
	for {
		var ev *Event
		if r.parts != nil && r.atPart() {
			return nil, errPart
		}
		c, ok := r.peek()
		if r.split && c == '{' && r.state == stEvents && r.sep == sepComma {
			return nil, errPart
		}
		if !ok {
			r.done = r.finish()
			return nil, r.done
		}
		switch r.state {
		case stEvents:
			ev = r.inEvents(c)
		case stObject:
			if err := r.inMembers(c); err != nil {
				r.done = err
				return nil, err
			}
		default:
			var err error
			if ev, err = r.atTop(c); err != nil {
				r.done = err
				return nil, err
			}
		}
		if ev != nil {
			r.events++
			return ev, nil
		}
	}
}

// Metadata returns the members of the top-level object other than the event
// arrays. It is complete only after Next has returned io.EOF: many writers put
// rank and base time at the end.
func (r *Reader) Metadata() *Metadata { return &r.meta }

// Diagnostics returns what was found wrong so far, by first offset.
func (r *Reader) Diagnostics() []Diagnostic { return r.diags.list() }

// Truncated tells whether the file ended before it was complete.
func (r *Reader) Truncated() bool { return r.truncated }

// note counts a fault at the current position.
func (r *Reader) note(c codeID) {
	r.ensure(exampleBytes) // so that the example does not depend on where the window ends
	r.diags.add(c, 1, r.offset(), excerpt(r.rest(), 0))
}

func (r *Reader) skipBOM() {
	if r.base == 0 && r.pos == 0 && r.ensure(3) && string(r.rest()[:3]) == "\xef\xbb\xbf" {
		r.pos += 3
	}
}

// atTop handles the next byte between top-level values.
func (r *Reader) atTop(c byte) (*Event, error) {
	switch c {
	case '{':
		if r.values > 0 {
			r.note(cConcatenated)
		}
		r.values++
		if r.bareEvent() {
			return r.event(), nil
		}
		r.pos++
		r.state = stObject
		return nil, nil
	case '[':
		if r.values > 0 {
			r.note(cConcatenated)
		}
		r.values++
		r.beginArray(false)
		return nil, nil
	case ',':
		if r.values > 0 {
			r.pos++
			return nil, nil
		}
	}
	if r.values == 0 {
		r.ensure(shownBytes) // the message is the same whatever the pieces read
		return nil, notJSON(r.rest(), r.offset())
	}
	r.note(cTrailingData)
	r.pos++
	r.resync(seekTop)
	return nil, nil
}

// bareEventBytes is how far the reader looks to tell an event that stands
// alone at the top level (JSON lines) from an object with an event array.
const bareEventBytes = 64 << 10

// bareEvent tells whether the object at the current position is an event.
func (r *Reader) bareEvent() bool {
	for {
		b := r.rest()
		b = b[:min(len(b), bareEventBytes)]
		n := r.p.parse(b)
		if n == needMore && len(b) < bareEventBytes && r.more() {
			continue
		}
		if n > 0 {
			return r.p.ev.Phase != 0
		}
		// Broken or cut: then the looks of its first line decide.
		r.ensure(bareEventBytes)
		b = r.rest()
		line, _, _ := bytes.Cut(b[:min(len(b), bareEventBytes)], []byte("\n"))
		return eventStart(b) && bytes.Contains(line, []byte(`"ph"`)) && !bytes.Contains(line, []byte(`"traceEvents"`))
	}
}

// beginArray enters an event array at its bracket.
func (r *Reader) beginArray(inObject bool) {
	if inObject && r.arrays > 0 && r.values == 1 {
		r.note(cDuplicateArray)
	}
	r.pos++
	r.arrays++
	r.inObject = inObject
	r.state = stEvents
	r.elements = 0
	r.sep = sepNone
}

// endArray leaves an event array.
func (r *Reader) endArray() {
	r.state = stTop
	if r.inObject {
		r.state = stObject
	}
}

// inMembers handles the next byte inside the top-level object.
func (r *Reader) inMembers(c byte) error {
	switch c {
	case '}':
		r.pos++
		r.state = stTop
		return nil
	case ',':
		r.pos++
		return nil
	case '"':
	default:
		r.note(cBrokenMetadata)
		r.pos++
		r.resync(seekKey)
		return nil
	}
	b := r.rest()
	end, _ := scanString(b, 1)
	for end < 0 {
		if !r.more() {
			if r.full {
				r.note(cBrokenMetadata)
			}
			r.pos = r.end
			return nil
		}
		b = r.rest()
		end, _ = scanString(b, 1)
	}
	key := string(appendText(nil, b[1:end]))
	r.pos += end + 1
	c, ok := r.peek()
	if ok && c != ':' {
		r.note(cBrokenMetadata)
		r.resync(seekKey)
		return nil
	}
	if ok {
		r.pos++
		c, ok = r.peek()
	}
	if !ok {
		return nil
	}
	if key == "traceEvents" && c == '[' {
		r.beginArray(true)
		return nil
	}
	if key == "nodes" && r.arrays == 0 && r.meta.has("schema") {
		return fmt.Errorf("%w: give the trace of torch.profiler (it has \"traceEvents\") instead", ErrExecutionTrace)
	}
	r.metadata(key)
	return nil
}

// finish decides what the end of the stream means.
func (r *Reader) finish() error {
	readErr := r.err
	if errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
		readErr = nil
	}
	if errors.Is(readErr, context.Canceled) || errors.Is(readErr, context.DeadlineExceeded) {
		return fmt.Errorf("stopped at byte %d: %w", r.offset(), readErr)
	}
	if r.events == 0 {
		if err := r.noEvents(readErr); err != nil {
			return err
		}
	}
	switch {
	case readErr != nil:
		r.cut([]byte(readErr.Error()))
	case r.state == stObject || r.state == stEvents && r.inObject:
		r.cut(nil)
	case r.state == stEvents && !r.truncated:
		r.note(cMissingArrayEnd)
	}
	return io.EOF
}

// cut records that the file is incomplete; once, where it was first noticed.
func (r *Reader) cut(why []byte) {
	if !r.truncated {
		r.truncated = true
		r.diags.add(cTruncated, 1, r.offset(), why)
	}
}

// noEvents returns why there was no event at all; nil when the input is a
// trace nevertheless.
func (r *Reader) noEvents(readErr error) error {
	at := r.offset()
	strange := r.diags[cNotAnEvent].Count
	switch {
	case readErr != nil:
		return fmt.Errorf("unreadable at byte %d, before the first event: %w", at, readErr)
	case r.values == 0:
		return fmt.Errorf("%w (%d bytes): was the profiler stopped before it wrote its trace?", ErrEmpty, at)
	case r.arrays == 0 && (r.state == stObject || r.truncated):
		return fmt.Errorf("%w: it ends in the middle, at byte %d, before the first event", ErrNotJSON, at)
	case r.arrays == 0 && r.meta.has("schema") && r.meta.has("nodes"):
		return fmt.Errorf("%w: give the trace of torch.profiler (it has \"traceEvents\") instead", ErrExecutionTrace)
	case r.arrays == 0:
		return fmt.Errorf("%w: no \"traceEvents\", but %s", ErrNotTrace, describeKeys(r.meta.Keys()))
	case !r.inObject && r.diags[cBrokenEvent].Count+r.diags[cUnexpectedBytes].Count > 0 && strange == 0:
		return fmt.Errorf("%w: nothing readable in %d bytes", ErrNotJSON, at)
	case strange > 0:
		return fmt.Errorf("%w: none of %d array elements has \"ph\" or \"ts\"", ErrNotTrace, strange)
	}
	r.note(cNoEvents)
	return nil
}

// describeKeys lists some keys for a message.
func describeKeys(keys []string) string {
	if len(keys) == 0 {
		return "no keys at all"
	}
	const most = 6
	more := ""
	if len(keys) > most {
		keys, more = keys[:most], ", ..."
	}
	quoted := make([]string, len(keys))
	for i, k := range keys {
		quoted[i] = `"` + printable([]byte(k)) + `"`
	}
	return "the keys " + strings.Join(quoted, ", ") + more
}

// shownBytes is how much of the input notJSON looks at; the longest signature
// is shorter.
const shownBytes = 24

// notJSON returns the error for input that does not begin like JSON, with a
// guess at what it is.
func notJSON(b []byte, at int64) error {
	signatures := []struct{ prefix, what string }{
		{"\x1f\x8b", "it is gzip data"},
		{"\x28\xb5\x2f\xfd", "it is zstd data"},
		{"PK\x03\x04", "it is a zip archive"},
		{"SQLite format 3", "it is an SQLite database, such as Nsight Systems exports"},
		{"\x80\x02", "it is a Python pickle"},
		{"\x80\x04", "it is a Python pickle"},
		{"\x80\x05", "it is a Python pickle"},
		{"\xff\xfe", "it is UTF-16; convert it to UTF-8"},
		{"\xfe\xff", "it is UTF-16; convert it to UTF-8"},
		{"version https://git-lfs", "it is a Git LFS pointer; fetch the file itself"},
		{"<", "it is HTML or XML"},
	}
	for _, s := range signatures {
		if strings.HasPrefix(string(b[:min(len(b), len(s.prefix))]), s.prefix) {
			return fmt.Errorf("%w: %s", ErrNotJSON, s.what)
		}
	}
	return fmt.Errorf("%w: expected \"{\" or \"[\" at byte %d, found %q", ErrNotJSON, at, printable(b[:min(len(b), shownBytes)]))
}
