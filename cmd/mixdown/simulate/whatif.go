package simulate

import (
	"fmt"
	"slices"

	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/planning"
	"mixdown/replay/memory"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
	"mixdown/replay/whatif"
)

// WhatIf is one supposition of a variant, with its price.
type WhatIf struct {
	Name       string `json:"name"`
	Formula    string `json:"formula"`
	Source     string `json:"source"`
	Cost       string `json:"cost"` // in memory or accuracy
	NotModeled string `json:"not_modeled"`
}

// questions reads the what-ifs: those of all ranks' programs, and those of a
// pipeline's order.
func (o *Options) questions() (steps, orders []whatif.Question, err error) {
	for _, text := range o.WhatIfs {
		q, err := whatif.Parse(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--what-if: %w", err)
		}
		ordered, mixed := len(o.Plans.Schedules) > 0, len(o.Plans.Mixes) > 0
		if ordered && !mixed && !q.OfOrder() {
			return nil, nil, fmt.Errorf("%w: --what-if %s changes what all ranks ran, not the order of a pipeline: ask it without --schedule", cli.ErrUsage, q.Text)
		}
		if q.OfOrder() && (ordered || !q.OfStep()) {
			orders = append(orders, q)
		}
		if q.OfStep() && (mixed || !ordered) {
			steps = append(steps, q)
		}
	}
	return steps, orders, nil
}

func pricesOf(q whatif.Question) []WhatIf {
	var list []WhatIf
	for _, k := range q.Kinds() {
		list = append(list, WhatIf{Name: k.Name, Formula: k.Formula, Source: k.Source, Cost: k.Cost, NotModeled: k.NotModeled})
	}
	return list
}

// supposeSteps asks what-ifs of the traced step, and of it with each mix.
func (r *Result) supposeSteps(p *planning.Plans, list []whatif.Question, ranks int) error {
	for _, v := range append([]*planpb.Plan{p.Baseline}, p.Variants...) {
		small, err := folded(v.Workload, ranks)
		if err != nil {
			return err
		}
		if p.Fused[v.Name] {
			continue // supposing begins with operations of the trace
		}
		for _, q := range list {
			if ranks > 0 && slices.ContainsFunc(q.Kinds(), func(k whatif.Kind) bool { return k.AllRanks }) {
				return fmt.Errorf("%w: --what-if %s needs all ranks: leave out --ranks", cli.ErrUsage, q.Text)
			}
			of := whatif.Step{
				Workload: small.Workload, Machines: plan.NewMachines(v.Workload, p.Nodes), Sizes: small.Size, Late: small.Late,
				Costs:      func(w *planpb.Workload) sim.CommunicationCost { return small.Cost(p.CostsOf(w, v.Workload).Cost) },
				FixedWaits: sim.FixedWaits(v.Workload), Fixed: fixedBy(p, v.Workload), Ratio: ratioBy(p, v.Workload),
			}
			a, err := q.Step(of)
			if err != nil {
				return fmt.Errorf("--what-if %s: %w", q.Text, err)
			}
			out := Variant{
				Name: q.Text, Schedule: schedule.Traced, Mix: v.Mix, MixStep: &a.Run.Step, WhatIfs: pricesOf(q),
				Predicted:   float64(r.Workload.Fidelity.SimulatedStep) / float64(a.Run.Step),
				Assumptions: append([]string{}, slices.Concat(a.Notes, p.Contention.Assumed(v), unsettled(a.Run))...),
			}
			if v != p.Baseline {
				out.Name = v.Name + ", " + q.Text
			}
			if out.Range, err = r.Unchanged.over(p, v, func(whole *planpb.Workload) (int64, error) {
				of := whatif.Step{ // all ranks of another step
					Workload: whole, Machines: plan.NewMachines(whole, p.Nodes), Fixed: fixedBy(p, whole), Ratio: ratioBy(p, whole),
					Costs: func(w *planpb.Workload) sim.CommunicationCost { return p.CostsOf(w, whole).Cost },
				}
				a, err := q.Step(of)
				if err != nil {
					return 0, err
				}
				return a.Run.Step, nil
			}); err != nil {
				return fmt.Errorf("--what-if %s: %w", q.Text, err)
			}
			if out.Slowed, err = p.Contention.Between(v.Workload, func() (float64, error) {
				a, err := q.Step(of)
				if err != nil {
					return 0, err
				}
				return float64(r.Workload.Fidelity.SimulatedStep) / float64(a.Run.Step), nil
			}); err != nil {
				return fmt.Errorf("--what-if %s: %w", q.Text, err)
			}
			r.judge(&out)
			r.Variants = append(r.Variants, out)
		}
	}
	return nil
}

// small is a size, in bytes, whose time is taken not to depend on it where the table
// has no smaller one.
const small = 4 << 10

// fixedBy is the part of an operation's time that the table says does not depend on
// its size: what is left at none, on the line through the smallest size that was
// measured and the operation's. A table that has the operation's size alone says
// nothing of it, but for small ones.
func fixedBy(p *planning.Plans, w *planpb.Workload) func(sim.Meeting) (float64, bool) {
	sizes, on := mix.SizeOf(w), plan.NewMachines(w, p.Nodes)
	return func(m sim.Meeting) (float64, bool) {
		backend := m.Communication.Backend
		if backend == "" {
			backend = p.Stand
		}
		bytes := m.Count * plan.DType(m.Communication).Size()
		if !m.Transfer {
			bytes = sizes(m.Rank, m.Communication)
		}
		machines := on.Of(m.Rank, m.Communication)
		all, ok := p.TableEstimate(m, backend, bytes, machines)
		least, ok2 := p.TableEstimate(m, backend, min(bytes, 1), machines)
		if !ok || !ok2 || all.Time <= 0 {
			return 0, false
		}
		from := float64(least.Smallest)
		switch {
		case float64(bytes) >= 2*from:
			rise := float64(all.Time-least.Time) / max(float64(bytes)-from, 1)
			return (float64(least.Time) - rise*from) / float64(all.Time), true
		case bytes <= small:
			return 1, true
		}
		return 0, false
	}
}

// ratioBy is what the table says of an operation in a group of so many times the ranks,
// on as many times the machines.
func ratioBy(p *planning.Plans, w *planpb.Workload) func(m sim.Meeting, ranks, times int) (float64, bool) {
	sizes, on := mix.SizeOf(w), plan.NewMachines(w, p.Nodes)
	return func(m sim.Meeting, ranks, times int) (float64, bool) {
		backend := m.Communication.Backend
		if backend == "" {
			backend = p.Stand
		}
		bytes := sizes(m.Rank, m.Communication)
		machines := on.Of(m.Rank, m.Communication)
		m.Ranks = ranks
		before, ok := p.TableCost(m, backend, bytes, machines)
		m.Ranks = ranks * times
		after, ok2 := p.TableCost(m, backend, bytes, machines*times)
		if !ok || !ok2 || before <= 0 {
			return 0, false
		}
		return float64(after) / float64(before), true
	}
}

// supposing is a pipeline of which what-ifs are asked.
type supposing struct {
	model    *sim.Model
	shape    sim.Shape
	replicas int
}

// supposeOrder asks what-ifs of one order.
func (r *Result) supposeOrder(s supposing, name string, order schedule.Order, opts sim.Options, list []whatif.Question) error {
	for _, q := range list {
		of := whatif.Order{
			Model: s.model, Shape: s.shape, Order: order, Name: name, Options: opts, Ranks: r.Ranks, Replicas: s.replicas,
		}
		if r.size.Model != nil {
			if r.size.Activation != nil {
				of.Activation = *r.size.Activation
			}
			of.Total = func(o schedule.Order) ([]*int64, error) {
				ranks, err := r.size.Of(o, o.Stages())
				return totals(ranks), err
			}
		}
		a, err := q.Order(of)
		if err != nil {
			return fmt.Errorf("--what-if %s: %w", q.Text, err)
		}
		v := Variant{
			Order: r.describe(a.Prediction, 0), Name: q.Text, Schedule: name, Mix: mix.Traced, WhatIfs: pricesOf(q), Fills: a.Fills,
			Predicted: float64(r.base.Run.Step) / float64(a.Run.Step), Assumptions: append(append([]string{}, a.Assumptions...), a.Notes...),
		}
		if name != schedule.Traced {
			v.Name = name + ", " + q.Text
		}
		v.Memory = nil
		if a.Held != nil {
			held := *a.Held / slices.Max(r.base.Held)
			if s.shape.Scale > 0 { // micro-batches of another size
				held *= s.shape.Scale
			}
			v.Memory = &held
		}
		off, effect := r.Baseline.Fidelity.Ratio-1, v.Predicted-1
		v.WithinError = effect*effect < off*off
		r.Variants = append(r.Variants, v)
		r.list = append(r.list, a.Prediction)
	}
	return nil
}

func totals(ranks []memory.Rank) []*int64 {
	var list []*int64
	for _, rank := range ranks {
		list = append(list, rank.Total)
	}
	return list
}

// writePrices says what each what-if costs and what is not modelled.
func (r *Result) writePrices(p *report.Page) {
	seen := map[string]bool{}
	for _, v := range r.Variants {
		for _, w := range v.WhatIfs {
			if seen[w.Name] {
				continue
			}
			seen[w.Name] = true
			if len(seen) == 1 {
				p.Headingf("What the what-ifs cost and leave out (mixdown help what-ifs: formulas and sources)")
			}
			p.Linef("  %s costs %s; not modelled: %s", w.Name, w.Cost, w.NotModeled)
		}
	}
}

// writeFills shows what fits into bubbles.
func (r *Result) writeFills(p *report.Page) {
	for _, v := range r.Variants {
		if v.Fills == nil {
			continue
		}
		p.Headingf("%s: what fits into the bubbles of one step", v.Name)
		g := report.NewGrid(report.Column{Head: "rank"}, report.Column{Head: "idle"}, report.Column{Head: "gaps"}, report.Column{Head: "longest"},
			report.Column{Head: "pieces"}, report.Column{Head: "used"}, report.Column{Head: "free memory"})
		for _, f := range v.Fills {
			pieces, free := "-", "-"
			if f.Fits != nil {
				pieces = fmt.Sprint(*f.Fits)
			}
			if f.Free != nil {
				free = memory.Bytes(*f.Free)
			}
			g.Row(fmt.Sprint(f.Rank), report.Duration(f.Idle), fmt.Sprint(f.Gaps), report.Duration(f.Longest), pieces, report.Duration(f.Used), free)
		}
		p.Grid(g)
	}
}
