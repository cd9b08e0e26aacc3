package schedule

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

// oracle finds when every action ends in another way than Evaluate: it begins
// with all at 0 and puts off what starts too early until nothing does. ok is
// false if that never ends.
func oracle(o Order, c Costs) (ends [][]*big.Rat, ok bool) {
	type place struct{ rank, i int }
	where := map[string]place{}
	actions, stages := 0, o.Stages()
	for r, row := range o {
		ends = append(ends, make([]*big.Rat, len(row)))
		for i, a := range row {
			where[a.String()] = place{r, i}
			ends[r][i] = new(big.Rat)
			actions++
		}
	}
	duration := func(a Action) *big.Rat {
		own := c.StageCosts
		if other, ok := c.Stages[int(a.Stage)]; ok {
			own = other
		}
		switch a.Kind {
		case Forward:
			return own.Forward.rat()
		case Backward:
			return own.Backward.rat()
		case Weight:
			return own.Weight.rat()
		case Input:
			return new(big.Rat).Sub(own.Backward.rat(), own.Weight.rat())
		}
		if a.Kind == Unshard {
			return c.Gather.rat()
		}
		if a.Kind == ReduceGradient {
			return c.Reduce.rat()
		}
		return new(big.Rat)
	}
	collective := func(a Action) bool { return a.Kind == Unshard || a.Kind == ReduceGradient }
	// earliest is when an action may start, as things stand.
	earliest := func(r, i int) *big.Rat {
		at := new(big.Rat)
		later := func(end *big.Rat, hop bool) {
			if hop {
				end = new(big.Rat).Add(end, c.Hop.rat())
			}
			if end.Cmp(at) > 0 {
				at = end
			}
		}
		a := o[r][i]
		for before := i - 1; before >= 0; before-- {
			if !collective(o[r][before]) {
				later(ends[r][before], false)
				break
			}
		}
		for before := i - 1; before >= 0; before-- {
			b := o[r][before]
			if !collective(b) {
				continue
			}
			same := b.Stage == a.Stage
			if collective(a) || same && b.Kind == Unshard && a.Kind.Computes() || same && b.Kind == ReduceGradient && a.Kind == WaitReduceGradient {
				later(ends[r][before], false)
			}
		}
		need := func(text string, args ...any) bool {
			p, found := where[fmt.Sprintf(text, args...)]
			if found {
				later(ends[p.rank][p.i], p.rank != r)
			}
			return found
		}
		s, mb := a.Stage, a.Microbatch
		switch a.Kind {
		case Forward:
			if need("%dSEND_F%d", s-1, mb) {
				p := where[fmt.Sprintf("%dRECV_F%d", s, mb)]
				later(ends[p.rank][p.i], true)
			} else {
				need("%dF%d", s-1, mb)
			}
		case Backward, Input:
			need("%dF%d", s, mb)
			if need("%dSEND_B%d", s+1, mb) {
				p := where[fmt.Sprintf("%dRECV_B%d", s, mb)]
				later(ends[p.rank][p.i], true)
			} else if int(s)+1 < stages && !need("%dB%d", s+1, mb) {
				need("%dI%d", s+1, mb)
			}
		case Weight:
			need("%dI%d", s, mb)
		case SendForward:
			need("%dF%d", s, mb)
		case SendBackward:
			if !need("%dB%d", s, mb) {
				need("%dI%d", s, mb)
			}
		}
		return at
	}
	for range actions + 2 {
		moved := false
		for r, row := range o {
			for i := 0; i < len(row); i++ {
				first := i
				at := earliest(r, i)
				end := new(big.Rat).Add(at, duration(row[i]))
				if row[i].Overlap {
					i++
					// The partner's place behind the first must not count.
					keep := ends[r][first]
					ends[r][first] = at
					if second := earliest(r, i); second.Cmp(at) > 0 {
						at = second
					}
					ends[r][first] = keep
					end = new(big.Rat).Add(at, duration(row[first]))
					end.Add(end, duration(row[i]))
				}
				for n := first; n <= i; n++ {
					if ends[r][n].Cmp(end) != 0 {
						ends[r][n], moved = end, true
					}
				}
			}
		}
		if !moved {
			return ends, true
		}
	}
	return nil, false
}

func compareWithOracle(t *testing.T, what string, o Order, c Costs) {
	t.Helper()
	want, ok := oracle(o, c)
	line, err := Evaluate(o, c)
	var stuck *BlockedError
	if !ok {
		if !errors.As(err, &stuck) {
			t.Fatalf("%s: the oracle never ends, Evaluate says %v\n%v", what, err, o)
		}
		checkChain(t, o, stuck.Chain)
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for r := range want {
		for i := range want[r] {
			if got := line.End(r, i).rat(); got.Cmp(want[r][i]) != 0 {
				t.Fatalf("%s: rank %d: %s ends at %s, the oracle says %s\n%v", what, r, o[r][i], got.RatString(), want[r][i].RatString(), o)
			}
		}
	}
}

// checkChain checks that each link of a circle waits on the rank of the next,
// for something that is not before what that rank is at.
func checkChain(t *testing.T, o Order, chain []Wait) {
	t.Helper()
	if len(chain) == 0 {
		t.Fatal("blocked without a chain")
	}
	position := func(rank int, a Action) int {
		for i, b := range o[rank] {
			if a.String() == b.String() {
				return i
			}
		}
		t.Fatalf("%s is not on rank %d", a, rank)
		return 0
	}
	for i, w := range chain {
		next := chain[(i+1)%len(chain)]
		position(w.Rank, w.At)
		if w.On != next.Rank || position(w.On, w.Needs) < position(next.Rank, next.At) {
			t.Fatalf("link %d of %v does not lead to the next", i, chain)
		}
	}
}

func TestOracleGenerated(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		s := randomSpec(r)
		o, err := s.Order()
		if err != nil {
			t.Fatal(err)
		}
		compareWithOracle(t, s.String(), o, s.Costs)
	}
}

func TestOracleRandomOrders(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 400 {
		o := randomOrder(r)
		c := randomCosts(r, 6)
		compareWithOracle(t, "random order", o, c)
		compareWithOracle(t, "with transfers", withTransfers(o), c)
	}
}

// TestOracleCollectives: collectives and waits at random places.
func TestOracleCollectives(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for i := range 400 {
		o := randomOrder(r)
		if i%2 == 0 {
			s := randomSpec(r)
			o = mustOrder(t, s.Name, s.Shape)
		}
		for rank, row := range o {
			var mixed []Action
			for i, a := range row {
				for r.IntN(3) == 0 && (i == 0 || !row[i-1].Overlap) {
					kind := []Kind{Unshard, Reshard, ReduceGradient, WaitReduceGradient}[r.IntN(4)]
					mixed = append(mixed, Action{Stage: row[r.IntN(len(row))].Stage, Kind: kind, Microbatch: NoMicrobatch})
				}
				mixed = append(mixed, a)
			}
			o[rank] = append(mixed, Action{Stage: row[0].Stage, Kind: ReduceGradient, Microbatch: NoMicrobatch})
		}
		c := randomCosts(r, 12)
		c.Gather, c.Reduce = Ratio(r.Int64N(9), 1+r.Int64N(4)), Ratio(r.Int64N(9), 1+r.Int64N(4))
		compareWithOracle(t, "with collectives", o, c)
	}
}

// TestOracleShuffled: shuffled orders, of which many can't run.
func TestOracleShuffled(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	stuck := 0
	for range 400 {
		o := randomOrder(r)
		if r.IntN(2) == 0 {
			o = withTransfers(o)
		}
		row := o[r.IntN(len(o))]
		for range 1 + r.IntN(3) {
			i, j := r.IntN(len(row)), r.IntN(len(row))
			row[i], row[j] = row[j], row[i]
		}
		c := randomCosts(r, 6)
		// A circle of actions that take no time would stand still.
		c.Hop = c.Hop.Add(Int(1))
		for s, own := range c.Stages {
			own.Backward = own.Backward.Add(Int(1))
			c.Stages[s] = own
		}
		c.Backward = c.Backward.Add(Int(1))
		compareWithOracle(t, "shuffled", o, c)
		if _, ok := oracle(o, c); !ok {
			stuck++
		}
	}
	if stuck < 50 || stuck > 350 {
		t.Errorf("%d of 400 orders are stuck: the test is lopsided", stuck)
	}
}

// TestTransfersFree: without hops it makes no difference whether an order names
// its transfers.
func TestTransfersFree(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		s := randomSpec(r)
		s.Costs.Hop = Rational{}
		o, err := s.Order()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range o {
			for i := range row {
				row[i].Overlap = false
			}
		}
		plain, named := mustEvaluate(t, o, s.Costs), mustEvaluate(t, withTransfers(o), s.Costs)
		if !plain.Makespan().Equal(named.Makespan()) || plain.Messages() != named.Messages() {
			t.Fatalf("%s: makespan %s and %s, messages %d and %d", s, plain.Makespan(), named.Makespan(), plain.Messages(), named.Messages())
		}
	}
}
