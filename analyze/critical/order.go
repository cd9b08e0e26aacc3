package critical

import (
	"cmp"
	"math"
	"slices"
)

// finish sorts the edges by the node that depends, orders the nodes and gives
// every node its own time.
func (g *Graph) finish() {
	n := len(g.kind)
	g.depAt = make([]int32, n+1)
	for _, to := range g.to {
		g.depAt[to+1]++
	}
	for i := range n {
		g.depAt[i+1] += g.depAt[i]
	}
	g.deps, g.lags = make([]int32, len(g.to)), make([]int32, len(g.to))
	next := slices.Clone(g.depAt[:n])
	for e, to := range g.to {
		g.deps[next[to]], g.lags[next[to]] = g.from[e], g.edgeLag[e]
		next[to]++
	}
	g.from, g.to, g.edgeLag = nil, nil, nil
	g.sort()
	g.weigh()
}

// sort orders the nodes so that each follows its dependencies. Edges lead
// forward in time but for lags and ties, so circles are rare: the node of a
// circle that ended first loses its dependencies on those not yet placed.
func (g *Graph) sort() {
	n := len(g.kind)
	// The edges once more, by the node that is depended on.
	userAt := make([]int32, n+1)
	for _, d := range g.deps {
		userAt[d+1]++
	}
	for i := range n {
		userAt[i+1] += userAt[i]
	}
	users := make([]int32, len(g.deps))
	next := slices.Clone(userAt[:n])
	open := make([]int32, n) // dependencies not yet placed; -1 once the node is placed
	for i := range n {
		open[i] = g.depAt[i+1] - g.depAt[i]
		for _, d := range g.deps[g.depAt[i]:g.depAt[i+1]] {
			users[next[d]] = int32(i)
			next[d]++
		}
	}
	g.order = make([]int32, 0, n)
	place := func(i int32) {
		g.order = append(g.order, i)
		open[i] = -1
	}
	for i := range n {
		if open[i] == 0 {
			place(int32(i))
		}
	}
	var stuck []int32 // by end; made when the first circle shows
	for at, s := 0, 0; len(g.order) < n || at < len(g.order); {
		for ; at < len(g.order); at++ {
			i := g.order[at]
			for _, u := range users[userAt[i]:userAt[i+1]] {
				if open[u] < 0 {
					continue // placed to break a circle
				}
				if open[u]--; open[u] == 0 {
					place(u)
				}
			}
		}
		if len(g.order) == n {
			return
		}
		if stuck == nil {
			for i := range n {
				if open[i] > 0 {
					stuck = append(stuck, int32(i))
				}
			}
			slices.SortFunc(stuck, func(a, b int32) int { return cmp.Or(cmp.Compare(g.end[a], g.end[b]), cmp.Compare(a, b)) })
		}
		for open[stuck[s]] < 0 {
			s++
		}
		g.cut(stuck[s], open)
		place(stuck[s])
	}
}

// cut turns the dependencies of node i on nodes that are not placed into ones on
// the origin, which come to nothing.
func (g *Graph) cut(i int32, open []int32) {
	for e := g.depAt[i]; e < g.depAt[i+1]; e++ {
		if open[g.deps[e]] < 0 {
			continue
		}
		g.deps[e], g.lags[e] = 0, 0
		g.reject("dependency-circle", max(int(g.rank[i]), 0), -1, "moments %d ns after the start of the step depend on each other: one dependency is left out", g.end[i])
	}
}

// weigh gives every node its own time: what its dependencies do not explain.
func (g *Graph) weigh() {
	g.own = make([]int64, len(g.kind))
	for i := range g.kind {
		g.own[i] = g.end[i] - g.ready(int32(i), g.end)
	}
}

// ready is when the last dependency of node i allows it, 0 without any, given
// when the nodes end.
func (g *Graph) ready(i int32, end []int64) int64 {
	at := int64(math.MinInt64)
	for e := g.depAt[i]; e < g.depAt[i+1]; e++ {
		at = max(at, end[g.deps[e]]+int64(g.lags[e]))
	}
	if at == math.MinInt64 {
		return 0
	}
	return at
}

// Evaluate computes when every node ends, in ns since the start of the step, if
// weight gives the nodes' own times instead of the recorded ones; nil keeps
// them, which gives the recorded ends.
func (g *Graph) Evaluate(weight func(node int) int64) []int64 {
	end := make([]int64, len(g.kind))
	for _, i := range g.order {
		own := g.own[i]
		if weight != nil {
			own = weight(int(i))
		}
		end[i] = g.ready(i, end) + own
	}
	return end
}

// last is the node that ends last, the first of those that do.
func last(end []int64) int32 {
	best := 0
	for i := range end {
		if end[i] > end[best] {
			best = i
		}
	}
	return int32(best)
}
