package html

import (
	"fmt"
	"math"
	"slices"

	"mixdown/analyze/gate/output"
	"mixdown/analyze/report"
)

// stripView is the times of all steps of two runs as dots over one axis.
type stripView struct {
	Rows  []stripRow
	Ticks []tick
	Label string // for those who don't see it
}

// stripRow is one run.
type stripRow struct {
	Name                           string
	Y, NameY, Top                  string
	Dots                           []dot
	Middle                         string // x of the median
	Least, Low, Median, High, Most string
	N                              int
}

type dot struct{ X, Y string }

// The picture's measures.
const (
	stripLeft, stripRight = 70.0, 626.0
	stripTop, stripRowGap = 34.0, 52.0
	maxDots               = 300 // of a run; evenly chosen of more
)

// stripOf is nil without steps.
func stripOf(d *output.Document) *stripView {
	if len(d.StepsAfter) < 2 {
		return nil
	}
	runs := []struct {
		name   string
		values []float64
	}{{"before", d.StepsBefore}, {"after", d.StepsAfter}}
	low, high := slices.Min(d.StepsAfter), slices.Max(d.StepsAfter)
	if len(d.StepsBefore) > 0 {
		low, high = min(low, slices.Min(d.StepsBefore)), max(high, slices.Max(d.StepsBefore))
	}
	if high <= low {
		low, high = low-1, high+1
	}
	v := &stripView{}
	x := func(ns float64) string {
		return place(stripLeft + 12 + (stripRight-stripLeft-24)*(ns-low)/(high-low))
	}
	for i := range 5 {
		ns := low + (high-low)*float64(i)/4
		v.Ticks = append(v.Ticks, tick{At: x(ns), Text: report.Duration(int64(math.Round(ns)))})
	}
	for _, run := range runs {
		if len(run.values) == 0 {
			continue
		}
		y := stripTop + stripRowGap*float64(len(v.Rows))
		sorted := slices.Sorted(slices.Values(run.values))
		at := func(share float64) string {
			return report.Duration(int64(sorted[int(math.Round(share*float64(len(sorted)-1)))]))
		}
		middle := sorted[len(sorted)/2]
		if n := len(sorted); n%2 == 0 {
			middle = (sorted[n/2-1] + sorted[n/2]) / 2
		}
		row := stripRow{
			Name: run.name, Y: place(y), NameY: place(y + 4), Top: place(y - 17), Middle: x(middle), N: len(sorted),
			Least: at(0), Low: at(0.25), Median: report.Duration(int64(middle)), High: at(0.75), Most: at(1),
		}
		every := float64(len(run.values)) / float64(min(len(run.values), maxDots))
		for k := range min(len(run.values), maxDots) {
			// Dots are spread over the row's height, so that equal times show.
			row.Dots = append(row.Dots, dot{x(run.values[int(float64(k)*every)]), place(y - 12 + float64((k*7)%25))})
		}
		v.Rows = append(v.Rows, row)
		v.Label += fmt.Sprintf("%s: %d steps, median %s, from %s to %s. ", run.name, row.N, row.Median, row.Least, row.Most)
	}
	return v
}

// stepChart is the step times in the order in which the steps ran.
func stepChart(d *output.Document) *chart {
	c := &chart{ID: "compared-steps", Title: "Step time, in the order of the steps", XLabel: "step", Unit: "ns"}
	for _, run := range []struct {
		name   string
		values []float64
	}{{"before", d.StepsBefore}, {"after", d.StepsAfter}} {
		values := make([]int64, 0, len(run.values))
		for _, v := range run.values {
			values = append(values, int64(v))
		}
		if len(values) > 0 {
			c.add(run.name, values)
		}
	}
	return c.orNil()
}
