package diff

import (
	"cmp"
	"math"
	"slices"

	"mixdown/analyze/breakdown"
)

// quantity is one quantity of a run by sample: the sum over ranks, and how many
// ranks its mean is over.
type quantity struct {
	values  []int64
	ranks   int
	unknown bool
}

// median is the middle value, or the mean of the two, rounded towards 0.
func (q quantity) median() int64 {
	sorted := slices.Sorted(slices.Values(q.values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	low, high := sorted[n/2-1], sorted[n/2]
	return low + (high-low)/2
}

// means are the values per rank. A run in which no rank took part has zeros.
func (q quantity) means() []float64 {
	out := make([]float64, len(q.values))
	for i, v := range q.values {
		if q.ranks > 0 {
			out[i] = float64(v) / float64(q.ranks)
		}
	}
	return out
}

func medianOf(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// measures compares quantities of two runs.
type measures struct {
	basis   Basis
	changes bool // false: one run has steps and the other has none
	tested  bool // both have enough steps for a test
}

func (c measures) compare(before, after quantity) Metric {
	var m Metric
	fill := func(q quantity, sum **int64, mean **float64) {
		if q.unknown {
			return
		}
		s, f := q.median(), medianOf(q.means())
		*sum, *mean = &s, &f
	}
	fill(before, &m.Before, &m.PerRankBefore)
	fill(after, &m.After, &m.PerRankAfter)
	m.x, m.y = c.sample(before), c.sample(after)
	if before.unknown || after.unknown || !c.changes {
		return m
	}
	perRank := *m.PerRankAfter - *m.PerRankBefore
	m.PerRankChange = &perRank
	was, change := *m.PerRankBefore, perRank
	if c.basis == BySum {
		sum := *m.After - *m.Before
		m.Change = &sum
		was, change = float64(*m.Before), float64(sum)
	}
	if was != 0 {
		relative := change / was
		m.Relative = &relative
	}
	if c.tested {
		_, p := MannWhitney(m.x, m.y)
		m.P = &p
	}
	return m
}

// sample is the values that are compared, nil when they are not known.
func (c measures) sample(q quantity) []float64 {
	switch {
	case q.unknown:
		return nil
	case c.basis == BySum:
		return floats(q.values)
	}
	return q.means()
}

func floats(values []int64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// change is the compared change, of the sum where it has one, else per rank.
func (m *Metric) change() (float64, bool) {
	switch {
	case m.Change != nil:
		return float64(*m.Change), true
	case m.PerRankChange != nil:
		return *m.PerRankChange, true
	}
	return 0, false
}

// standsOut says whether a change is at least relative of the value before and
// floor, and no chance as far as the steps can tell. Without a test the bar for
// relative is twice as high.
func (m *Metric) standsOut(relative, floor, maxP float64) bool {
	d, ok := m.change()
	if !ok || d == 0 || math.Abs(d) < floor {
		return false
	}
	if m.P != nil && *m.P >= maxP {
		return false
	}
	if m.P == nil {
		relative *= 2
	}
	return m.Relative == nil || math.Abs(*m.Relative) >= relative
}

// of takes one quantity out of a series; samples without the operation are 0.
func (s *series) of(samples int, get func(*breakdown.Sums) (int64, bool)) quantity {
	q := quantity{values: make([]int64, samples)}
	if s == nil {
		return q
	}
	q.ranks = s.ranks
	for i, sums := range s.steps {
		if sums == nil {
			continue
		}
		v, known := get(sums)
		q.values[i] = v
		q.unknown = q.unknown || !known
	}
	return q
}

// byChange orders operations by the magnitude of the change of exposed time,
// then of total time and count.
func byChange(a, b *Operation) int {
	size := func(m *Metric) float64 {
		d, ok := m.change()
		if !ok {
			return -1
		}
		return math.Abs(d)
	}
	return cmp.Or(
		cmp.Compare(size(&b.Exposed), size(&a.Exposed)),
		cmp.Compare(size(&b.Total), size(&a.Total)),
		cmp.Compare(size(&b.Count), size(&a.Count)),
	)
}
