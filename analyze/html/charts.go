package html

import (
	"cmp"
	"fmt"
	"slices"

	"mixdown/analyze/report"
)

// chart is a line chart that the script draws: columns over one axis.
type chart struct {
	ID     string   `json:"-"`
	Title  string   `json:"title"`
	XLabel string   `json:"xlabel"`
	XNames []string `json:"xnames,omitempty"` // what the places of the axis are called
	Unit   string   `json:"unit"`             // of the values: "ns"
	Series []series `json:"series"`
}

// series is a line; a value that is not known is null.
type series struct {
	Name   string   `json:"name"`
	Values []*int64 `json:"values"`
}

// maxSeries is how many lines can be told apart.
const maxSeries = 8

// maxPoints bounds the places of an axis.
const maxPoints = 2000

func (c *chart) add(name string, values []int64) {
	s := series{Name: cut(report.Printable(name), 60)}
	for i := range values[:min(len(values), maxPoints)] {
		s.Values = append(s.Values, &values[i])
	}
	c.Series = append(c.Series, s)
}

// orNil is the chart when it has at least two places: one is no line.
func (c *chart) orNil() *chart {
	for _, s := range c.Series {
		if len(s.Values) > 1 {
			return c
		}
	}
	return nil
}

// stepNames are the steps of the run in the order they ran.
func stepNames(a *report.Analysis) []string {
	var list []string
	for _, s := range a.Run.Steps {
		if len(list) == maxPoints {
			break
		}
		list = append(list, report.Printable(s.Name))
	}
	return list
}

// byStep makes a chart of one value for each rank and step, of the ranks where
// it is largest.
func byStep(a *report.Analysis, id, title string, of map[int]map[string]int64) *chart {
	c := &chart{ID: id, Title: title, XLabel: "step", Unit: "ns", XNames: stepNames(a)}
	ranks := make([]int, 0, len(of))
	sums := map[int]int64{}
	for rank, steps := range of {
		ranks = append(ranks, rank)
		for _, ns := range steps {
			sums[rank] += ns
		}
	}
	slices.SortFunc(ranks, func(x, y int) int { return cmp.Or(cmp.Compare(sums[y], sums[x]), cmp.Compare(x, y)) })
	if len(ranks) > maxSeries {
		c.Title += fmt.Sprintf(" (the %d of %d ranks with the most)", maxSeries, len(ranks))
		ranks = ranks[:maxSeries]
	}
	slices.Sort(ranks)
	for _, rank := range ranks {
		s := series{Name: fmt.Sprintf("rank %d", rank)}
		for i := range c.XNames {
			var v *int64
			if ns, ok := of[rank][a.Run.Steps[i].Name]; ok {
				v = &ns
			}
			s.Values = append(s.Values, v)
		}
		c.Series = append(c.Series, s)
	}
	return c.orNil()
}

// charts over steps: who was waited for, and what each step cost.
func (p *Page) stepCharts() []*chart {
	if p.Analysis == nil {
		return nil
	}
	caused, exposed, dur := map[int]map[string]int64{}, map[int]map[string]int64{}, map[int]map[string]int64{}
	put := func(m map[int]map[string]int64, rank int, step string, ns int64) {
		if m[rank] == nil {
			m[rank] = map[string]int64{}
		}
		m[rank][step] += ns
	}
	for _, c := range p.Caused {
		put(caused, c.Rank, c.Step, c.Caused)
	}
	for rank := range caused { // a step in which nobody waited for it is 0, and known
		for _, s := range p.Analysis.Run.Steps {
			put(caused, rank, s.Name, 0)
		}
	}
	for _, r := range p.Steps {
		for _, s := range r.Steps {
			put(exposed, r.Rank, s.Step, s.Exposed)
			put(dur, r.Rank, s.Step, s.Dur)
		}
	}
	var list []*chart
	for _, c := range []*chart{
		byStep(p.Analysis, "caused", "How long others waited for a rank, by step", caused),
		byStep(p.Analysis, "exposed", "Exposed communication of each step", exposed),
		byStep(p.Analysis, "steps", "Length of each step, as the CPU saw it", dur),
	} {
		if c != nil {
			list = append(list, c)
		}
	}
	return list
}
