package flightrecorder

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDigits bounds the integers that a pickle may hold: their text costs more
// than linear time to read. No field of a dump has more than 20 digits.
const maxDigits = 1000

// atom reads the value of an opcode that holds one: a number or a string.
func (m *machine) atom(op byte) (value, error) {
	switch op {
	case opBinInt:
		n, err := m.uint(4)
		return int64(int32(n)), err
	case opBinInt1:
		n, err := m.uint(1)
		return int64(n), err
	case opBinInt2:
		n, err := m.uint(2)
		return int64(n), err
	case opLong1:
		b, err := m.counted(1)
		return littleEndianInt(b), err
	case opLong4:
		b, err := m.counted(4)
		if len(b) > maxDigits/2 {
			return nil, fmt.Errorf("%w: integer of %d bytes", ErrLimit, len(b))
		}
		return littleEndianInt(b), err
	case opBinFloat:
		b, err := m.next(8)
		if err != nil {
			return nil, err
		}
		return bigEndianFloat(b), nil
	case opShortBinUnicode:
		return m.text(1)
	case opBinUnicode:
		return m.text(4)
	case opBinUnicode8:
		return m.text(8)
	case opShortBinString:
		b, err := m.counted(1)
		return latin1(b), err
	case opBinString:
		b, err := m.counted(4)
		return latin1(b), err
	case opShortBinBytes:
		b, err := m.counted(1)
		return slices.Clone(b), err
	case opBinBytes:
		b, err := m.counted(4)
		return slices.Clone(b), err
	case opBinBytes8, opByteArray8:
		b, err := m.counted(8)
		return slices.Clone(b), err
	case opInt, opLong, opFloat, opString, opUnicode:
		s, err := m.line()
		if err != nil {
			return nil, err
		}
		return textAtom(op, s)
	}
	return nil, fmt.Errorf("%w: no such opcode", ErrBadPickle)
}

// text takes a string of UTF-8. What is none is replaced; Python writes half
// surrogate pairs so.
func (m *machine) text(lengthBytes uint64) (value, error) {
	b, err := m.counted(lengthBytes)
	if err != nil {
		return nil, err
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
}

// latin1 reads the byte strings of Python 2, which are text there.
func latin1(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}

// littleEndianInt reads a two's complement number of any length.
func littleEndianInt(b []byte) value {
	if len(b) <= 8 {
		var n uint64
		for i, c := range b {
			n |= uint64(c) << (8 * i)
		}
		if shift := 64 - 8*len(b); shift < 64 {
			return int64(n<<shift) >> shift
		}
		return int64(0)
	}
	bigEndian := slices.Clone(b)
	slices.Reverse(bigEndian)
	n := new(big.Int).SetBytes(bigEndian)
	if b[len(b)-1] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return smallest(n)
}

func smallest(n *big.Int) value {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

// textAtom reads the values of protocol 0, which are lines of text.
func textAtom(op byte, s string) (value, error) {
	s = strings.TrimSuffix(s, "\r")
	switch op {
	case opUnicode:
		return rawUnicodeEscape(s), nil
	case opString:
		text, ok := pythonString(s)
		if !ok {
			return nil, fmt.Errorf("%w: bad string", ErrBadPickle)
		}
		return text, nil
	case opFloat:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !strings.Contains(err.Error(), strconv.ErrRange.Error()) {
			return nil, fmt.Errorf("%w: bad float", ErrBadPickle)
		}
		return f, nil
	case opInt:
		if s == "00" || s == "01" {
			return s == "01", nil
		}
	}
	s = strings.TrimSuffix(s, "L")
	if len(s) > maxDigits {
		return nil, fmt.Errorf("%w: integer of %d digits", ErrLimit, len(s))
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok || strings.Contains(s, "_") {
		return nil, fmt.Errorf("%w: bad integer", ErrBadPickle)
	}
	return smallest(n), nil
}

func parseMemoKey(s string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSuffix(s, "\r"), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: bad memo key", ErrBadPickle)
	}
	return n, nil
}

// rawUnicodeEscape reads what Python's codec of that name writes: \uXXXX and
// \UXXXXXXXX are characters, other bytes are Latin-1.
func rawUnicodeEscape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) {
			n := map[byte]int{'u': 4, 'U': 8}[s[i+1]]
			if n > 0 && i+2+n <= len(s) {
				if r, err := strconv.ParseUint(s[i+2:i+2+n], 16, 32); err == nil {
					b.WriteRune(rune(r)) // U+FFFD when it is none
					i += 2 + n
					continue
				}
			}
		}
		b.WriteRune(rune(s[i]))
		i++
	}
	return b.String()
}

// pythonString reads the literal of a byte string of Python 2.
func pythonString(s string) (string, bool) {
	if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
		return "", false
	}
	s = s[1 : len(s)-1]
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b = append(b, s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", false
		}
		switch s[i] {
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case '\\', '\'', '"':
			b = append(b, s[i])
		case 'x':
			if i+2 >= len(s) {
				return "", false
			}
			c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return "", false
			}
			b = append(b, byte(c))
			i += 2
		default:
			b = append(b, '\\', s[i])
		}
	}
	return latin1(b), true
}
