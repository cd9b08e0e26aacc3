package align

import (
	"slices"

	"mixdown/ingest/diagnostic"
)

// outlierShare is the share of messages, the fastest ones, that are left out of
// a bound: a single wrong match would set it.
const outlierShare = 50 // one in 50

// link is what messages say about two parts of the run.
type link struct {
	a, b   int   // components
	lo, hi int64 // ns between which b is ahead of a
}

// link joins the parts of the run that messages in both directions connect, the
// tightest first.
func (e *estimate) link() {
	links := e.links()
	slices.SortStableFunc(links, func(x, y link) int {
		switch wx, wy := x.hi-x.lo, y.hi-y.lo; {
		case wx < wy:
			return -1
		case wx > wy:
			return 1
		}
		return 0
	})
	// shift[part] is what the part's clocks, as corrected so far, are ahead of the
	// reference of the part it was joined to; doubt what that may be wrong by.
	of := make([]int, len(e.res.Components))
	shift, doubt := make([]int64, len(of)), make([]int64, len(of))
	for i := range of {
		of[i] = i
	}
	for _, l := range links {
		if of[l.a] == of[l.b] {
			continue
		}
		lead, unsure, ok := l.lead()
		if !ok {
			e.res.Diagnostics.Addf("clock-bounds-contradict", e.firstRank(l.b), diagnostic.NoOffset,
				"messages between rank %d and rank %d and those around them were received before they were sent, whatever the offset of their clocks: they are not compared",
				e.firstRank(l.a), e.firstRank(l.b))
			continue
		}
		if of[l.b] < of[l.a] { // the lower part keeps its reference
			l.a, l.b, lead = l.b, l.a, -lead
		}
		// Corrected times of b are ahead of those of a by lead.
		joined, more, wrong := of[l.b], shift[l.a]+lead-shift[l.b], doubt[l.a]+doubt[l.b]+unsure
		for i := range of {
			if of[i] == joined {
				of[i] = of[l.a]
				shift[i] += more
				doubt[i] += wrong
			}
		}
	}
	e.join(of, shift, doubt)
}

// join makes one component of all parts that were joined.
func (e *estimate) join(of []int, shift, doubt []int64) {
	number := map[int]int{}
	var components [][]int
	for i, part := range e.res.Components {
		n, ok := number[of[i]]
		if !ok {
			n = len(components)
			number[of[i]] = n
			components = append(components, nil)
		}
		for _, r := range part {
			c := &e.res.Clocks[r]
			c.Component = n
			c.Offset += shift[i]
			c.Uncertainty = doubt[i]
		}
		components[n] = append(components[n], part...)
	}
	e.res.Components = components
}

func (e *estimate) firstRank(part int) int { return e.run.Ranks[e.res.Components[part][0]].Rank }

// links finds the bounds between parts that have messages in both directions.
func (e *estimate) links() []link {
	type direction struct{ from, to int }
	delays := map[direction][]int64{}
	var pairs []direction // lower part first, in order of appearance
	for _, m := range e.view.messages {
		from, to := e.res.Clocks[m.from], e.res.Clocks[m.to]
		d := direction{from.Component, to.Component}
		if d.from == d.to {
			continue
		}
		pair := direction{min(d.from, d.to), max(d.from, d.to)}
		if len(delays[pair]) == 0 && len(delays[direction{pair.to, pair.from}]) == 0 {
			pairs = append(pairs, pair)
		}
		delays[d] = append(delays[d], to.Correct(m.got)-from.Correct(m.sent))
	}
	var links []link
	for _, p := range pairs {
		there, back := delays[p], delays[direction{p.to, p.from}]
		if len(there) == 0 || len(back) == 0 {
			continue
		}
		slices.Sort(there)
		slices.Sort(back)
		links = append(links, link{a: p.from, b: p.to, hi: there[len(there)/outlierShare], lo: -back[len(back)/outlierShare]})
	}
	return links
}

// lead is what part b is ahead of part a, and by how much that may be wrong.
func (l link) lead() (lead, unsure int64, ok bool) {
	switch {
	case l.lo > l.hi+Agreement:
		return 0, 0, false
	case l.lo <= Agreement && l.hi >= -Agreement:
		return 0, max(-l.lo, l.hi, 0), true
	}
	half := max(l.hi-l.lo, 0) / 2
	return l.lo + half, half, true
}
