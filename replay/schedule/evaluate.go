package schedule

import (
	"fmt"
	"math/big"
)

// Evaluate plays an order: every rank runs its actions in order, each as soon
// as what it needs is there. It fails with ErrOrder if the order is malformed or
// incomplete, and with a *BlockedError if it can't run to its end.
func Evaluate(o Order, c Costs) (*Timeline, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	x, err := newIndex(o)
	if err != nil {
		return nil, err
	}
	unit := newTicks(c, x.stages)
	t := &Timeline{order: o, costs: c, index: x, perUnit: unit.perUnit}
	if unit.fit(len(x.rank)) {
		stages, hop := table(unit, func(n *big.Int) smallInstant { return smallInstant(n.Int64()) })
		t.times, err = play(x, stages, hop, 0)
	} else {
		stages, hop := table(unit, func(n *big.Int) largeInstant { return largeInstant{n} })
		t.times, err = play(x, stages, hop, largeInstant{new(big.Int)})
	}
	if err != nil {
		return nil, err
	}
	if t.Makespan().Sign() == 0 {
		return nil, fmt.Errorf("%w: no action takes any time: give forward or backward a duration", ErrSpec)
	}
	return t, nil
}

// dependency is an action that another needs, over a hop if the ranks differ.
type dependency struct {
	action int32
	hop    bool
}

// needs appends what action number n needs besides its place in its rank's
// order.
func (x *index) needs(n int32, list []dependency) []dependency {
	a := x.action(n)
	s, mb := int(a.Stage), int(a.Microbatch)
	switch a.Kind {
	case Forward:
		if s > 0 {
			list = x.arrives(list, n, x.find(Forward, s-1, mb), x.find(SendForward, s-1, mb), x.find(RecvForward, s, mb))
		}
	case Backward, Input:
		list = append(list, dependency{action: x.find(Forward, s, mb)})
		if s+1 < x.stages {
			list = x.arrives(list, n, x.backward(s+1, mb), x.find(SendBackward, s+1, mb), x.find(RecvBackward, s, mb))
		}
	case Weight:
		list = append(list, dependency{action: x.find(Input, s, mb)})
	case SendForward:
		list = append(list, dependency{action: x.find(Forward, s, mb)})
	case SendBackward:
		list = append(list, dependency{action: x.backward(s, mb)})
	case WaitSendForward:
		list = append(list, dependency{action: x.find(SendForward, s, mb)}, dependency{x.find(RecvForward, s+1, mb), true})
	case WaitSendBackward:
		list = append(list, dependency{action: x.find(SendBackward, s, mb)}, dependency{x.find(RecvBackward, s-1, mb), true})
	}
	return list
}

// together is the number of actions that begin and end as one with action n,
// the first of them: 2 for an overlapped pair.
func (x *index) together(n int32) int32 {
	if x.action(n).Overlap {
		return 2
	}
	return 1
}

// arrives appends what action n waits for to have its input: the action that
// makes it, or, where the order names the transfer, both its sides.
func (x *index) arrives(list []dependency, n, made, send, recv int32) []dependency {
	hop := x.rank[made] != x.rank[n]
	if send == none {
		return append(list, dependency{made, hop})
	}
	return append(list, dependency{send, hop}, dependency{recv, hop})
}

// moments is when each action of an order starts and ends.
type moments[T instant[T]] struct {
	starts, ends []T
}

func (m moments[T]) start(n int32) *big.Int { return m.starts[n].big() }
func (m moments[T]) end(n int32) *big.Int   { return m.ends[n].big() }

// play finds the moments of an indexed order. Ranks take turns: each runs as far
// as it can, then waits for the rank that has what it needs to get there.
func play[T instant[T]](x *index, costs [][kinds]T, hop, zero T) (moments[T], error) {
	m := moments[T]{starts: make([]T, len(x.rank)), ends: make([]T, len(x.rank))}
	ranks := len(x.order)
	next := make([]int32, ranks) // number of each rank's first action not run
	clock := make([]T, ranks)
	beside := newStreams(ranks, zero)
	turn := make([]int32, ranks)     // ranks that may get further
	waiting := make([][]wait, ranks) // by the rank waited for
	copy(next, x.offset)
	for r := range ranks {
		clock[r], turn[r] = zero, int32(r)
	}
	done := func(n int32) bool { return n < next[x.rank[n]] }

	var list []dependency
	for len(turn) > 0 {
		r := turn[len(turn)-1]
		turn = turn[:len(turn)-1]
		last := x.offset[r] + int32(len(x.order[r]))
	run:
		for next[r] < last {
			first := next[r]
			count := x.together(first)
			start := clock[r]
			list = list[:0]
			for n := first; n < first+count; n++ {
				list = x.needs(n, list)
			}
			for _, d := range list {
				if !done(d.action) {
					at := x.rank[d.action]
					waiting[at] = append(waiting[at], wait{r, d.action})
					break run
				}
				ready := m.ends[d.action]
				if d.hop {
					ready = ready.plus(hop)
				}
				if start.before(ready) {
					start = ready
				}
			}
			next[r] = first + count
			if a := x.action(first); a.Kind.beside() {
				m.starts[first], m.ends[first] = beside.run(r, a, start, costs[a.Stage][a.Kind])
				continue
			}
			for n := first; n < first+count; n++ {
				start = beside.wait(r, x.action(n), start)
			}
			end := start
			for n := first; n < first+count; n++ {
				a := x.action(n)
				end = end.plus(costs[a.Stage][a.Kind])
			}
			for n := first; n < first+count; n++ {
				m.starts[n], m.ends[n] = start, end
			}
			clock[r] = end
		}
		still := waiting[r][:0]
		for _, w := range waiting[r] {
			if done(w.action) {
				turn = append(turn, w.rank)
			} else {
				still = append(still, w)
			}
		}
		waiting[r] = still
	}
	for r := range ranks {
		if next[r] < x.offset[r]+int32(len(x.order[r])) {
			return m, blocked(x, next)
		}
	}
	return m, nil
}

// wait is a rank that waits for an action.
type wait struct {
	rank, action int32
}
