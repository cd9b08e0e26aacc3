package chrome

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Results of scanning functions in place of an index.
const (
	needMore = -1 // the bytes end before the value does
	broken   = -2 // the bytes cannot be continued to valid input
	tooDeep  = -3 // nested deeper than allowed
)

// strFlags tells what is unusual about a string literal.
type strFlags uint8

const (
	strEscape    strFlags = 1 << iota // has a backslash
	strControl                        // has raw bytes below 0x20
	strHigh                           // has bytes above 0x7f
	strBadEscape                      // has a backslash that starts no escape
	strBadUTF8                        // is not valid UTF-8, or has half a surrogate pair
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// scanString returns the index of the quote that ends the string literal whose
// text begins at i, or needMore.
//
// Eight bytes are looked at together: for each byte, the high bit of m is set
// if it is a quote, a backslash, below 0x20 or above 0x7f. Borrows can set bits
// above the first true one only, and only the first one is used.
func scanString(b []byte, i int) (int, strFlags) {
	start := i
	var fl strFlags
	for i < len(b) {
		if i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			m := ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones) | (w - ' '*ones) | w
			m &= highs
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		}
		switch c := b[i]; {
		case c == '"':
			if fl == 0 {
				return i, 0
			}
			s := b[start:i]
			if fl&strHigh != 0 && !utf8.Valid(s) {
				fl |= strBadUTF8
			}
			if fl&(strEscape|strBadEscape) == strEscape && hasLoneSurrogate(s) {
				fl |= strBadUTF8
			}
			return i, fl
		case c == '\\':
			fl |= strEscape
			if i+1 == len(b) {
				return needMore, 0
			}
			if legalEscape(b[i:min(len(b), i+6)]) {
				i += 2
			} else {
				fl |= strBadEscape
				i++
			}
		case c < ' ':
			fl |= strControl
			i++
		case c >= utf8.RuneSelf:
			fl |= strHigh
			i++
			for i < len(b) && b[i] >= utf8.RuneSelf {
				i++
			}
		default:
			i++
		}
	}
	return needMore, 0
}

// noteString counts what is unusual about the string literal at index at.
func (f *faults) noteString(fl strFlags, at int) {
	if fl&strControl != 0 {
		f.add(cControlByte, at)
	}
	if fl&strBadEscape != 0 {
		f.add(cIllegalEscape, at)
	}
	if fl&strBadUTF8 != 0 {
		f.add(cInvalidUTF8, at)
	}
}

// isSpace tells whether c is JSON white space.
func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t'
}

// skipSpace returns the index of the first byte at or after i that is no white
// space; len(b) when there is none.
func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// wordByte marks the bytes that numbers and bare words are made of.
var wordByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' ||
			c == '+' || c == '-' || c == '.' || c == '_' || c == '#'
	}
	return t
}()

// scanWord returns the index behind the number or bare word that begins at i;
// needMore when it reaches the end of b, where it might go on.
func scanWord(b []byte, i int) int {
	for i < len(b) {
		if !wordByte[b[i]] {
			return i
		}
		i++
	}
	return needMore
}

// wordKind classifies a number or bare word. The code is the fault to count,
// numCodes if there is none.
func wordKind(w []byte) (Kind, codeID) {
	if len(w) == 0 {
		return Null, cMissingValue
	}
	if c := w[0]; c-'0' <= 9 || c == '-' && len(w) > 1 && w[1]-'0' <= 9 {
		plain := true
		for _, c := range w[1:] {
			plain = plain && c-'0' <= 9
		}
		if plain || isDecimal(w) {
			return Number, numCodes
		}
		if isNaNOrInf(w) {
			return Invalid, cNotANumber
		}
		return Invalid, cBadLiteral
	}
	switch string(w) {
	case "null":
		return Null, numCodes
	case "true", "false":
		return Bool, numCodes
	}
	if isNaNOrInf(w) {
		return Invalid, cNotANumber
	}
	if isDecimal(w) { // such as .5 or +1
		return Number, cBadLiteral
	}
	return Invalid, cBadLiteral
}

// isDecimal tells whether scaleDecimal understands w.
func isDecimal(w []byte) bool {
	_, _, st := scaleDecimal(w, -1<<31)
	return st != decBad
}

// isNaNOrInf tells whether w is one of the spellings of nan and infinity that
// printf and others make.
func isNaNOrInf(w []byte) bool {
	if len(w) > 0 && (w[0] == '-' || w[0] == '+') {
		w = w[1:]
	}
	if len(w) < 3 || len(w) > 12 {
		return false
	}
	var buf [12]byte
	for i, c := range w {
		buf[i] = c | 0x20
	}
	switch string(buf[:len(w)]) {
	case "nan", "inf", "infinity":
		return true
	}
	// MSVC: 1.#INF, -1.#IND, 1.#QNAN
	return len(w) >= 6 && w[0] == '1' && w[1] == '.' && w[2] == '#'
}

// walker delimits one JSON value, checking its structure. It can stop anywhere
// between two tokens and go on later with other bytes, so values of any size
// pass through a small window.
type walker struct {
	stack []byte // open brackets, '{' or '['
	depth int    // how many are open
	state walkState
}

type walkState uint8

const (
	wValue     walkState = iota // a value is due
	wFirst                      // as wValue, or the end of an array
	wKey                        // a key is due
	wFirstKey                   // as wKey, or the end of an object
	wColon                      // a colon is due
	wAfter                      // behind a value other than a string
	wAfterText                  // behind a string, where a quote may also be an unescaped one
	wComma                      // behind a comma
)

// begin prepares for a value.
func (w *walker) begin(maxDepth int) {
	if cap(w.stack) < maxDepth {
		w.stack = make([]byte, maxDepth)
	}
	w.stack = w.stack[:maxDepth]
	w.depth, w.state = 0, wValue
}

// walk scans on at b[i]. It returns the index behind the value and done, or
// the index of the first unfinished token and needMore, broken or tooDeep; at
// needMore, b[:index] is not needed any more and walk can be called again with
// more bytes. f may be nil.
func (w *walker) walk(b []byte, i int, f *faults) (next, status int) {
	for {
		for i < len(b) && isSpace(b[i]) {
			i++
		}
		if i == len(b) {
			return i, needMore
		}
		c := b[i]
		switch w.state {
		case wAfter, wAfterText:
			switch {
			case c == ',':
				i++
				w.state = wComma
			case c == '}' || c == ']':
				if !w.pop(c) {
					return i, broken
				}
				i++
				if w.depth == 0 {
					return i, 0
				}
			case w.state == wAfter && c == '"' && w.stack[w.depth-1] == '{':
				if f != nil {
					f.add(cMissingComma, i)
				}
				w.state = wKey
			case w.state == wAfter && (c == '"' || c == '{' || c == '[') && w.stack[w.depth-1] == '[':
				if f != nil {
					f.add(cMissingComma, i)
				}
				w.state = wValue
			default:
				return i, broken
			}
		case wComma:
			if c == '}' || c == ']' {
				if f != nil {
					f.add(cTrailingComma, i)
				}
				w.state = wAfterText
			} else if c == ',' {
				// Nothing between two commas.
				if f != nil {
					f.add(cMissingValue, i)
				}
				i++
			} else if w.stack[w.depth-1] == '{' {
				w.state = wKey
			} else {
				w.state = wValue
			}
		case wKey, wFirstKey:
			if w.state == wFirstKey && (c == '}' || c == ',') {
				if c == ',' && f != nil {
					f.add(cMissingValue, i)
				}
				w.state = wAfterText
				continue
			}
			if c != '"' {
				return i, broken
			}
			e, fl := scanString(b, i+1)
			if e < 0 {
				return i, needMore
			}
			if fl != 0 && f != nil {
				f.noteString(fl, i)
			}
			i = e + 1
			w.state = wColon
		case wColon:
			if c != ':' {
				return i, broken
			}
			i++
			w.state = wValue
		default: // wValue, wFirst
			switch {
			case c == '"':
				e, fl := scanString(b, i+1)
				if e < 0 {
					return i, needMore
				}
				if fl != 0 && f != nil {
					f.noteString(fl, i)
				}
				i = e + 1
				w.state = wAfterText
				if w.depth == 0 {
					return i, 0
				}
			case c == '{' || c == '[':
				if w.depth == len(w.stack) {
					return i, tooDeep
				}
				w.stack[w.depth] = c
				w.depth++
				i++
				w.state = wFirstKey
				if c == '[' {
					w.state = wFirst
				}
			case c == ']' && w.state == wFirst:
				w.state = wAfterText
			case wordByte[c]:
				e := scanWord(b, i)
				if e < 0 {
					return i, needMore
				}
				if _, code := wordKind(b[i:e]); code != numCodes && f != nil {
					f.add(code, i)
				}
				i = e
				w.state = wAfter
				if w.depth == 0 {
					return i, 0
				}
			case (c == ',' || c == '}') && w.depth > 0 && w.stack[w.depth-1] == '{':
				// A key without a value: `"Process Group Description": ,`
				if f != nil {
					f.add(cMissingValue, i)
				}
				w.state = wAfterText
			default:
				return i, broken
			}
		}
	}
}

// pop closes the innermost bracket, if c is the one that does.
func (w *walker) pop(c byte) bool {
	// '{' and '}', '[' and ']' are two apart in ASCII.
	if w.depth == 0 || w.stack[w.depth-1] != c-2 {
		return false
	}
	w.depth--
	w.state = wAfter
	return true
}
