package sizing

import (
	"mixdown/replay/memory"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

// Holding is what the flags say of a model whose chunks and micro-batches are those of
// a trace.
type Holding struct {
	*memory.Model     // nil: nothing is said of the model
	Stages        int // of the trace
	Microbatches  int
}

// Of is what an order makes each rank hold, nil if nothing is said of the model. What
// a chunk keeps is said of the traced chunks and micro-batches.
func (h Holding) Of(order schedule.Order, stages int) ([]memory.Rank, error) {
	if h.Model == nil {
		return nil, nil
	}
	m := *h.Model
	if m.Activation != nil && stages != h.Stages {
		part := *m.Activation * int64(h.Stages) / int64(stages)
		m.Activation = &part
	}
	if n := order.Microbatches(); m.Activation != nil && n != h.Microbatches && n > 0 {
		part := *m.Activation * int64(h.Microbatches) / int64(n)
		m.Activation = &part
	}
	return memory.Of(order, m)
}

// OfCandidate is what a candidate makes each rank hold, sharded as it says.
func (h Holding) OfCandidate(c sim.Candidate) ([]memory.Rank, error) {
	if h.Model != nil && c.Sharding != nil {
		sharded := *h.Model
		sharded.Sharding = c.Sharding.Variant
		h.Model = &sharded
	}
	return h.Of(c.Order, c.Order.Stages())
}
