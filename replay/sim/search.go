package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
)

// SearchOptions bound a search. The zero value searches all schedules with the
// recorded micro-batches and up to four chunks a rank.
type SearchOptions struct {
	Schedules    []string // names of schedule.Known; nil means all that train
	Loops        []int    // chunks per rank; nil means 1, 2 and 4
	Microbatches []int    // per step, of the same batch; nil means the recorded number
	Sharding     []sharding.Variant

	// MaxHeld is how many times the recorded activations a place may hold at most;
	// 0 means any number.
	MaxHeld float64
	Shape   Shape
}

// Candidate is a point of a search.
type Candidate struct {
	*Prediction
	Sharding *sharding.Counts // nil: as recorded
	// Held is the most that a place holds, in multiples of the recorded most.
	Held float64
	// Pareto: no other candidate is both as fast and as small.
	Pareto bool
}

// Search predicts every schedule within the bounds, the fastest first. Schedules
// that don't fit the job (depth-first with micro-batches that don't divide, say)
// are left out.
func (m *Model) Search(opts SearchOptions) ([]Candidate, error) {
	variants := []*sharding.Variant{nil}
	if len(opts.Sharding) > 0 {
		variants = nil
		for i := range opts.Sharding {
			variants = append(variants, &opts.Sharding[i])
		}
	}
	var list []Candidate
	for _, spec := range m.specs(opts) {
		for _, v := range variants {
			c, err := m.Candidate(spec, v, opts.Shape)
			if errors.Is(err, schedule.ErrSpec) || errors.Is(err, sharding.ErrOptions) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if opts.MaxHeld > 0 && c.Held > opts.MaxHeld*(1+1e-9) {
				continue
			}
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Run.Step, b.Run.Step), cmp.Compare(a.Held, b.Held))
	})
	smallest := 0.0
	for i := range list {
		if i == 0 || list[i].Held < smallest {
			list[i].Pareto, smallest = true, list[i].Held
		}
	}
	return list, nil
}

// specs lists what a search tries.
func (m *Model) specs(opts SearchOptions) []schedule.Spec {
	names := opts.Schedules
	if names == nil {
		for _, d := range schedule.Known() {
			names = append(names, d.Name)
		}
	}
	loops, mbs := opts.Loops, opts.Microbatches
	if loops == nil {
		loops = []int{1, 2, 4}
	}
	if mbs == nil {
		mbs = []int{m.Microbatches}
	}
	var specs []schedule.Spec
	seen := map[string]bool{}
	for _, name := range names {
		for _, v := range loops {
			for _, mb := range mbs {
				for _, text := range []string{fmt.Sprintf("%s:loops=%d", name, v), name} {
					spec, err := schedule.Parse(text)
					if err != nil {
						continue
					}
					spec.Ranks, spec.Microbatches = m.Places, mb
					if spec.Loops == 0 {
						spec = spec.Fill(m.Places, mb, 0)
					}
					if _, err := spec.Order(); err != nil || seen[spec.String()] {
						continue
					}
					seen[spec.String()] = true
					specs = append(specs, spec)
					break
				}
			}
		}
	}
	return specs
}

// Candidate predicts one point: a schedule with its shape, and what of the stages
// is sharded, nil for what was recorded. The same batch in more micro-batches
// makes each task shorter.
func (m *Model) Candidate(spec schedule.Spec, v *sharding.Variant, shape Shape) (Candidate, error) {
	order, err := m.orderOf(spec)
	if err != nil {
		return Candidate{}, err
	}
	if !trains(order) {
		return Candidate{}, fmt.Errorf("%w: %s does not train", schedule.ErrSpec, spec.Name)
	}
	var counts *sharding.Counts
	if v != nil {
		sharded, n, err := sharding.Shard(order, *v, shape.Buffers)
		if err != nil {
			return Candidate{}, err
		}
		order, counts, shape.EarlyReductions, shape.Sharding = sharded, &n, true, v
	}
	scale := float64(m.Microbatches) / float64(order.Microbatches())
	shape.Scale = scale
	name := spec
	name.Ranks = 0
	if name.Microbatches == m.Microbatches {
		name.Microbatches = 0
	}
	p, err := m.PredictOrder(name.String(), order, shape, Options{Sends: m.Sends})
	if m.Sends != Running && errors.Is(err, ErrBlocked) {
		if p, err = m.PredictOrder(name.String(), order, shape, Options{}); err == nil {
			p.Assumptions = append(p.Assumptions, "sends that don't hold the sender, as "+name.String()+" needs")
		}
	}
	if err != nil {
		return Candidate{}, err
	}
	return Candidate{Prediction: p, Sharding: counts, Held: slices.Max(p.Held) * scale / float64(slices.Max(m.order.PeakChunks()))}, nil
}

// orderOf is the order of a spec, the recorded one if it asks for that.
func (m *Model) orderOf(spec schedule.Spec) (schedule.Order, error) {
	if spec.IsTraced() {
		return m.order, nil
	}
	return spec.Order()
}

// trains says whether an order has backwards.
func trains(order schedule.Order) bool {
	for _, row := range order {
		for _, a := range row {
			if a.Kind == schedule.Backward || a.Kind == schedule.Input {
				return true
			}
		}
	}
	return false
}
