package chrome

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
)

// maxOpenBegins bounds how many B events may wait for their E. Beyond it they
// pass through unmatched.
const maxOpenBegins = 1 << 20

// EventReader is what delivers events one by one; see [Reader.Next].
type EventReader interface {
	Next() (*Event, error)
}

// Pairer joins the B and E events of a stream: for each pair it delivers one X
// event, at the place of the E, with the duration between them and the args of
// both (those of the E win). Other events pass through as they are.
//
// Pairs belong to one pid and tid and are nested: an E closes the innermost
// open B of its thread or, if it has a name, the innermost of that name. B and
// E events without a partner are counted and delivered as they are, the B ones
// at the end of the stream. B and E without a time take part but give an X
// event without duration.
type Pairer struct {
	src   EventReader
	open  map[track][]*begin
	count int
	free  []*begin
	diags diagnostics
	out   Event
	args  []byte
	left  []*begin // open at the end of the stream, in file order
	end   error
}

type track struct{ pid, tid ID }

// begin is a B event that waits for its E, with memory of its own.
type begin struct {
	ev              Event
	name, cat, args []byte
}

// NewPairer returns a Pairer of the events of src.
func NewPairer(src EventReader) *Pairer {
	return &Pairer{src: src, open: make(map[track][]*begin)}
}

// Diagnostics returns what could not be paired so far; see
// [Reader.Diagnostics] for the rest.
func (p *Pairer) Diagnostics() []Diagnostic { return p.diags.list() }

// Next returns the next event, under the rules of [Reader.Next].
func (p *Pairer) Next() (*Event, error) {
	for p.end == nil {
		ev, err := p.src.Next()
		if err != nil {
			p.end = err
			if errors.Is(err, io.EOF) {
				p.leftOver()
			}
			break
		}
		switch ev.Phase {
		case 'B':
			if p.count < maxOpenBegins {
				p.push(ev)
				continue
			}
			p.diags.add(cUnmatchedBegin, 1, ev.Offset, ev.Name)
		case 'E':
			if b := p.pop(ev); b != nil {
				return p.join(b, ev), nil
			}
			p.diags.add(cUnmatchedEnd, 1, ev.Offset, ev.Name)
		}
		return ev, nil
	}
	if len(p.left) > 0 {
		b := p.left[0]
		p.left = p.left[1:]
		return &b.ev, nil
	}
	return nil, p.end
}

func (p *Pairer) push(ev *Event) {
	b := &begin{}
	if n := len(p.free); n > 0 {
		b, p.free = p.free[n-1], p.free[:n-1]
	}
	b.ev = *ev
	b.name = append(b.name[:0], ev.Name...)
	b.cat = append(b.cat[:0], ev.Cat...)
	b.args = append(b.args[:0], ev.Args.Raw()...)
	b.ev.Name, b.ev.Cat, b.ev.Args = b.name, b.cat, Args{}
	b.ev.IDScope = bytes.Clone(ev.IDScope)
	if len(b.args) > 0 {
		b.ev.Args = Args{v: Value{b.args, Object}}
	}
	t := track{ev.PID, ev.TID}
	p.open[t] = append(p.open[t], b)
	p.count++
}

// pop returns the B that ev closes, nil if there is none.
func (p *Pairer) pop(ev *Event) *begin {
	t := track{ev.PID, ev.TID}
	stack := p.open[t]
	i := len(stack) - 1
	if len(ev.Name) > 0 {
		for i >= 0 && len(stack[i].name) > 0 && !bytes.Equal(stack[i].name, ev.Name) {
			i--
		}
	}
	if i < 0 {
		return nil
	}
	b := stack[i]
	if i < len(stack)-1 {
		p.diags.add(cCrossedPair, 1, ev.Offset, ev.Name)
	}
	copy(stack[i:], stack[i+1:])
	stack[len(stack)-1] = nil
	p.open[t] = stack[:len(stack)-1]
	if len(stack) == 1 {
		delete(p.open, t)
	}
	p.count--
	return b
}

// join makes the X event of a pair. It is valid until the next call.
func (p *Pairer) join(b *begin, e *Event) *Event {
	x := &p.out
	*x = b.ev
	x.Phase = 'X'
	x.End = e.End
	if len(x.Cat) == 0 {
		x.Cat = e.Cat
	}
	if len(x.Name) == 0 {
		x.Name = e.Name
	}
	if b.ev.HasTS && e.HasTS {
		x.Dur = e.TS - b.ev.TS
		x.HasDur = x.Dur >= 0
		switch {
		case (e.TS < b.ev.TS) != (x.Dur < 0):
			x.Dur, x.HasDur = 0, false
			p.diags.add(cTimeOverflow, 1, e.Offset, e.Name)
		case !x.HasDur:
			p.diags.add(cNegativeDuration, 1, e.Offset, e.Name)
		}
	}
	switch {
	case len(b.args) == 0:
		x.Args = e.Args
	case len(e.Args.Raw()) > 0:
		p.args = mergeArgs(p.args[:0], x.Args, e.Args)
		x.Args = Args{v: Value{p.args, Object}}
	}
	p.free = append(p.free, b)
	return x
}

// mergeArgs appends an object with the members of both to dst; of equal keys
// only those of e.
func mergeArgs(dst []byte, b, e Args) []byte {
	dst = append(dst, '{')
	inE := make(map[string]bool)
	e.Each(func(key []byte, _ Value) bool {
		inE[string(key)] = true
		return true
	})
	b.Each(func(key []byte, v Value) bool {
		if !inE[string(key)] {
			dst = appendMember(dst, key, v)
		}
		return true
	})
	e.Each(func(key []byte, v Value) bool {
		dst = appendMember(dst, key, v)
		return true
	})
	return append(dst, '}')
}

// leftOver takes the B events that are still open, in file order.
func (p *Pairer) leftOver() {
	for _, stack := range p.open {
		p.left = append(p.left, stack...)
	}
	p.open = nil
	slices.SortFunc(p.left, func(a, b *begin) int { return cmp.Compare(a.ev.Offset, b.ev.Offset) })
	for _, b := range p.left {
		p.diags.add(cUnmatchedBegin, 1, b.ev.Offset, b.name)
	}
}
