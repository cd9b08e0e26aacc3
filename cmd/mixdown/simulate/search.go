package simulate

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
	"mixdown/replay/plan/planpb"
	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
	"mixdown/replay/sim"
)

// found is a candidate of a search, for one mix.
type found struct {
	sim.Candidate
	mix, rules string // as it was asked for, and what it stands for
}

// search predicts every schedule that fits, with every mix and sharding, within the
// limits of memory.
func (o *Options) search(r *Result, job *input.Job, p *pipeline.Pipeline, m *sim.Model, mixed *planning.Plans, shards []sharding.Variant, shape sim.Shape) error {
	limit, err := o.memoryLimit(r)
	if err != nil {
		return err
	}
	options := sim.SearchOptions{Loops: o.Loops, Microbatches: o.Microbatches, MaxHeld: o.MaxMemory, Shape: shape, Sharding: shards}
	var list []found
	add := func(candidates []sim.Candidate, mixText, rules string, notes ...string) {
		for _, c := range candidates {
			c.Assumptions = append(slices.Clone(c.Assumptions), notes...)
			list = append(list, found{c, mixText, rules})
		}
	}
	plain, err := m.Search(options)
	if err != nil {
		return err
	}
	add(plain, mix.Traced, mix.Traced)
	for i := range o.Plans.Mixes {
		model, note := withMix(m, p, job, mixed, mixed.Variants[i])
		candidates, err := model.Search(options)
		if err != nil {
			return err
		}
		traced, err := tracedOrder(model, shards, shape)
		if err != nil {
			return err
		}
		add(append(candidates, traced...), mixed.Variants[i].Name, mixed.Variants[i].Mix, note)
	}
	if limit > 0 {
		if list, err = r.within(list, limit); err != nil {
			return err
		}
	}
	return r.searched(rank(list), o.Top)
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

// rank sorts candidates, the fastest first, and marks those than which no other is
// as fast and as small.
func rank(list []found) []found {
	slices.SortStableFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.Run.Step, b.Run.Step), cmp.Compare(a.Held, b.Held))
	})
	smallest := 0.0
	for i := range list {
		list[i].Pareto = i == 0 || list[i].Held < smallest
		if list[i].Pareto {
			smallest = list[i].Held
		}
	}
	return list
}

// memoryLimit reads --memory-limit, in bytes, 0 where it was not given.
func (o *Options) memoryLimit(r *Result) (int64, error) {
	if o.MemoryLimit == "" {
		return 0, nil
	}
	limit, err := sizing.ParseBytes(o.MemoryLimit)
	if err != nil || limit < 1 {
		return 0, fmt.Errorf("%w: --memory-limit %q: expected a size such as 80GiB", cli.ErrUsage, o.MemoryLimit)
	}
	if r.size == nil || r.size.Parameters == nil || r.size.Activation == nil {
		return 0, fmt.Errorf("%w: --memory-limit: what a rank holds is not known: give --params and --activation-bytes", cli.ErrUsage)
	}
	return limit, nil
}

// within leaves out what holds more than the limit on any rank.
func (r *Result) within(list []found, limit int64) ([]found, error) {
	var kept []found
	for _, c := range list {
		ranks, err := r.holds(c.Candidate)
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

// withMix is the model with messages and reductions on the backends of a plan: what
// they took, times what the table says of the new backend over the old, in the mean
// of those of the step.
func withMix(m *sim.Model, p *pipeline.Pipeline, job *input.Job, plans *planning.Plans, v *planpb.Plan) (*sim.Model, string) {
	type origin struct {
		rank   int32
		offset int64
	}
	reductions := map[origin]bool{}
	for i := range p.Steps {
		for _, red := range p.Steps[i].Reductions {
			if red.DataParallel {
				rank := job.Run.Ranks[p.Index[red.Place]]
				reductions[origin{int32(rank.Rank), rank.Operations[red.Operation].Offset}] = true
			}
		}
	}
	costs := costsOf(plans, v.Workload)
	var was, is [2]float64 // messages, reductions
	for _, program := range v.Workload.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil {
				continue
			}
			if len(c.Transfers) == 0 {
				if reductions[origin{program.Rank, t.GetOrigin().GetOffset()}] {
					ns := t.GetOrigin().GetDur()
					was[1] += float64(ns)
					is[1] += float64(costs.Cost(sim.Meeting{Communication: c, Rank: program.Rank, Ranks: len(v.Workload.Groups[c.Group].Ranks), Traced: ns, Known: true}))
				}
				continue
			}
			for _, tr := range c.Transfers {
				if tr.Send {
					const ns = 1_000_000 // of each the same: the ratio counts
					was[0] += ns
					is[0] += float64(costs.Cost(sim.Meeting{Communication: c, Rank: program.Rank, Transfer: true, Count: tr.Count, Ranks: 2, Traced: ns, Known: true}))
				}
			}
		}
	}
	ratio := [2]float64{1, 1}
	for k := range ratio {
		if was[k] > 0 {
			ratio[k] = is[k] / was[k]
		}
	}
	changed := m.Clone()
	changed.ChangeHops(func(_, _ int, _ bool, h sim.Hop) sim.Hop {
		return sim.Hop{Occupied: int64(float64(h.Occupied) * ratio[0]), Latency: int64(float64(h.Latency) * ratio[0])}
	})
	changed.ScaleReductions(ratio[1])
	note := fmt.Sprintf("with %s messages take %.2f times as long and reductions %.2f times, by the table", v.Name, ratio[0], ratio[1])
	if costs.Unknown > 0 {
		note += fmt.Sprintf("; %d operations of the step keep their time, as the table has no cost of them", costs.Unknown)
	}
	if costs.Unscaled > 0 {
		note += fmt.Sprintf("; of %d the table has no cost on the traced backend", costs.Unscaled)
	}
	return changed, note
}
