package chrome

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// Kind is the JSON type of a Value.
type Kind uint8

// The kinds of Value. Invalid is what stands where a value should be but
// cannot be used: nan, inf, other bare words, malformed numbers. It is also
// the kind of the zero Value.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"invalid", "null", "bool", "number", "string", "array", "object"}

// String returns the name of k in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Value is a JSON value that has been delimited but not decoded. It aliases
// the memory it was read from.
type Value struct {
	raw  []byte
	kind Kind
}

// ParseValue returns the value that b holds.
func ParseValue(b []byte) Value {
	b = bytes.TrimSpace(b)
	v, _ := valueAt(b, 0)
	if len(v.raw) != len(b) {
		return Value{raw: b}
	}
	return v
}

// Kind returns the type of v.
func (v Value) Kind() Kind { return v.kind }

// Raw returns v as it is written in the file.
func (v Value) Raw() []byte { return v.raw }

// Bool returns the value of a boolean, and whether v is one.
func (v Value) Bool() (value, ok bool) {
	return v.kind == Bool && v.raw[0] == 't', v.kind == Bool
}

// Int returns v as an integer: a number, or a string that holds one, if it is
// integral ("7.0" and 7e2 are) and fits. It is exact.
func (v Value) Int() (int64, bool) {
	if v.kind == Number && len(v.raw) <= 18 {
		n := int64(0)
		for k, c := range v.raw {
			if c-'0' > 9 {
				break
			}
			if n = n*10 + int64(c-'0'); k == len(v.raw)-1 {
				return n, true
			}
		}
	}
	n, st := scaleInt(v.number(), 0)
	return n, st == decOK
}

// Uint is Int for integers up to 2^64-1.
func (v Value) Uint() (uint64, bool) {
	n, neg, st := scaleDecimal(v.number(), 0)
	if st != decOK || neg && n != 0 {
		return 0, false
	}
	return n, true
}

// Float returns v as a float: a number, or a string that holds one. Infinities
// and nan count as no number.
func (v Value) Float() (float64, bool) {
	b := v.number()
	if n, st := scaleInt(b, 0); st == decOK && n > -1<<53 && n < 1<<53 {
		return float64(n), true
	}
	if !isDecimal(b) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, false
	}
	return f, true
}

// Nanos returns v, decimal microseconds as number or string, as nanoseconds,
// rounded half away from zero.
func (v Value) Nanos() (int64, bool) {
	n, st := microsToNanos(v.number())
	return n, st <= decInexact
}

// number returns the text of v if it may be a number.
func (v Value) number() []byte {
	switch v.kind {
	case Number:
		return v.raw
	case String:
		return bytes.TrimSpace(v.raw[1 : len(v.raw)-1])
	}
	return nil
}

// Str returns the text of a string, and whether v is one. The text is
// unescaped and valid UTF-8.
func (v Value) Str() (string, bool) {
	if v.kind != String {
		return "", false
	}
	t, _ := v.Text(nil)
	return string(t), true
}

// Text is Str without allocation where possible: the result aliases v when
// nothing had to be decoded, and is appended to buf[:0] otherwise.
func (v Value) Text(buf []byte) ([]byte, bool) {
	if v.kind != String {
		return nil, false
	}
	s := v.raw[1 : len(v.raw)-1]
	if bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return s, true
	}
	return appendText(buf[:0], s), true
}

// Each calls f with the elements of an array, until f returns false.
func (v Value) Each(f func(Value) bool) {
	if v.kind != Array {
		return
	}
	b := v.raw
	for i := 1; ; {
		i = skipSpace(b, i)
		if i >= len(b) || b[i] == ']' {
			return
		}
		if b[i] == ',' {
			i++
			continue
		}
		e, next := valueAt(b, i)
		if next <= i || !f(e) {
			return
		}
		i = next
	}
}

// Fields calls f with the members of an object, in file order, until f returns
// false. The key is unescaped and valid until f returns.
func (v Value) Fields(f func(key []byte, v Value) bool) {
	if v.kind != Object {
		return
	}
	b := v.raw
	for i := 1; ; {
		i = skipSpace(b, i)
		if i >= len(b) || b[i] == '}' {
			return
		}
		if b[i] == ',' {
			i++
			continue
		}
		if b[i] != '"' {
			return
		}
		end, fl := scanString(b, i+1)
		if end < 0 {
			return
		}
		key := b[i+1 : end]
		if fl&(strEscape|strBadUTF8) != 0 {
			key = appendText(nil, key)
		}
		i = skipSpace(b, end+1)
		if i >= len(b) || b[i] != ':' {
			return
		}
		i = skipSpace(b, i+1)
		e, next := valueAt(b, i)
		if next < i || !f(key, e) {
			return
		}
		i = next
	}
}

// Get returns the member of an object with the given key; the last one if
// there are several.
func (v Value) Get(key string) (found Value, ok bool) {
	v.Fields(func(k []byte, e Value) bool {
		if string(k) == key {
			found, ok = e, true
		}
		return true
	})
	return found, ok
}

// appendMember appends a member to an object that is not closed yet.
func appendMember(object, key []byte, v Value) []byte {
	if len(object) > 1 {
		object = append(object, ", "...)
	}
	object = append(object, '"')
	for _, c := range key {
		if c == '"' || c == '\\' {
			object = append(object, '\\')
		}
		object = append(object, c)
	}
	object = append(object, `": `...)
	return append(object, v.raw...)
}

// Len returns the number of elements or members.
func (v Value) Len() int {
	n := 0
	v.Each(func(Value) bool { n++; return true })
	v.Fields(func([]byte, Value) bool { n++; return true })
	return n
}

// valueAt returns the value that begins at b[i], and the index behind it. The
// value has been walked before, so its structure is right.
func valueAt(b []byte, i int) (Value, int) {
	if i >= len(b) {
		return Value{}, i
	}
	switch b[i] {
	case '"':
		e, _ := scanString(b, i+1)
		if e < 0 {
			return Value{}, broken
		}
		return Value{b[i : e+1], String}, e + 1
	case '{', '[':
		e := skipContainer(b, i)
		if e < 0 {
			return Value{}, broken
		}
		k := Object
		if b[i] == '[' {
			k = Array
		}
		return Value{b[i:e], k}, e
	}
	e := i
	for e < len(b) && wordByte[b[e]] {
		e++
	}
	k, _ := wordKind(b[i:e])
	return Value{b[i:e], k}, e
}

// skipContainer returns the index behind the container that begins at b[i],
// which has been walked before.
func skipContainer(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			e, _ := scanString(b, i+1)
			if e < 0 {
				return broken
			}
			i = e
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return broken
}

// Args is the args object of an event, decoded on demand.
type Args struct {
	v       Value
	members []member // of v, when the scanner has listed them
}

// ArgsOf returns the Args that the raw JSON object b holds.
func ArgsOf(b []byte) Args { return Args{v: ParseValue(b)} }

// Raw returns the object as it is written in the file; nil when the event has
// none.
func (a Args) Raw() []byte { return a.v.raw }

// Each calls f with the members in file order, until f returns false. The key
// is unescaped and valid until f returns.
func (a Args) Each(f func(key []byte, v Value) bool) {
	if a.members == nil {
		a.v.Fields(f)
		return
	}
	raw := a.v.raw
	for i := range a.members {
		m := &a.members[i]
		if !f(raw[m.key:m.keyEnd], Value{raw[m.val:m.valEnd], m.kind}) {
			return
		}
	}
}

// Get returns the member with the given key; the last one if there are
// several.
func (a Args) Get(key string) (Value, bool) {
	if a.members == nil {
		return a.v.Get(key)
	}
	raw := a.v.raw
	for i := len(a.members) - 1; i >= 0; i-- {
		if m := &a.members[i]; string(raw[m.key:m.keyEnd]) == key {
			return Value{raw[m.val:m.valEnd], m.kind}, true
		}
	}
	return Value{}, false
}
