package searching

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mixdown/analyze/pipeline"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/planning"
	"mixdown/cmd/mixdown/sizing"
	"mixdown/replay/mix"
	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
	"mixdown/replay/sim"
)

// Space is what is searched.
type Space struct {
	Job      *input.Job
	Pipeline *pipeline.Pipeline
	Model    *sim.Model
	// Plans are those of Mixes mixes, first of their variants; nil without mixes.
	Plans     *planning.Plans
	Mixes     int
	Shardings []sharding.Variant // none: as the trace has it
	Shape     sim.Shape
	Holding   sizing.Holding
}

// Found is a candidate of a search, with one mix.
type Found struct {
	sim.Candidate
	Mix, Rules string // as it was asked for, and what it stands for
}

// Name is the schedule's, with the mix where it is another than the traced one.
func (f *Found) Name() string {
	if f.Mix == mix.Traced {
		return f.Schedule
	}
	return f.Schedule + " with " + f.Mix
}

// Search predicts every schedule that fits, with every mix and sharding, within the
// limits of memory: those than which no other is as fast and as small first, then the
// fastest.
func (o *Options) Search(s Space) ([]Found, error) {
	limit, err := o.limit(s.Holding.Model)
	if err != nil {
		return nil, err
	}
	options := sim.SearchOptions{Loops: o.Loops, Microbatches: o.Microbatches, MaxHeld: o.MaxMemory, Shape: s.Shape, Sharding: s.Shardings}
	var list []Found
	add := func(candidates []sim.Candidate, mixText, rules string, notes ...string) {
		for _, c := range candidates {
			c.Assumptions = append(slices.Clone(c.Assumptions), notes...)
			list = append(list, Found{c, mixText, rules})
		}
	}
	plain, err := s.Model.Search(options)
	if err != nil {
		return nil, err
	}
	add(plain, mix.Traced, mix.Traced)
	for i := range s.Mixes {
		v := s.Plans.Variants[i]
		model, note := withMix(s.Model, s.Pipeline, s.Job, s.Plans, v)
		candidates, err := model.Search(options)
		if err != nil {
			return nil, err
		}
		traced, err := tracedOrder(model, s.Shardings, s.Shape)
		if err != nil {
			return nil, err
		}
		add(append(candidates, traced...), v.Name, v.Mix, note)
	}
	if limit > 0 {
		if list, err = within(list, s.Holding, limit); err != nil {
			return nil, err
		}
	}
	return rank(list), nil
}

// tracedOrder is the recorded order as candidates: with another mix it is one too.
func tracedOrder(m *sim.Model, shards []sharding.Variant, shape sim.Shape) ([]sim.Candidate, error) {
	spec, err := schedule.Parse(schedule.Traced)
	if err != nil {
		return nil, err
	}
	variants := []*sharding.Variant{nil}
	for i := range shards {
		variants = append(variants, &shards[i])
	}
	var list []sim.Candidate
	for _, v := range variants[min(1, len(shards)):] {
		c, err := m.Candidate(spec, v, shape)
		if errors.Is(err, sharding.ErrOptions) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// rank marks those candidates than which no other is as fast and as small, and sorts:
// they come first, and the fastest before others.
func rank(list []Found) []Found {
	slices.SortStableFunc(list, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Run.Step, b.Run.Step), cmp.Compare(a.Held, b.Held))
	})
	smallest := 0.0
	for i := range list {
		list[i].Pareto = i == 0 || list[i].Held < smallest
		if list[i].Pareto {
			smallest = list[i].Held
		}
	}
	slices.SortStableFunc(list, func(a, b Found) int {
		switch {
		case a.Pareto == b.Pareto:
			return 0
		case a.Pareto:
			return -1
		}
		return 1
	})
	return list
}

// within leaves out what holds more than the limit on any rank.
func within(list []Found, holding sizing.Holding, limit int64) ([]Found, error) {
	var kept []Found
	for _, c := range list {
		ranks, err := holding.OfCandidate(c.Candidate)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Schedule, err)
		}
		fits := true
		for _, rank := range ranks {
			if rank.Total == nil {
				return nil, fmt.Errorf("%w: --memory-limit: what %s holds is not known: give --params, --activation-bytes, and with --sharding --data-parallel", cli.ErrUsage, c.Schedule)
			}
			fits = fits && *rank.Total <= limit
		}
		if fits {
			kept = append(kept, c)
		}
	}
	return kept, nil
}
