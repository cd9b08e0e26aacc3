package page

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"mixdown/analyze/html"
	"mixdown/analyze/pipeline"
	"mixdown/replay/gantt"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

// tried are the orders that a page predicts beside the traced one: the one that
// mixdown simulate tries first, and what a bubble costs least memory in.
var tried = [...]string{"breadth-first:loops=2", "zb-h1"}

// addOrders draws the first pipeline of a run as traced, and predicts others.
func addOrders(p *html.Page, pipes []*pipeline.Pipeline) error {
	if len(pipes) == 0 {
		return nil
	}
	pipe := pipes[0]
	figure := gantt.Figure{Title: "Who does what when", Unit: "ms"}
	step := drawable(pipe)
	if step == nil {
		return nil
	}
	figure.Charts = append(figure.Charts, gantt.FromStep("as traced in "+cmp.Or(step.Name, "the whole trace"), pipe, step))
	if !step.Comparable {
		p.Note("The clocks of the ranks don’t compare: rows of the traced order may be shifted against each other.")
	}
	charts, prediction, err := predict(pipe)
	switch {
	case errors.Is(err, sim.ErrNoStep):
		p.Note("No other order was predicted: " + err.Error() + ".")
	case err != nil:
		return fmt.Errorf("predict orders: %w", err)
	default:
		figure.Charts = append(figure.Charts, charts...)
		p.Predictions = append(p.Predictions, prediction)
	}
	if len(pipes) > 1 {
		p.Note(fmt.Sprintf("Drawn is the first of %d pipelines.", len(pipes)))
	}
	var b bytes.Buffer
	if err := figure.SVG(&b); err != nil {
		p.Note("The orders can’t be drawn: " + err.Error() + ".")
		return nil
	}
	picture, err := html.NewPicture(figure.Title, b.Bytes())
	if errors.Is(err, html.ErrPicture) { // too large, for one
		p.Note("The orders are not drawn here: " + err.Error() + "; mixdown simulate --svg draws them.")
		return nil
	}
	p.Orders = append(p.Orders, picture)
	return err
}

// drawable is the step in the middle of those that have tasks on all ranks.
func drawable(p *pipeline.Pipeline) *pipeline.Step {
	var list []*pipeline.Step
next:
	for i := range p.Steps {
		for _, tasks := range p.Steps[i].Tasks {
			if len(tasks) == 0 {
				continue next
			}
		}
		list = append(list, &p.Steps[i])
	}
	if len(list) == 0 {
		return nil
	}
	return list[len(list)/2]
}

// predict plays the traced order and those tried.
func predict(pipe *pipeline.Pipeline) ([]gantt.Chart, *html.Prediction, error) {
	m, err := sim.Calibrate(pipe, nil)
	if err != nil {
		return nil, nil, err
	}
	base, fidelity, err := m.Baseline()
	if err != nil {
		return nil, nil, err
	}
	traced := orderOf(base, 1)
	out := &html.Prediction{Ranks: pipe.Ranks, Microbatches: m.Microbatches, Stages: m.Stages, Baseline: &traced}
	out.Baseline.Name, out.Baseline.Assumptions = "traced order", nil
	out.Baseline.Fidelity = &html.OrderFidelity{TraceStep: fidelity.Measured, SimulatedStep: fidelity.Simulated, Ratio: fidelity.Ratio}
	charts := []gantt.Chart{gantt.FromRun("the same, simulated", base.Run, pipe.Ranks)}
	for _, text := range tried {
		spec, err := schedule.Parse(text)
		if err != nil {
			return nil, nil, err
		}
		c, err := m.Candidate(m.Fill(spec), nil, sim.Shape{})
		if errors.Is(err, schedule.ErrSpec) || errors.Is(err, sim.ErrBlocked) {
			continue // it does not fit this job
		}
		if err != nil {
			return nil, nil, err
		}
		o := orderOf(c.Prediction, c.Held)
		o.Name, o.Schedule = text, text
		o.Predicted = float64(base.Run.Step) / float64(c.Run.Step)
		effect, off := o.Predicted-1, fidelity.Ratio-1
		o.WithinError = effect*effect < off*off
		out.Variants = append(out.Variants, o)
		charts = append(charts, gantt.FromRun(fmt.Sprintf("%s: predicted %.2fx", text, o.Predicted), c.Run, pipe.Ranks))
	}
	return charts, out, nil
}

func orderOf(p *sim.Prediction, held float64) html.Order {
	return html.Order{
		Name: p.Schedule, Step: p.Run.Step, Bubble: p.Bubble(), BubbleLongestSpan: p.BubbleLongestSpan(), Memory: held, Messages: p.Messages,
		Predicted: 1, Assumptions: p.Assumptions,
	}
}
