package flightrecorder

import (
	"encoding/json"
	"math/big"
	"strconv"
)

// A value is plain data as Python has it: nil, bool, int64, *big.Int (what
// does not fit int64), float64, json.Number (from JSON), string, []byte,
// *list, tuple, *dict.
type value any

// list is a Python list. It is a pointer because a pickle may refer to it again
// while it is being filled.
type list struct{ items []value }

type tuple []value

type pair struct{ key, value value }

// dict is a Python dict in the order of insertion, found by text.
type dict struct {
	pairs []pair
	index map[string]int
}

// set adds or replaces a member.
func (d *dict) set(key, v value) {
	text, ok := keyText(key)
	if !ok {
		d.pairs = append(d.pairs, pair{key, v})
		return
	}
	if i, have := d.index[text]; have {
		d.pairs[i].value = v
		return
	}
	if d.index == nil {
		d.index = map[string]int{}
	}
	d.index[text] = len(d.pairs)
	d.pairs = append(d.pairs, pair{key, v})
}

// keyText is what a key is found by: names, and numbers as JSON would have them.
func keyText(key value) (string, bool) {
	switch k := key.(type) {
	case string:
		return k, true
	case int64:
		return strconv.FormatInt(k, 10), true
	}
	return "", false
}

// get returns the member with the given key; nil when there is none.
func (d *dict) get(key string) value {
	if i, ok := d.index[key]; ok {
		return d.pairs[i].value
	}
	return nil
}

// elements returns the elements of a list or tuple.
func elements(v value) ([]value, bool) {
	switch x := v.(type) {
	case *list:
		return x.items, true
	case tuple:
		return x, true
	}
	return nil, false
}

// intOf reads an integer; JSON writes some of them as strings.
func intOf(v value) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case json.Number:
		n, err := strconv.ParseInt(x.String(), 10, 64)
		return n, err == nil
	case string:
		n, err := strconv.ParseInt(x, 10, 64)
		return n, err == nil
	}
	return 0, false
}

func floatOf(v value) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case int64:
		return float64(x), true
	case json.Number:
		f, err := x.Float64()
		return f, err == nil
	}
	return 0, false
}

// kindOf names the type of v as Python does.
func kindOf(v value) string {
	switch v.(type) {
	case nil:
		return "None"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case json.Number:
		return "number"
	case string:
		return "str"
	case []byte:
		return "bytes"
	case *list:
		return "list"
	case tuple:
		return "tuple"
	case *dict:
		return "dict"
	}
	return "unknown"
}
