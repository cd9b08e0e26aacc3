package critical

import (
	"math/bits"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
)

// Class is what communication is counted by.
type Class struct {
	Group string  `json:"group"` // the group's label, as the communication table shows it
	Op    comm.Op `json:"op"`
	// SizeFrom is the largest power of two, in bytes, not above what a rank
	// contributes or receives, whichever is more; null when sizes are not known.
	SizeFrom *int64 `json:"size_from_bytes"`
}

// classKey is a class as it is found; size -1 stands for unknown.
type classKey struct {
	group string
	op    comm.Op
	size  int64
}

// classify sets the class of an operation's transfer.
func (g *Graph) classify(p *part, i int, op comm.Op) {
	o := &p.rank.Operations[i]
	key := classKey{g.match.Groups[g.match.GroupOf[p.r][o.Group]].Label(), op, -1}
	if size, known := sizeOf(o); known {
		key.size = 0
		if size > 0 {
			key.size = 1 << (bits.Len64(uint64(size)) - 1)
		}
	}
	id, known := g.classOf[key]
	if !known {
		id = int32(len(g.classes))
		g.classOf[key] = id
		c := Class{Group: key.group, Op: key.op}
		if key.size >= 0 {
			c.SizeFrom = &key.size
		}
		g.classes = append(g.classes, c)
	}
	g.class[p.leave[i]] = id
}

// sizeOf is the larger of what a rank contributes and receives, in bytes, and
// whether the trace says it.
func sizeOf(op *comm.Operation) (int64, bool) {
	return max(op.InBytes(), op.OutBytes()), op.SizeKnown && op.DType.Size() > 0
}

// join connects the ranks where communication was matched, and gives every
// transfer its class.
func (g *Graph) join(parts []*part) {
	joined := make([][]bool, len(parts)) // rank, operation -> its end has dependencies
	for r, p := range parts {
		joined[r] = make([]bool, len(p.leave))
	}
	for i := range g.match.Collectives {
		c := &g.match.Collectives[i]
		inside := 0
		for _, m := range c.Members {
			if parts[m.Rank].leave[m.Operation] != none && !parts[m.Rank].before[m.Operation] {
				inside++
			}
		}
		for _, m := range c.Members {
			if parts[m.Rank].leave[m.Operation] != none {
				g.classify(parts[m.Rank], m.Operation, c.Op)
			}
		}
		switch {
		case inside == 0:
		case inside < len(c.Members):
			m := c.Members[0]
			g.diags.Addf("communication-outside-step", g.run.Ranks[m.Rank].Rank, g.run.Ranks[m.Rank].Operations[m.Operation].Offset,
				"some members issued this %s in another step: how long it waited is not known", c.Op)
		case g.aligned:
			g.joinCollective(c, parts, joined)
		default:
			g.splitByShortest(c, parts, joined)
		}
	}
	if g.aligned {
		g.joinPairs(parts, joined)
	}
	for r, p := range parts {
		for i, n := range p.leave {
			if n == none {
				continue
			}
			if g.class[n] < 0 {
				g.classify(p, i, p.rank.Operations[i].Op)
			}
			if !joined[r][i] {
				g.link(p.arrive[i], n, 0)
				g.flags[n] |= unsplit
			}
		}
	}
}

// joinCollective lets every member leave only after the last one arrived. A
// member of a rooted operation need not wait for all; one that left earlier
// waits for the root where data comes from it, and else for itself.
func (g *Graph) joinCollective(c *collective.Collective, parts []*part, joined [][]bool) {
	latest := c.Members[0]
	for _, m := range c.Members {
		if g.end[parts[m.Rank].arrive[m.Operation]] > g.end[parts[latest.Rank].arrive[latest.Operation]] {
			latest = m
		}
	}
	at := g.end[parts[latest.Rank].arrive[latest.Operation]]
	j := g.add(NodeJoin, latest.Rank, at, at)
	g.operation[j] = int32(latest.Operation)
	// The last one first: of equal dependencies the first is on the path.
	g.link(parts[latest.Rank].arrive[latest.Operation], j, 0)
	for _, m := range c.Members {
		if m != latest {
			g.link(parts[m.Rank].arrive[m.Operation], j, 0)
		}
	}
	for _, m := range c.Members {
		p := parts[m.Rank]
		op := &p.rank.Operations[m.Operation]
		switch {
		case g.link(j, p.leave[m.Operation], slack):
			joined[m.Rank][m.Operation] = true
			g.begin[p.leave[m.Operation]] = min(at, g.end[p.leave[m.Operation]])
		case !c.Op.Rooted():
			g.reject("ends-before-last-start", m.Rank, op.Offset, "%s ends before its last member starts", op.Op)
		case c.Op == comm.Broadcast || c.Op == comm.Scatter:
			g.joinRoot(c, m, parts, joined)
		}
	}
}

// joinRoot lets a member wait for the root and for itself, if it did.
func (g *Graph) joinRoot(c *collective.Collective, m collective.Member, parts []*part, joined [][]bool) {
	p := parts[m.Rank]
	op := &p.rank.Operations[m.Operation]
	for _, q := range c.Members {
		if !op.RootKnown || g.run.Ranks[q.Rank].Rank != op.Root || q == m {
			continue
		}
		root := parts[q.Rank].arrive[q.Operation]
		if !g.link(root, p.leave[m.Operation], slack) {
			g.reject("ends-before-last-start", m.Rank, op.Offset, "%s ends before its root starts", op.Op)
			return
		}
		own := p.arrive[m.Operation]
		g.link(own, p.leave[m.Operation], 0)
		joined[m.Rank][m.Operation] = true
		g.begin[p.leave[m.Operation]] = min(max(g.end[root], g.end[own]), g.end[p.leave[m.Operation]])
	}
}

// splitByShortest tells wait from transfer without comparing clocks: the member
// that came last waited least, and all transfer about equally long.
func (g *Graph) splitByShortest(c *collective.Collective, parts []*part, joined [][]bool) {
	shortest := int64(-1)
	for _, m := range c.Members {
		p := parts[m.Rank]
		dur := g.end[p.leave[m.Operation]] - g.end[p.arrive[m.Operation]]
		if shortest < 0 || dur < shortest {
			shortest = dur
		}
	}
	for _, m := range c.Members {
		p := parts[m.Rank]
		in, out := p.arrive[m.Operation], p.leave[m.Operation]
		w := g.add(NodeWait, m.Rank, g.end[in], g.end[out]-shortest)
		g.event[w], g.operation[w], g.class[w] = g.event[out], g.operation[out], g.class[out]
		g.link(in, w, 0)
		g.link(w, out, 0)
		g.begin[out] = g.end[w]
		joined[m.Rank][m.Operation] = true
	}
}

// joinPairs lets receives end after their sends began, and sends after their
// receives began where they did: a small send is over before anyone receives it.
func (g *Graph) joinPairs(parts []*part, joined [][]bool) {
	node := func(list []int32, m collective.Member) int32 {
		if parts[m.Rank].before[m.Operation] {
			return none
		}
		return list[m.Operation]
	}
	for _, pair := range g.match.Pairs {
		s, r := pair.Send, pair.Recv
		send, recv := node(parts[s.Rank].leave, s), node(parts[r.Rank].leave, r)
		if send == none || recv == none {
			if send != recv {
				m := s
				if send == none {
					m = r
				}
				op := &g.run.Ranks[m.Rank].Operations[m.Operation]
				g.diags.Addf("communication-outside-step", g.run.Ranks[m.Rank].Rank, op.Offset, "the other side of this %s is in another step: how long it waited is not known", op.Op)
			}
			continue
		}
		sent, asked := parts[s.Rank].arrive[s.Operation], parts[r.Rank].arrive[r.Operation]
		if g.link(sent, recv, slack) {
			g.pairLinked(r, recv, sent, parts, joined)
		} else {
			op := &g.run.Ranks[r.Rank].Operations[r.Operation]
			g.reject("received-before-sent", r.Rank, op.Offset, "%s ends before its data was sent", op.Op)
		}
		// Whether the send needed the receiver shows in the times alone.
		g.link(asked, send, rounding)
		g.pairLinked(s, send, asked, parts, joined)
	}
}

// pairLinked notes that an operation's end waits for its partner, and makes it
// wait for its own start once.
func (g *Graph) pairLinked(m collective.Member, n, partner int32, parts []*part, joined [][]bool) {
	own := parts[m.Rank].arrive[m.Operation]
	if !joined[m.Rank][m.Operation] {
		g.link(own, n, 0)
		joined[m.Rank][m.Operation] = true
	}
	if at := g.end[partner]; at <= g.end[n] {
		g.begin[n] = max(g.begin[n], at)
	}
}
