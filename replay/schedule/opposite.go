package schedule

import (
	"container/heap"
	"fmt"
)

// opposite makes the order of two pipelines that cross the same ranks in
// opposite directions, each with half of the micro-batches. path[s] is the rank
// of stage s going down; going up it is p-1-path[s].
//
// No formula gives the order: it is what happens when every rank, whenever it
// is free, takes a backward if it can and else a forward, first the earliest
// micro-batch of its direction, of these the deepest stage. forward and backward
// are the durations assumed; those that the order is later evaluated with don't
// change it.
func opposite(ranks, microbatches int, path []int, forward, backward int) Order {
	s := &crossing{
		path: path, ranks: ranks, half: microbatches / 2, duration: [2]int{forward, backward},
		ready: make([]readyHeap, ranks), busy: make([]bool, ranks), order: make(Order, ranks),
	}
	for mb := range microbatches {
		s.offer(0, Forward, mb)
	}
	for now := 0; ; {
		for r := range s.ready {
			s.begin(r, now)
		}
		if s.running.Len() == 0 {
			return s.order
		}
		for now = s.running[0].end; s.running.Len() > 0 && s.running[0].end == now; {
			s.finish(heap.Pop(&s.running).(runningAction))
		}
	}
}

// crossing is the state of opposite.
type crossing struct {
	path        []int
	ranks, half int
	duration    [2]int // of Forward and Backward

	ready   []readyHeap
	busy    []bool
	running runningHeap
	order   Order
}

func (s *crossing) rank(stage, mb int) int {
	if mb < s.half {
		return s.path[stage]
	}
	return s.ranks - 1 - s.path[stage]
}

func (s *crossing) offer(stage int, kind Kind, mb int) {
	a := readyAction{Action: act(stage, kind, mb), turn: mb % s.half}
	heap.Push(&s.ready[s.rank(stage, mb)], a)
}

func (s *crossing) begin(r, now int) {
	if s.busy[r] || s.ready[r].Len() == 0 {
		return
	}
	a := heap.Pop(&s.ready[r]).(readyAction).Action
	s.busy[r] = true
	s.order[r] = append(s.order[r], a)
	heap.Push(&s.running, runningAction{rank: r, end: now + s.duration[a.Kind], action: a})
}

func (s *crossing) finish(done runningAction) {
	s.busy[done.rank] = false
	stage, mb := int(done.action.Stage), int(done.action.Microbatch)
	switch {
	case done.action.Kind == Forward && stage+1 < len(s.path):
		s.offer(stage+1, Forward, mb)
	case done.action.Kind == Forward:
		s.offer(stage, Backward, mb)
	case stage > 0:
		s.offer(stage-1, Backward, mb)
	}
}

// readyAction can run; turn is its micro-batch's number in its direction.
type readyAction struct {
	Action
	turn int
}

type readyHeap []readyAction

func (h readyHeap) Len() int      { return len(h) }
func (h readyHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h readyHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	switch {
	case a.Kind != b.Kind:
		return a.Kind == Backward
	case a.turn != b.turn:
		return a.turn < b.turn
	case a.Stage != b.Stage:
		return a.Stage > b.Stage
	}
	return a.Microbatch < b.Microbatch
}
func (h *readyHeap) Push(x any) { *h = append(*h, x.(readyAction)) }
func (h *readyHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// runningAction occupies a rank until its end.
type runningAction struct {
	rank, end int
	action    Action
}

type runningHeap []runningAction

func (h runningHeap) Len() int           { return len(h) }
func (h runningHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h runningHeap) Less(i, j int) bool { return h[i].end < h[j].end }
func (h *runningHeap) Push(x any)        { *h = append(*h, x.(runningAction)) }
func (h *runningHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// checkEven is what two directions alike need.
func checkEven(name string, s Shape) error {
	if s.Ranks%2 != 0 || s.Microbatches%2 != 0 {
		return fmt.Errorf("%s needs an even number of ranks and of micro-batches, not ranks=%d with microbatches=%d", name, s.Ranks, s.Microbatches)
	}
	return nil
}
