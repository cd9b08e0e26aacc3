package mix

import (
	"cmp"
	"slices"
)

// graph is what must happen before what. Its vertices are events:
//
//   - task n has ended: vertex n;
//   - all members of collective o have begun it: vertex total+o;
//   - a point-to-point task has begun: one vertex each, after those.
//
// A span or a wait ends when the tasks before it have: it has no vertex of its
// own for its beginning. Edges are not stored but follow from a few numbers for
// each task, so that a million tasks fit into little memory.
type graph struct {
	m     *model
	n     int32   // vertices
	entry []int32 // of each task: the vertex that stands for its beginning, itself for spans and waits

	nextInStream []int32 // of each task, -1 for none
	nextTurn     []int32 // the next collective of its communicator on its rank
	dependents   rows    // of each task
	members      rows    // of each collective: tasks
	partners     rows    // of each point-to-point task, by entry vertex: the tasks at the other ends
	firstP2P     int32   // the first vertex of a point-to-point task
	p2p          []int32 // by entry vertex - firstP2P: the task
}

// rows are lists of numbers in one piece of memory.
type rows struct{ start, list []int32 }

func (r *rows) of(i int32) []int32 { return r.list[r.start[i]:r.start[i+1]] }

// newRows makes n rows; each calls its argument with every (row, value), in the
// same order both times that it is called.
func newRows(n int32, each func(add func(row, value int32))) rows {
	r := rows{start: make([]int32, n+1)}
	each(func(row, _ int32) { r.start[row+1]++ })
	for i := int32(0); i < n; i++ {
		r.start[i+1] += r.start[i]
	}
	r.list = make([]int32, r.start[n])
	at := slices.Clone(r.start[:n])
	each(func(row, value int32) {
		r.list[at[row]] = value
		at[row]++
	})
	return r
}

// newGraph connects the tasks. Transfers without another side and members that
// do not exist are left out: they are reported elsewhere.
func newGraph(m *model, pairs []pair) *graph {
	g := &graph{m: m, entry: make([]int32, m.total), nextInStream: fill(m.total), nextTurn: fill(m.total)}
	for n := range g.entry {
		g.entry[n] = int32(n)
	}
	for o := range m.ops {
		for _, n := range m.ops[o].members {
			g.entry[n] = m.total + int32(o)
		}
	}
	g.firstP2P = m.total + int32(len(m.ops))
	for n := range m.total {
		if m.commOf[n] >= 0 && g.entry[n] == n {
			g.entry[n] = g.firstP2P + int32(len(g.p2p))
			g.p2p = append(g.p2p, n)
		}
	}
	g.n = g.firstP2P + int32(len(g.p2p))
	for p, program := range m.w.Programs {
		last := fill(int32(len(program.Streams)))
		for i, t := range program.Tasks {
			n := m.base[p] + int32(i)
			if before := last[t.Stream]; before >= 0 {
				g.nextInStream[before] = n
			}
			last[t.Stream] = n
		}
		m.turns(p, func(before, after int32) { g.nextTurn[before] = after })
	}
	g.dependents = newRows(m.total, func(add func(row, value int32)) {
		for p, program := range m.w.Programs {
			for i, t := range program.Tasks {
				for _, d := range t.Deps {
					add(m.base[p]+d, m.base[p]+int32(i))
				}
			}
		}
	})
	g.members = newRows(int32(len(m.ops)), func(add func(row, value int32)) {
		for o := range m.ops {
			for _, n := range m.ops[o].members {
				add(int32(o), n)
			}
		}
	})
	g.partners = newRows(int32(len(g.p2p)), func(add func(row, value int32)) {
		for _, p := range pairs {
			if p.send.task != p.recv.task {
				add(g.entry[p.send.task]-g.firstP2P, p.recv.task)
				add(g.entry[p.recv.task]-g.firstP2P, p.send.task)
			}
		}
	})
	return g
}

func fill(n int32) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = -1
	}
	return list
}

// turns calls next for each two collectives of one rank that take turns on one
// communicator, in the order of their seq.
func (m *model) turns(p int, next func(before, after int32)) {
	type turn struct {
		comm int32
		seq  int64
		task int32
	}
	var list []turn
	for i, t := range m.w.Programs[p].Tasks {
		n := m.base[p] + int32(i)
		if c := t.GetCommunication(); c != nil && len(c.Transfers) == 0 && m.commOf[n] >= 0 {
			list = append(list, turn{m.commOf[n], c.Seq, n})
		}
	}
	slices.SortFunc(list, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.seq, b.seq), cmp.Compare(a.task, b.task))
	})
	for i := 1; i < len(list); i++ {
		if list[i].comm == list[i-1].comm {
			next(list[i-1].task, list[i].task)
		}
	}
}

// successors calls visit for every event that must wait for event v.
func (g *graph) successors(v int32, visit func(int32)) {
	switch {
	case v >= g.firstP2P:
		visit(g.p2p[v-g.firstP2P])
		for _, n := range g.partners.of(v - g.firstP2P) {
			visit(n)
		}
	case v >= g.m.total:
		for _, n := range g.members.of(v - g.m.total) {
			visit(n)
		}
	default:
		if n := g.nextInStream[v]; n >= 0 {
			visit(g.entry[n])
		}
		if n := g.nextTurn[v]; n >= 0 {
			visit(g.entry[n])
		}
		for _, n := range g.dependents.of(v) {
			visit(g.entry[n])
		}
	}
}

// order lets all happen that can and returns the order, and how many events
// each one that never happens still waits for.
func (g *graph) order() (happened []int32, blocked []int32) {
	blocked = make([]int32, g.n)
	for v := range g.n {
		g.successors(v, func(to int32) { blocked[to]++ })
	}
	happened = make([]int32, 0, g.n)
	for v, n := range blocked {
		if n == 0 {
			happened = append(happened, int32(v))
		}
	}
	for i := 0; i < len(happened); i++ {
		g.successors(happened[i], func(to int32) {
			if blocked[to]--; blocked[to] == 0 {
				happened = append(happened, to)
			}
		})
	}
	return happened, blocked
}

// isOperation says whether a vertex is the beginning of a communication.
func (g *graph) isOperation(v int32) bool { return v >= g.m.total }
