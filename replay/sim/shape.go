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

	// Cut is the first layer of each stage, of all layers that the trace shows, the
	// first stage's being 0; nil cuts the model into even parts. Stages beyond its end
	// have no layer.
	Cut []int
	// Slices is how each micro-batch is cut along its tokens: the part of its time that
	// each slice takes, in order; nil leaves it whole. The order then counts slices as
	// micro-batches, those of a micro-batch one after the other, and each message
	// carries an even part of what it carried.
	Slices []float64
	// Recompute is the part of a forward that is done again before its backward.
	Recompute float64
	// Local lets a backward begin without the gradient of the next stage.
	Local bool
	// Offload is how long the activations that a recorded stage keeps of one
	// micro-batch take to another memory, and as long back, ns; 0 keeps them. Each
	// place moves them one after the other in each direction, beside its tasks, and
	// begins to fetch those of a backward when the task before it begins, unless they
	// have not left by then.
	Offload float64
}

// Costs is what an order costs by the model. The order may cut the model into
// another number of stages: a stage then takes its share of the recorded stages
// that it overlaps, layer by layer where the trace shows layers. Micro-batches beyond the
// recorded ones take the mean of their stage.
func (m *Model) Costs(order schedule.Order, shape Shape) *Costs {
	stages, mbs := order.Stages(), order.Microbatches()
	c := &Costs{stages: stages, microbatches: mbs, gaps: m.gaps, hops: m.edge, pace: m.pace, local: shape.Local, Head: m.head, Tail: m.tail}
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
				whole, part := mb, scale
				if n := len(shape.Slices); n > 0 {
					whole, part = mb/n, scale*shape.Slices[mb%n]
				}
				c.task[k][s*mbs+mb] = atMost(part * m.share(kind, first, s, stages, whole, shape.Cut))
			}
		}
	}
	m.extras(c, shape)
	if shape.EarlyReductions {
		half := shape.Sharding != nil && *shape.Sharding != sharding.None
		c.Reduce = make(perStage, stages)
		for s := range stages {
			var ns float64
			m.overlap(s, stages, shape.Cut, func(layer int, part float64) { ns += part * m.reduce[layer/m.layers] / float64(m.layers) })
			if half {
				ns /= 2
			}
			c.Reduce[s] = atMost(ns)
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
func (m *Model) share(kind schedule.Kind, recorded []float64, s, stages, mb int, cut []int) float64 {
	var ns float64
	m.overlap(s, stages, cut, func(layer int, part float64) {
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
func (m *Model) overlap(s, stages int, cut []int, each func(layer int, part float64)) {
	if cut != nil {
		for layer := from(cut, s, m.Layers()); layer < from(cut, s+1, m.Layers()); layer++ {
			each(layer, 1)
		}
		return
	}
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

// from is the first layer of a stage.
func from(cut []int, s, layers int) int {
	if s < len(cut) {
		return cut[s]
	}
	return layers
}

// extras adds to the costs of an order what is done beside its tasks as recorded.
func (m *Model) extras(c *Costs, shape Shape) {
	if shape.Recompute > 0 {
		for at, again := range c.task[schedule.Forward] {
			ns := int64(shape.Recompute * float64(again))
			c.task[schedule.Backward][at] += ns
			into := schedule.Input
			if c.task[schedule.Input][at] == 0 { // the first stage, where nobody needs it
				into = schedule.Weight
			}
			c.task[into][at] += ns
		}
	}
	if n := len(shape.Slices); n > 0 {
		c.hops = func(from, to int, activation bool) Hop {
			h := m.edge(from, to, activation)
			h.Occupied /= int64(n)
			return h
		}
	}
	if shape.Offload > 0 {
		c.Move = make(perStage, c.stages)
		for s := range c.stages {
			var recorded float64
			m.overlap(s, c.stages, shape.Cut, func(_ int, part float64) { recorded += part / float64(m.layers) })
			c.Move[s] = atMost(shape.Offload * recorded)
			if n := len(shape.Slices); n > 0 {
				c.Move[s] /= int64(n)
			}
		}
	}
}
