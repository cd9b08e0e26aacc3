package chrome

import (
	"bytes"
	"io"
)

// part is a stretch of the stream that a worker reads on the assumption that it
// begins with an event of the event array. Whether it does is known only when
// all before it has been read: see [parts].
type part struct {
	data  []byte
	base  int64 // stream offset of data[0]
	start bool  // it looks as if an event began here, behind a comma

	// What the worker found. It stops behind the last event that it can read
	// without knowing more than this part.
	sink   Sink
	diags  diagnostics
	faults bool // any in diags
	events int64
	stop   int       // index in data
	sep    separator // what stands before stop
	read   chan struct{}
}

// complete tells whether the worker got to the very end, where the next event
// would begin.
func (p *part) complete() bool { return p.stop == len(p.data) && p.sep == sepComma }

// readPart reads the events of a part into its sink. Those above maxBytes are not
// for it to judge.
func (x *parser) readPart(p *part, maxBytes int) {
	b, i := p.data, 0
	p.events, p.stop, p.sep = 0, 0, sepComma
	for {
		n := x.parse(b[i:])
		ev := &x.ev
		if n <= 0 || n > maxBytes || ev.Phase == 0 && !ev.HasTS {
			return
		}
		ev.Offset = p.base + int64(i)
		ev.End = ev.Offset + int64(n)
		if x.flt.any {
			p.faults = true
			x.flt.commit(&p.diags, b[i:i+n], ev.Offset)
		}
		p.sink.Event(ev)
		p.events++
		i += n
		p.stop, p.sep = i, sepNone
		if i < len(b) && b[i] == ',' {
			i++
		} else if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
			i++
		} else {
			return
		}
		i = skipIndent(b, i)
		if i < len(b) && b[i] != '{' {
			return
		}
		p.stop, p.sep = i, sepComma
		if i == len(b) {
			return
		}
	}
}

// cutter cuts a stream into parts.
type cutter struct {
	src   io.Reader
	size  int
	base  int64  // stream offset of the next part
	carry []byte // its first bytes, which have been read
	start bool   // it looks as if it began with an event
	err   error  // what ended the stream
}

// fill reads the next part into p. It reports whether there is one.
func (c *cutter) fill(p *part) bool {
	b := append(p.data[:0], c.carry...)
	c.carry = c.carry[:0]
	if cap(b) < c.size {
		b = append(make([]byte, 0, c.size), b...)
	}
	empty := 0
	for len(b) < c.size && c.err == nil {
		n, err := c.src.Read(b[len(b):c.size])
		n = max(0, min(n, c.size-len(b)))
		b = b[:len(b)+n]
		c.err = err
		if n > 0 {
			empty = 0
		} else if empty++; empty == maxEmptyReads && err == nil {
			c.err = io.ErrNoProgress
		}
	}
	p.data, p.base, p.start = b, c.base, c.start
	if len(b) == 0 {
		return false
	}
	c.start = false
	if at := lastEvent(b); at > 0 && c.err == nil {
		c.carry = append(c.carry, b[at:]...)
		p.data = b[:at]
		c.start = true
	}
	c.base += int64(len(p.data))
	return true
}

// lastEvent returns the index of the last brace in b that looks like the
// beginning of an event behind another one; 0 when there is none.
func lastEvent(b []byte) int {
	for end := len(b); ; {
		at := bytes.LastIndexByte(b[:end], '{')
		if at <= 0 {
			return 0
		}
		end = at
		i := at - 1
		for i > 0 && isSpace(b[i]) {
			i--
		}
		if b[i] != ',' {
			continue
		}
		i--
		for i > 0 && isSpace(b[i]) {
			i--
		}
		if i >= 0 && b[i] == '}' && eventStart(b[at:min(len(b), at+lookAhead)]) {
			return at
		}
	}
}
