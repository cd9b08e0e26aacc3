package flightrecorder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readJSON returns the value that data holds and, when data ends or breaks
// before it is complete, why; what was read until then is returned.
func readJSON(data []byte, limits Options) (v value, broken, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	b := builder{limits: limits}
	for {
		tok, err := dec.Token()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			if b.root == nil {
				return nil, nil, fmt.Errorf("%w: not JSON at byte %d: %w", ErrNotDump, dec.InputOffset(), err)
			}
			return b.root, fmt.Errorf("at byte %d: %w", dec.InputOffset(), err), nil
		}
		done, err := b.token(tok)
		if err != nil {
			return nil, nil, fmt.Errorf("%w at byte %d", err, dec.InputOffset())
		}
		if done {
			return b.root, nil, nil
		}
	}
}

// builder makes values of tokens. A container is put into its parent when it
// begins, so that what comes before a cut is there.
type builder struct {
	limits  Options
	root    value
	open    []value // *dict or *list
	keys    []string
	hasKey  []bool
	objects int
}

func (b *builder) token(tok json.Token) (done bool, err error) {
	b.objects++
	if b.objects > b.limits.MaxObjects {
		return false, fmt.Errorf("%w: more than %d values", ErrLimit, b.limits.MaxObjects)
	}
	depth := len(b.open)
	switch t := tok.(type) {
	case json.Delim:
		switch t {
		case '{':
			return false, b.begin(&dict{})
		case '[':
			return false, b.begin(&list{})
		}
		b.open, b.keys, b.hasKey = b.open[:depth-1], b.keys[:depth-1], b.hasKey[:depth-1]
		return depth == 1, nil
	case string:
		if depth > 0 && !b.hasKey[depth-1] {
			if _, ok := b.open[depth-1].(*dict); ok {
				b.keys[depth-1], b.hasKey[depth-1] = t, true
				return false, nil
			}
		}
	}
	return b.add(tok), nil
}

// add puts v where the next value belongs; true when that is the whole.
func (b *builder) add(v value) bool {
	if len(b.open) == 0 {
		b.root = v
		return true
	}
	last := len(b.open) - 1
	switch c := b.open[last].(type) {
	case *dict:
		c.set(b.keys[last], v)
		b.hasKey[last] = false
	case *list:
		c.items = append(c.items, v)
	}
	return false
}

func (b *builder) begin(container value) error {
	if len(b.open) >= b.limits.MaxDepth {
		return fmt.Errorf("%w: more than %d containers inside each other", ErrLimit, b.limits.MaxDepth)
	}
	b.add(container)
	b.open, b.keys, b.hasKey = append(b.open, container), append(b.keys, ""), append(b.hasKey, false)
	return nil
}
