package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// randomSpec draws a schedule with a shape that it accepts.
func randomSpec(r *rand.Rand) Spec {
	known := Known()
	for {
		s := Spec{Name: known[r.IntN(len(known))].Name, Costs: randomCosts(r, 12)}
		s.Ranks, s.Microbatches, s.Loops = 1+r.IntN(6), 1+r.IntN(16), 1+r.IntN(3)
		s.BackwardOrder, s.Placement = MicrobatchOrder(r.IntN(2)), Placement(r.IntN(2))
		s.Rounds = 1 + r.IntN(3)
		s.Group = r.IntN(7)
		if g, _ := lookup(s.Name); g.loops > 0 {
			s.Loops = 0
		}
		if _, err := s.Order(); err == nil {
			return s
		}
	}
}

// randomCosts draws durations, those of some stages apart.
func randomCosts(r *rand.Rand, stages int) Costs {
	number := func(least int64) Rational { return Ratio(least+r.Int64N(6), 1+r.Int64N(4)) }
	stage := func() StageCosts {
		w := number(0)
		return StageCosts{Forward: number(1), Backward: w.Add(number(0)), Weight: w}
	}
	c := Costs{StageCosts: stage(), Stages: map[int]StageCosts{}}
	if r.IntN(2) == 0 {
		c.Hop = number(0)
	}
	for range r.IntN(4) {
		c.Stages[r.IntN(stages)] = stage()
	}
	return c
}

// randomOrder draws an order that can run: stages at random on ranks, and again
// and again one of the actions that are ready.
func randomOrder(r *rand.Rand) Order {
	ranks, stages, microbatches := 1+r.IntN(4), 1+r.IntN(5), 1+r.IntN(4)
	stages = max(stages, ranks)
	o := make(Order, ranks)
	place := func(s int) int { return s % ranks }
	if r.IntN(2) == 0 {
		shuffled := r.Perm(stages)
		place = func(s int) int { return shuffled[s] % ranks }
	}
	split := r.IntN(2) == 0
	var ready []Action
	for mb := range microbatches {
		ready = append(ready, forward(0, mb))
	}
	for len(ready) > 0 {
		i := r.IntN(len(ready))
		a := ready[i]
		ready = slices.Delete(ready, i, i+1)
		s, mb := int(a.Stage), int(a.Microbatch)
		o[place(s)] = append(o[place(s)], a)
		back := func(stage int) Action {
			if split {
				return input(stage, mb)
			}
			return backward(stage, mb)
		}
		switch {
		case a.Kind == Forward && s+1 < stages:
			ready = append(ready, forward(s+1, mb))
		case a.Kind == Forward:
			ready = append(ready, back(s))
		case a.Kind == Backward || a.Kind == Input:
			if s > 0 {
				ready = append(ready, back(s-1))
			}
			if split {
				ready = append(ready, weight(s, mb))
			}
		}
	}
	return o
}

// withTransfers names every transfer: sends right after what makes them,
// receives right before what needs them.
func withTransfers(o Order) Order {
	x, err := newIndex(o)
	if err != nil {
		panic(err)
	}
	named := make(Order, len(o))
	for r, row := range o {
		for _, a := range row {
			s, mb := int(a.Stage), int(a.Microbatch)
			crosses := func(to int) bool {
				return to >= 0 && to < x.stages && int(x.rank[x.find(Forward, to, mb)]) != r
			}
			switch a.Kind {
			case Forward:
				if crosses(s - 1) {
					named[r] = append(named[r], act(s, RecvForward, mb))
				}
				named[r] = append(named[r], a)
				if crosses(s + 1) {
					named[r] = append(named[r], act(s, SendForward, mb))
				}
			case Backward, Input:
				if crosses(s + 1) {
					named[r] = append(named[r], act(s, RecvBackward, mb))
				}
				named[r] = append(named[r], a)
				if crosses(s - 1) {
					named[r] = append(named[r], act(s, SendBackward, mb))
				}
			default:
				named[r] = append(named[r], a)
			}
		}
	}
	return named
}

// TestGenerated checks of every generator, for random shapes, what an order
// must be; Evaluate itself is checked against the oracle elsewhere.
func TestGenerated(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tried := map[string]int{}
	for range 1500 {
		s := randomSpec(r)
		tried[s.Name]++
		o, err := s.Order()
		if err != nil {
			t.Fatal(err)
		}
		if o.Ranks() != s.Ranks || o.Microbatches() != s.Microbatches {
			t.Fatalf("%s: %d ranks, %d micro-batches", s, o.Ranks(), o.Microbatches())
		}
		if g, _ := lookup(s.Name); o.Stages()%s.Ranks != 0 || o.Loops() < max(s.Loops, g.loops) && s.Ranks > 1 {
			t.Fatalf("%s: %d stages, %d chunks per rank", s, o.Stages(), o.Loops())
		}
		checkOrder(t, s, o)
		line := mustEvaluate(t, o, s.Costs)
		if line.Bubble().Sign() < 0 || line.BubbleLongestSpan().Cmp(line.Bubble()) > 0 {
			t.Fatalf("%s: bubbles %s and %s", s, line.Bubble(), line.BubbleLongestSpan())
		}
	}
	for _, d := range Known() {
		if tried[d.Name] == 0 {
			t.Errorf("%s was never tried", d.Name)
		}
	}
}

// checkOrder: on its rank every micro-batch of every stage goes forward exactly
// once and, in training, backward exactly once and later; a weight gradient
// comes after its input gradient.
func checkOrder(t *testing.T, s Spec, o Order) {
	t.Helper()
	type key struct{ stage, mb int32 }
	forwards, backwards, weights := map[key]int{}, map[key]int{}, map[key]int{}
	for rank, row := range o {
		local := map[key]Kind{}
		for _, a := range row {
			k := key{a.Stage, a.Microbatch}
			was, seen := local[k]
			switch a.Kind {
			case Forward:
				forwards[k]++
				if seen {
					t.Fatalf("%s: rank %d: %s comes after %s", s, rank, a, was)
				}
			case Backward, Input:
				backwards[k]++
				if !seen || was != Forward {
					t.Fatalf("%s: rank %d: %s before its forward", s, rank, a)
				}
			case Weight:
				weights[k]++
				if was != Input {
					t.Fatalf("%s: rank %d: %s before its input gradient", s, rank, a)
				}
			}
			local[k] = a.Kind
		}
		for k, last := range local {
			if last == Input {
				t.Fatalf("%s: rank %d: no weight gradient of %v", s, rank, k)
			}
		}
	}
	want := o.Stages() * o.Microbatches()
	if len(forwards) != want || len(backwards) != want && s.Name != "inference" {
		t.Fatalf("%s: %d forwards and %d backwards of %d", s, len(forwards), len(backwards), want)
	}
	for k, n := range forwards {
		if n != 1 || backwards[k] > 1 || weights[k] > 1 {
			t.Fatalf("%s: %v: %d forwards, %d backwards, %d weight gradients", s, k, n, backwards[k], weights[k])
		}
	}
}
