package simulate

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"mixdown/analyze/report"
	"mixdown/replay/gantt"
	"mixdown/replay/memory"
)

// writeText writes the result for people.
func (r *Result) writeText(o *Options) error {
	p := report.NewPage(o.Wide)
	r.writeUnchanged(p)
	r.writeContention(p)
	if r.Baseline != nil {
		r.writeOrders(p, o)
	}
	if r.Workload != nil {
		r.writeMixes(p)
	}
	r.writeFills(p)
	r.writePrices(p)
	p.Diagnostics(r.Diags)
	if _, err := io.WriteString(o.Streams.Out, p.String()); err != nil {
		return err
	}
	if !o.Picture || r.Baseline == nil {
		return nil
	}
	if _, err := io.WriteString(o.Streams.Out, "\n"); err != nil {
		return err
	}
	return r.figure().Text(o.Streams.Out, gantt.TextOptions{Width: o.Width})
}

func (r *Result) writeOrders(p *report.Page, o *Options) {
	b := r.Baseline
	others := ""
	if r.Pipelines > 1 {
		others = fmt.Sprintf(" (1 of %d pipelines; --pipeline chooses another)", r.Pipelines)
	}
	p.Linef("Pipeline of ranks %s: %d stages, %d micro-batches, %s%s", report.Ranges(r.Ranks), r.Stages, r.Microbatches, b.Schedule, others)
	p.Linef("The traced order, played from the model of the trace, takes %s; in the trace it took %s (ratio %.3f).",
		report.Duration(b.Fidelity.SimulatedStep), report.Duration(b.Fidelity.TraceStep), b.Fidelity.Ratio)
	p.Headingf("Predicted, nothing was run (memory = activations held on the fullest rank, against the traced order)")
	front := slices.ContainsFunc(r.Variants, func(v Variant) bool { return v.Pareto != nil })
	columns := []report.Column{{Head: "schedule", Kind: report.Names}, {Head: "step"}, {Head: "speedup"}, {Head: "memory"}, {Head: "bubble"}, {Head: "messages"}}
	if front {
		columns = append(columns, report.Column{Head: "best of both"})
	}
	g := report.NewGrid(columns...)
	row := func(name string, order *Order, speedup float64, pareto *bool) {
		cells := []string{
			name, report.Duration(order.Step), fmt.Sprintf("%.3f", speedup), times(order.Memory),
			fmt.Sprintf("%.1f %%", 100*order.Bubble), fmt.Sprint(order.Messages),
		}
		if front {
			mark := ""
			if pareto != nil && *pareto {
				mark = "yes"
			}
			cells = append(cells, mark)
		}
		g.Row(cells...)
	}
	row("traced", b.Order, 1, nil)
	for _, v := range r.Variants {
		if v.Order != nil {
			row(v.Name, v.Order, v.Predicted, v.Pareto)
		}
	}
	p.Grid(g)
	if o.Search && r.Searched == 0 {
		p.Linef("The search found no order within the limits%s.", o.limits())
	}
	if r.Searched > 0 {
		p.Linef("The search found %d orders within the limits; \"best of both\": no other is as fast and as small.", r.Searched)
	}
	r.writeNotes(p)
	r.writeApply(p)
}

// limits names what keeps orders out of a search.
func (o *Options) limits() string {
	var flags []string
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"--max-memory", o.Orders.MaxMemory > 0}, {"--memory-limit", o.Orders.MemoryLimit != ""},
		{"--loops", o.Orders.Loops != nil}, {"--microbatches", o.Orders.Microbatches != nil},
	} {
		if f.given {
			flags = append(flags, f.name)
		}
	}
	if len(flags) == 0 {
		return ""
	}
	return ": loosen " + strings.Join(flags, " or ")
}

// times writes a multiple, "-" where it is not known.
func times(n *float64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf("%.2fx", *n)
}

// writeNotes says what each prediction rests on.
func (r *Result) writeNotes(p *report.Page) {
	var said []string
	if r.size.Model != nil {
		r.writeMemory(p)
	}
	for _, v := range r.Variants {
		if v.Order == nil {
			continue
		}
		if v.Sharding != nil {
			p.Linef("%s: sharding %s gathers weights %d times and reduces gradients %d times on the busiest rank", v.Name, v.Sharding.Variant,
				slices.Max(v.Sharding.Gathers), slices.Max(v.Sharding.Reductions))
		}
		if v.Copies > 1 {
			p.Linef("%s: every stage is on %d ranks, so its weights, gradients and optimizer state are held %d times", v.Name, v.Copies, v.Copies)
		}
		if v.WithinError {
			p.Linef("%s: the predicted effect is smaller than the error of the simulation (%+.1f %%)", v.Name, 100*(r.Baseline.Fidelity.Ratio-1))
		}
		for _, a := range v.Assumptions {
			if v.WhatIfs != nil {
				p.Linef("%s: %s", v.Name, a)
				continue
			}
			if !slices.Contains(said, a) {
				said = append(said, a)
			}
		}
	}
	if len(said) > 0 {
		p.Headingf("Assumed, because the trace does not tell")
		for _, a := range said {
			p.Linef("  %s", strings.TrimSpace(a))
		}
	}
}

// writeApply says how to get the fastest order as a file for PyTorch.
func (r *Result) writeApply(p *report.Page) {
	best := -1
	for i, v := range r.Variants {
		if v.Apply != "" && v.Predicted > 1 && !v.WithinError && (best < 0 || v.Predicted > r.Variants[best].Predicted) {
			best = i
		}
	}
	if best >= 0 {
		p.Headingf("To run %s under torch.distributed.pipelining, write it as a file (see \"mixdown help schedules\"):", r.Variants[best].Name)
		p.Linef("  %s > order.csv", r.Variants[best].Apply)
	}
}

// writeMemory shows the rank of each order that holds most.
func (r *Result) writeMemory(p *report.Page) {
	p.Headingf("What the fullest rank holds (--format json has all)")
	g := report.NewGrid(report.Column{Head: "schedule", Kind: report.Names}, report.Column{Head: "rank"}, report.Column{Head: "chunks"}, report.Column{Head: "activations"},
		report.Column{Head: "weights"}, report.Column{Head: "gradients"}, report.Column{Head: "optimizer"}, report.Column{Head: "buffers"}, report.Column{Head: "total"})
	bytes := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return memory.Bytes(*n)
	}
	row := func(name string, ranks []memory.Rank) {
		most := ranks[0]
		for _, rank := range ranks {
			if rank.Total != nil && most.Total != nil && *rank.Total > *most.Total || most.Total == nil && rank.Chunks > most.Chunks {
				most = rank
			}
		}
		g.Row(name, fmt.Sprint(r.Ranks[most.Rank]), fmt.Sprint(most.Chunks), bytes(most.Activations), bytes(most.Weights), bytes(most.Gradients),
			bytes(most.Optimizer), bytes(most.Buffers), bytes(most.Total))
	}
	row("traced", r.Baseline.Ranks)
	for _, v := range r.Variants {
		if v.Order != nil && v.Ranks != nil { // what-ifs say what they change of it in words
			row(v.Name, v.Ranks)
		}
	}
	p.Grid(g)
}
