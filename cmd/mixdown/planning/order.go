package planning

import (
	"context"
	"fmt"
	"slices"

	"mixdown/analyze/pipeline"
	"mixdown/cmd/mixdown/cli"
	"mixdown/ingest/diagnostic"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

// parseSchedules reads the schedules asked for, before anything else is read.
func (o *Options) parseSchedules() ([]schedule.Spec, error) {
	var specs []schedule.Spec
	for _, text := range o.Schedules {
		spec, err := schedule.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("--schedule: %w", err)
		}
		if spec.IsTraced() {
			continue // the baseline is that
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// addOrders adds a variant for each schedule, alone and with each mix.
func (o *Options) addOrders(ctx context.Context, p *Plans, specs []schedule.Spec, mixes []mix.Mix, streams *cli.Streams) error {
	if len(specs) == 0 {
		return nil
	}
	pipelines, err := o.pipelines(ctx, p, streams)
	if err != nil {
		return err
	}
	for _, spec := range specs {
		name := spec.String()
		workload, predicted, held, diags, err := o.reorder(p, pipelines, spec)
		if diags != nil {
			p.Diagnostics.Merge(diags)
		}
		if err != nil {
			return fmt.Errorf("--schedule %s: %w", name, err)
		}
		all := append([]mix.Mix{{Text: mix.Traced}}, mixes...)
		var alone int64 // ns, the order without another mix, by the table
		for _, m := range all {
			title := name
			if !m.IsTraced() {
				title += " with " + m.Text
			}
			v, err := mix.Decide(workload, m, title, p.Stand)
			if err != nil {
				return err
			}
			v.Schedule = name
			p.Memory[title] = held
			var step int64
			known := false
			if len(mixes) > 0 { // else nothing is compared with it
				if step, known, err = o.step(p, v); err != nil {
					return err
				}
			}
			switch {
			case m.IsTraced():
				v.Mix = "*=" + p.Stand
				p.Predicted[title], alone = predicted, step
			case known && alone > 0: // the order's gain is the model's, the mix's the table's
				p.Predicted[title] = predicted * float64(alone) / float64(step)
			}
			p.Variants = append(p.Variants, v)
		}
	}
	return nil
}

// pipelines finds the pipelines of the job, at least one.
func (o *Options) pipelines(ctx context.Context, p *Plans, streams *cli.Streams) ([]*pipeline.Pipeline, error) {
	found, err := o.Input.Pipelines(ctx, p.Job, streams)
	if err != nil {
		return nil, err
	}
	p.Diagnostics.Merge(&found.Diagnostics)
	if len(found.Pipelines) == 0 {
		return nil, fmt.Errorf("%w: another order needs one, and none was recognised in these traces (\"mixdown analyze\" lists their diagnostics)", sim.ErrNoPipeline)
	}
	return found.Pipelines, nil
}

// reorder makes the workload of one schedule, and predicts its speedup and what it
// holds, both against the traced order.
func (o *Options) reorder(p *Plans, pipelines []*pipeline.Pipeline, spec schedule.Spec) (w *planpb.Workload, predicted, held float64, diags *diagnostic.Set, err error) {
	to := plan.Reordering{Pipelines: pipelines, EarlyReductions: o.EarlyReductions}
	for i, pipe := range pipelines {
		model, err := sim.Calibrate(pipe, stepsNamed(pipe, p.Workload.Step))
		if err != nil {
			return nil, 0, 0, nil, err
		}
		played, err := model.Predict(spec, sim.Shape{EarlyReductions: o.EarlyReductions, WeightShare: o.WeightShare}, sim.Options{})
		if err != nil {
			return nil, 0, 0, nil, err
		}
		to.Order = played.Order
		to.Spans = append(to.Spans, played.Run.Spans)
		if i == 0 {
			base, _, err := model.Baseline()
			if err != nil {
				return nil, 0, 0, nil, err
			}
			predicted = float64(base.Run.Step) / float64(played.Run.Step)
			held = slices.Max(played.Held) / slices.Max(base.Held)
		}
	}
	w, diags, err = plan.Reorder(p.Job.Run, p.Job.Match, plan.Options{Step: p.Workload.Step, Clocks: p.Job.Clocks}, to)
	return w, predicted, held, diags, err
}

// stepsNamed are the steps of a name; all where the trace marks none.
func stepsNamed(p *pipeline.Pipeline, name string) []int {
	var list []int
	for i := range p.Steps {
		if p.Steps[i].Name == name {
			list = append(list, i)
		}
	}
	return list
}
