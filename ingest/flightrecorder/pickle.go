package flightrecorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

var (
	// ErrUnsafePickle: the pickle asks for more than plain data. Python would
	// run code of the file's author for it.
	ErrUnsafePickle = errors.New("pickle is not plain data")
	// ErrBadPickle: the input is no pickle, or a broken one.
	ErrBadPickle = errors.New("broken pickle")

	errCut = errors.New("pickle ends early")
)

// machine is the stack machine that pickles are programs for.
type machine struct {
	data    []byte
	pos     int
	limits  Options
	stack   []value
	marks   []int // heights of the stack
	memo    map[uint64]value
	objects int
}

// readPickle returns the value that data describes and whether data ends before
// the value is complete; what was built until then is returned.
func readPickle(data []byte, limits Options) (v value, cut bool, err error) {
	m := &machine{data: data, limits: limits, memo: map[uint64]value{}}
	for {
		at := m.pos
		op, err := m.next(1)
		if err == nil && op[0] == opStop {
			if len(m.stack) == 0 {
				return nil, false, fmt.Errorf("%w: no value at byte %d", ErrBadPickle, at)
			}
			return m.stack[len(m.stack)-1], false, nil
		}
		if err == nil {
			err = m.step(op[0])
		}
		switch {
		case errors.Is(err, errCut):
			v, ok := m.salvage()
			if !ok {
				return nil, true, fmt.Errorf("%w: it ends at byte %d, before its first value", ErrBadPickle, len(data))
			}
			return v, true, nil
		case err != nil:
			return nil, false, fmt.Errorf("%w, opcode %s at byte %d", err, opcodeText(op[0]), at)
		case len(m.stack) > limits.MaxStack || len(m.marks) > limits.MaxDepth || len(m.memo) > limits.MaxMemo || m.objects > limits.MaxObjects:
			return nil, false, fmt.Errorf("%w at byte %d: stack %d, marks %d, memo %d, objects %d", ErrLimit, at,
				len(m.stack), len(m.marks), len(m.memo), m.objects)
		}
	}
}

// opcodeText shows an opcode in a message.
func opcodeText(op byte) string {
	if name, ok := refused[op]; ok {
		return fmt.Sprintf("%s (0x%02x)", name, op)
	}
	return fmt.Sprintf("0x%02x", op)
}

// next takes n bytes.
func (m *machine) next(n uint64) ([]byte, error) {
	if n > uint64(len(m.data)-m.pos) {
		return nil, errCut
	}
	b := m.data[m.pos : m.pos+int(n)]
	m.pos += int(n)
	return b, nil
}

// line takes the bytes up to the next newline, which it leaves out.
func (m *machine) line() (string, error) {
	rest := m.data[m.pos:]
	i := slices.Index(rest, '\n')
	if i < 0 {
		return "", errCut
	}
	m.pos += i + 1
	return string(rest[:i]), nil
}

// uint takes a little-endian number of n bytes.
func (m *machine) uint(n uint64) (uint64, error) {
	b, err := m.next(n)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint64(wide[:]), nil
}

// counted takes a length of n bytes and then as many bytes.
func (m *machine) counted(n uint64) ([]byte, error) {
	length, err := m.uint(n)
	if err != nil {
		return nil, err
	}
	return m.next(length)
}

func (m *machine) push(v value) error {
	m.objects++
	m.stack = append(m.stack, v)
	return nil
}

// floor is the height below which the stack belongs to an open mark.
func (m *machine) floor() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

func (m *machine) pop() (value, error) {
	if len(m.stack) <= m.floor() {
		return nil, fmt.Errorf("%w: nothing on the stack", ErrBadPickle)
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

func (m *machine) top() (value, error) {
	if len(m.stack) <= m.floor() {
		return nil, fmt.Errorf("%w: nothing on the stack", ErrBadPickle)
	}
	return m.stack[len(m.stack)-1], nil
}

// popMark takes everything above the last mark, and the mark.
func (m *machine) popMark() ([]value, error) {
	if len(m.marks) == 0 {
		return nil, fmt.Errorf("%w: no mark", ErrBadPickle)
	}
	at := m.floor()
	items := slices.Clone(m.stack[at:])
	m.stack, m.marks = m.stack[:at], m.marks[:len(m.marks)-1]
	return items, nil
}

// step carries out one opcode.
func (m *machine) step(op byte) error {
	if _, bad := refused[op]; bad {
		return ErrUnsafePickle
	}
	switch op {
	case opMark:
		m.marks = append(m.marks, len(m.stack))
		return nil
	case opPop:
		if len(m.marks) > 0 && len(m.stack) == m.floor() {
			m.marks = m.marks[:len(m.marks)-1]
			return nil
		}
		_, err := m.pop()
		return err
	case opPopMark:
		_, err := m.popMark()
		return err
	case opDup:
		v, err := m.top()
		if err != nil {
			return err
		}
		return m.push(v)
	case opProto:
		v, err := m.uint(1)
		if err == nil && v > maxProtocol {
			return fmt.Errorf("%w: protocol %d", ErrBadPickle, v)
		}
		return err
	case opFrame:
		_, err := m.next(8)
		return err
	case opNone:
		return m.push(nil)
	case opNewTrue:
		return m.push(true)
	case opNewFalse:
		return m.push(false)
	case opEmptyList:
		return m.push(&list{})
	case opEmptyDict:
		return m.push(&dict{})
	case opEmptyTuple:
		return m.push(tuple{})
	case opList, opTuple, opDict, opAppends, opSetItems, opAppend, opSetItem, opTuple1, opTuple2, opTuple3:
		return m.collect(op)
	case opPut, opBinPut, opLongBinPut, opMemoize, opGet, opBinGet, opLongBinGet:
		return m.memory(op)
	}
	v, err := m.atom(op)
	if err != nil {
		return err
	}
	return m.push(v)
}

// collect carries out the opcodes that put values into containers.
func (m *machine) collect(op byte) error {
	switch op {
	case opAppend:
		v, err := m.pop()
		if err != nil {
			return err
		}
		return m.extend([]value{v})
	case opSetItem:
		v, err := m.pop()
		if err != nil {
			return err
		}
		k, err := m.pop()
		if err != nil {
			return err
		}
		return m.update([]value{k, v})
	case opTuple1, opTuple2, opTuple3:
		n := int(op-opTuple1) + 1
		if len(m.stack)-m.floor() < n {
			return fmt.Errorf("%w: nothing on the stack", ErrBadPickle)
		}
		t := tuple(slices.Clone(m.stack[len(m.stack)-n:]))
		m.stack = m.stack[:len(m.stack)-n]
		return m.push(t)
	}
	items, err := m.popMark()
	if err != nil {
		return err
	}
	switch op {
	case opList:
		return m.push(&list{items})
	case opTuple:
		return m.push(tuple(items))
	case opDict:
		if err := m.push(&dict{}); err != nil {
			return err
		}
		return m.update(items)
	case opAppends:
		return m.extend(items)
	}
	return m.update(items)
}

func (m *machine) extend(items []value) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	l, ok := v.(*list)
	if !ok {
		return fmt.Errorf("%w: append to %s", ErrBadPickle, kindOf(v))
	}
	l.items = append(l.items, items...)
	return nil
}

func (m *machine) update(items []value) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	d, ok := v.(*dict)
	if !ok || len(items)%2 != 0 {
		return fmt.Errorf("%w: %d keys and values for %s", ErrBadPickle, len(items), kindOf(v))
	}
	for i := 0; i < len(items); i += 2 {
		d.set(items[i], items[i+1])
	}
	return nil
}

// memory carries out the opcodes that keep values to refer to them again.
func (m *machine) memory(op byte) error {
	var key uint64
	var err error
	switch op {
	case opPut, opGet:
		var s string
		if s, err = m.line(); err == nil {
			key, err = parseMemoKey(s)
		}
	case opBinPut, opBinGet:
		key, err = m.uint(1)
	case opLongBinPut, opLongBinGet:
		key, err = m.uint(4)
	case opMemoize:
		key = uint64(len(m.memo))
	}
	if err != nil {
		return err
	}
	switch op {
	case opGet, opBinGet, opLongBinGet:
		v, ok := m.memo[key]
		if !ok {
			return fmt.Errorf("%w: nothing kept as %d", ErrBadPickle, key)
		}
		m.stack = append(m.stack, v)
		return nil
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	m.memo[key] = v
	return nil
}

// salvage closes what is open when the data ends: values above a mark go into
// the container below it, as the opcode that is missing would have done.
func (m *machine) salvage() (value, bool) {
	for len(m.marks) > 0 {
		items, _ := m.popMark()
		m.give(items)
	}
	for len(m.stack) > 1 {
		v := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if key, ok := m.stack[len(m.stack)-1].(string); ok && len(m.stack) > 1 {
			if d, ok := m.stack[len(m.stack)-2].(*dict); ok {
				d.set(key, v)
				m.stack = m.stack[:len(m.stack)-1]
			}
			continue
		}
		m.give([]value{v})
	}
	if len(m.stack) == 0 {
		return nil, false
	}
	return m.stack[0], true
}

func (m *machine) give(items []value) {
	if len(m.stack) == 0 {
		return
	}
	switch c := m.stack[len(m.stack)-1].(type) {
	case *list:
		c.items = append(c.items, items...)
	case *dict:
		for i := 0; i+1 < len(items); i += 2 {
			c.set(items[i], items[i+1])
		}
	}
}

// bigEndianFloat reads the eight bytes of BINFLOAT.
func bigEndianFloat(b []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(b)) }
