package whatif

import (
	"errors"
	"fmt"
	"slices"

	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

// Order is an order of a pipeline of which questions are asked.
type Order struct {
	Model    *sim.Model
	Shape    sim.Shape
	Order    schedule.Order
	Name     string
	Options  sim.Options
	Ranks    []int // global ranks of the places
	Replicas int   // pipelines of the job that do the same
	// Activation is what a recorded stage keeps of one micro-batch, in bytes; 0 is not
	// known.
	Activation int64

	// Total is what each place holds in all, in bytes, nil where that is not known; it is
	// nil itself where nothing is said of the model.
	Total func(schedule.Order) ([]*int64, error)

	kept       float64               // what a chunk keeps, in multiples of what it kept
	layers     func(stage int) int64 // of each stage, where they are cut anew
	unknown    bool                  // what a chunk keeps is not known
	afterwards []func(*OrderAnswer) error
	lost       []int // places of ranks that are gone
	// later is how much longer messages and reductions take than what other what-ifs make
	// of them, ns; free are those that take nothing, whatever else is supposed.
	later   struct{ messages, reductions int64 }
	free    struct{ messages, reductions bool }
	bounded bounded
	notes   []string
}

// OrderAnswer is what was found of an order.
type OrderAnswer struct {
	*sim.Prediction
	Notes []string
	// Held is the activations of the fullest place, in chunks of the recorded size, nil
	// where that is not known.
	Held *float64
	// Fills is what fits into the bubbles of each place, where that was asked.
	Fills []Fill
}

// Order asks the question of an order.
func (q Question) Order(of Order) (*OrderAnswer, error) {
	o := of
	o.Model, o.kept, o.layers, o.unknown, o.notes, o.afterwards = of.Model.Clone(), 1, nil, false, nil, nil
	o.lost, o.bounded, o.later.messages, o.later.reductions, o.free.messages, o.free.reductions = nil, bounded{}, 0, 0, false, false
	ordered := slices.Clone(q.parts)
	slices.SortStableFunc(ordered, byStructure)
	for _, p := range ordered {
		c, ok := p.change.(orderChange)
		if !ok {
			return nil, fmt.Errorf("%w: %s changes what all ranks ran, not the order of a pipeline", ErrNotApplicable, p.kind.Name)
		}
		if err := c.order(&o); err != nil {
			return nil, fmt.Errorf("%s: %w", p.kind.Name, err)
		}
	}
	o.finish()
	p, err := o.Model.PredictOrder(o.Name, o.Order, o.Shape, o.Options)
	if errors.Is(err, sim.ErrBlocked) && o.Options.Sends == sim.Blocking {
		o.note("sends that don't hold the sender, as this needs")
		p, err = o.Model.PredictOrder(o.Name, o.Order, o.Shape, sim.Options{})
	}
	if err != nil {
		return nil, err
	}
	if o.bounded.hit {
		o.note(tooLong)
	}
	a := &OrderAnswer{Prediction: p, Notes: o.notes}
	if !o.unknown {
		held := o.kept * o.held(p)
		a.Held = &held
	}
	for _, do := range o.afterwards {
		if err := do(a); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// finish changes the model by what is added to what others scale, and by what is free.
func (o *Order) finish() {
	later := min(max(o.later.messages, -longest), longest)
	if later != 0 {
		o.Model.ChangeHops(func(_, _ int, _ bool, h sim.Hop) sim.Hop {
			h.Latency += later
			if h.Latency < 0 { // more than it had
				h.Occupied, h.Latency = max(h.Occupied+h.Latency, 0), 0
			}
			return h
		})
	}
	if before := o.Model.Reduction(); o.later.reductions != 0 && before > 0 {
		o.Model.ScaleReductions(max(before+float64(min(max(o.later.reductions, -longest), longest)), 0) / before)
	}
	if o.free.messages {
		o.Model.ChangeHops(func(int, int, bool, sim.Hop) sim.Hop { return sim.Hop{} })
	}
	if o.free.reductions {
		o.Model.ScaleReductions(0)
	}
}

func (o *Order) note(format string, args ...any) {
	o.notes = append(o.notes, fmt.Sprintf(format, args...))
}

// held is the activations of the fullest place, in chunks of the recorded size.
func (o *Order) held(p *sim.Prediction) float64 {
	switch chunk := float64(o.Model.Stages) / float64(p.Order.Stages()); {
	case p.Run.Kept != nil:
		return float64(slices.Max(p.Run.Kept)) * chunk
	case o.layers != nil:
		return float64(slices.Max(p.Order.PeakHeld(o.layers))) * float64(o.Model.Stages) / float64(o.Model.Layers())
	}
	return slices.Max(p.Held)
}
