package track

import (
	"fmt"
	"strconv"

	"mixdown/analyze/collective"
	"mixdown/ingest/trace"
)

// Kind is what a stretch of time is.
type Kind int

// The kinds.
const (
	Step Kind = iota
	Compute
	Memory
	CPU
	Communication
)

// KindOf says what an event is drawn as, false where it is left out: what the host of a
// rank with a device did is its reader's trace.
func KindOf(rank *trace.Rank, c trace.Category) (Kind, bool) {
	switch {
	case c == trace.Kernel, c == trace.CollectiveActivity:
		return Compute, true
	case c == trace.Memcpy, c == trace.Memset:
		return Memory, true
	case c == trace.CPUOp && rank.CPUOnly:
		return CPU, true
	}
	return 0, false
}

// Of names the stream or thread of an event, as the file does; order sorts streams by
// number, then threads.
func Of(rank *trace.Rank, event int) (name string, order int64) {
	ev := &rank.Events
	if s := ev.Stream[event]; s != trace.NoStream {
		name = "stream " + strconv.FormatInt(s, 10)
		if d := ev.Device[event]; d >= 0 {
			name = fmt.Sprintf("device %d %s", d, name)
		}
		return name, s
	}
	return "thread " + rank.Threads[ev.Thread[event]].TID, 1 << 40
}

// Flows numbers what belongs together on several ranks, from 0: matched collectives
// first, then pairs of send and receive.
type Flows struct {
	matching *collective.Matching
	pairs    map[collective.Member][]int
}

// NewFlows numbers what was matched.
func NewFlows(m *collective.Matching) *Flows {
	f := &Flows{matching: m, pairs: map[collective.Member][]int{}}
	for i, p := range m.Pairs {
		id := len(m.Collectives) + i
		f.pairs[p.Send] = append(f.pairs[p.Send], id)
		f.pairs[p.Recv] = append(f.pairs[p.Recv], id)
	}
	return f
}

// Of lists the numbers of an operation; a collective of one member has none.
func (f *Flows) Of(m collective.Member) []int {
	if i, ok := f.matching.Index(m); ok {
		if len(f.matching.Collectives[i].Members) < 2 {
			return nil
		}
		return []int{i}
	}
	return f.pairs[m]
}
