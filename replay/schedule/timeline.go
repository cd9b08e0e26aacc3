package schedule

import (
	"math/big"
	"slices"
)

// Timeline is an order with the time of every action. All ranks begin at 0.
type Timeline struct {
	order   Order
	costs   Costs
	index   *index
	perUnit *big.Int // ticks in one unit of time
	times   interface {
		start(action int32) *big.Int // in ticks
		end(action int32) *big.Int
	}
}

// Order is the order that was played.
func (t *Timeline) Order() Order { return t.order }

// Start is when the i-th action of a rank starts.
func (t *Timeline) Start(rank, i int) Rational {
	return t.units(t.times.start(t.index.offset[rank] + int32(i)))
}

// End is when the i-th action of a rank ends.
func (t *Timeline) End(rank, i int) Rational {
	return t.units(t.times.end(t.index.offset[rank] + int32(i)))
}

func (t *Timeline) units(ticks *big.Int) Rational {
	return Rational{new(big.Rat).SetFrac(ticks, t.perUnit)}
}

// Makespan is when the last rank ends, collectives beside its passes left out.
func (t *Timeline) Makespan() Rational { return t.units(t.makespan()) }

func (t *Timeline) makespan() *big.Int {
	most := new(big.Int)
	for r, row := range t.order {
		last := len(row) - 1
		for last >= 0 && row[last].Kind.beside() {
			last--
		}
		if last < 0 {
			continue
		}
		if end := t.times.end(t.index.offset[r] + int32(last)); end.Cmp(most) > 0 {
			most = end
		}
	}
	return most
}

// Collective is a gather of weights or a reduction of gradients that an order
// names.
type Collective struct {
	Rank, Stage int
	Kind        Kind // Unshard or ReduceGradient
	Start, End  Rational
}

// Collectives lists those of the order, by rank, on each rank in order.
func (t *Timeline) Collectives() []Collective {
	var list []Collective
	for r, row := range t.order {
		for i, a := range row {
			if a.Kind.beside() {
				list = append(list, Collective{Rank: r, Stage: int(a.Stage), Kind: a.Kind, Start: t.Start(r, i), End: t.End(r, i)})
			}
		}
	}
	return list
}

// Span is the time from the start of a rank's first computation to the end of
// its last.
func (t *Timeline) Span(rank int) Rational {
	row := t.order[rank]
	first := slices.IndexFunc(row, func(a Action) bool { return a.Kind.Computes() })
	if first < 0 {
		return Rational{}
	}
	last := len(row) - 1
	for !row[last].Kind.Computes() {
		last--
	}
	return t.End(rank, last).Sub(t.Start(rank, first))
}

// LongestSpan is the longest Span of a rank.
func (t *Timeline) LongestSpan() Rational {
	var longest Rational
	for r := range t.order {
		if span := t.Span(r); span.Cmp(longest) > 0 {
			longest = span
		}
	}
	return longest
}

// Busy is how long a rank computes.
func (t *Timeline) Busy(rank int) Rational {
	counts := map[int32]*[kinds]int64{} // by stage
	for _, a := range t.order[rank] {
		if !a.Kind.Computes() {
			continue
		}
		if counts[a.Stage] == nil {
			counts[a.Stage] = new([kinds]int64)
		}
		counts[a.Stage][a.Kind]++
	}
	var busy Rational
	for stage, count := range counts {
		for k, n := range count {
			if n > 0 {
				busy = busy.Add(t.costs.of(int(stage), Kind(k)).Mul(Int(n)))
			}
		}
	}
	return busy
}

// Bubble is the share of ranks × makespan in which ranks don't compute.
func (t *Timeline) Bubble() Rational { return t.idle(t.Makespan()) }

// BubbleLongestSpan is the share of ranks × longest span in which ranks don't
// compute, the bubble of the zero-bubble papers.
func (t *Timeline) BubbleLongestSpan() Rational { return t.idle(t.LongestSpan()) }

func (t *Timeline) idle(span Rational) Rational {
	var busy Rational
	for r := range t.order {
		busy = busy.Add(t.Busy(r))
	}
	return Int(1).Sub(busy.Quo(span.Mul(Int(int64(len(t.order))))))
}

// PeakChunks is Order.PeakChunks of the order that was played.
func (t *Timeline) PeakChunks() []int { return t.order.PeakChunks() }

// Messages is how often an activation or a gradient goes from one rank to
// another, over all ranks.
func (t *Timeline) Messages() int {
	x, count := t.index, 0
	for s := 1; s < x.stages; s++ {
		for mb := range x.microbatches {
			if x.rank[x.find(Forward, s-1, mb)] == x.rank[x.find(Forward, s, mb)] {
				continue
			}
			count++
			if x.backward(s, mb) != none {
				count++
			}
		}
	}
	return count
}

// Gradient is when a rank has the gradient of one of its stages, summed over
// its micro-batches: from then on it can be reduced over data-parallel ranks.
type Gradient struct {
	Rank, Stage int
	Ready       Rational
}

// Gradients lists when each chunk's gradient is complete, by rank, on each rank
// in the order of completion. It is empty for inference.
func (t *Timeline) Gradients() []Gradient {
	var list []Gradient
	for r, row := range t.order {
		first := len(list)
		seen := map[int32]bool{}
		for i := len(row) - 1; i >= 0; i-- {
			a := row[i]
			if (a.Kind == Backward || a.Kind == Weight) && !seen[a.Stage] {
				seen[a.Stage] = true
				list = append(list, Gradient{Rank: r, Stage: int(a.Stage), Ready: t.End(r, i)})
			}
		}
		slices.Reverse(list[first:])
	}
	return list
}
