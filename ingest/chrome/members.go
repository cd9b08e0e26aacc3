package chrome

import "encoding/binary"

// member is where a member of an args object lies in it: indexes into its
// bytes.
type member struct {
	key, keyEnd uint32
	val, valEnd uint32
	kind        Kind
}

// usualArgs delimits the object at b[i] == '{' and lists its members when it
// has the usual form: plain strings, proper numbers and arrays of these. It
// returns the index behind it; else 0.
func (p *parser) usualArgs(b []byte, i int) int {
	from := i
	p.members = p.members[:0]
	i = skipIndent(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return 0
		}
		m := member{key: uint32(i + 1 - from)}
		end := plainEnd(b, i+1)
		if end < 0 {
			return 0
		}
		m.keyEnd = uint32(end - from)
		i = end + 1
		if len(b)-i < margin || b[i] != ':' {
			return 0
		}
		i++
		if b[i] == ' ' {
			i++
		}
		m.val = uint32(i - from)
		switch c := b[i]; {
		case c-'0' <= 9 || c == '-':
			m.kind = Number
			e := usualNumber(b, i)
			if e == 0 { // 1e-05
				e = scanWord(b, i)
				if e < 0 {
					return 0
				}
				if k, code := wordKind(b[i:e]); code != numCodes || k != Number {
					return 0
				}
			}
			i = e
		case c == '"':
			m.kind = String
			i = plainEnd(b, i+1) + 1
		case c == '[':
			m.kind = Array
			i = p.usualArray(b, i)
		case wordByte[c]:
			e := scanWord(b, i)
			if e < 0 {
				return 0
			}
			k, code := wordKind(b[i:e])
			if code != numCodes {
				return 0
			}
			m.kind = k
			i = e
		default: // objects among others
			return 0
		}
		if i == 0 || i >= len(b) || i-from > maxMemberAt {
			return 0
		}
		m.valEnd = uint32(i - from)
		p.members = append(p.members, m)
		if b[i] != ',' {
			if i = skipIndent(b, i); i >= len(b) || b[i] != '}' {
				return 0
			}
			return i + 1
		}
		i = skipIndent(b, i+1)
	}
}

// maxMemberAt keeps indexes of members within their type.
const maxMemberAt = 1 << 31

// usualNumber returns the index behind the number at b[i], which is digits with
// or without a sign, a point and digits behind it; 0 when it looks different.
func usualNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	first := i
	i = skipDigits(b, i)
	if i == first {
		return 0
	}
	if i < len(b) && b[i] == '.' {
		point := i
		i = skipDigits(b, i+1)
		if i == point+1 {
			return 0
		}
	}
	if i >= len(b) || wordByte[b[i]] {
		return 0
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for i+8 <= len(b) {
		n := digitBytes(binary.LittleEndian.Uint64(b[i:]))
		i += n
		if n < 8 {
			return i
		}
	}
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// usualArray returns the index behind the array at b[i] == '['; 0 when it holds
// anything but plain strings, numbers and such arrays.
func (p *parser) usualArray(b []byte, i int) int {
	const outer = 2 // the event and its args
	depth := 0
	for {
		// A value is due, or the end of an array that has just begun.
		if i >= len(b) {
			return 0
		}
		switch c := b[i]; {
		case c == '[':
			if depth++; depth+outer > p.maxDepth {
				return 0
			}
			i++
			if i < len(b) && b[i] != ']' {
				continue
			}
		case c-'0' <= 9 || c == '-':
			if i+1 < len(b) && (b[i+1] == ',' || b[i+1] == ']') && c != '-' {
				i++ // a single digit
			} else if i = usualNumber(b, i); i == 0 {
				return 0
			}
		case c == '"':
			if i = plainEnd(b, i+1) + 1; i == 0 {
				return 0
			}
		case c == ' ':
			i++
			continue
		default:
			return 0
		}
		// A comma, or the end of arrays.
		for {
			if i >= len(b) {
				return 0
			}
			c := b[i]
			i++
			if c == ']' {
				if depth--; depth == 0 {
					return i
				}
				continue
			}
			if c != ',' {
				return 0
			}
			if i < len(b) && b[i] == ' ' {
				i++
			}
			if i < len(b) && b[i] == ']' {
				return 0 // a comma too many
			}
			break
		}
	}
}
