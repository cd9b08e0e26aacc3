package schedule

import (
	"fmt"
	"maps"
	"slices"
)

// maxActions bounds the orders that are made or evaluated.
const maxActions = 1 << 24

// StageCosts is how long one micro-batch takes on one stage, in any unit.
type StageCosts struct {
	Forward  Rational
	Backward Rational // the full backward
	Weight   Rational // the part of Backward that makes the weights' gradient
}

// of is the duration of an action.
func (c StageCosts) of(k Kind) Rational {
	switch k {
	case Forward:
		return c.Forward
	case Backward:
		return c.Backward
	case Input:
		return c.Backward.Sub(c.Weight)
	case Weight:
		return c.Weight
	}
	return Rational{}
}

func (c StageCosts) check() error {
	switch {
	case c.Forward.Sign() < 0 || c.Backward.Sign() < 0 || c.Weight.Sign() < 0:
		return fmt.Errorf("a duration is negative (forward=%s, backward=%s, weight=%s)", c.Forward, c.Backward, c.Weight)
	case c.Weight.Cmp(c.Backward) > 0:
		return fmt.Errorf("weight=%s is longer than backward=%s, which it is a part of", c.Weight, c.Backward)
	}
	return nil
}

// Costs is how long actions take, all in one unit.
type Costs struct {
	StageCosts                    // of stages that aren't in Stages
	Stages     map[int]StageCosts // stages that differ
	Hop        Rational           // from one rank to another, latency and transfer

	// Of an order that names its collectives: one UNSHARD and one REDUCE_GRAD,
	// whatever the stage. They run beside the passes.
	Gather, Reduce Rational
}

// DefaultCosts is the usual assumption: a backward takes twice as long as a
// forward, each of its parts as long as a forward, and hops take no time.
func DefaultCosts() Costs {
	return Costs{StageCosts: StageCosts{Forward: Int(1), Backward: Int(2), Weight: Int(1)}}
}

// of is the duration of an action of a stage.
func (c Costs) of(stage int, k Kind) Rational {
	switch k {
	case Unshard:
		return c.Gather
	case ReduceGradient:
		return c.Reduce
	}
	return c.Stage(stage).of(k)
}

// Stage is the costs of one stage.
func (c Costs) Stage(stage int) StageCosts {
	if own, ok := c.Stages[stage]; ok {
		return own
	}
	return c.StageCosts
}

func (c Costs) check() error {
	if err := c.StageCosts.check(); err != nil {
		return err
	}
	if c.Hop.Sign() < 0 {
		return fmt.Errorf("hop=%s is negative", c.Hop)
	}
	if c.Gather.Sign() < 0 || c.Reduce.Sign() < 0 {
		return fmt.Errorf("a collective's duration is negative (gather %s, reduce %s)", c.Gather, c.Reduce)
	}
	for _, s := range slices.Sorted(maps.Keys(c.Stages)) {
		if err := c.Stages[s].check(); err != nil {
			return fmt.Errorf("stage %d: %w", s, err)
		}
	}
	return nil
}
