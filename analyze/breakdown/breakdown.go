package breakdown

import (
	"slices"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/overlap"
	"mixdown/ingest/trace"
)

// Breakdown is where the time of a run went.
type Breakdown struct {
	Steps  []Step
	Groups []collective.Group // of the matching
	Rows   []Row              // one for each key, the most exposed first
	Ranks  []Rank             // by index into Run.Ranks
}

// Analyze breaks the time of a run down whose events are all in memory; see
// RankByRank.
func Analyze(run *trace.Run, m *collective.Matching, clocks *align.Result) *Breakdown {
	b, err := RankByRank(run, m, clocks)
	if err != nil {
		panic(err) // only loading events can fail
	}
	return b
}

// RankByRank breaks the time of a run down with the events of one rank in memory
// at a time; it fails when they can't be loaded. Clocks says whether times of
// different ranks can be compared; where they can't, waiting and transfer are not
// known.
func RankByRank(run *trace.Run, m *collective.Matching, clocks *align.Result) (*Breakdown, error) {
	b := &Breakdown{Groups: m.Groups}
	var of [][]int
	b.Steps, of = findSteps(run)
	t := &table{run: run, match: m, sums: map[Key]*Sums{}, impossible: map[int]bool{}, comparable: clocks.Connected}
	for _, i := range clocks.Impossible {
		t.impossible[i] = true
	}
	for r, rank := range run.Ranks {
		if err := rank.Acquire(); err != nil {
			return nil, err
		}
		a := measure(rank, of[r])
		t.add(r, a)
		b.Ranks = append(b.Ranks, rankTimes(rank, of[r], a))
		rank.Release()
	}
	for k, s := range t.sums {
		b.Rows = append(b.Rows, b.row(k, *s))
	}
	slices.SortFunc(b.Rows, compareRows)
	return b, nil
}

func rankTimes(rank *trace.Rank, of []int, a *activity) Rank {
	byStep, outside := a.times()
	out := Rank{Rank: rank.Rank, Steps: []RankStep{}, Outside: outside}
	for i, s := range rank.Steps {
		out.Steps = append(out.Steps, RankStep{Step: of[i], Dur: s.End - s.Start, Times: byStep[of[i]]})
	}
	return out
}

// row gives sums their names.
func (b *Breakdown) row(k Key, s Sums) Row {
	r := Row{Key: k, Sums: s}
	if k.Group >= 0 {
		r.label = b.Groups[k.Group].Label()
	}
	if k.Step >= 0 {
		r.step = b.Steps[k.Step].Name
	}
	return r
}

// table gathers the rows.
type table struct {
	run        *trace.Run
	match      *collective.Matching
	sums       map[Key]*Sums
	comparable bool         // the times of all ranks are
	impossible map[int]bool // collectives whose match is wrong
}

// add adds the operations of rank index r.
func (t *table) add(r int, a *activity) {
	for i := range a.rank.Operations {
		op := &a.rank.Operations[i]
		member := collective.Member{Rank: r, Operation: i}
		k := Key{
			Group: t.match.GroupOf[r][op.Group], Op: op.Op,
			Phase: a.rank.Events.Phase[op.Event], Step: a.segments[a.segmentOf(op)].step,
		}
		if c, ok := t.match.Of(member); ok {
			k.Op = c.Op
		}
		one := newSums()
		if one.BytesKnown = op.SizeKnown; op.SizeKnown {
			one.Bytes = max(op.InBytes(), op.OutBytes())
			k.Size = Class(one.Bytes)
		}
		one.Count = 1
		var own []overlap.Interval
		for _, e := range op.Events {
			own = append(own, overlap.Interval{Start: a.rank.Events.TS[e], End: a.rank.Events.End(e)})
		}
		busy := overlap.Union(own)
		one.Total = busy.Length()
		one.Exposed = busy.Subtract(a.computeSet).Length()
		one.Hidden = one.Total - one.Exposed
		one.Wait, one.Transfer, one.TimesKnown = t.wait(member)
		one.join(r/64, 1<<(r%64))
		sum := t.sums[k]
		if sum == nil {
			fresh := newSums()
			sum = &fresh
			t.sums[k] = sum
		}
		sum.add(&one)
	}
}

// wait splits an operation at the last member's arrival; it reports false where
// that is not known.
func (t *table) wait(member collective.Member) (wait, transfer int64, ok bool) {
	last, known := t.match.LastStart(t.run, member)
	i, matched := t.match.Index(member)
	if !known || !t.comparable || matched && t.impossible[i] {
		return 0, 0, false
	}
	op := &t.run.Ranks[member.Rank].Operations[member.Operation]
	wait = min(max(last-op.Start, 0), op.Dur())
	return wait, op.Dur() - wait, true
}

// Dimension is one of the keys of a row.
type Dimension uint8

// The dimensions, to be combined with |.
const (
	ByGroup Dimension = 1 << iota
	ByOp
	BySize
	ByPhase
	ByStep

	ByAll = ByGroup | ByOp | BySize | ByPhase | ByStep
)

// keep is the key without the dimensions that are not in d.
func (d Dimension) keep(k Key) Key {
	out := Key{Group: None, Step: None}
	if d&ByGroup != 0 {
		out.Group = k.Group
	}
	if d&ByOp != 0 {
		out.Op = k.Op
	}
	if d&BySize != 0 {
		out.Size = k.Size
	}
	if d&ByPhase != 0 {
		out.Phase = k.Phase
	}
	if d&ByStep != 0 {
		out.Step = k.Step
	}
	return out
}

// By adds up the rows that agree in the given dimensions, the most exposed first.
func (b *Breakdown) By(d Dimension) []Row {
	rows := []Row{}
	for k, s := range Sum(b.Rows, func(r *Row) (Key, bool) { return d.keep(r.Key), true }) {
		rows = append(rows, b.row(k, *s))
	}
	slices.SortFunc(rows, compareRows)
	return rows
}

// Sum adds up the rows of which key says the same; those for which it reports
// false are left out.
func Sum[K comparable](rows []Row, key func(*Row) (K, bool)) map[K]*Sums {
	sums := map[K]*Sums{}
	for i := range rows {
		k, ok := key(&rows[i])
		if !ok {
			continue
		}
		s := sums[k]
		if s == nil {
			fresh := newSums()
			s = &fresh
			sums[k] = s
		}
		s.add(&rows[i].Sums)
	}
	return sums
}
