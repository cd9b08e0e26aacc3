package pipeline

import "slices"

// findPeers tells the peers of ranks whose trace names none: with Gloo a message
// is in no group that the trace tells, and of the peer there is only the place in
// that group. Where just one of the groups that a rank shares with a single other
// can be the one, the other is the peer: one of the two begins and sends as often
// as the other receives, and nothing was received before it was sent.
func (f *finding) findPeers(free map[int]bool) {
	index := map[int]int{} // global rank -> index
	found := map[int]int{} // index -> index + 1
	doubtful := map[int]bool{}
	for i, rank := range f.run.Ranks {
		index[rank.Rank] = i
	}
	for a := range free {
		for _, g := range f.run.Ranks[a].Distributed.Groups {
			if len(g.Ranks) != 2 || f.run.Ranks[a].Rank != g.Ranks[0] {
				continue // each pair once
			}
			b, read := index[g.Ranks[1]]
			if !read || !free[b] || found[a] == b+1 || !f.couldBePeers(a, b) {
				continue
			}
			for _, r := range []int{a, b} {
				doubtful[r] = doubtful[r] || found[r] > 0
			}
			found[a], found[b] = b+1, a+1
		}
	}
	for a, b := range found {
		if doubtful[a] || doubtful[b-1] {
			continue
		}
		for i := range f.views[a].parts {
			f.views[a].parts[i].peer = f.run.Ranks[b-1].Rank
		}
	}
}

// couldBePeers says whether all messages of two ranks can be to each other.
func (f *finding) couldBePeers(a, b int) bool {
	x, y := f.views[a], f.views[b]
	if len(x.parts) != len(y.parts) || x.parts[0].send == y.parts[0].send {
		return false
	}
	for _, v := range []*view{x, y} {
		if slices.ContainsFunc(v.parts, func(p part) bool { return p.peer != Unknown }) {
			return false
		}
	}
	return f.inTime(a, b) && f.inTime(b, a)
}

// inTime says whether what one rank sends can be what the other receives.
func (f *finding) inTime(from, to int) bool {
	var sends, recvs []part
	for _, p := range f.views[from].parts {
		if p.send {
			sends = append(sends, p)
		}
	}
	for _, p := range f.views[to].parts {
		if !p.send {
			recvs = append(recvs, p)
		}
	}
	if len(sends) != len(recvs) {
		return false
	}
	for i := range sends {
		got := f.views[to].rank.Operations[recvs[i].operation].End
		if f.opts.comparable(from, to) && got < sends[i].call {
			return false
		}
	}
	return true
}
