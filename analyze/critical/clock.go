package critical

import (
	"slices"

	"mixdown/ingest/diagnostic"
)

// maxBias is how far, in ns, a rank may leave collectives before or after the
// other members, on the median of all of the step's, before its clock is taken
// to differ: all leave almost together, and what delays one delays another next.
const maxBias = 5_000_000

// setClocks decides whether the ranks' clocks can be compared and what time is 0
// on each: the start of the first rank's step, or of its own where they can't.
func (g *Graph) setClocks(offsets []int64) {
	g.base = make([]int64, len(g.windows))
	for r := range g.base {
		if r < len(offsets) {
			g.base[r] = offsets[r]
		}
	}
	g.aligned = g.clocksAgree()
	if len(g.windows) == 0 {
		return
	}
	first := g.windows[0].Start - g.base[0]
	for r, w := range g.windows {
		first = min(first, w.Start-g.base[r])
	}
	g.start = first
	for r, w := range g.windows {
		if g.aligned {
			g.base[r] += first
		} else {
			g.base[r] = w.Start
		}
	}
}

// clocksAgree says whether the clocks of the ranks agree, as far as the step's
// communication shows: no member may leave a collective before the last one
// came, none receive before the send, and none always leave before the others.
func (g *Graph) clocksAgree() bool {
	if len(g.windows) < 2 {
		return true
	}
	var early []int64
	leaves := make([][]int64, len(g.windows)) // rank -> how much later than the others, by collective
	for i := range g.match.Collectives {
		c := &g.match.Collectives[i]
		if len(c.Members) < 2 || c.Op.Rooted() || !g.issuedInside(c.Members[0].Rank, c.Members[0].Operation) {
			continue
		}
		var lastStart int64
		ends := make([]int64, len(c.Members))
		for k, m := range c.Members {
			op := &g.run.Ranks[m.Rank].Operations[m.Operation]
			ends[k] = op.End - g.base[m.Rank]
			if start := op.Start - g.base[m.Rank]; k == 0 || start > lastStart {
				lastStart = start
			}
		}
		early = append(early, max(lastStart-slices.Min(ends), 0))
		middle := median(ends)
		for k, m := range c.Members {
			leaves[m.Rank] = append(leaves[m.Rank], ends[k]-middle)
		}
	}
	for _, p := range g.match.Pairs {
		if !g.issuedInside(p.Recv.Rank, p.Recv.Operation) {
			continue
		}
		send := g.run.Ranks[p.Send.Rank].Operations[p.Send.Operation].Start - g.base[p.Send.Rank]
		recv := g.run.Ranks[p.Recv.Rank].Operations[p.Recv.Operation].End - g.base[p.Recv.Rank]
		early = append(early, max(send-recv, 0))
	}
	if len(early) == 0 {
		g.diags.Addf("clocks-not-compared", diagnostic.NoRank, diagnostic.NoOffset,
			"no matched communication of the step shows whether the ranks' clocks agree: every rank's path stands for itself")
		return false
	}
	if by := median(early); by > slack {
		g.diags.Addf("clocks-not-aligned", diagnostic.NoRank, diagnostic.NoOffset,
			"communication ends %.3f ms before its last member starts: every rank's path stands for itself", ms(by))
		return false
	}
	for r, list := range leaves {
		if len(list) == 0 {
			continue
		}
		if by := median(list); by > maxBias || by < -maxBias {
			g.diags.Addf("clocks-not-aligned", g.run.Ranks[r].Rank, diagnostic.NoOffset,
				"the rank leaves collectives %.3f ms later than their other members: every rank's path stands for itself", ms(by))
			return false
		}
	}
	return true
}

// issuedInside says whether an operation was issued within the step of its rank.
func (g *Graph) issuedInside(r, operation int) bool {
	at := g.run.Ranks[r].Operations[operation].Issued
	return at >= g.windows[r].Start && at < g.windows[r].End
}

func median(list []int64) int64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
