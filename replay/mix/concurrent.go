package mix

import (
	"math"
	"slices"

	"mixdown/replay/plan/planpb"
)

// classPair is two classes of tasks, the smaller number first.
type classPair struct{ a, b int32 }

// together is an example of two tasks of one rank that nothing keeps apart.
type together struct{ a, b int32 }

// concurrent finds, for the classes of tasks of one rank, which may run at the
// same time: no stream, dependency or turn orders the one before the other. What
// only other ranks would order counts as unordered: it is their speed that
// decides. class is -1 for tasks that do not matter.
//
// A stream is a line, so the tasks of it that are unordered to a task elsewhere
// are those between the last one before it and the first one after it.
func (m *model) concurrent(p int, class func(n int32) int32) map[classPair]together {
	program := m.w.Programs[p]
	classes := make([]int32, len(program.Tasks))
	position := make([]int32, len(program.Tasks))
	length := make([]int32, len(program.Streams))
	type onStream struct{ stream, class int32 }
	index := map[onStream]int{}
	relevant := make([][]occurrences, len(program.Streams))
	at := make([][]int32, len(program.Streams))
	for i, t := range program.Tasks {
		position[i] = length[t.Stream]
		length[t.Stream]++
		at[t.Stream] = append(at[t.Stream], int32(i))
		if classes[i] = class(m.base[p] + int32(i)); classes[i] >= 0 {
			k, ok := index[onStream{t.Stream, classes[i]}]
			if !ok {
				k = len(relevant[t.Stream])
				index[onStream{t.Stream, classes[i]}] = k
				relevant[t.Stream] = append(relevant[t.Stream], occurrences{class: classes[i]})
			}
			o := &relevant[t.Stream][k]
			o.positions = append(o.positions, position[i])
		}
	}
	streams := 0
	for _, list := range relevant {
		streams += min(1, len(list))
	}
	if streams < 2 {
		return nil
	}
	order, before := m.localOrder(p)
	if order == nil {
		return nil // the rank waits for itself: reported elsewhere
	}
	found := map[classPair]together{}
	last, first := make([]int32, len(order)), make([]int32, len(order))
	for s, list := range relevant {
		if len(list) == 0 {
			continue
		}
		m.reach(program, int32(s), position, order, before, last, first)
		for i, t := range program.Tasks {
			if classes[i] < 0 || int(t.Stream) >= s {
				continue
			}
			for _, o := range list {
				pair := classPair{min(o.class, classes[i]), max(o.class, classes[i])}
				if _, have := found[pair]; have {
					continue
				}
				k, _ := slices.BinarySearch(o.positions, last[i]+1)
				if k < len(o.positions) && o.positions[k] < first[i] {
					found[pair] = together{m.base[p] + int32(i), m.base[p] + at[s][o.positions[k]]}
				}
			}
		}
	}
	return found
}

// occurrences are the places of one class on a stream.
type occurrences struct {
	class     int32
	positions []int32
}

// reach finds for every task the last position on stream s that comes before it,
// and the first that comes after it.
func (m *model) reach(program *planpb.Program, s int32, position, order []int32, before rows, last, first []int32) {
	on := func(i int32) bool { return program.Tasks[i].Stream == s }
	for i := range last {
		last[i], first[i] = -1, math.MaxInt32
	}
	for _, i := range order {
		for _, q := range before.of(i) {
			if on(q) {
				last[i] = max(last[i], position[q])
			} else {
				last[i] = max(last[i], last[q])
			}
		}
	}
	for _, i := range slices.Backward(order) {
		mine := first[i]
		if on(i) {
			mine = position[i]
		}
		for _, q := range before.of(i) {
			first[q] = min(first[q], mine)
		}
	}
}

// localOrder is an order of a rank's tasks in which streams, dependencies and
// turns allow them, with what comes directly before each; nil when there is none.
func (m *model) localOrder(p int) (order []int32, before rows) {
	program := m.w.Programs[p]
	n := int32(len(program.Tasks))
	straight := true
	type edge struct{ from, to int32 }
	var turns []edge
	m.turns(p, func(a, b int32) {
		straight = straight && a < b
		turns = append(turns, edge{a - m.base[p], b - m.base[p]})
	})
	before = newRows(n, func(add func(row, value int32)) {
		last := fill(int32(len(program.Streams)))
		for i, t := range program.Tasks {
			if l := last[t.Stream]; l >= 0 {
				add(int32(i), l)
			}
			last[t.Stream] = int32(i)
			for _, d := range t.Deps {
				add(int32(i), d)
			}
		}
		for _, e := range turns {
			add(e.to, e.from)
		}
	})
	order = make([]int32, 0, n)
	if straight {
		for i := range n {
			order = append(order, i)
		}
		return order, before
	}
	after := newRows(n, func(add func(row, value int32)) {
		for i := range n {
			for _, q := range before.of(i) {
				add(q, i)
			}
		}
	})
	waits := make([]int32, n)
	for i := range n {
		if waits[i] = int32(len(before.of(i))); waits[i] == 0 {
			order = append(order, i)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, i := range after.of(order[k]) {
			if waits[i]--; waits[i] == 0 {
				order = append(order, i)
			}
		}
	}
	if int32(len(order)) < n {
		return nil, before
	}
	return order, before
}
