package chrome

import "bytes"

// parser scans single events.
type parser struct {
	ev       Event
	flt      faults
	walk     walker
	maxDepth int
	text     []byte        // decoded strings of the event
	members  []member      // of the args of an event of the usual form
	ids      map[string]ID // string ids seen, so that each is allocated once
	errAt    int           // where the last broken event stopped making sense
}

// Bounds of the table of string ids; beyond them an id is allocated each time.
const (
	maxIDs     = 1 << 16
	maxIDBytes = 256
)

// bits of the keys that may come once in an event
const (
	keyPh = 1 << iota
	keyCat
	keyName
	keyPID
	keyTID
	keyTS
	keyDur
	keyArgs
	keyID
	keyScope
	keyBP
)

// parse scans the event that begins at b[0] == '{' into p.ev and returns the
// index behind it, or needMore, broken or tooDeep. What is wrong with it that
// can be lived with is in p.flt.
func (p *parser) parse(b []byte) int {
	p.ev = Event{}
	p.flt.reset()
	p.text = p.text[:0]
	if n := p.usual(b); n > 0 {
		return n
	}
	return p.general(b)
}

// general is parse for events of any form.
func (p *parser) general(b []byte) int {
	p.ev = Event{}
	p.text = p.text[:0]
	seen := 0
	comma := false
	for i := 1; ; {
		i = skipSpace(b, i)
		if i >= len(b) {
			return needMore
		}
		if b[i] != '"' {
			if b[i] != '}' {
				p.errAt = i
				return broken
			}
			if comma {
				p.flt.add(cTrailingComma, i)
			}
			p.check()
			return i + 1
		}
		keyEnd, fl := scanString(b, i+1)
		if keyEnd < 0 {
			return needMore
		}
		if fl != 0 {
			p.flt.noteString(fl, i)
		}
		key := b[i+1 : keyEnd]
		i = keyEnd + 1
		if i >= len(b) || b[i] != ':' {
			i = skipSpace(b, i)
			if i >= len(b) {
				return needMore
			}
			if b[i] != ':' {
				p.errAt = i
				return broken
			}
		}
		i = skipSpace(b, i+1)
		if i >= len(b) {
			return needMore
		}
		start := i
		v, end := p.value(b, i)
		if end < 0 {
			return end
		}
		seen = p.set(key, v, start, seen)
		i = skipSpace(b, end)
		if i >= len(b) {
			return needMore
		}
		switch c := b[i]; {
		case c == ',':
			comma = true
			i++
		case c == '}':
			comma = false
		case c == '"' && v.kind != String:
			p.flt.add(cMissingComma, i)
		default:
			p.errAt = i
			return broken
		}
	}
}

// value delimits the value at b[i] and counts its faults.
func (p *parser) value(b []byte, i int) (Value, int) {
	switch c := b[i]; {
	case c == '"':
		e, fl := scanString(b, i+1)
		if e < 0 {
			return Value{}, needMore
		}
		if fl != 0 {
			p.flt.noteString(fl, i)
		}
		return Value{b[i : e+1], String}, e + 1
	case c == '{' || c == '[':
		p.walk.begin(p.maxDepth - 1)
		e, status := p.walk.walk(b, i, &p.flt)
		if status < 0 {
			p.errAt = e
			return Value{}, status
		}
		if c == '[' {
			return Value{b[i:e], Array}, e
		}
		return Value{b[i:e], Object}, e
	case wordByte[c]:
		e := scanWord(b, i)
		if e < 0 {
			return Value{}, needMore
		}
		k, code := wordKind(b[i:e])
		if code != numCodes {
			p.flt.add(code, i)
		}
		return Value{b[i:e], k}, e
	case c == ',' || c == '}':
		p.flt.add(cMissingValue, i)
		return Value{b[i:i], Null}, i
	}
	p.errAt = i
	return Value{}, broken
}

// set stores a member of the event; at is its index.
func (p *parser) set(key []byte, v Value, at, seen int) int {
	ev := &p.ev
	bit := 0
	switch string(key) {
	case "ph":
		bit = keyPh
		ev.Phase = firstByte(v)
	case "cat":
		bit = keyCat
		ev.Cat = p.string(v)
	case "name":
		bit = keyName
		ev.Name = p.string(v)
	case "pid":
		bit = keyPID
		ev.PID = p.id(v)
	case "tid":
		bit = keyTID
		ev.TID = p.id(v)
	case "ts":
		bit = keyTS
		ev.TS, ev.HasTS = p.time(v, at)
	case "dur":
		bit = keyDur
		ev.Dur, ev.HasDur = p.time(v, at)
	case "args":
		bit = keyArgs
		if v.kind == Object {
			ev.Args = Args{v: v}
		}
	case "id":
		bit = keyID
		ev.ID = p.id(v)
	case "id2":
		v.Fields(func(_ []byte, m Value) bool {
			ev.ID = p.id(m)
			return false
		})
	case "s":
		bit = keyScope
		ev.Scope = firstByte(v)
	case "bp":
		ev.BindPoint = firstByte(v)
	case "bind_id":
		ev.BindID = p.id(v)
	case "scope":
		ev.IDScope = p.string(v)
	}
	if seen&bit != 0 {
		p.flt.add(cDuplicateKey, at)
	}
	return seen | bit
}

// check counts what is missing from a complete event.
func (p *parser) check() {
	ev := &p.ev
	open := ev.HasDur && ev.Dur < 0
	if open {
		ev.HasDur = false
		p.flt.add(cNegativeDuration, 0)
	}
	switch {
	case ev.Phase == 'M':
		return
	case ev.Phase == 0:
		p.flt.add(cMissingPhase, 0)
	case ev.Phase == 'X':
		if !ev.HasDur && !open {
			p.flt.add(cMissingDur, 0)
		}
		if ev.HasTS && ev.HasDur && ev.TS == 0 && ev.Dur == 0 {
			p.flt.add(cZeroTime, 0)
		}
	}
	if !ev.HasTS {
		p.flt.add(cMissingTS, 0)
	}
	if ev.PID.kind == IDAbsent {
		p.flt.add(cMissingPID, 0)
	}
}

// firstByte returns the first byte of a string, 0 when there is none.
func firstByte(v Value) byte {
	if v.kind != String || len(v.raw) < 3 {
		return 0
	}
	return v.raw[1]
}

// string returns the text of v, aliasing the input when nothing has to be
// decoded. Other values than strings are returned as they are written.
func (p *parser) string(v Value) []byte {
	switch v.kind {
	case String:
		s := v.raw[1 : len(v.raw)-1]
		if plainText(s) {
			return s
		}
		from := len(p.text)
		p.text = appendText(p.text, s)
		return p.text[from:len(p.text):len(p.text)]
	case Null:
		return nil
	}
	return bytes.ToValidUTF8(v.raw, []byte("\uFFFD"))
}

// plainText tells whether s needs no decoding for sure.
func plainText(s []byte) bool {
	for _, c := range s {
		if c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}

// id returns v as an ID. Numbers that are no int64 and other odd values keep
// their text.
func (p *parser) id(v Value) ID {
	switch v.kind {
	case Null, Invalid:
		return ID{}
	case Number:
		if n, st := scaleInt(v.raw, 0); st == decOK {
			return IntID(n)
		}
	}
	s := p.string(v)
	if id, ok := p.ids[string(s)]; ok {
		return id
	}
	id := StringID(string(s))
	if len(p.ids) < maxIDs && len(s) <= maxIDBytes {
		if p.ids == nil {
			p.ids = make(map[string]ID)
		}
		p.ids[id.str] = id
	}
	return id
}

// time returns v, decimal microseconds, in ns.
func (p *parser) time(v Value, at int) (int64, bool) {
	raw := v.raw
	switch v.kind {
	case Number:
	case String:
		raw = v.number()
		if isNaNOrInf(raw) {
			p.flt.add(cNotANumber, at)
			return 0, false
		}
	case Null, Invalid:
		return 0, false // counted when it was delimited, or plainly null
	default:
		p.flt.add(cBadTime, at)
		return 0, false
	}
	ns, st := microsToNanos(raw)
	switch st {
	case decInexact:
		p.flt.add(cSubNanosecond, at)
	case decOverflow:
		p.flt.add(cTimeOverflow, at)
		return 0, false
	case decBad:
		p.flt.add(cBadTime, at)
		return 0, false
	}
	if v.kind == String {
		p.flt.add(cNumericString, at)
	}
	return ns, true
}
