package sim

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"mixdown/replay/plan/planpb"
)

// Contend lets communication slow the kernels beside it in every play of a workload,
// by the factors given: that of the backend "" is what the trace shows, and stands
// for backends that are not listed. The workload must be as it was traced: it is
// played once, and what then runs beside each span is what its length has in it. The
// unchanged run stays as it was, therefore.
//
// A span of D ns with K ns of kernels, of which communication ran beside for B, would
// take
//
//	alone = D - x K/D B,  x = 1 - 1/factor
//
// without it, and takes that plus x K/D of what runs beside it in a play. Without a
// factor above 1 of the trace or another backend nothing is changed.
func Contend(w *planpb.Workload, slowdowns []*planpb.Slowdown) error {
	if !slices.ContainsFunc(slowdowns, func(s *planpb.Slowdown) bool { return s.Factor > 1 }) {
		return nil
	}
	w.Slowdowns = slowdowns
	g := NewGraph(w)
	if g.slowed == nil {
		return nil
	}
	run, err := g.playOnce(TracedCosts(w), nil)
	if err != nil {
		w.Slowdowns = nil // whoever plays it says why it can't be
		return err
	}
	for r, list := range g.slowed.spans {
		beside := g.communicates(run, r)
		for _, n := range list {
			i := n - g.offset[r]
			var all int64
			for _, ns := range beside.within(run.Starts[r][i], run.Ends[r][i], make([]int64, len(g.slowed.shares))) {
				all += ns
			}
			g.tasks[n].GetSpan().BesideNs = all
		}
	}
	return nil
}

// slowed is the spans of a graph that communication slows.
type slowed struct {
	spans  [][]int32      // by program: tasks
	shares []float64      // of a kernel's time that communication takes, each once
	share  map[string]int // by backend: index of shares
}

// share is the part of a kernel's time that is lost beside communication.
func share(factor float64) float64 {
	if !(factor > 1) {
		return 0
	}
	return min(1-1/factor, mostLost)
}

// mostLost bounds what communication can take of a kernel's time, whatever a table
// says.
const mostLost = 0.999

// newSlowed finds the spans with kernels in programs that communicate, nil if none
// is slowed.
func newSlowed(g *Graph) *slowed {
	if len(g.w.Slowdowns) == 0 {
		return nil
	}
	s := &slowed{spans: make([][]int32, len(g.w.Programs)), share: map[string]int{}}
	for _, x := range g.w.Slowdowns {
		at := slices.Index(s.shares, share(x.Factor))
		if at < 0 {
			at = len(s.shares)
			s.shares = append(s.shares, share(x.Factor))
		}
		s.share[x.Backend] = at
	}
	if _, ok := s.share[""]; !ok {
		s.share[""] = len(s.shares)
		s.shares = append(s.shares, 0)
	}
	found := false
	for n, t := range g.tasks {
		if span := t.GetSpan(); span.GetKind() == planpb.Span_DEVICE && span.KernelNs > 0 && span.DurationNs > 0 {
			r := g.rank[n]
			s.spans[r] = append(s.spans[r], int32(n))
			found = true
		}
	}
	if !found {
		return nil
	}
	return s
}

// Limits of plays until spans and what runs beside them agree. What a longer span
// moves shows in the next play: a chain of operations that are issued one after the
// other needs as many plays as it has links.
const (
	maxRounds = 40
	minRounds = 5
	maxPlayed = 20_000_000 // tasks, in all plays together, before minRounds counts
	settled   = 0.001      // of the step: less is no change
)

// settle plays, and again with spans as long as what ran beside them in the play
// before makes them, until the step and the spans of each rank stay. Each operation's
// cost is asked for once.
func (g *Graph) settle(cost CommunicationCost) (*WorkloadRun, error) {
	took := slices.Repeat([]int64{notAsked}, len(g.meetings))
	run, err := g.playOnce(cost, took)
	if err != nil {
		return nil, err
	}
	again := *g
	again.own = slices.Clone(g.own)
	rounds := min(max(maxPlayed/max(g.Len(), 1), minRounds), maxRounds)
	for range rounds {
		changed := g.slow(run, again.own)
		if changed == 0 {
			return run, nil
		}
		next, err := again.playOnce(cost, took)
		if err != nil {
			return nil, err
		}
		changed = max(changed, math.Abs(float64(next.Step-run.Step)))
		if run = next; changed <= settled*float64(run.Step) {
			return run, nil
		}
	}
	run.Unsettled = true
	return run, nil
}

// slow makes spans as long as the communication of a play makes them, and says by how
// many ns they changed, all together, on the rank on which most.
func (g *Graph) slow(run *WorkloadRun, own []int64) float64 {
	most := 0.0
	lengths := make([]int64, len(g.slowed.shares))
	traced := g.slowed.shares[g.slowed.share[""]]
	for r, list := range g.slowed.spans {
		if len(list) == 0 {
			continue
		}
		changed := 0.0
		beside := g.communicates(run, r)
		for _, n := range list {
			span := g.tasks[n].GetSpan()
			part := min(float64(span.KernelNs)/float64(span.DurationNs), 1)
			alone := g.own[n] - int64(part*(traced*float64(max(min(span.BesideNs, g.own[n]), 0))))
			start := run.Starts[r][n-g.offset[r]]
			if alone+g.lost(beside.within(start, start+own[n], lengths), part) == own[n] {
				continue
			}
			ns := g.slowed.length(beside, start, alone, part)
			changed += math.Abs(float64(ns - own[n]))
			own[n] = ns
		}
		most = max(most, changed)
	}
	return most
}

// lost is how much longer a span takes, of which kernels are such a part, with so
// much of each kind of communication beside it.
func (g *Graph) lost(lengths []int64, part float64) int64 {
	var ns float64
	for k, length := range lengths {
		ns += g.slowed.shares[k] * float64(length)
	}
	return int64(part * ns)
}

// length is how long a span takes that starts at a moment and would take `alone`.
func (s *slowed) length(beside segments, start, alone int64, part float64) int64 {
	at, left := start, float64(alone)
	for i := beside.first(start); i < len(beside); i++ {
		seg := beside[i]
		if seg.start > at {
			if left <= float64(seg.start-at) {
				break
			}
			left -= float64(seg.start - at)
			at = seg.start
		}
		pace := 1 - part*s.shares[seg.kind]
		if done := float64(seg.end-at) * pace; left > done {
			left -= done
			at = seg.end
			continue
		}
		left /= pace
		break
	}
	return at - start + int64(math.Round(min(left, 1<<60)))
}

// segment is a time in which communication runs on a device.
type segment struct {
	start, end int64
	kind       int // index of slowed.shares: of several at once the one that takes most
}

// segments of a device, by time, none at the same time as another.
type segments []segment

// first is the first segment that ends after a moment.
func (s segments) first(t int64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].end > t })
}

// within adds up what lies from start to end, by kind, in a list that it empties
// first.
func (s segments) within(start, end int64, lengths []int64) []int64 {
	clear(lengths)
	for i := s.first(start); i < len(s) && s[i].start < end; i++ {
		lengths[s[i].kind] += min(s[i].end, end) - max(s[i].start, start)
	}
	return lengths
}

// communicates is when communication runs on the device of program r in a play: from
// when the rank was there to its end there.
func (g *Graph) communicates(run *WorkloadRun, r int) segments {
	type edge struct {
		at    int64
		kind  int
		begin bool
	}
	var edges []edge
	for i := range run.Starts[r] {
		c := g.tasks[g.offset[r]+int32(i)].GetCommunication()
		if c == nil || run.Ends[r][i] <= run.Starts[r][i] {
			continue
		}
		kind, ok := g.slowed.share[c.Backend]
		if !ok {
			kind = g.slowed.share[""]
		}
		edges = append(edges, edge{run.Starts[r][i], kind, true}, edge{run.Ends[r][i], kind, false})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind)) })
	var list segments
	open := make([]int, len(g.slowed.shares))
	most := func() int {
		best := -1
		for k, n := range open {
			if n > 0 && (best < 0 || g.slowed.shares[k] > g.slowed.shares[best]) {
				best = k
			}
		}
		return best
	}
	for i, e := range edges {
		if kind := most(); kind >= 0 && e.at > edges[i-1].at {
			if n := len(list); n > 0 && list[n-1].end == edges[i-1].at && list[n-1].kind == kind {
				list[n-1].end = e.at
			} else {
				list = append(list, segment{edges[i-1].at, e.at, kind})
			}
		}
		if e.begin {
			open[e.kind]++
		} else {
			open[e.kind]--
		}
	}
	return list
}
