package simulate

import (
	"fmt"

	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/planning"
	"mixdown/replay/auto"
	"mixdown/replay/fold"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
	"mixdown/replay/whatif"
)

// Workload is the traced step with its own backend, played.
type Workload struct {
	Step     string   `json:"step"`
	Backend  string   `json:"backend"` // of the trace, or what stands in for it in the table
	Fidelity Fidelity `json:"fidelity"`
	Folded   *Folded  `json:"folded"` // null: all ranks were played
}

// Folded says which ranks were played, where not all were.
type Folded struct {
	From    int     `json:"ranks"` // of the job
	Kept    []int32 `json:"kept"`
	Classes []Class `json:"classes"`
}

// Class is a set of ranks that do the same.
type Class struct {
	Ranks  int     `json:"ranks"`
	Kept   []int32 `json:"kept"`
	Spread float64 `json:"work_spread"` // of its ranks' work, as a share of the most: what folding leaves out
}

// folded is the workload of a plan with at most so many ranks, all if 0.
func folded(w *planpb.Workload, ranks int) (*fold.Folded, error) {
	if ranks == 0 {
		ranks = len(w.Programs)
	}
	f, err := fold.Fold(w, ranks)
	if err != nil {
		return nil, fmt.Errorf("--ranks: %w", err)
	}
	return f, nil
}

func describeFold(f *fold.Folded) *Folded {
	out := &Folded{From: f.From, Kept: f.Kept(), Classes: []Class{}}
	for _, c := range f.Classes {
		out.Classes = append(out.Classes, Class{Ranks: c.Ranks, Kept: c.Kept, Spread: c.Spread})
	}
	return out
}

// refitted is a cost that knows what fused operations take, which are not in the
// trace, for the plan of a variant.
func (r *Result) refitted(p *planning.Plans, v *planpb.Plan, cost sim.CommunicationCost) (sim.CommunicationCost, []string, error) {
	if !p.Fused[v.Name] {
		return cost, nil, nil
	}
	made, notes, err := whatif.Refit(p.Workload, v.Workload, sim.TracedCosts(p.Workload))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", v.Name, err)
	}
	return func(m sim.Meeting) int64 {
		if ns, ok := made(m); ok {
			m.Traced, m.Known = ns, true
		}
		return cost(m)
	}, notes, nil
}

// holdHosts lets operations hold up hosts where the trace's backend queues them on
// streams and the one that they get does not.
func holdHosts(p *planning.Plans, w *planpb.Workload) int {
	known := mix.Known()
	ordered := func(backend string) bool {
		c, ok := known.Find(backend)
		return !ok || c.StreamOrdered
	}
	if c, ok := known.Find(p.Stand); !ok || !c.StreamOrdered {
		return 0
	}
	return sim.HoldHosts(w, ordered)
}

// mixes predicts the plans of all mixes, with at most so many ranks played, 0 for
// all.
func (r *Result) mixes(p *planning.Plans, ranks int) error {
	for _, v := range p.Variants {
		if p.Fused[v.Name] && ranks > 0 {
			return fmt.Errorf("%w: --fuse needs all ranks: leave out --ranks", cli.ErrUsage)
		}
	}
	costs := p.CostsOf(p.Workload, p.Workload)
	small, err := folded(p.Baseline.Workload, ranks)
	if err != nil {
		return err
	}
	base, err := small.Play(costs.Cost)
	if err != nil {
		return err
	}
	r.Workload = &Workload{Step: p.Workload.Step, Backend: p.Stand, Fidelity: Fidelity{TraceStep: p.Workload.TraceStepNs, SimulatedStep: base.Step}}
	if ranks > 0 {
		r.Workload.Folded = describeFold(small)
	}
	f := &r.Workload.Fidelity
	if f.TraceStep > 0 {
		f.Ratio = float64(f.SimulatedStep) / float64(f.TraceStep)
	}
	for _, v := range p.Variants {
		costs.Unknown, costs.Unscaled, costs.Found = 0, 0, 0
		held := holdHosts(p, v.Workload)
		cost, notes, err := r.refitted(p, v, costs.Cost)
		if err != nil {
			return err
		}
		small, err := fold.Keep(v.Workload, small.Kept())
		if err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		run, err := small.Play(cost)
		if err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		if costs.Unknown > 0 && costs.Found == 0 {
			return fmt.Errorf("--mix %s: %w: none of an operation that the mix moves, on its new backend: measure them first (\"mixdown tune\" with its traces)", v.Name, auto.ErrNoCosts)
		}
		unknown, unscaled := costs.Unknown, costs.Unscaled
		out := Variant{Name: v.Name, Schedule: "traced", Mix: v.Mix, MixStep: &run.Step, Predicted: float64(base.Step) / float64(run.Step), Assumptions: append([]string{}, notes...)}
		if out.Range, err = r.Unchanged.over(p, v, func(w *planpb.Workload) (int64, error) {
			run, err := sim.PlayWorkload(w, p.CostsOf(w, w).Cost)
			if err != nil {
				return 0, err
			}
			return run.Step, nil
		}); err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		if out.Slowed, err = p.Contention.Between(v.Workload, func() (float64, error) {
			run, err := small.Play(cost)
			if err != nil {
				return 0, err
			}
			return float64(base.Step) / float64(run.Step), nil
		}); err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		r.judge(&out)
		if unknown > 0 {
			out.Assumptions = append(out.Assumptions, fmt.Sprintf("%d operations take as long as in the trace: the table has no cost of them on the new backend", unknown))
		}
		if held > 0 {
			out.Assumptions = append(out.Assumptions, fmt.Sprintf("%d operations hold up the host until they have ended, as their backend does not queue them on streams", held))
		}
		out.Assumptions = append(out.Assumptions, p.Contention.Assumed(v)...)
		out.Assumptions = append(out.Assumptions, unsettled(run)...)
		if unscaled > 0 {
			out.Assumptions = append(out.Assumptions, fmt.Sprintf("%d operations take what the table says, without regard to the trace: it has no cost of them on %s", unscaled, p.Stand))
		}
		if v.Name == mix.Auto && p.Chosen != nil {
			for _, reason := range p.Chosen.Reasons {
				out.Reasons = append(out.Reasons, reason.Rule+": "+reason.Text)
			}
		}
		r.Variants = append(r.Variants, out)
	}
	return nil
}

func ints(list []int32) []int {
	var out []int
	for _, n := range list {
		out = append(out, int(n))
	}
	return out
}

func (r *Result) writeMixes(p *report.Page) {
	w := r.Workload
	if r.Baseline != nil {
		p.Headingf("All ranks, as they ran")
	}
	p.Linef("The traced step, played with what its operations took, lasts %s; in the trace %s (ratio %.3f).",
		report.Duration(w.Fidelity.SimulatedStep), report.Duration(w.Fidelity.TraceStep), w.Fidelity.Ratio)
	if f := w.Folded; f != nil {
		p.Linef("Folded %d -> %d ranks: of ranks that do the same those with most work are played (%s), in groups of full size; the others come as late as in the trace.", f.From, len(f.Kept), report.Ranges(ints(f.Kept)))
		for _, c := range f.Classes {
			p.Linef("  %d ranks do the same: %d played; their work differs by %.1f %%", c.Ranks, len(c.Kept), 100*c.Spread)
		}
	}
	p.Headingf("Predicted, nothing was run")
	g := report.NewGrid(report.Column{Head: "variant", Kind: report.Names}, report.Column{Head: "step"}, report.Column{Head: "speedup"}, report.Column{Head: "over steps"})
	g.Row("traced = *="+w.Backend, report.Duration(w.Fidelity.SimulatedStep), "1", "")
	for _, v := range r.Variants {
		if v.MixStep != nil {
			g.Row(v.Name, report.Duration(*v.MixStep), fmt.Sprintf("%.3f", v.Predicted), v.over())
		}
	}
	p.Grid(g)
	for _, v := range r.Variants {
		if v.MixStep == nil {
			continue
		}
		if len(v.Reasons) > 0 {
			p.Headingf("%s is %s", v.Name, v.Mix)
			for _, reason := range v.Reasons {
				p.Linef("  %s", reason)
			}
		}
		if v.WithinError {
			p.Linef("%s: %s", v.Name, v.within(w.Fidelity.Ratio))
		}
		if s := v.Slowed; s != nil && s[1]-s[0] >= shownSlowed {
			p.Linef("%s: a speedup of %.3f to %.3f over the interval of how much communication slows kernels", v.Name, s[0], s[1])
		}
		for _, a := range v.Assumptions {
			p.Linef("%s: %s", v.Name, a)
		}
	}
}

// shownSlowed is the least difference of a speedup that is shown in text.
const shownSlowed = 0.001

// over is the speedups that were predicted of the steps.
func (v *Variant) over() string {
	if v.Range == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f to %.3f", v.Range[0], v.Range[1])
}

// within says in which way an effect is within the error of its prediction.
func (v *Variant) within(ratio float64) string {
	if v.Range != nil && v.Range[0] < 1 && v.Range[1] > 1 {
		return fmt.Sprintf("faster in some steps, slower in others (%s)", v.over())
	}
	if v.Slowed != nil && v.Slowed[0] < 1 && v.Slowed[1] > 1 {
		return "faster or slower, by how much communication slows kernels"
	}
	return fmt.Sprintf("the predicted effect is smaller than the error of the simulation (%+.1f %%)", 100*(ratio-1))
}
