package mix

// blocks finds which meetings can be held up by a rank that they hold up. Ranks
// and meetings are the points of a network, taking part its lines. While a rank
// has begun one meeting, which waits for its other ranks, these can only wait for
// something else that the rank has not begun when the meeting and that other one
// are connected without the rank: when their lines to it lie on one circle of
// the network. It numbers the lines so that those on one circle have the same
// number.
type blocks struct {
	of    map[line]int32
	lines map[line]int // of a program and a number: how many there are
}

// line joins a rank's program and a meeting.
type line struct{ program, meeting int32 }

// onCircle says whether what a meeting waits for could be another one of the
// same rank.
func (b *blocks) onCircle(program int, meeting int32) bool {
	number, ok := b.of[line{int32(program), meeting}]
	return ok && b.lines[line{int32(program), number}] > 1
}

// newBlocks finds the biconnected components of the network (Hopcroft, Tarjan
// 1973), without recursion.
func newBlocks(programs int, meetings []meeting) *blocks {
	ranks := int32(programs)
	points := ranks + int32(len(meetings))
	lines := func(each func(rank, meeting int32)) {
		for k := range meetings {
			for _, p := range meetings[k].programs {
				each(p, ranks+int32(k))
			}
		}
	}
	to := newRows(points, func(add func(row, value int32)) {
		lines(func(a, b int32) { add(a, b); add(b, a) })
	})
	b := &blocks{of: map[line]int32{}, lines: map[line]int{}}
	depth, low := make([]int32, points), make([]int32, points) // depth 0: not visited
	next := make([]int32, points)
	parent := fill(points)
	type pairOf struct{ a, b int32 }
	var open []pairOf
	count := int32(0)
	for root := range points {
		if depth[root] > 0 {
			continue
		}
		depth[root], low[root] = 1, 1
		for v := root; v >= 0; {
			if int(next[v]) < len(to.of(v)) {
				u := to.of(v)[next[v]]
				next[v]++
				switch {
				case depth[u] == 0:
					open = append(open, pairOf{v, u})
					parent[u], depth[u], low[u] = v, depth[v]+1, depth[v]+1
					v = u
				case u != parent[v] && depth[u] < depth[v]:
					open = append(open, pairOf{v, u})
					low[v] = min(low[v], depth[u])
				}
				continue
			}
			up := parent[v]
			if up >= 0 {
				low[up] = min(low[up], low[v])
				if low[v] >= depth[up] { // all lines since then are one component
					for {
						e := open[len(open)-1]
						open = open[:len(open)-1]
						b.of[line{min(e.a, e.b), max(e.a, e.b) - ranks}] = count
						if e == (pairOf{up, v}) {
							break
						}
					}
					count++
				}
			}
			v = up
		}
	}
	for l, number := range b.of {
		b.lines[line{l.program, number}]++
	}
	return b
}
