package executiontrace

import (
	"math"
	"strings"

	"mixdown/ingest/chrome"
	"mixdown/ingest/comm"
)

// tensors is an argument made of tensors: one, a list, or lists of lists.
type tensors struct {
	known    bool // it is of tensors, and all of them could be read
	list     bool
	dtype    comm.DType // "" for a list without any
	elements int64      // of all
	parts    []int64    // elements of each, in order
	rows     int64      // of a single tensor: its first dimension, -1 when unknown
	id       int64      // of a single tensor, also in a list; 0 when unknown
}

// maxTensors bounds one list; there is one tensor for each member of a group.
const maxTensors = 1 << 20

// maxNesting bounds lists of lists; all_gather has two levels.
const maxNesting = 4

// readTensors reads argument i of a node: its value is a description
// [tensor id, storage id, offset, elements, bytes of an element, device], or
// lists of them; the type is "Tensor(float)" or "GenericList[Tensor(float)]".
func (a *arguments) readTensors(i int) tensors {
	t := tensors{rows: -1}
	if i >= len(a.values) || i >= len(a.types) {
		return t
	}
	typ := text(a.types[i])
	t.list = strings.HasPrefix(typ, "GenericList[")
	if !t.list && !strings.HasPrefix(typ, "Tensor(") {
		return t
	}
	var shape chrome.Value
	if i < len(a.shapes) {
		shape = a.shapes[i]
	}
	if t.dtype, t.known = tensorType(typ); !t.known {
		return t
	}
	if !t.list {
		t.known = t.addTensor(a.values[i], shape)
		first := true
		shape.Each(func(size chrome.Value) bool {
			if n, ok := size.Int(); ok && first {
				t.rows = n
			}
			first = false
			return false
		})
		return t
	}
	t.known = t.addList(a.values[i], maxNesting) && (t.dtype != "" || len(t.parts) == 0)
	if len(t.parts) > 1 {
		t.id = 0
	}
	return t
}

// tensorType returns the element type that all tensors in a type have: "" when
// there are none, not ok when they differ or are not known.
func tensorType(typ string) (dtype comm.DType, ok bool) {
	for {
		i := strings.Index(typ, "Tensor(")
		if i < 0 {
			return dtype, true
		}
		typ = typ[i+len("Tensor("):]
		name, rest, found := strings.Cut(typ, ")")
		d, known := comm.ParseDType(name)
		if !found || !known || dtype != "" && d != dtype {
			return "", false
		}
		dtype, typ = d, rest
	}
}

// addTensor adds the tensor that v describes. Its shape is only a check: where
// both say how many elements it has, they must agree.
func (t *tensors) addTensor(v, shape chrome.Value) bool {
	n, i := int64(-1), 0
	v.Each(func(e chrome.Value) bool {
		switch i {
		case 0:
			t.id, _ = e.Int()
		case 3:
			if count, ok := e.Int(); ok {
				n = count
			}
		}
		i++
		return i <= 3
	})
	if n < 0 {
		return false
	}
	if size, ok := product(shape); ok && size != n {
		return false
	}
	if len(t.parts) >= maxTensors || t.elements > math.MaxInt64-n {
		return false
	}
	t.elements += n
	t.parts = append(t.parts, n)
	return true
}

// addList adds the tensors of a list, or of a list of lists.
func (t *tensors) addList(v chrome.Value, depth int) bool {
	if v.Kind() != chrome.Array || depth == 0 {
		return false
	}
	ok := true
	v.Each(func(e chrome.Value) bool {
		nested := false
		e.Each(func(first chrome.Value) bool {
			nested = first.Kind() == chrome.Array
			return false
		})
		switch {
		case nested || e.Kind() == chrome.Array && e.Len() == 0:
			ok = t.addList(e, depth-1)
		default:
			ok = t.addTensor(e, chrome.Value{})
		}
		return ok
	})
	return ok
}

// product is the number of elements of a shape.
func product(shape chrome.Value) (int64, bool) {
	if shape.Kind() != chrome.Array {
		return 0, false
	}
	n, ok := int64(1), true
	shape.Each(func(size chrome.Value) bool {
		s, isInt := size.Int()
		if !isInt || s < 0 || s > 0 && n > math.MaxInt64/s {
			ok = false
			return false
		}
		n *= s
		return true
	})
	return n, ok
}

// text is the string of v, "" when it is none.
func text(v chrome.Value) string {
	s, _ := v.Str()
	return s
}
