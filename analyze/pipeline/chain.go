package pipeline

import (
	"maps"
	"slices"
)

// chain is ranks, given as indices into Run.Ranks, of which each exchanges
// messages with its neighbours only: a pipeline of one stage a rank, first stage
// first.
type chain []int

// chains finds the chains among ranks that no label tells of. Ranks that send in
// another form (a star, all to all) are returned as others.
func (f *finding) chains(free map[int]bool) (list []chain, rings []ring, others [][]int) {
	index := map[int]int{} // global rank -> index
	for i, rank := range f.run.Ranks {
		index[rank.Rank] = i
	}
	near := map[int]map[int]bool{}
	for r := range free {
		for _, p := range f.views[r].parts {
			to, read := index[p.peer]
			if p.peer == Unknown || !read {
				to = Unknown - p.peer // keeps apart what was not read
			}
			for _, edge := range [][2]int{{r, to}, {to, r}} {
				if near[edge[0]] == nil {
					near[edge[0]] = map[int]bool{}
				}
				near[edge[0]][edge[1]] = true
			}
		}
	}
	seen := map[int]bool{}
	for _, r := range slices.Sorted(maps.Keys(near)) {
		if seen[r] {
			continue
		}
		part := reach(near, r)
		for _, m := range part {
			seen[m] = true
		}
		if c := f.straighten(near, part, free); c != nil {
			list = append(list, c)
		} else if c := f.straightenRing(near, part, free); c != nil {
			rings = append(rings, c)
		} else {
			others = append(others, part)
		}
	}
	return list, rings, others
}

func reach(near map[int]map[int]bool, from int) []int {
	part, seen := []int{from}, map[int]bool{from: true}
	for i := 0; i < len(part); i++ {
		for _, to := range slices.Sorted(maps.Keys(near[part[i]])) {
			if !seen[to] {
				seen[to] = true
				part = append(part, to)
			}
		}
	}
	return part
}

// straighten orders a part that is a chain, nil where it is none. The first stage
// is the end that sends before it receives: all others need something first.
func (f *finding) straighten(near map[int]map[int]bool, part []int, free map[int]bool) chain {
	var ends []int
	for _, r := range part {
		if !free[r] {
			return nil
		}
		switch len(near[r]) {
		case 1:
			ends = append(ends, r)
		case 2:
		default:
			return nil
		}
	}
	if len(ends) != 2 {
		return nil
	}
	slices.Sort(ends)
	first, last := ends[0], ends[1]
	if f.views[last].parts[0].send {
		first, last = last, first
	}
	if !f.views[first].parts[0].send || f.views[last].parts[0].send {
		return nil
	}
	c := chain{first}
	for before := Unknown; c[len(c)-1] != last; {
		at := c[len(c)-1]
		for to := range near[at] {
			if to != before && !slices.Contains(c, to) {
				before = at
				c = append(c, to)
				break
			}
		}
	}
	return c
}

// line is the messages of one rank of a chain in a step: what it gets and gives,
// each group of parts one message. Tensors that go together are one.
type line struct {
	first, last               bool
	activations, gradients    [][]part // received
	activated, differentiated [][]part // sent: activations, gradients
}

func (f *finding) line(c chain, place int, on span) line {
	v := f.views[c[place]]
	l := line{first: place == 0, last: place == len(c)-1}
	next, prev := Unknown, Unknown
	if !l.first {
		prev = f.run.Ranks[c[place-1]].Rank
	}
	if !l.last {
		next = f.run.Ranks[c[place+1]].Rank
	}
	for _, p := range v.calledIn(on) {
		switch {
		case p.send && p.peer == next:
			l.activated = v.add(l.activated, p)
		case p.send && p.peer == prev:
			l.differentiated = v.add(l.differentiated, p)
		case p.peer == prev:
			l.activations = v.add(l.activations, p)
		case p.peer == next:
			l.gradients = v.add(l.gradients, p)
		}
	}
	return l
}

// add puts p to the last message where nothing was computed between the two.
func (v *view) add(messages [][]part, p part) [][]part {
	if n := len(messages); n > 0 {
		last := messages[n-1][len(messages[n-1])-1]
		between := span{last.call, p.call}
		if !p.send {
			between = span{last.done, p.done}
		}
		if !slices.ContainsFunc(v.during(between), func(o operator) bool { return !o.buffer }) {
			messages[n-1] = append(messages[n-1], p)
			return messages
		}
	}
	return append(messages, []part{p})
}

// microbatches is how many micro-batches the messages of a rank are for. It
// reports false where they contradict each other. A run without gradients is
// inference.
func (l *line) microbatches() (n int, backward, ok bool) {
	forwards, backwards := []int{}, []int{}
	if !l.first {
		forwards, backwards = append(forwards, len(l.activations)), append(backwards, len(l.differentiated))
	}
	if !l.last {
		forwards, backwards = append(forwards, len(l.activated)), append(backwards, len(l.gradients))
	}
	n = forwards[0]
	backward = backwards[0] > 0
	for i := range forwards {
		if forwards[i] != n || backwards[i] != backwards[0] || backward && backwards[i] != n {
			return 0, false, false
		}
	}
	return n, backward, n > 0
}
