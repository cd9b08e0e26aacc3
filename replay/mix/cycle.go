package mix

import "slices"

// circle is a cycle of events, and whether no other has fewer operations.
type circle struct {
	vertices []int32
	shortest bool
}

// maxSearch bounds the search for the shortest circle, in edges looked at. Short
// circles, which is what mistakes make, are found long before.
const maxSearch = 200_000_000

// circle finds the circle with the fewest operations among the events that never
// happen; nil when all happen.
func (g *graph) circle(blocked []int32) *circle {
	core := g.core(blocked)
	if core.n == 0 {
		return nil
	}
	s := &search{core: core, seen: make([]int32, core.n), from: make([]int32, core.n), budget: maxSearch}
	var best *circle
	limit := core.n + 1
	for v := range core.n {
		if !g.isOperation(core.vertex[v]) {
			continue
		}
		found := s.through(v, limit)
		if found == nil {
			if s.budget < 0 {
				break
			}
			continue
		}
		best = &circle{vertices: found}
		limit = s.length
		if limit == 1 {
			break
		}
	}
	if best == nil {
		return nil
	}
	best.shortest = s.budget >= 0
	for i, v := range best.vertices {
		best.vertices[i] = core.vertex[v]
	}
	return best
}

// core is the part of a graph that all its circles lie in, renumbered.
type core struct {
	n      int32
	vertex []int32 // -> vertex of the graph
	op     []bool
	out    rows
}

// core takes events that never happen, and of these only those that something
// waits for which never happens either.
func (g *graph) core(blocked []int32) *core {
	number := make([]int32, len(blocked)) // 0 for those that are not in it
	var vertex []int32
	for v, n := range blocked {
		if n > 0 {
			vertex = append(vertex, int32(v))
			number[v] = int32(len(vertex))
		}
	}
	if len(vertex) == 0 {
		return &core{}
	}
	edges := func(add func(row, value int32)) {
		for i, v := range vertex {
			g.successors(v, func(to int32) {
				if number[to] > 0 {
					add(int32(i), number[to]-1)
				}
			})
		}
	}
	in := newRows(int32(len(vertex)), func(add func(row, value int32)) {
		edges(func(from, to int32) { add(to, from) })
	})
	waiting := make([]int32, len(vertex)) // events that wait for it
	edges(func(from, _ int32) { waiting[from]++ })
	var idle []int32
	for i, n := range waiting {
		if n == 0 {
			idle = append(idle, int32(i))
		}
	}
	for len(idle) > 0 {
		i := idle[len(idle)-1]
		idle = idle[:len(idle)-1]
		number[vertex[i]] = 0
		for _, before := range in.of(i) {
			if waiting[before]--; waiting[before] == 0 {
				idle = append(idle, before)
			}
		}
	}
	c := &core{}
	for _, v := range vertex {
		if number[v] > 0 {
			c.vertex = append(c.vertex, v)
			c.op = append(c.op, g.isOperation(v))
			number[v] = int32(len(c.vertex))
		}
	}
	c.n = int32(len(c.vertex))
	c.out = newRows(c.n, func(add func(row, value int32)) {
		for i, v := range c.vertex {
			g.successors(v, func(to int32) {
				if number[to] > 0 {
					add(int32(i), number[to]-1)
				}
			})
		}
	})
	return c
}

// search looks for circles through one vertex after another.
type search struct {
	core   *core
	seen   []int32 // the search that saw a vertex last, counted from 1
	from   []int32
	count  int32
	budget int64
	length int32 // operations of the circle found last
}

// through finds the circle through operation v with the fewest operations, nil
// when it has none with fewer than limit. Operations cost 1, all else nothing:
// level by level, first what costs nothing.
func (s *search) through(v, limit int32) []int32 {
	s.count++
	level, next := []int32{v}, []int32(nil)
	for length := int32(1); length < limit && len(level) > 0; length++ {
		for i := 0; i < len(level); i++ {
			u := level[i]
			for _, to := range s.core.out.of(u) {
				if s.budget--; s.budget < 0 {
					return nil
				}
				if to == v {
					s.length = length
					return s.path(u, v)
				}
				if s.seen[to] == s.count {
					continue
				}
				s.seen[to] = s.count
				s.from[to] = u
				if s.core.op[to] {
					next = append(next, to)
				} else {
					level = append(level, to)
				}
			}
		}
		level, next = next, level[:0]
	}
	return nil
}

// path is the way from v to u.
func (s *search) path(u, v int32) []int32 {
	list := []int32{u}
	for u != v {
		u = s.from[u]
		list = append(list, u)
	}
	slices.Reverse(list)
	return list
}
