package sim

import (
	"fmt"

	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
)

// Prediction is what a model says of one order.
type Prediction struct {
	Schedule string // as --schedule takes it
	Order    schedule.Order
	Run      *Run
	Options  Options // it was played with

	// PeakChunks is the most micro-batches times chunks whose activations each
	// place holds at once; Held the same in chunks of the recorded size, so that
	// orders that cut the stages differently can be compared.
	PeakChunks []int
	Held       []float64
	Messages   int // between places, all together
	// Copies is how many places hold each stage: 2 where micro-batches enter from
	// both ends, and then twice the weights are held.
	Copies int

	// Assumptions are what the trace did not tell, in words for people.
	Assumptions []string
}

// Predict plays a schedule for the model's job. What the spec leaves open
// (ranks, micro-batches, loops) is the recorded job's.
func (m *Model) Predict(spec schedule.Spec, shape Shape, opts Options) (*Prediction, error) {
	if spec.IsTraced() {
		return m.PredictOrder(spec.Name, m.order, shape, opts)
	}
	order, err := m.Fill(spec).Order()
	if err != nil {
		return nil, err
	}
	return m.PredictOrder(spec.String(), order, shape, opts)
}

// Fill is a spec with what it leaves open taken from the model's job. Schedules
// with several chunks a rank get as many as were recorded, and at least two.
func (m *Model) Fill(spec schedule.Spec) schedule.Spec {
	return spec.Fill(m.Places, m.Microbatches, max(m.Loops, 2))
}

// PredictOrder plays an order for the model's job.
func (m *Model) PredictOrder(name string, order schedule.Order, shape Shape, opts Options) (*Prediction, error) {
	if order.Ranks() != m.Places {
		return nil, fmt.Errorf("%w: %s is for %d ranks, the pipeline of the trace has %d", schedule.ErrSpec, name, order.Ranks(), m.Places)
	}
	run, err := Play(order, m.Costs(order, shape), opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &Prediction{
		Schedule: name, Order: order, Run: run, Options: opts, PeakChunks: order.PeakChunks(), Messages: messages(order, shape.Local), Copies: order.Copies(),
		Assumptions: m.assumptions(order, shape),
	}
	for _, peak := range p.PeakChunks {
		p.Held = append(p.Held, float64(peak)*float64(m.Stages)/float64(order.Stages()))
	}
	return p, nil
}

// messages is how many messages go from one place to another; where stages learn
// alone, they send no gradients.
func messages(order schedule.Order, local bool) int {
	type at struct {
		stage, mb int32
		forward   bool
	}
	place := map[at]int{}
	for p, row := range order {
		for _, a := range row {
			if a.Kind.Computes() && a.Kind != schedule.Weight {
				place[at{a.Stage, a.Microbatch, a.Kind == schedule.Forward}] = p
			}
		}
	}
	n := 0
	for k, p := range place {
		to := at{k.stage - 1, k.mb, false}
		if k.forward {
			to = at{k.stage + 1, k.mb, true}
		} else if local {
			continue
		}
		if q, ok := place[to]; ok && q != p {
			n++
		}
	}
	return n
}

// Baseline plays the recorded order, in the way of sending that comes closest to
// the recorded step.
func (m *Model) Baseline() (*Prediction, Fidelity, error) {
	best, opts := Fidelity{}, Options{}
	var first error
	for mode := range Sends(sends) {
		f, err := m.fidelity(Options{Sends: mode})
		switch {
		case err != nil && first == nil:
			first = err
		case err == nil && (best == Fidelity{} || f.off() < best.off()):
			best, opts = f, Options{Sends: mode}
		}
	}
	if (best == Fidelity{}) {
		return nil, best, first
	}
	p, err := m.PredictOrder(schedule.Traced, m.order, Shape{}, opts)
	return p, best, err
}

// Bubble is the share of places × makespan in which places run no task.
func (p *Prediction) Bubble() float64 { return p.idle(p.Run.Makespan()) }

// BubbleLongestSpan is the share of places × the longest span, from a place's
// first task to its last, in which places run no task.
func (p *Prediction) BubbleLongestSpan() float64 {
	var longest int64
	for _, moments := range p.Run.Moments {
		first, last := int64(never), int64(0)
		for _, m := range moments {
			if m.End > m.Start && (first == never || m.Start < first) {
				first = m.Start
			}
			last = max(last, m.End)
		}
		longest = max(longest, last-first)
	}
	return p.idle(longest)
}

func (p *Prediction) idle(span int64) float64 {
	var busy int64
	for place, row := range p.Order {
		for i, a := range row {
			if a.Kind.Computes() && !(i > 0 && row[i-1].Overlap) {
				busy += p.Run.Moments[place][i].End - p.Run.Moments[place][i].Start
			}
		}
	}
	if span <= 0 {
		return 0
	}
	return 1 - float64(busy)/float64(span)/float64(len(p.Order))
}

// assumptions lists what the model can't know of an order.
func (m *Model) assumptions(order schedule.Order, shape Shape) []string {
	var list []string
	switch {
	case m.Stages%order.Stages() == 0: // whole stages
	case m.layers == 1 || m.layers*m.Stages%order.Stages() != 0:
		list = append(list, fmt.Sprintf("%d stages made of the %d recorded ones, which are taken to be even within", order.Stages(), m.Stages))
	default:
		list = append(list, fmt.Sprintf("%d stages made of the %d recorded ones, between the %d layers that each was seen to have", order.Stages(), m.Stages, m.layers))
	}
	if order.Microbatches() != m.Microbatches*max(1, len(shape.Slices)) {
		list = append(list, fmt.Sprintf("%d micro-batches, %d recorded", order.Microbatches(), m.Microbatches))
	}
	if shape.Sharding != nil && !m.Reduces() {
		list = append(list, "the trace shows no data-parallel communication: gathers and reductions take no time")
	}
	if shape.Sharding != nil && m.Reduces() && *shape.Sharding != sharding.None {
		list = append(list, "a reduce-scatter and an all-gather take half of an all-reduce each")
	}
	splits := false
	for _, row := range order {
		for _, a := range row {
			splits = splits || a.Kind == schedule.Weight
		}
	}
	if splits && !m.SplitKnown {
		weight := shape.WeightShare
		if weight == 0 {
			weight = defaultWeightShare
		}
		list = append(list, fmt.Sprintf("%.0f %% of a backward makes the weights' gradient, all of the first stage's", 100*weight))
	}
	return list
}
