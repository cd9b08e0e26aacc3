package perfetto

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"mixdown/ingest/chrome"
)

// annotations writes debug annotations as the members of a JSON object.
type annotations struct {
	r   *Reader
	seq *sequence
	at  int64
	out []byte
}

// add appends the annotation b to the object; false when b is no message.
func (a *annotations) add(b []byte) bool {
	start := len(a.out)
	if len(a.out) == 0 {
		a.out = append(a.out, '{')
	}
	if len(a.out) > 1 {
		a.out = append(a.out, ", "...)
	}
	before := len(a.out)
	if !a.member(b, 0) {
		a.out = a.out[:start]
		return false
	}
	a.splice(before)
	return true
}

// metadataKey is the annotation into which Kineto's PerfettoTraceBuilder writes
// all arguments of an event: the members of a JSON object without its braces.
const metadataKey = `"metadata": "`

// splice takes the member that begins at from apart, if it is Kineto's.
func (a *annotations) splice(from int) {
	if !bytes.HasPrefix(a.out[from:], []byte(metadataKey)) {
		return
	}
	text, ok := chrome.ParseValue(a.out[from+len(metadataKey)-1:]).Str()
	if object := "{" + text + "}"; ok && json.Valid([]byte(object)) {
		if members := bytes.TrimSpace([]byte(text)); len(members) > 0 {
			a.out = append(a.out[:from], members...)
		}
	}
}

// member appends name and value of an annotation.
func (a *annotations) member(b []byte, depth int) bool {
	name := []byte{}
	if !fields(b, func(x field) bool {
		switch x.num {
		case annotationName:
			name = x.data
		case annotationNameIID:
			name = []byte(a.r.names.Get(a.r.lookup(a.seq.annotationNames, x.n, a.at)))
		}
		return true
	}) {
		return false
	}
	a.out = append(a.key(name), ": "...)
	return a.value(b, depth)
}

func (a *annotations) key(name []byte) []byte { return appendText(a.out, name) }

// value appends the value of an annotation.
func (a *annotations) value(b []byte, depth int) bool {
	start := len(a.out)
	var dict, array [][]byte
	whole := fields(b, func(x field) bool {
		switch x.num {
		case annotationDict, annotationArray:
			if x.num == annotationDict {
				dict = append(dict, x.data)
			} else {
				array = append(array, x.data)
			}
			return x.isBytes()
		case annotationNested:
			a.out = a.out[:start]
			return x.isBytes() && a.nested(x.data, depth+1)
		}
		if out, ok := a.scalar(a.out[:start], x); ok {
			a.out = out
		}
		return true
	})
	switch {
	case !whole:
		return false
	case dict != nil:
		a.out = a.out[:start]
		return a.list('{', '}', dict, depth, a.member)
	case array != nil:
		a.out = a.out[:start]
		return a.list('[', ']', array, depth, a.value)
	case len(a.out) == start:
		a.null("annotation without a value that is read")
	}
	return true
}

func (a *annotations) null(why string) {
	a.r.note(CodeBadAnnotation, a.at, "%s", why)
	a.out = append(a.out, "null"...)
}

// scalar appends the value of x to out, if x is a value.
func (a *annotations) scalar(out []byte, x field) ([]byte, bool) {
	switch x.num {
	case annotationBool:
		return strconv.AppendBool(out, x.n != 0), true
	case annotationUint:
		return strconv.AppendUint(out, x.n, 10), true
	case annotationInt:
		return strconv.AppendInt(out, int64(x.n), 10), true
	case annotationDouble:
		return appendFloat(out, math.Float64frombits(x.n)), true
	case annotationString:
		return appendText(out, x.data), true
	case annotationStringIID:
		return appendText(out, []byte(a.r.names.Get(a.r.lookup(a.seq.annotationStrings, x.n, a.at)))), true
	case annotationPointer:
		return append(strconv.AppendUint(append(out, `"0x`...), x.n, 16), '"'), true
	case annotationJSON:
		if json.Valid(x.data) {
			return append(out, x.data...), true
		}
		return appendText(out, x.data), true
	}
	return out, false
}

// list appends values between brackets.
func (a *annotations) list(open, end byte, items [][]byte, depth int, f func([]byte, int) bool) bool {
	if depth >= a.r.opts.MaxDepth {
		a.null("too many values inside each other")
		return true
	}
	a.out = append(a.out, open)
	for i, item := range items {
		if i > 0 {
			a.out = append(a.out, ", "...)
		}
		if !f(item, depth+1) {
			return false
		}
	}
	a.out = append(a.out, end)
	return true
}

// nested appends a NestedValue, the older form of dictionaries and arrays.
func (a *annotations) nested(b []byte, depth int) bool {
	start := len(a.out)
	var kind uint64
	var keys, values, array [][]byte
	whole := fields(b, func(x field) bool {
		switch x.num {
		case nestedType:
			kind = x.n
		case nestedDictKeys:
			keys = append(keys, x.data)
		case nestedDictValues:
			values = append(values, x.data)
		case nestedArray:
			array = append(array, x.data)
		case nestedInt:
			a.out = strconv.AppendInt(a.out[:start], int64(x.n), 10)
		case nestedDouble:
			a.out = appendFloat(a.out[:start], math.Float64frombits(x.n))
		case nestedBool:
			a.out = strconv.AppendBool(a.out[:start], x.n != 0)
		case nestedString:
			a.out = appendText(a.out[:start], x.data)
		}
		return true
	})
	if !whole {
		return false
	}
	switch {
	case kind == nestedTypeDict:
		a.out = a.out[:start]
		i := 0
		return a.list('{', '}', values[:min(len(keys), len(values))], depth, func(b []byte, depth int) bool {
			a.out = append(a.key(keys[i]), ": "...)
			i++
			return a.nested(b, depth)
		})
	case kind == nestedTypeArray:
		a.out = a.out[:start]
		return a.list('[', ']', array, depth, a.nested)
	case len(a.out) == start:
		a.null("nested value without one")
	}
	return true
}

// appendFloat writes a number; those that JSON has not are strings, as Kineto
// writes them.
func appendFloat(out []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(out, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(out, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(out, `"-Infinity"`...)
	}
	return strconv.AppendFloat(out, v, 'g', -1, 64)
}

// appendText writes a JSON string.
func appendText(out, text []byte) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
			i++
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			i++
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			out = utf8.AppendRune(out, r) // U+FFFD for what is none
			i += n
		}
	}
	return append(out, '"')
}

// mergeArgs joins two objects; of equal keys those of e count.
func mergeArgs(b, e []byte) []byte {
	if len(b) == 0 || len(e) == 0 {
		return append(b[:len(b):len(b)], e...)
	}
	inE := map[string]bool{}
	ends := chrome.ArgsOf(e)
	ends.Each(func(key []byte, _ chrome.Value) bool {
		inE[string(key)] = true
		return true
	})
	out := []byte{'{'}
	add := func(key []byte, v chrome.Value) {
		if len(out) > 1 {
			out = append(out, ", "...)
		}
		out = append(append(appendText(out, key), ": "...), v.Raw()...)
	}
	chrome.ArgsOf(b).Each(func(key []byte, v chrome.Value) bool {
		if !inE[string(key)] {
			add(key, v)
		}
		return true
	})
	ends.Each(func(key []byte, v chrome.Value) bool {
		add(key, v)
		return true
	})
	return append(out, '}')
}
