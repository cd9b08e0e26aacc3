package align

import (
	"fmt"

	"mixdown/analyze/collective"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// MinMatches is how many ends two parts must share for an offset to be
// estimated from them.
const MinMatches = 5

// Agreement is how far apart, in ns, ends may lie that one clock measured.
const Agreement = 20_000

// gain is how many times smaller a correction must make the scatter of ends. Ends
// that scatter by themselves (Gloo's do, by 20 us to 2 ms on one host) can be
// moved closer by chance, to a half in the runs of testdata.
const gain = 4

// refinements is how often the ends' true times are estimated anew from all
// corrected members. More change nothing.
const refinements = 2

// Estimate finds how the clocks of a run relate from its matched communication.
// Nothing is changed; Apply does that.
func Estimate(run *trace.Run, m *collective.Matching) *Result {
	e := &estimate{run: run, view: look(run, m), res: &Result{Clocks: make([]Clock, len(run.Ranks))}, scattered: map[int]bool{}}
	for i, rank := range run.Ranks {
		e.res.Clocks[i] = Clock{Rank: rank.Rank, Component: -1}
	}
	for i := range run.Ranks {
		if e.res.Clocks[i].Component < 0 {
			e.reach(i)
		}
	}
	e.judge(m)
	e.spreads()
	e.residuals()
	e.link()
	e.conclude()
	return e.res
}

type estimate struct {
	run  *trace.Run
	view *view
	res  *Result

	agreed    int          // parts left as they are because their clocks agree
	scattered map[int]bool // parts left as they are because no offset explains their ends
}

// reach makes the part of the run that collectives connect with the rank, whose
// clock becomes its reference.
func (e *estimate) reach(reference int) {
	n := len(e.res.Components)
	known := make([]bool, len(e.res.Clocks))
	part := []int{}
	add := func(r int, c Clock) {
		have := &e.res.Clocks[r]
		have.Offset, have.Drift, have.Epoch, have.Component = c.Offset, c.Drift, c.Epoch, n
		known[r] = true
		part = append(part, r)
	}
	add(reference, Clock{})
	for grown := true; grown; {
		found := e.neighbours(known)
		for _, f := range found {
			add(f.rank, f.clock)
		}
		grown = len(found) > 0
	}
	e.res.Components = append(e.res.Components, part)
	for range refinements {
		e.refine(part, known)
	}
	e.decide(part, known)
}

type neighbour struct {
	rank  int
	clock Clock
}

// neighbours finds the clocks of ranks that share enough collectives with known
// ones; when there are none, those of ranks that agree in the few they share.
func (e *estimate) neighbours(known []bool) []neighbour {
	var found, few []neighbour
	middles := e.middles(known)
	for r := range e.res.Clocks {
		if known[r] || e.res.Clocks[r].Component >= 0 {
			continue
		}
		if x, y := e.readings(r, middles); len(x) >= MinMatches {
			found = append(found, neighbour{r, fit(x, y)})
		} else if len(x) > 0 {
			if like, ok := e.agrees(r, known); ok {
				few = append(few, neighbour{r, e.res.Clocks[like]})
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	return few
}

// middle is when a sighting was, as far as n known members tell.
type middle struct {
	at int64
	n  int
}

func (e *estimate) middles(known []bool) []middle {
	list := make([]middle, len(e.view.sightings))
	var buf []int64
	for i := range list {
		list[i].at, list[i].n = e.view.sightings[i].middle(e.res.Clocks, known, buf)
	}
	return list
}

// readings are a rank's ends and how far each is ahead of the sighting's middle.
func (e *estimate) readings(r int, middles []middle) (x, y []int64) {
	for _, p := range e.view.of[r] {
		if mid := middles[p.sighting]; mid.n > 0 {
			end := e.view.sightings[p.sighting].ends[p.member]
			x, y = append(x, end), append(y, end-mid.at)
		}
	}
	return x, y
}

// agrees finds a known rank whose uncorrected ends agree with those of r: clocks
// that differ do not agree by chance.
func (e *estimate) agrees(r int, known []bool) (like int, ok bool) {
	apart := map[int][]int64{}
	for _, p := range e.view.of[r] {
		s := &e.view.sightings[p.sighting]
		for k, other := range s.ranks {
			if known[other] {
				apart[other] = append(apart[other], int64(magnitude(s.ends[k]-s.ends[p.member])))
			}
		}
	}
	best := int64(Agreement)
	for other, list := range apart {
		if d := median(list); d < best || ok && d == best && other < like {
			best, like, ok = d, other, true
		}
	}
	return like, ok
}

// refine fits the clocks of a part again, to the middles of all its members.
func (e *estimate) refine(part []int, known []bool) {
	middles := e.middles(known)
	for _, r := range part[1:] {
		if x, y := e.readings(r, middles); len(x) >= MinMatches {
			c := fit(x, y)
			have := &e.res.Clocks[r]
			have.Offset, have.Drift, have.Epoch = c.Offset, c.Drift, c.Epoch
		}
	}
}

// decide leaves a part untouched whose clocks agree or whose scatter no
// correction explains.
func (e *estimate) decide(part []int, in []bool) {
	if len(part) < 2 {
		return
	}
	e.setImpossibleAside(part[0])
	plain := make([]Clock, len(e.res.Clocks))
	raw, corrected := e.groupSpreads(plain, in), e.groupSpreads(e.res.Clocks, in)
	var worst, before, after int64
	for g := range raw {
		worst = max(worst, raw[g].median)
		before += raw[g].median / int64(len(raw))
		after += corrected[g].median / int64(len(raw))
	}
	switch {
	case worst < Agreement:
		e.agreed++
	case after > before/gain:
		e.scattered[e.res.Clocks[part[0]].Component] = true
	default:
		return
	}
	for _, r := range part {
		c := &e.res.Clocks[r]
		c.Offset, c.Drift, c.Epoch = 0, 0, 0
	}
}

// setImpossibleAside marks the wrong matches of a rank's part, unless that would
// leave the smaller half to judge by.
func (e *estimate) setImpossibleAside(rank int) {
	component := e.res.Clocks[rank].Component
	var own, wrong []*sighting
	for i := range e.view.sightings {
		s := &e.view.sightings[i]
		if e.res.Clocks[s.ranks[0]].Component != component {
			continue
		}
		own = append(own, s)
		if s.impossible(e.res.Clocks) {
			wrong = append(wrong, s)
		}
	}
	if 2*len(wrong) > len(own) {
		return
	}
	for _, s := range wrong {
		s.wrong = true
	}
}

type groupSpread struct {
	median int64
	n      int
}

// groupSpreads are the median spreads of the ends of each group's collectives,
// among the ranks given.
func (e *estimate) groupSpreads(clocks []Clock, in []bool) []groupSpread {
	var list []groupSpread
	var spreads []int64
	s := e.view.sightings
	for i := range s { // sightings come by group
		if d, ok := s[i].spread(clocks, in); ok && !s[i].wrong {
			spreads = append(spreads, d)
		}
		if len(spreads) > 0 && (i+1 == len(s) || s[i+1].group != s[i].group) {
			list = append(list, groupSpread{median(spreads), len(spreads)})
			spreads = spreads[:0]
		}
	}
	return list
}

// spreads describes the run as a whole: all collectives between comparable ranks.
func (e *estimate) spreads() {
	plain := make([]Clock, len(e.res.Clocks))
	for _, part := range e.res.Components {
		in := make([]bool, len(plain))
		for _, r := range part {
			in[r] = true
		}
		for _, g := range e.groupSpreads(plain, in) {
			e.res.Spread = max(e.res.Spread, g.median)
			e.res.Compared += g.n
		}
		for _, g := range e.groupSpreads(e.res.Clocks, in) {
			e.res.Remaining = max(e.res.Remaining, g.median)
		}
	}
}

// residuals finds how well the corrected ends of each rank fit those of its part.
func (e *estimate) residuals() {
	for _, part := range e.res.Components {
		in := make([]bool, len(e.res.Clocks))
		for _, r := range part {
			in[r] = true
		}
		middles := e.middles(in)
		for _, r := range part {
			c := &e.res.Clocks[r]
			var far []int64
			for _, p := range e.view.of[r] {
				if mid := middles[p.sighting]; mid.n > 1 && !e.view.sightings[p.sighting].wrong {
					end := e.view.sightings[p.sighting].ends[p.member]
					far = append(far, int64(magnitude(c.Correct(end)-mid.at)))
				}
			}
			if c.Matches = len(far); c.Matches > 0 {
				c.Residual = median(far)
			}
		}
	}
}

// judge finds the matches that can't be right.
func (e *estimate) judge(m *collective.Matching) {
	for i := range e.view.sightings {
		s := &e.view.sightings[i]
		s.wrong = false
		if !s.impossible(e.res.Clocks) {
			continue
		}
		s.wrong = !e.scattered[e.res.Clocks[s.ranks[0]].Component] // else the clock may be
		e.res.Impossible = append(e.res.Impossible, s.collective)
		c := &m.Collectives[s.collective]
		first := &e.run.Ranks[c.Members[0].Rank].Operations[c.Members[0].Operation]
		e.res.Diagnostics.Addf("match-impossible", diagnostic.NoRank, first.Offset,
			"%s %d of group %s ends on one rank before it starts on another: these are not the same collective, or the clocks are wrong",
			c.Op, c.Seq, m.Groups[c.Group].Label())
	}
}

// conclude says in words what was found.
func (e *estimate) conclude() {
	res := e.res
	moved, drifting := 0, 0
	var largest int64
	for _, c := range res.Clocks {
		if !c.Identity() {
			moved++
			largest = max(largest, int64(magnitude(c.Offset)))
		}
		if c.Drift != 0 {
			drifting++
		}
	}
	res.Connected = len(res.Components) <= 1
	res.Applied = moved > 0
	switch {
	case len(res.Clocks) < 2:
		res.Reason = "there is one clock at most"
	case res.Applied:
		res.Reason = fmt.Sprintf("%d of %d clocks moved, by up to %.1f us, %d of them drifting", moved, len(res.Clocks), float64(largest)/1e3, drifting)
	case len(e.scattered) > 0:
		res.Reason = fmt.Sprintf("matched collectives end %.1f us apart and no offset of clocks explains it: times are compared as traced", float64(res.Spread)/1e3)
	case e.agreed > 0:
		res.Reason = fmt.Sprintf("matched collectives end within %.1f us of each other: the clocks agree", float64(res.Spread)/1e3)
	case res.Connected:
		res.Reason = "messages between the ranks do not contradict a common clock"
	default:
		res.Reason = "no ranks share enough matched communication"
	}
	if res.Applied && len(e.scattered) > 0 {
		res.Reason += fmt.Sprintf("; of %d parts the ends scatter and no offset explains it: they keep their times", len(e.scattered))
	}
	if res.Connected {
		return
	}
	res.Reason += fmt.Sprintf("; %d parts of the run share too little communication to be compared", len(res.Components))
	for _, part := range res.Components[1:] {
		r := part[0]
		if n := len(e.view.of[r]); len(part) == 1 && n < MinMatches {
			res.Diagnostics.Addf("clock-too-few-matches", res.Clocks[r].Rank, diagnostic.NoOffset,
				"%d matched collectives of rank %d can be compared, %d are needed: its times cannot be held against other ranks'", n, res.Clocks[r].Rank, MinMatches)
			continue
		}
		res.Diagnostics.Addf("clocks-not-connected", res.Clocks[r].Rank, diagnostic.NoOffset,
			"the clocks of rank %d and the %d ranks with it are not known against rank %d: too few matched collectives or messages lie between them",
			res.Clocks[r].Rank, len(part)-1, res.Clocks[res.Components[0][0]].Rank)
	}
}
