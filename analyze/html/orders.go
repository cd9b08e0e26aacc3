package html

import (
	"fmt"
	"math"
	"slices"

	"mixdown/analyze/report"
)

// orderRow is a pipeline order as it was predicted.
type orderRow struct {
	Name, Step, Speedup, Memory, Bubble, Held string
	Messages                                  int
	Best, WithinError, Traced                 bool
	X, Y                                      string // of the point, in the picture's units
	Number                                    int
	Label                                     bool // there is room for its number
}

// predictionView is one simulation.
type predictionView struct {
	*Prediction
	Rows        []orderRow
	Left        int
	Fidelity    string
	Assumptions []string
	Bytes       bool // some orders say what they hold in bytes
	Mixes       []mixRow
	Supposed    []mixRow
	MixFidelity string
	XTicks      []tick
	YTicks      []tick
}

// mixRow is a mix as it was predicted.
type mixRow struct {
	Name, Step, Speedup string
	Rules, Reasons      []string
	WithinError         bool
}

// mixes takes the predicted mixes, and what was supposed.
func (v *predictionView) mixes(s *Prediction) {
	for _, o := range s.mixes() {
		row := mixRow{Name: report.Printable(o.Name), Step: report.Duration(*o.MixStep), Speedup: fmt.Sprintf("%.3f", o.Predicted), Rules: rules(o.Mix), WithinError: o.WithinError}
		for _, text := range append(slices.Clone(o.Reasons), o.Assumptions...) {
			row.Reasons = append(row.Reasons, report.Printable(text))
		}
		v.Mixes = append(v.Mixes, row)
	}
	for _, o := range s.supposed() {
		step := o.Step
		if o.MixStep != nil {
			step = *o.MixStep
		}
		row := mixRow{Name: report.Printable(o.Name), Step: report.Duration(step), Speedup: fmt.Sprintf("%.3f", o.Predicted), WithinError: o.WithinError}
		for _, w := range o.WhatIfs {
			row.Reasons = append(row.Reasons, report.Printable("what "+w.Name+" costs: "+w.Cost))
		}
		for _, text := range o.Assumptions {
			row.Reasons = append(row.Reasons, report.Printable(text))
		}
		v.Supposed = append(v.Supposed, row)
	}
	if w := s.Workload; w != nil {
		v.MixFidelity = fmt.Sprintf("%.3f: the traced step, played with what its operations took, lasts %s; in the trace it took %s", w.Fidelity.Ratio, report.Duration(w.Fidelity.SimulatedStep), report.Duration(w.Fidelity.TraceStep))
	}
}

// tick is a mark of an axis.
type tick struct{ At, Text string }

// measures of the picture of memory against time.
const (
	scatterLeft, scatterRight = 64, 620
	scatterTop, scatterBottom = 16, 270
)

func predictionViews(list []*Prediction) []predictionView {
	var views []predictionView
	for _, s := range list {
		v := predictionView{Prediction: s}
		v.mixes(s)
		if s.Baseline == nil {
			views = append(views, v)
			continue
		}
		all := append([]*Order{s.Baseline}, s.orders()...)
		v.Left = max(len(all)-maxRows-1, 0)
		all = all[:len(all)-v.Left]
		x, xTicks := axis(each(all, func(o *Order) float64 { return float64(o.Step) }), scatterLeft, scatterRight, func(at float64) string { return report.Duration(int64(at)) })
		y, yTicks := axis(each(all, func(o *Order) float64 { return o.Memory }), scatterBottom, scatterTop, func(at float64) string { return fmt.Sprintf("%.3gx", at) })
		v.XTicks, v.YTicks = xTicks, yTicks
		labelled := labels{}
		for i, o := range all {
			row := orderRow{
				Name: report.Printable(o.Name), Step: report.Duration(o.Step), Speedup: "1", Memory: fmt.Sprintf("%.2fx", o.Memory),
				Bubble: fmt.Sprintf("%.1f %%", 100*o.Bubble), Held: "–", Messages: o.Messages,
				Best: o.Pareto != nil && *o.Pareto, WithinError: o.WithinError, Traced: i == 0, X: pixels(x(float64(o.Step))), Y: pixels(y(o.Memory)), Number: i,
			}
			row.Label = labelled.free(x(float64(o.Step)), y(o.Memory))
			if i > 0 {
				row.Speedup = fmt.Sprintf("%.3f", o.Predicted)
			}
			if n, ok := o.most(); ok {
				row.Held, v.Bytes = report.Size(n), true
			}
			v.Rows = append(v.Rows, row)
			for _, a := range o.Assumptions {
				if a = report.Printable(a); !slices.Contains(v.Assumptions, a) {
					v.Assumptions = append(v.Assumptions, a)
				}
			}
		}
		if f := s.Baseline.Fidelity; f != nil {
			v.Fidelity = fmt.Sprintf("%.3f: the traced order, played from the model of the trace, takes %s; in the trace it took %s", f.Ratio, report.Duration(f.SimulatedStep), report.Duration(f.TraceStep))
		}
		views = append(views, v)
	}
	return views
}

// most is what the fullest rank holds, in bytes.
func (o *Order) most() (int64, bool) {
	var most int64
	for _, r := range o.Held {
		if r.Total == nil {
			return 0, false
		}
		most = max(most, *r.Total)
	}
	return most, len(o.Held) > 0
}

func each(list []*Order, of func(*Order) float64) []float64 {
	var out []float64
	for _, o := range list {
		out = append(out, of(o))
	}
	return out
}

func pixels(x float64) string { return fmt.Sprintf("%.1f", x) }

// labels are where numbers stand beside points, so that none covers another.
type labels [][2]float64

// free says whether there is room, and takes it.
func (l *labels) free(x, y float64) bool {
	for _, at := range *l {
		if math.Abs(at[0]-x) < 26 && math.Abs(at[1]-y) < 12 {
			return false
		}
	}
	*l = append(*l, [2]float64{x, y})
	return true
}

// axis maps values onto from to to, with some room around them and round ticks.
func axis(values []float64, from, to float64, write func(float64) string) (func(float64) float64, []tick) {
	low, high := slices.Min(values), slices.Max(values)
	if !(high > 0) || math.IsInf(high, 0) || math.IsNaN(low) {
		low, high = 0, 1
	}
	room := max(0.15*(high-low), 0.05*high)
	low, high = max(low-room, 0), high+room
	place := func(x float64) float64 { return from + (to-from)*(x-low)/(high-low) }
	step := roundStep((high - low) / 5)
	var ticks []tick
	for at := math.Ceil(low/step) * step; at <= high && len(ticks) < 12; at += step {
		ticks = append(ticks, tick{pixels(place(at)), write(at)})
	}
	return place, ticks
}

// roundStep is the next of 1, 2 and 5 with zeros.
func roundStep(raw float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= raw {
			return m * power
		}
	}
	return 10 * power
}
