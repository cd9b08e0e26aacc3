package chrome

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The usual form of an event is how profilers write nearly all of them: plain
// ASCII strings, decimal numbers, each key once, nothing missing. Reading it
// needs no decisions beyond telling the keys apart, so it takes half the time
// of the general scanner. Whatever looks different in the least is left to that
// one, from the start of the event; both give the same event.

// margin is how many bytes must follow a place in an event for the short ways
// to look at it: a number of 16 digits and the load behind it.
const margin = 32

// Keys with their closing quote, as they stand in memory.
var (
	wordPh   = keyWord(`ph"`)
	wordPID  = keyWord(`pid"`)
	wordTID  = keyWord(`tid"`)
	wordTS   = keyWord(`ts"`)
	wordDur  = keyWord(`dur"`)
	wordCat  = keyWord(`cat"`)
	wordName = keyWord(`name"`)
	wordArgs = keyWord(`args"`)
	wordID   = keyWord(`id"`)
	wordBP   = keyWord(`bp"`)
	wordS    = keyWord(`s"`)
)

const (
	mask2 = 1<<16 - 1
	mask3 = 1<<24 - 1
	mask4 = 1<<32 - 1
	mask5 = 1<<40 - 1
)

func keyWord(s string) (w uint64) {
	for i := range s {
		w |= uint64(s[i]) << (8 * i)
	}
	return w
}

// usual reads the event that begins at b[0] == '{' into p.ev when it has the
// usual form, and returns the index behind it; else 0.
func (p *parser) usual(b []byte) int {
	ev := &p.ev
	seen := 0
	for i := 1; ; {
		i = skipIndent(b, i)
		if len(b)-i < margin || b[i] != '"' {
			return 0
		}
		w := binary.LittleEndian.Uint64(b[i+1:])
		bit, size := 0, 0
		switch byte(w) {
		case 'p':
			switch {
			case w&mask3 == wordPh:
				bit, size = keyPh, 3
			case w&mask4 == wordPID:
				bit, size = keyPID, 4
			}
		case 't':
			switch {
			case w&mask3 == wordTS:
				bit, size = keyTS, 3
			case w&mask4 == wordTID:
				bit, size = keyTID, 4
			}
		case 'd':
			if w&mask4 == wordDur {
				bit, size = keyDur, 4
			}
		case 'c':
			if w&mask4 == wordCat {
				bit, size = keyCat, 4
			}
		case 'n':
			if w&mask5 == wordName {
				bit, size = keyName, 5
			}
		case 'a':
			if w&mask5 == wordArgs {
				bit, size = keyArgs, 5
			}
		case 'i':
			if w&mask3 == wordID {
				bit, size = keyID, 3
			}
		case 'b':
			if w&mask3 == wordBP {
				bit, size = keyBP, 3
			}
		case 's':
			if w&mask2 == wordS {
				bit, size = keyScope, 2
			}
		}
		if bit == 0 || seen&bit != 0 {
			return 0
		}
		seen |= bit
		i += 1 + size
		if b[i] != ':' {
			return 0
		}
		i++
		if b[i] == ' ' {
			i++
		}
		if len(b)-i < margin {
			return 0
		}
		switch bit {
		case keyPh, keyScope, keyBP:
			c := b[i+1]
			if b[i] != '"' || b[i+2] != '"' || !plainByte(c) {
				return 0
			}
			switch bit {
			case keyPh:
				ev.Phase = c
			case keyScope:
				ev.Scope = c
			default:
				ev.BindPoint = c
			}
			i += 3
		case keyCat, keyName:
			if b[i] != '"' {
				return 0
			}
			end := plainEnd(b, i+1)
			if end < 0 {
				return 0
			}
			if bit == keyCat {
				ev.Cat = b[i+1 : end]
			} else {
				ev.Name = b[i+1 : end]
			}
			i = end + 1
		case keyPID, keyTID, keyID:
			id := &ev.PID
			if bit == keyTID {
				id = &ev.TID
			} else if bit == keyID {
				id = &ev.ID
			}
			if i = p.usualID(b, i, id); i == 0 {
				return 0
			}
		case keyTS:
			if ev.TS, i = usualTime(b, i); i == 0 {
				return 0
			}
			ev.HasTS = true
		case keyDur:
			if ev.Dur, i = usualTime(b, i); i == 0 {
				return 0
			}
			ev.HasDur = true
		case keyArgs:
			if b[i] != '{' {
				return 0
			}
			end := p.usualArgs(b, i)
			if end == 0 {
				return 0
			}
			ev.Args = Args{v: Value{b[i:end], Object}, members: p.members}
			i = end
		}
		if i >= len(b) {
			return 0
		}
		if b[i] != ',' {
			if i = skipIndent(b, i); i >= len(b) || b[i] != '}' {
				return 0
			}
			p.check()
			return i + 1
		}
		i++
	}
}

// plainByte tells whether c stands for itself in a string.
func plainByte(c byte) bool { return c >= ' ' && c < 0x80 && c != '"' && c != '\\' }

// plainEnd returns the index of the quote that ends the string whose text
// begins at b[i]; negative when a byte in it does not stand for itself, or when
// the end is not in sight. See [scanString] for how it works.
func plainEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		m := ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones) | (w - ' '*ones) | w
		if m &= highs; m != 0 {
			i += bits.TrailingZeros64(m) >> 3
			if b[i] == '"' {
				return i
			}
			return -1
		}
		i += 8
	}
	return -1
}

// Line breaks with the indentation that Kineto writes before keys.
const (
	blanks4 = '\n' | ' '<<8 | ' '<<16 | ' '<<24 | ' '<<32
	blanks6 = blanks4 | ' '<<40 | ' '<<48
	mask7   = 1<<56 - 1
)

// skipIndent is skipSpace, fastest for one blank and for Kineto's indentation.
func skipIndent(b []byte, i int) int {
	if i+8 <= len(b) {
		if b[i] > ' ' {
			return i
		}
		if b[i] == ' ' && b[i+1] > ' ' {
			return i + 1
		}
		w := binary.LittleEndian.Uint64(b[i:])
		if w&mask7 == blanks6 {
			i += 7
		} else if w&mask5 == blanks4 {
			i += 5
		}
	}
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// digitBytes returns how many of the bytes of w are digits before the first
// that is none.
func digitBytes(w uint64) int {
	// Digits become 0 to 9, which stay below 16 when 6 is added; what carries
	// from other bytes only reaches places behind the first of them.
	t := w ^ '0'*ones
	return bits.TrailingZeros64((t|(t+6*ones))&(0xf0*ones)) >> 3
}

// digitsValue returns the number whose digits are the bytes of w, the first
// one in the lowest byte. Zero bytes count as zeros.
func digitsValue(w uint64) uint64 {
	// Neighbours are joined: digits to pairs, pairs to fours, fours to eight.
	w &= 0x0f * ones
	w = (w*10 + w>>8) & 0x00ff00ff00ff00ff
	w = (w*100 + w>>16) & 0x0000ffff0000ffff
	return (w*10000 + w>>32) & 0xffffffff
}

var powersOfTen = [...]uint64{1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7, 1e8}

// usualInt reads the 1 to 16 digits at b[i], behind which at least half the
// margin follows, and returns the index behind them; 0 when there are none.
func usualInt(b []byte, i int) (uint64, int) {
	w := binary.LittleEndian.Uint64(b[i:])
	n := digitBytes(w)
	if n < 8 {
		if n == 0 {
			return 0, 0
		}
		return digitsValue(w << (64 - 8*uint(n))), i + n
	}
	v := digitsValue(w)
	w = binary.LittleEndian.Uint64(b[i+8:])
	if n = digitBytes(w); n < 8 {
		return v*powersOfTen[n] + digitsValue(w<<(64-8*uint(n))), i + 8 + n
	}
	return v*1e8 + digitsValue(w), i + 16
}

// usualTime reads decimal microseconds of up to three places at b[i] as ns, and
// returns the index behind them; 0 when they look different.
func usualTime(b []byte, i int) (int64, int) {
	v, i := usualInt(b, i)
	if i == 0 || v >= math.MaxInt64/1000 {
		return 0, 0
	}
	v *= 1000
	if b[i] == '.' {
		w := binary.LittleEndian.Uint64(b[i+1:])
		n := digitBytes(w)
		if n == 0 || n > 3 {
			return 0, 0
		}
		v += digitsValue(w<<(64-8*uint(n))) * powersOfTen[3-n]
		i += 1 + n
	}
	if wordByte[b[i]] {
		return 0, 0
	}
	return int64(v), i
}

// usualID reads the number or plain string at b[i] and returns the index behind
// it; 0 when it looks different.
func (p *parser) usualID(b []byte, i int, id *ID) int {
	if b[i] == '"' {
		end := plainEnd(b, i+1)
		if end < 0 {
			return 0
		}
		*id = p.id(Value{b[i : end+1], String})
		return end + 1
	}
	v, end := usualInt(b, i)
	if end == 0 || wordByte[b[end]] {
		return 0
	}
	id.kind, id.num = IDInt, int64(v)
	return end
}
