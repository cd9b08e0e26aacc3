package chrome

import (
	"errors"
	"io"
)

// window is the part of the stream that is in memory: buf[pos:end] is still to
// be read. It slides, and grows only for a token or event that does not fit.
type window struct {
	src  io.Reader
	buf  []byte
	pos  int
	end  int
	base int64 // stream offset of buf[0]
	max  int   // largest length of buf
	err  error // what ended src, io.EOF included; nil while it goes on
	full bool  // the last more failed because buf may not grow
	sips bool  // an empty window takes what one read gives, not more
}

// maxEmptyReads is how often in a row a reader may return nothing.
const maxEmptyReads = 100

// offset returns the stream offset of the next byte.
func (w *window) offset() int64 { return w.base + int64(w.pos) }

// rest returns the bytes that are in memory and still to be read.
func (w *window) rest() []byte { return w.buf[w.pos:w.end] }

// more reads on. It reports whether rest has become longer; if not, the stream
// has ended or rest may not get longer (full).
func (w *window) more() bool {
	w.full = false
	if w.err != nil {
		return false
	}
	if w.pos > 0 {
		copy(w.buf, w.buf[w.pos:w.end])
		w.base += int64(w.pos)
		w.end -= w.pos
		w.pos = 0
	}
	if w.end == len(w.buf) {
		if w.end >= w.max {
			w.full = true
			return false
		}
		grown := make([]byte, min(2*len(w.buf), w.max))
		copy(grown, w.buf[:w.end])
		w.buf = grown
	}
	// Fill the buffer whole: an event at its edge is scanned again from its
	// start, and with small reads that would happen again and again.
	before, empty := w.end, 0
	for w.end < len(w.buf) && w.err == nil && (w.end == before || !w.sips || before > 0) {
		n, err := w.src.Read(w.buf[w.end:])
		if n < 0 || n > len(w.buf)-w.end {
			n, err = 0, errors.New("reader returned an impossible count")
		}
		w.end += n
		w.err = err
		if n > 0 {
			empty = 0
		} else if empty++; empty == maxEmptyReads && err == nil {
			w.err = io.ErrNoProgress
		}
	}
	return w.end > before
}

// ensure tries to have n bytes in memory and reports whether it could.
func (w *window) ensure(n int) bool {
	for w.end-w.pos < n {
		if !w.more() {
			return false
		}
	}
	return true
}

// peek skips white space and returns the next byte; false at the end.
func (w *window) peek() (byte, bool) {
	for {
		w.pos += skipSpace(w.rest(), 0)
		if w.pos < w.end {
			return w.buf[w.pos], true
		}
		if !w.more() {
			return 0, false
		}
	}
}
