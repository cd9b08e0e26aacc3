package schedule

import "math/big"

// instant is a point in time, counted in whole ticks. Costs are brought to a
// common denominator first, of which one tick is a unit, so that no instant is
// a fraction.
type instant[T any] interface {
	plus(T) T
	before(T) bool
	big() *big.Int
}

// smallInstant serves whenever no time can overflow it.
type smallInstant int64

func (a smallInstant) plus(b smallInstant) smallInstant { return a + b }
func (a smallInstant) before(b smallInstant) bool       { return a < b }
func (a smallInstant) big() *big.Int                    { return big.NewInt(int64(a)) }

// largeInstant serves otherwise.
type largeInstant struct{ n *big.Int }

func (a largeInstant) plus(b largeInstant) largeInstant {
	return largeInstant{new(big.Int).Add(a.n, b.n)}
}
func (a largeInstant) before(b largeInstant) bool { return a.n.Cmp(b.n) < 0 }
func (a largeInstant) big() *big.Int              { return a.n }

// ticks is a cost table in ticks.
type ticks struct {
	perUnit *big.Int          // ticks in one unit of time
	stages  [][kinds]*big.Int // by stage and kind
	hop     *big.Int
	longest *big.Int // of a hop and the longest action
}

// newTicks brings the costs of some stages to a common denominator.
func newTicks(c Costs, stages int) ticks {
	t := ticks{perUnit: big.NewInt(1), stages: make([][kinds]*big.Int, stages)}
	cover := func(r Rational) {
		d := r.rat().Denom()
		gcd := new(big.Int).GCD(nil, nil, t.perUnit, d)
		t.perUnit.Mul(t.perUnit, new(big.Int).Quo(d, gcd))
	}
	cover(c.Hop)
	cover(c.Gather)
	cover(c.Reduce)
	for s := range stages {
		own := c.Stage(s)
		cover(own.Forward)
		cover(own.Backward)
		cover(own.Weight)
	}
	count := func(r Rational) *big.Int {
		n := new(big.Int).Mul(r.rat().Num(), t.perUnit)
		return n.Quo(n, r.rat().Denom())
	}
	t.hop, t.longest = count(c.Hop), new(big.Int)
	for s := range stages {
		for k := range kinds {
			n := count(c.of(s, Kind(k)))
			t.stages[s][k] = n
			if n.Cmp(t.longest) > 0 {
				t.longest = n
			}
		}
	}
	t.longest = new(big.Int).Add(t.longest, t.hop)
	return t
}

// fit says whether no time of an order of so many actions overflows a
// smallInstant: the longest chain of actions passes each once.
func (t ticks) fit(actions int) bool {
	bound := new(big.Int).Mul(t.longest, big.NewInt(int64(actions)))
	return bound.IsInt64()
}

// table converts a cost table's ticks.
func table[T any](t ticks, convert func(*big.Int) T) (stages [][kinds]T, hop T) {
	stages = make([][kinds]T, len(t.stages))
	for s := range t.stages {
		for k, n := range t.stages[s] {
			stages[s][k] = convert(n)
		}
	}
	return stages, convert(t.hop)
}
