package diff

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mixdown/analyze/breakdown"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// What a change needs to stand out; see the package comment.
const (
	// MinSteps of both runs make a test possible: with 4 against 4 steps that do
	// not overlap p is 0.029, with 3 against 3 it is 0.1 at best.
	MinSteps = 4
	MaxP     = 0.05
	// MinRelative is the change of an operation over its value before, twice that
	// without a test.
	MinRelative = 0.05
	// MinStepRelative is that of the step's time, twice that without a test.
	MinStepRelative = 0.01
	// MinOfStep is the change of an operation's time per rank over the step's.
	MinOfStep = 0.001
)

// ErrNotComparable: the runs have nothing in common that could be compared.
var ErrNotComparable = errors.New("not comparable")

// Err is ErrNotComparable with the reason, nil when the runs could be compared.
func (d *Diff) Err() error {
	if d.Comparable {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrNotComparable, strings.TrimPrefix(d.Answer, ErrNotComparable.Error()+": "))
}

// Compare compares two runs, before (a) and after (b).
func Compare(a, b *Summary) *Diff {
	roles := b.roles.clone() // renamed for this comparison only
	renaming := *b
	renaming.roles, b = roles, &renaming
	d := &Diff{SchemaVersion: SchemaVersion, Before: a.Side, After: b.Side, Operations: []Operation{}, Notes: []Note{}}
	c := measures{
		basis:   BySum,
		changes: a.Steps > 0 == (b.Steps > 0),
		tested:  a.Steps >= MinSteps && b.Steps >= MinSteps,
	}
	if a.StepRanks != b.StepRanks || a.WorldSize != b.WorldSize {
		c.basis = ByRank
	}
	d.Basis = c.basis
	both := shared(a, b)
	d.Keys = both.names()
	renamed := b.roles.rename(&a.roles, func(role string, inA bool) bool {
		if inA {
			return a.uses(role)
		}
		return b.uses(role)
	})
	d.Time = compareTimes(c, a, b)
	mine, theirs := a.tabulate(both), b.tabulate(both)
	d.Operations = compareOperations(c, mine, theirs, a.samples, b.samples, floors(d, c))
	d.notes(a, b, renamed)
	reason := notComparable(a, b, ops(mine), ops(theirs))
	d.Comparable = reason == ""
	if d.Answer = reason; d.Comparable {
		d.Answer = d.answer()
	}
	return d
}

// shared is what both runs know. Of a run without communication nothing can be
// said, so the other one's keys stay.
func shared(a, b *Summary) knowledge {
	switch {
	case a.Operations == 0:
		return b.knows
	case b.Operations == 0:
		return a.knows
	}
	return knowledge{a.knows.group && b.knows.group, a.knows.size && b.knows.size, a.knows.phase && b.knows.phase}
}

func (k knowledge) names() []string {
	names := []string{"op"}
	if k.group {
		names = append(names, "group")
	}
	if k.size {
		names = append(names, "size")
	}
	if k.phase {
		names = append(names, "phase")
	}
	return names
}

// uses says whether any operation is of a role's groups.
func (s *Summary) uses(role string) bool {
	return slices.ContainsFunc(s.data.Rows, func(r breakdown.Row) bool { return s.roles.of[r.Group] == role })
}

func compareTimes(c measures, a, b *Summary) Time {
	sumsA, longestA, totalA := a.times()
	sumsB, longestB, totalB := b.times()
	of := func(get func(*breakdown.Times) int64) Metric {
		return c.compare(pick(sumsA, a.StepRanks, get), pick(sumsB, b.StepRanks, get))
	}
	// The slowest rank's time is one number whatever the number of ranks.
	whole := measures{basis: BySum, changes: c.changes, tested: c.tested}
	step := whole.compare(quantity{values: longestA, ranks: a.StepRanks}, quantity{values: longestB, ranks: b.StepRanks})
	mean := c.compare(quantity{values: totalA, ranks: a.StepRanks}, quantity{values: totalB, ranks: b.StepRanks})
	step.PerRankBefore, step.PerRankAfter, step.PerRankChange = mean.PerRankBefore, mean.PerRankAfter, mean.PerRankChange
	return Time{
		Step:    step,
		Compute: of(func(t *breakdown.Times) int64 { return t.Compute }),
		Comm:    of(func(t *breakdown.Times) int64 { return t.Comm }),
		Exposed: of(func(t *breakdown.Times) int64 { return t.Exposed }),
		Hidden:  of(func(t *breakdown.Times) int64 { return t.Hidden }),
		Memory:  of(func(t *breakdown.Times) int64 { return t.Memory }),
		Idle:    of(func(t *breakdown.Times) int64 { return t.Idle }),
	}
}

func pick(sums []breakdown.Times, ranks int, get func(*breakdown.Times) int64) quantity {
	q := quantity{ranks: ranks}
	for i := range sums {
		q.values = append(q.values, get(&sums[i]))
	}
	return q
}

// floors is the change of an operation's time, ns, below which it can't stand out.
func floors(d *Diff, c measures) float64 {
	floor := MinOfStep * float64(*d.Time.Step.Before)
	if c.basis == BySum {
		floor *= float64(d.Before.StepRanks)
	}
	return floor
}

func compareOperations(c measures, before, after map[key]*series, samplesA, samplesB int, floor float64) []Operation {
	keys := make([]key, 0, len(before))
	for k := range before {
		keys = append(keys, k)
	}
	for k := range after {
		if before[k] == nil {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, key.compare)
	list := make([]Operation, 0, len(keys))
	for _, k := range keys {
		x, y := before[k], after[k]
		o := k.operation()
		of := func(get func(*breakdown.Sums) (int64, bool)) Metric {
			return c.compare(x.of(samplesA, get), y.of(samplesB, get))
		}
		o.Count = of(func(s *breakdown.Sums) (int64, bool) { return int64(s.Count), true })
		o.Bytes = of(func(s *breakdown.Sums) (int64, bool) { return s.Bytes, s.BytesKnown })
		o.Total = of(func(s *breakdown.Sums) (int64, bool) { return s.Total, true })
		o.Exposed = of(func(s *breakdown.Sums) (int64, bool) { return s.Exposed, true })
		o.Wait = of(func(s *breakdown.Sums) (int64, bool) { return s.Wait, s.TimesKnown })
		o.Transfer = of(func(s *breakdown.Sums) (int64, bool) { return s.Transfer, s.TimesKnown })
		if x != nil {
			o.RanksBefore = x.ranks
		}
		if y != nil {
			o.RanksAfter = y.ranks
		}
		o.judge(floor)
		list = append(list, o)
	}
	slices.SortStableFunc(list, func(a, b Operation) int { return byChange(&a, &b) })
	return list
}

func (k key) operation() Operation {
	o := Operation{Op: k.op, Changed: []string{}}
	if k.role != "" {
		o.Group = &k.role
	}
	if k.size.Known() {
		o.SizeFrom, o.SizeTo = &k.size.From, &k.size.To
	}
	if k.phase != trace.UnknownPhase {
		phase := k.phase.String()
		o.Phase = &phase
	}
	return o
}

// judge finds the verdict.
func (o *Operation) judge(floor float64) {
	direction := 0.0
	note := func(name string, m *Metric, relative, floor float64) {
		if !m.standsOut(relative, floor, MaxP) {
			return
		}
		o.Changed = append(o.Changed, name)
		if d, _ := m.change(); direction == 0 {
			direction = d
		}
	}
	note("exposed_ns", &o.Exposed, MinRelative, floor)
	note("total_ns", &o.Total, MinRelative, floor)
	note("count", &o.Count, 0, 0) // programs count exactly
	note("bytes", &o.Bytes, MinRelative, 0)
	switch {
	case o.RanksBefore == 0:
		o.Verdict = Appeared
	case o.RanksAfter == 0:
		o.Verdict = Vanished
	case direction > 0:
		o.Verdict = Grew
	case direction < 0:
		o.Verdict = Shrank
	default:
		o.Verdict = Unchanged
	}
}

// notComparable says why the runs have nothing in common that a comparison could
// be about; "" when they have.
func notComparable(a, b *Summary, mine, theirs []comm.Op) string {
	common := slices.ContainsFunc(mine, func(op comm.Op) bool { return slices.Contains(theirs, op) })
	switch {
	case common:
		return ""
	case len(mine) > 0 && len(theirs) > 0:
		return ErrNotComparable.Error() + ": the runs have no operation in common (before: " + opList(mine) + "; after: " + opList(theirs) + ")"
	case a.Steps == 0 || b.Steps == 0:
		return ErrNotComparable.Error() + ": " + without(mine, theirs) + " no communication, and the steps are not marked in both"
	case a.WorldSize != b.WorldSize:
		return ErrNotComparable.Error() + ": " + without(mine, theirs) + " no communication, and the numbers of ranks differ"
	}
	return "" // the steps of the same number of ranks
}

func without(mine, theirs []comm.Op) string {
	switch {
	case len(mine) > 0:
		return "the run after has"
	case len(theirs) > 0:
		return "the run before has"
	}
	return "the runs have"
}

func opList(list []comm.Op) string {
	text := ""
	for i, op := range list {
		if i > 0 {
			text += ", "
		}
		text += string(op)
	}
	return text
}
