package sim

import (
	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
)

// Shape says how a model is turned into the costs of an order.
type Shape struct {
	// WeightShare is the part of a backward that makes the weights' gradient, where
	// the trace does not tell its parts; 0 means a half. Nobody needs the gradient
	// of the first stage's input: there it is all of it.
	WeightShare float64
	// Scale multiplies every task, for micro-batches of another size; 0 means 1.
	Scale float64
	// Sharding is what of the stages is sharded over the replicas, nil for what was
	// recorded. A reduce-scatter and an all-gather take half of an all-reduce each,
	// as they do in a ring.
	Sharding *sharding.Variant
	Buffers  sharding.Options // for gathered weights and gradients
	// EarlyReductions lets the gradient of a stage be reduced as soon as it is
	// complete, beside the tasks, instead of after them as in the trace. It needs an
	// order with REDUCE_GRAD.
	EarlyReductions bool
}

// Costs is what an order costs by the model. The order may cut the model into
// another number of stages: a stage then takes its share of the recorded stages
// that it overlaps, layer by layer where the trace shows layers. Micro-batches beyond the
// recorded ones take the mean of their stage.
func (m *Model) Costs(order schedule.Order, shape Shape) *Costs {
	stages, mbs := order.Stages(), order.Microbatches()
	c := &Costs{stages: stages, microbatches: mbs, gaps: m.gaps, hops: m.edge, Head: m.head, Tail: m.tail}
	scale := shape.Scale
	if scale == 0 {
		scale = 1
	}
	for k := range c.task {
		c.task[k] = make([]int64, stages*mbs)
		kind := schedule.Kind(k)
		recorded := m.phase(kind, shape)
		for s := range stages {
			first := recorded
			if s == 0 && !m.SplitKnown && kind == schedule.Input {
				continue
			}
			if s == 0 && !m.SplitKnown && kind == schedule.Weight {
				first = m.task[schedule.Backward]
			}
			for mb := range mbs {
				c.task[k][s*mbs+mb] = int64(scale * m.share(kind, first, s, stages, mb))
			}
		}
	}
	if shape.EarlyReductions {
		half := shape.Sharding != nil && *shape.Sharding != sharding.None
		c.Reduce = make(perStage, stages)
		for s := range stages {
			var ns float64
			m.overlap(s, stages, func(layer int, part float64) { ns += part * m.reduce[layer/m.layers] / float64(m.layers) })
			if half {
				ns /= 2
			}
			c.Reduce[s] = int64(ns)
		}
		if half {
			c.Gather = c.Reduce
		}
		c.Tail = max(c.Tail-m.reduceInTail, 0)
	}
	return c
}

// defaultWeightShare takes both gradients of a stage for equally long: those of a
// matrix product are.
const defaultWeightShare = 0.5

// phase is the recorded durations of a kind of task by [stage·M+mb], made of
// other kinds where it was not recorded.
func (m *Model) phase(kind schedule.Kind, shape Shape) []float64 {
	full := m.task[schedule.Backward]
	weight := shape.WeightShare
	if weight == 0 {
		weight = defaultWeightShare
	}
	made := make([]float64, len(full))
	for i := range made {
		switch {
		case kind == schedule.Backward && !m.BackwardKnown:
			made[i] = m.task[schedule.Input][i] + m.task[schedule.Weight][i]
		case kind == schedule.Input && !m.SplitKnown:
			made[i] = full[i] * (1 - weight)
		case kind == schedule.Weight && !m.SplitKnown:
			made[i] = full[i] * weight
		default:
			made[i] = m.task[kind][i]
		}
	}
	return made
}

// share is how long stage s of `stages` takes for a micro-batch.
func (m *Model) share(kind schedule.Kind, recorded []float64, s, stages, mb int) float64 {
	var ns float64
	m.overlap(s, stages, func(layer int, part float64) {
		from := layer / m.layers
		part *= m.layerShare[kind][layer]
		if mb < m.Microbatches {
			ns += part * recorded[from*m.Microbatches+mb]
			return
		}
		var sum float64
		for i := range m.Microbatches {
			sum += recorded[from*m.Microbatches+i]
		}
		ns += part * sum / float64(m.Microbatches)
	})
	return ns
}

// overlap lists which part of each recorded layer lies in stage s of `stages`.
func (m *Model) overlap(s, stages int, each func(layer int, part float64)) {
	// In units of 1/(stages·layers) of the model.
	layers := m.Stages * m.layers
	begin, end := s*layers, (s+1)*layers
	for layer := begin / stages; layer < layers && layer*stages < end; layer++ {
		covered := min(end, (layer+1)*stages) - max(begin, layer*stages)
		if covered > 0 {
			each(layer, float64(covered)/float64(stages))
		}
	}
}
