package straggler

import (
	"cmp"
	"slices"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// MinResolution is the smallest lateness that is attributed, in ns: many traces
// have whole microseconds only.
const MinResolution = 1_000

// Late is one collective that waited for its last rank alone.
type Late struct {
	Rank       int // global
	Collective int // index into the matching's
	Group      int // index into the matching's
	Op         comm.Op
	Seq        int    // position in the group, as matched
	Step       string // of the rank, "" when it was in none

	By      int64 // ns after the second-last arrival
	Waiting int   // members that waited for it
	Caused  int64 // ns, By x Waiting
	Wait    int64 // ns, the waiting of all members, whoever caused it

	// Inherited is how much of By, in ns, this rank may have lost waiting in its
	// collective before, and From the rank it waited for. 0: it did not.
	Inherited int64
	From      int // global, valid with Inherited above 0
}

// Source is what a rank caused at one kind of operation of one group.
type Source struct {
	Rank, Group int
	Op          comm.Op
	Count       int   // collectives
	Caused      int64 // ns
	Inherited   int64 // ns of it, as in Late, times those waiting
	Worst       Late
}

// Total is what a rank caused and suffered.
type Total struct {
	Rank      int
	Caused    int64 // ns
	Inherited int64 // ns of it, as in Late, times those waiting
	Count     int   // collectives that waited for it alone
	Last      int   // collectives that it came to last, ties included
	Waited    int64 // ns that it waited itself
}

// Report is who waited for whom.
type Report struct {
	Late    []Late   // the most caused first
	Sources []Source // the most caused first
	Ranks   []Total  // of all ranks read, the most caused first

	Wait       int64 // ns, of all members of all collectives that could be judged
	Attributed int64 // ns of it

	// Collectives judged, and of them those whose last two arrivals can't be told
	// apart; then those that could not be judged: members on clocks that can't be
	// compared, matches that can't be right, a root that is not known.
	Judged, Tied                           int
	NotComparable, Impossible, RootUnknown int
}

// Find says who waited for whom in a run whose clocks were aligned with res.
func Find(run *trace.Run, m *collective.Matching, res *align.Result) *Report {
	f := &finder{run: run, m: m, res: res, rep: &Report{}, before: make([]arrival, len(run.Ranks)), total: make([]Total, len(run.Ranks))}
	for r, rank := range run.Ranks {
		f.total[r].Rank = rank.Rank
	}
	impossible := map[int]bool{}
	for _, i := range res.Impossible {
		impossible[i] = true
	}
	order := make([]int, len(m.Collectives))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.Collectives[a].LastStart, m.Collectives[b].LastStart) })
	for _, i := range order {
		switch {
		case len(m.Collectives[i].Members) < 2:
		case impossible[i]:
			f.rep.Impossible++
		case !f.comparable(i):
			f.rep.NotComparable++
		default:
			f.judge(i)
		}
	}
	f.sum()
	return f.rep
}

type finder struct {
	run    *trace.Run
	m      *collective.Matching
	res    *align.Result
	rep    *Report
	total  []Total   // by index into Run.Ranks
	before []arrival // the latest collective of each rank
}

// arrival is how a rank fared in a collective.
type arrival struct {
	collective int
	known      bool
	wait       int64
	last       int // index into Run.Ranks: who it waited for
	from       int // the same, followed back
}

func (f *finder) start(at collective.Member) int64 {
	return f.run.Ranks[at.Rank].Operations[at.Operation].Start
}

func (f *finder) comparable(i int) bool {
	members := f.m.Collectives[i].Members
	return !slices.ContainsFunc(members, func(at collective.Member) bool { return !f.res.Comparable(at.Rank, members[0].Rank) })
}

// judge finds who was last in collective i, and what that cost.
func (f *finder) judge(i int) {
	c := &f.m.Collectives[i]
	byArrival := slices.Clone(c.Members)
	slices.SortStableFunc(byArrival, func(a, b collective.Member) int { return cmp.Compare(f.start(a), f.start(b)) })
	n := len(byArrival)
	last, second := byArrival[n-1], byArrival[n-2]
	waits, ok := f.waiters(c, last)
	if !ok {
		f.rep.RootUnknown++
		return
	}
	f.rep.Judged++
	f.total[last.Rank].Last++
	late := Late{
		Rank: f.run.Ranks[last.Rank].Rank, Collective: i, Group: c.Group, Op: c.Op, Seq: c.Seq,
		Step: f.step(last), By: f.start(last) - f.start(second),
	}
	for _, at := range byArrival[:n-1] {
		if waits(at) {
			late.Waiting++
			wait := f.start(last) - f.start(at)
			late.Wait += wait
			f.total[at.Rank].Waited += wait
		}
	}
	late.Caused = late.By * int64(late.Waiting)
	f.rep.Wait += late.Wait
	f.inherit(&late, i, last)
	switch {
	case late.Waiting == 0:
	case late.By <= max(f.res.Resolution(last.Rank, second.Rank), MinResolution):
		f.rep.Tied++
	default:
		f.rep.Late = append(f.rep.Late, late)
		f.rep.Attributed += late.Caused
	}
	f.remember(c, i, last, late, waits)
}

// waiters says which members can't go on before the last one is there.
func (f *finder) waiters(c *collective.Collective, last collective.Member) (func(collective.Member) bool, bool) {
	if !c.Op.Rooted() {
		return func(collective.Member) bool { return true }, true
	}
	op := &f.run.Ranks[last.Rank].Operations[last.Operation]
	if !op.RootKnown {
		return nil, false
	}
	isRoot := func(at collective.Member) bool { return f.run.Ranks[at.Rank].Rank == op.Root }
	if c.Op == comm.Broadcast || c.Op == comm.Scatter {
		return func(collective.Member) bool { return isRoot(last) }, true
	}
	return isRoot, true
}

// inherit finds what the last rank lost in its collective before.
func (f *finder) inherit(late *Late, i int, last collective.Member) {
	before := f.before[last.Rank]
	if !before.known || before.last == last.Rank || before.wait <= 0 {
		return
	}
	for _, at := range f.m.Collectives[i].Members {
		if !f.before[at.Rank].known || f.before[at.Rank].collective != before.collective {
			late.Inherited = min(before.wait, late.By)
			late.From = f.run.Ranks[before.from].Rank
			return
		}
	}
}

// remember notes how the members fared, for their next collective.
func (f *finder) remember(c *collective.Collective, i int, last collective.Member, late Late, waits func(collective.Member) bool) {
	from := last.Rank
	if late.Inherited > late.By/2 { // mostly not its own
		from = f.before[last.Rank].from
	}
	for _, at := range c.Members {
		a := arrival{collective: i, known: true, last: last.Rank, from: from}
		if at != last && waits(at) {
			a.wait = f.start(last) - f.start(at)
		}
		f.before[at.Rank] = a
	}
}

// step is the training step in which a member was issued.
func (f *finder) step(at collective.Member) string {
	rank := f.run.Ranks[at.Rank]
	return rank.StepAt(rank.Operations[at.Operation].Issued)
}

// sum makes the sums by source and rank, and ranks everything.
func (f *finder) sum() {
	type key struct {
		rank, group int
		op          comm.Op
	}
	index := map[key]int{}
	byRank := map[int]*Total{}
	for r := range f.total {
		byRank[f.total[r].Rank] = &f.total[r]
	}
	slices.SortStableFunc(f.rep.Late, func(a, b Late) int { return cmp.Compare(b.Caused, a.Caused) })
	for _, l := range f.rep.Late {
		k := key{l.Rank, l.Group, l.Op}
		i, ok := index[k]
		if !ok {
			i = len(f.rep.Sources)
			index[k] = i
			f.rep.Sources = append(f.rep.Sources, Source{Rank: l.Rank, Group: l.Group, Op: l.Op, Worst: l})
		}
		s, t := &f.rep.Sources[i], byRank[l.Rank]
		inherited := l.Inherited * int64(l.Waiting)
		s.Count, s.Caused, s.Inherited = s.Count+1, s.Caused+l.Caused, s.Inherited+inherited
		t.Count, t.Caused, t.Inherited = t.Count+1, t.Caused+l.Caused, t.Inherited+inherited
	}
	slices.SortStableFunc(f.rep.Sources, func(a, b Source) int { return cmp.Compare(b.Caused, a.Caused) })
	f.rep.Ranks = f.total
	slices.SortStableFunc(f.rep.Ranks, func(a, b Total) int { return cmp.Compare(b.Caused, a.Caused) })
}
