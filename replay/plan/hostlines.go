package plan

import "mixdown/replay/plan/planpb"

// hostLines are the host streams of a rank while their tasks are made, in the order
// of time.
type hostLines struct {
	b      *builder
	hosts  *hosts
	count  *planpb.Dependencies
	cursor []int64 // by stream, ns: up to where its tasks reach
	next   int     // hand-over
}

func newHostLines(b *builder, h *hosts, count *planpb.Dependencies, start int64) *hostLines {
	l := &hostLines{b: b, hosts: h, count: count, cursor: make([]int64, len(h.names))}
	for s := range l.cursor {
		l.cursor[s] = start
		if h.several() {
			b.stream(h.names[s]) // in their order, whichever works first
		}
	}
	return l
}

// reach makes the hand-overs up to a time, then a stream's work up to it.
func (l *hostLines) reach(stream int, at int64) {
	for ; l.next < len(l.hosts.turns) && l.hosts.turns[l.next].end <= at; l.next++ {
		x := l.hosts.turns[l.next]
		l.work(x.from, x.end)
		l.work(x.to, x.idle)
		if before := l.last(x.from); before != nil {
			l.b.wait(l.hosts.names[x.to], x.end, before)
			l.count.Inferred++
		}
		l.skip(x.to, x.end)
	}
	l.work(stream, at)
}

// work appends a span up to a time.
func (l *hostLines) work(stream int, to int64) {
	if at := l.cursor[stream]; to > at {
		l.b.span(l.hosts.names[stream], planpb.Span_HOST, at, to-at)
		l.cursor[stream] = to
	}
}

// skip leaves out the time up to another: the stream waited.
func (l *hostLines) skip(stream int, to int64) {
	l.cursor[stream] = max(l.cursor[stream], to)
}

// last is the latest task of a stream, nil when it has none.
func (l *hostLines) last(stream int) *node { return l.b.last(l.hosts.names[stream]) }
