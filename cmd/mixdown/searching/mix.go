package searching

import (
	"fmt"

	"mixdown/analyze/pipeline"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/planning"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

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
	costs := plans.CostsOf(v.Workload, v.Workload)
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
