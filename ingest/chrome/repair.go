package chrome

// Bounds of repairs: on hostile input, every event might be scanned again far
// beyond its end.
const (
	maxRepairBytes  = 1 << 20  // of an event
	maxRepairString = 64 << 10 // of a string with unescaped quotes
	repairFactor    = 8        // work on repairs, in bytes, by bytes read so far
)

// repaired reads the event at the current position, which parse found broken,
// with rules for what writers are known to do: quotes inside names that are
// not escaped, and commas left out. It reports whether they helped; even then
// there may be no event to deliver.
//
// The event is rewritten as proper JSON and parsed again, so nothing else in
// this package has to know about repairs.
func (r *Reader) repaired() (*Event, bool) {
	errAt := r.p.errAt
	for {
		if r.repairWork > maxRepairBytes+repairFactor*r.offset() {
			return nil, false
		}
		f := fixer{in: r.rest(), out: r.fix[:0], eof: r.err != nil}
		n := f.run()
		r.fix = f.out
		r.repairWork += int64(len(f.out))
		if n == needMore && !f.eof && f.i < maxRepairBytes {
			if r.more(); !r.full {
				continue // with more, or with the knowledge that there is no more
			}
		}
		if n < 0 || f.quotes+f.commas == 0 || r.p.parse(f.out) != len(f.out) {
			r.p.errAt = errAt
			return nil, false
		}
		flt := &r.p.flt
		flt.any = true
		if f.quotes > 0 {
			flt.n[cUnescapedQuote] += int64(f.quotes)
			flt.at[cUnescapedQuote] = f.firstQuote
		}
		if f.commas > 0 {
			flt.n[cMissingComma] += int64(f.commas)
			flt.at[cMissingComma] = f.firstComma
		}
		// Indexes are those of the rewritten event: a few bytes too large.
		for c := range flt.at {
			flt.at[c] = min(flt.at[c], n-1)
		}
		return r.accept(f.out, n), true
	}
}

// fixer rewrites one broken event.
type fixer struct {
	in  []byte
	out []byte
	eof bool // in is all there is
	i   int  // in in

	stack [64]byte
	depth int
	prose bool // the value that is due may hold unescaped quotes

	quotes, commas         int
	firstQuote, firstComma int // index in in
}

// run rewrites the event at in[0] and returns its length, or needMore or
// broken.
func (f *fixer) run() int {
	value := false // a value is due rather than a key, inside an object
	for f.i < len(f.in) && f.i < maxRepairBytes {
		c := f.in[f.i]
		switch c {
		case '{', '[':
			if f.depth == len(f.stack) {
				return broken
			}
			f.stack[f.depth] = c
			f.depth++
			value = false
		case '}', ']':
			if f.depth == 0 || f.stack[f.depth-1] != c-2 {
				return broken
			}
			f.depth--
			if f.depth == 0 {
				f.out = append(f.out, c)
				return f.i + 1
			}
		case ',':
			value = false
		case ':':
			value = true
		case '"':
			var n int
			if !value && f.depth > 0 && f.stack[f.depth-1] == '{' {
				n = f.key()
			} else {
				n = f.value()
			}
			if n < 0 {
				return n
			}
			value = false
			continue
		case ' ', '\n', '\r', '\t':
		default: // a number or bare word
			value = false
		}
		f.out = append(f.out, c)
		f.i++
	}
	return needMore
}

// key copies the key at in[i]. Keys are constants of the writer and have no
// quotes inside.
func (f *fixer) key() int {
	end, _ := scanString(f.in, f.i+1)
	if end < 0 {
		return needMore
	}
	colon := skipSpace(f.in, end+1)
	if colon == len(f.in) {
		return needMore
	}
	if f.in[colon] != ':' {
		return broken
	}
	// Of the members of the event itself only the name is free text.
	f.prose = f.depth > 1 || string(f.in[f.i+1:end]) == "name"
	f.out = append(f.out, f.in[f.i:colon]...)
	f.i = colon
	return 0
}

// value copies the string at in[i], escaping the quotes inside.
func (f *fixer) value() int {
	start := f.i
	f.out = append(f.out, '"')
	for from := start + 1; ; {
		end, _ := scanString(f.in[:min(len(f.in), start+maxRepairString)], from)
		if end < 0 && len(f.in)-start >= maxRepairString {
			return broken
		}
		if end < 0 || !f.eof && len(f.in)-end < lookAhead {
			return needMore
		}
		f.out = append(f.out, f.in[from:end]...)
		if !f.prose || f.endsAt(end) {
			f.out = append(f.out, '"')
			f.i = end + 1
			if next := skipSpace(f.in, f.i); next < len(f.in) && f.in[next] == '"' {
				if key, _ := keyAt(f.in, next); len(key) == 0 {
					return broken
				}
				f.out = append(f.out, ',')
				if f.commas == 0 {
					f.firstComma = end
				}
				f.commas++
				f.i = next
				return f.key()
			}
			return 0
		}
		if f.lostQuote(start, end) {
			return broken
		}
		if f.quotes == 0 {
			f.firstQuote = end
		}
		f.quotes++
		f.out = append(f.out, '\\', '"')
		from = end + 1
	}
}

// endsAt tells whether the quote at in[q] ends a string value, by what
// follows. At the level of the event, what follows must be a key that events
// have: names hold Python dicts, so any other quoted word with a colon may
// still be part of the name.
func (f *fixer) endsAt(q int) bool {
	b := f.in[:min(len(f.in), q+lookAhead)]
	atEnd := f.eof && len(b) == len(f.in)
	at := func(i int) byte {
		if i < len(b) {
			return b[i]
		}
		return 0
	}
	i := skipSpace(b, q+1)
	c := at(i)
	next := skipSpace(b, i+1)
	if f.depth > 0 && f.stack[f.depth-1] == '[' {
		switch c {
		case ',':
			c = at(next)
			return c == '"' || c == '{' || c == '[' || wordByte[c]
		case ']':
			c = at(next)
			return c == ',' || c == ']' || c == '}'
		}
		return false
	}
	isKey := func(i int) bool {
		key, _ := keyAt(b, i)
		return len(key) > 0 && (f.depth > 1 || eventKey(key))
	}
	switch c {
	case ',':
		return isKey(next)
	case '"':
		return isKey(i)
	case '}':
		c = at(next)
		if f.depth > 1 {
			return c == ',' || c == '}'
		}
		return next >= len(b) && atEnd || c == ']' || c == '{' || c == ',' && at(skipSpace(b, next+1)) == '{'
	}
	return false
}

// lostQuote tells whether the string that begins at in[start] has rather lost
// its closing quote, or the event its end: then the quote at in[q] begins the
// next key, or the next event.
func (f *fixer) lostQuote(start, q int) bool {
	key, _ := keyAt(f.in, q)
	if !eventKey(key) && !topKey(f.in[q:]) {
		return false
	}
	p := q - 1
	for p > start && isSpace(f.in[p]) {
		p--
	}
	switch f.in[p] {
	case ',':
		return true
	case '{':
		return string(key) == "ph"
	}
	return false
}
