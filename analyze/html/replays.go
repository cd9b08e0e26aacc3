package html

import (
	"fmt"
	"strings"

	"mixdown/analyze/report"
)

// planRow is a plan of a replay, with its interval as marks on a common axis.
type planRow struct {
	Name, Schedule            string
	Mix                       []string // its rules, in order
	Median, Speedup, Interval string
	Predicted                 string
	N                         int
	Memory                    string
	Reasons                   []string
	Verified                  bool
	Kind                      string // good, bad or unsure

	// Marks in per cent of the axis; "" when there is none.
	From, Width, At, One, Guess string
}

// replayView is one replay.
type replayView struct {
	*Replay
	Where    string
	Rows     []planRow
	Baseline planRow
	Low, Top string // of the axis
	Fidelity string
	Trust    string // a warning, "" when the replay is close to the trace
	Guessed  bool   // some variants were simulated too
	Chart    *chart
	Gain     string // what the traced step could gain at most
}

// far is a fidelity, above or below 1, from which a replay is not to be trusted
// without a word.
const far = 1.25

func replayViews(list []*Replay) []replayView {
	var views []replayView
	for i, r := range list {
		v := replayView{Replay: r, Where: r.where(), Chart: r.chart(i)}
		low, top := 1.0, 1.0
		for _, p := range r.Variants {
			low, top = min(low, p.CI95[0], p.Speedup), max(top, p.CI95[1], p.Speedup)
			if p.Predicted != nil {
				low, top, v.Guessed = min(low, *p.Predicted), max(top, *p.Predicted), true
			}
		}
		margin := max(0.05*(top-low), 0.02)
		low, top = max(low-margin, 0), top+margin
		v.Low, v.Top = fmt.Sprintf("%.2f", low), fmt.Sprintf("%.2f", top)
		at := func(x float64) string { return fmt.Sprintf("%.2f", 100*(x-low)/(top-low)) }
		for i := range r.Variants {
			v.Rows = append(v.Rows, planRowOf(&r.Variants[i], at, low, top))
		}
		b := &r.Baseline
		v.Baseline = planRow{Name: report.Printable(b.Name), Mix: rules(b.Mix), Median: report.Duration(b.Median), N: len(b.Iterations), Verified: b.Verified, One: at(1)}
		if f := b.Fidelity; f != nil && f.TraceStep > 0 {
			v.Fidelity = fmt.Sprintf("%.2f: the unchanged plan took %s, the traced step %s", f.Ratio, report.Duration(f.ReplayedStep), report.Duration(f.TraceStep))
			if f.Ratio > far || f.Ratio < 1/far {
				v.Trust = "The replay of the unchanged plan is far from the trace. The plans compare with each other, but the speedup in the job may be another."
			}
		}
		if r.Traced != nil {
			v.Gain = report.GainText(r.Traced.Free, r.Traced.FreeByOp)
		}
		views = append(views, v)
	}
	return views
}

func planRowOf(p *Plan, at func(float64) string, low, top float64) planRow {
	row := planRow{
		Name: report.Printable(p.Name), Schedule: report.Printable(p.Schedule), Mix: rules(p.Mix), Median: report.Duration(p.Median),
		Speedup: fmt.Sprintf("%.3f", p.Speedup), Interval: fmt.Sprintf("%.3f to %.3f", p.CI95[0], p.CI95[1]),
		Predicted: "–", N: len(p.Iterations), Verified: p.Verified, Kind: "unsure",
		From: at(p.CI95[0]), Width: fmt.Sprintf("%.2f", 100*(p.CI95[1]-p.CI95[0])/(top-low)), At: at(p.Speedup), One: at(1),
	}
	if p.Coverage > 0 && p.Coverage < 0.95 {
		row.Interval += fmt.Sprintf(" (covers %.1f %%)", 100*p.Coverage)
	}
	switch {
	case p.CI95[0] > 1:
		row.Kind = "good"
	case p.CI95[1] < 1:
		row.Kind = "bad"
	}
	for _, r := range p.Reasons {
		row.Reasons = append(row.Reasons, report.Printable(r.Rule)+": "+report.Printable(r.Text))
	}
	if p.Memory != nil {
		row.Memory = fmt.Sprintf("%.2fx", *p.Memory)
	}
	if p.Predicted != nil {
		row.Predicted, row.Guess = fmt.Sprintf("%.3f", *p.Predicted), at(*p.Predicted)
	}
	return row
}

// rules are those of a mix, in the order in which they are tried.
func rules(mix string) []string {
	var list []string
	for _, r := range strings.Split(mix, ",") {
		if r = strings.TrimSpace(r); r != "" {
			list = append(list, report.Printable(r))
		}
	}
	return list
}

// chart is the time of each iteration, so that drift and outliers show.
func (r *Replay) chart(i int) *chart {
	c := &chart{ID: fmt.Sprintf("iterations-%d", i), Title: "Step time of every iteration", XLabel: "iteration", Unit: "ns"}
	c.add("baseline: "+r.Baseline.Name, r.Baseline.Iterations)
	for _, v := range r.Variants {
		if len(c.Series) == maxSeries {
			break
		}
		c.add(v.Name, v.Iterations)
	}
	return c.orNil()
}
