package plan

import (
	"container/heap"
	"fmt"

	"mixdown/ingest/comm"
	"mixdown/replay/plan/planpb"
)

// node is a task while its program is being built.
type node struct {
	stream int
	at     int64 // ns in the trace, to order tasks that nothing else orders
	deps   []*node
	span   *planpb.Span
	comm   *planpb.Communication // neither: a wait
	origin *planpb.Origin

	blocked int64 // ns that a wait held the host in the trace

	id      int32
	emitted bool
}

// builder builds the program of one rank.
type builder struct {
	streams []string
	byName  map[string]int
	order   [][]*node // tasks of each stream, in order
}

func newBuilder() *builder {
	return &builder{byName: map[string]int{}}
}

// stream returns the index of the named stream.
func (b *builder) stream(name string) int {
	i, ok := b.byName[name]
	if !ok {
		i = len(b.streams)
		b.byName[name] = i
		b.streams = append(b.streams, name)
		b.order = append(b.order, nil)
	}
	return i
}

// add appends a task to the named stream. Dependencies that are nil are left out.
func (b *builder) add(stream string, n *node, deps ...*node) *node {
	n.stream = b.stream(stream)
	for _, d := range deps {
		if d != nil {
			n.deps = append(n.deps, d)
		}
	}
	b.order[n.stream] = append(b.order[n.stream], n)
	return n
}

// span appends a span of the given length.
func (b *builder) span(stream string, kind planpb.Span_Kind, at, dur int64, deps ...*node) *node {
	return b.add(stream, &node{at: at, span: &planpb.Span{Kind: kind, DurationNs: dur}}, deps...)
}

// wait appends a wait for other tasks.
func (b *builder) wait(stream string, at int64, deps ...*node) *node {
	return b.add(stream, &node{at: at}, deps...)
}

// last is the latest task of a stream, nil when it has none.
func (b *builder) last(stream string) *node {
	i, ok := b.byName[stream]
	if !ok || len(b.order[i]) == 0 {
		return nil
	}
	return b.order[i][len(b.order[i])-1]
}

// readyHeap orders tasks by their time in the trace, then by stream.
type readyHeap []*node

func (h readyHeap) Len() int { return len(h) }
func (h readyHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].stream < h[j].stream
}
func (h readyHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *readyHeap) Push(x any)   { *h = append(*h, x.(*node)) }
func (h *readyHeap) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}

// program orders all tasks so that each comes after what it depends on.
func (b *builder) program(rank int, startOffset int64) (*planpb.Program, error) {
	p := &planpb.Program{Rank: int32(rank), StartOffsetNs: startOffset}
	for _, name := range b.streams {
		p.Streams = append(p.Streams, &planpb.Stream{Name: name})
	}
	waiting := map[*node]int{}
	dependents := map[*node][]*node{}
	total := 0
	ready := &readyHeap{}
	for _, tasks := range b.order {
		for i, n := range tasks {
			total++
			count := len(n.deps)
			for _, d := range n.deps {
				dependents[d] = append(dependents[d], n)
			}
			if i > 0 {
				count++
				dependents[tasks[i-1]] = append(dependents[tasks[i-1]], n)
			}
			waiting[n] = count
			if count == 0 {
				heap.Push(ready, n)
			}
		}
	}
	for ready.Len() > 0 {
		n := heap.Pop(ready).(*node)
		n.id, n.emitted = int32(len(p.Tasks)), true
		p.Tasks = append(p.Tasks, n.task())
		for _, d := range dependents[n] {
			if waiting[d]--; waiting[d] == 0 {
				heap.Push(ready, d)
			}
		}
	}
	if len(p.Tasks) != total {
		return nil, fmt.Errorf("program of rank %d: %d of %d tasks wait for each other: the trace's times contradict its order",
			rank, total-len(p.Tasks), total)
	}
	return p, nil
}

func (n *node) task() *planpb.Task {
	t := &planpb.Task{Id: n.id, Stream: int32(n.stream), Origin: n.origin}
	seen := map[int32]bool{}
	for _, d := range n.deps {
		if d.stream != n.stream && !seen[d.id] { // its own stream orders it anyway
			seen[d.id] = true
			t.Deps = append(t.Deps, d.id)
		}
	}
	switch {
	case n.span != nil:
		t.Kind = &planpb.Task_Span{Span: n.span}
	case n.comm != nil:
		t.Kind = &planpb.Task_Communication{Communication: n.comm}
	default:
		t.Kind = &planpb.Task_Wait{Wait: &planpb.Wait{BlockedNs: n.blocked}}
	}
	return t
}

func originOf(rank int, op *comm.Operation) *planpb.Origin {
	return &planpb.Origin{Rank: int32(rank), Offset: op.Offset, Ts: op.Start, Dur: op.Dur(), Name: op.Name}
}
