package chrome

import (
	"unicode/utf16"
	"unicode/utf8"
)

// appendText appends the text of the string literal s (without its quotes) to
// dst: escapes resolved, invalid UTF-8 replaced by U+FFFD, raw control bytes
// kept.
//
// A backslash that starts no legal escape shows that the writer did not escape
// backslashes at all (Windows paths), so in such a string every backslash is
// literal except before a quote or another backslash: in `torch\nn\cuda` the
// `\n` is no newline.
func appendText(dst, s []byte) []byte {
	literal := hasIllegalEscape(s)
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			e := s[i+1]
			switch {
			case e == '"' || e == '\\':
				dst = append(dst, e)
				i += 2
			case literal:
				dst = append(dst, '\\')
				i++
			case e == 'u':
				r := hex4(s[i+2:])
				i += 6
				if utf16.IsSurrogate(r) {
					r, i = surrogate(r, s, i)
				}
				dst = utf8.AppendRune(dst, r)
			default:
				dst = append(dst, unescaped(e))
				i += 2
			}
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst
}

// surrogate completes the pair that began with r; i is the index behind r.
func surrogate(r rune, s []byte, i int) (rune, int) {
	if i+6 <= len(s) && s[i] == '\\' && s[i+1] == 'u' {
		if full := utf16.DecodeRune(r, hex4(s[i+2:])); full != utf8.RuneError {
			return full, i + 6
		}
	}
	return utf8.RuneError, i
}

// unescaped returns the byte that the escape \e stands for.
func unescaped(e byte) byte {
	switch e {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return e // '/'
}

// hex4 reads four hex digits; -1 when they are not there.
func hex4(s []byte) rune {
	if len(s) < 4 {
		return -1
	}
	var r rune
	for _, c := range s[:4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// legalEscape tells whether s, which begins with a backslash, begins with an
// escape that JSON knows.
func legalEscape(s []byte) bool {
	if len(s) < 2 {
		return false
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		return hex4(s[2:]) >= 0
	}
	return false
}

func hasIllegalEscape(s []byte) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			if !legalEscape(s[i:]) {
				return true
			}
			i++
		}
	}
	return false
}

// hasLoneSurrogate tells whether an escape in s stands for half a pair.
func hasLoneSurrogate(s []byte) bool {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		if s[i+1] == 'u' {
			if r := hex4(s[i+2:]); utf16.IsSurrogate(r) {
				if r, i = surrogate(r, s, i+6); r == utf8.RuneError {
					return true
				}
				i--
				continue
			}
		}
		i++
	}
	return false
}
