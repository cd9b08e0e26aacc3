package chrome

// inEvents handles the next byte inside an event array. It returns an event,
// or nil when there is none to deliver yet.
func (r *Reader) inEvents(c byte) *Event {
	switch c {
	case '{':
		if r.sep == sepNone && r.elements > 0 {
			r.note(cMissingComma)
		}
		r.sep = sepNone
		r.elements++
		return r.event()
	case ',':
		r.pos++
		r.sep = sepComma
		return nil
	case ']':
		if r.sep == sepComma {
			r.note(cTrailingComma)
		}
		r.pos++
		r.endArray()
		return nil
	case '}':
		// One brace too many, or the bracket of the array is lost.
		r.note(cUnexpectedBytes)
		r.pos++
		if _, ok := r.peek(); !ok && r.inObject {
			r.state = stTop
		}
		return nil
	}
	if c == '"' && r.inObject && r.atKey() {
		// The bracket of the array is lost and the object goes on.
		r.note(cUnexpectedBytes)
		r.endArray()
		return nil
	}
	if c == '"' || c == '[' || wordByte[c] {
		r.sep = sepNone
		r.elements++
		r.skipElement(cNotAnEvent)
		return nil
	}
	r.note(cUnexpectedBytes)
	r.pos++
	r.resync(seekEvent)
	return nil
}

// event reads the element that begins with a brace at the current position.
func (r *Reader) event() *Event {
	for {
		b := r.rest()
		n := r.p.parse(b)
		if n > 0 {
			return r.accept(b[:n], n)
		}
		if n == needMore {
			switch {
			case r.more():
				continue
			case r.full:
				r.skipElement(cEventTooLarge)
			default:
				b = r.rest() // more has moved it
				r.cut(b[:min(len(b), exampleBytes)])
				r.pos = r.end
			}
			return nil
		}
		if n == tooDeep {
			r.note(cTooDeep)
		} else if ev, ok := r.repaired(); ok {
			return ev
		}
		r.ensure(r.p.errAt + exampleBytes)
		b = r.rest()
		r.diags.add(cBrokenEvent, 1, r.offset(), excerpt(b, min(len(b), r.p.errAt)))
		r.pos++
		r.resync(r.seek())
		return nil
	}
}

// seek returns what to look for after something broken.
func (r *Reader) seek() seek {
	if r.state == stTop {
		return seekTop
	}
	return seekEvent
}

// accept takes the event that parse has just read. scanned is what it was read
// from, n its length in the stream.
func (r *Reader) accept(scanned []byte, n int) *Event {
	ev := &r.p.ev
	if ev.Phase == 0 && !ev.HasTS {
		r.note(cNotAnEvent)
		r.pos += n
		return nil
	}
	ev.Offset = r.offset()
	ev.End = ev.Offset + int64(n)
	if r.p.flt.any {
		r.p.flt.commit(&r.diags, scanned, ev.Offset)
	}
	r.pos += n
	return ev
}

// skipElement passes over an array element of any size that will not be
// delivered, and counts it.
func (r *Reader) skipElement(c codeID) {
	r.note(c)
	w := &r.p.walk
	w.begin(r.opts.MaxDepth)
	for {
		next, status := w.walk(r.rest(), 0, nil)
		r.pos += next
		switch {
		case status == 0:
			return
		case status == needMore && r.more():
			continue
		case status == needMore && !r.full:
			r.cut(nil)
			r.pos = r.end
			return
		}
		// A single token that fills the window, or nonsense.
		if status == needMore {
			r.pos = r.end
		} else if r.pos < r.end {
			r.pos++
		}
		r.resync(r.seek())
		return
	}
}

// atKey tells whether the string at the current position is the key of an
// object rather than an element of the array.
func (r *Reader) atKey() bool {
	for {
		b := r.rest()
		end, _ := scanString(b, 1)
		if end >= 0 {
			if i := skipSpace(b, end+1); i < len(b) {
				return b[i] == ':'
			}
		}
		if !r.more() {
			return false
		}
	}
}
