package page

import (
	"fmt"

	"mixdown/analyze/html"
	"mixdown/analyze/report"
	"mixdown/replay/tune"
)

// heatColumns is how many ranges of sizes a map has at most.
const heatColumns = 20

// Heat is the map of a table of measurements: who wins where, by how much, and
// where the winner changes.
func Heat(t *tune.Table, list []tune.Comparison, source string) *html.HeatMap {
	m := tune.NewHeat(list, heatColumns)
	out := &html.HeatMap{Source: source, Columns: m.Columns, Measurements: len(t.Rows), Host: true}
	for i := range t.Rows {
		out.Host = out.Host && t.Rows[i].Device == tune.Host
	}
	for _, e := range t.Environments {
		out.About = append(out.About, e.String())
	}
	index := map[tune.Contender]int{}
	for _, who := range m.Contenders {
		index[who] = len(out.Winners)
		out.Winners = append(out.Winners, who.String())
	}
	for _, row := range m.Rows {
		r := html.HeatRow{Question: row.Question.String()}
		for _, c := range row.Cells {
			cell := html.HeatCell{Winner: -1}
			if c.Places > 0 {
				cell = html.HeatCell{Winner: index[c.Winner], Clear: c.Clear, Gain: c.Gain}
			}
			r.Cells = append(r.Cells, cell)
		}
		out.Rows = append(out.Rows, r)
	}
	for i := range list {
		if len(list[i].Contenders) > 1 {
			out.Questions = append(out.Questions, heatQuestion(&list[i]))
		}
	}
	for _, l := range tune.Losses(list) {
		out.Losses = append(out.Losses, html.HeatLoss{
			Name: l.Contender.String(), Mean: l.Mean, Worst: l.Worst, Where: fmt.Sprintf("%s, %s", l.Where, report.Size(l.Bytes)), Places: l.Places, Of: l.Of,
		})
	}
	return out
}

// heatQuestion is the times of one question.
func heatQuestion(c *tune.Comparison) html.HeatQuestion {
	q := html.HeatQuestion{Name: c.Question.String()}
	index := map[tune.Contender]int{}
	for i, who := range c.Contenders {
		index[who] = i
		q.Contenders = append(q.Contenders, html.HeatContender{Name: who.String()})
	}
	for _, p := range c.Places {
		crossed := false
		for _, x := range c.Crossings {
			crossed = crossed || x.Higher == p.Bytes
		}
		q.Sizes, q.Winner = append(q.Sizes, p.Bytes), append(q.Winner, index[p.Winner])
		q.Clear, q.Crossed = append(q.Clear, p.Clear && len(p.Times) > 1), append(q.Crossed, crossed)
		for i, who := range c.Contenders {
			ns, ok := p.Times[who]
			if !ok {
				ns = -1
			}
			q.Contenders[i].Times = append(q.Contenders[i].Times, ns)
		}
	}
	for _, x := range c.Crossings {
		q.Crossings = append(q.Crossings, fmt.Sprintf("%s below %s, %s from there (measured at %s and %s)", x.Below, report.Size(x.Bytes), x.Above, report.Size(x.Lower), report.Size(x.Higher)))
	}
	return q
}

// Table is the page of a table of measurements.
func Table(t *tune.Table, list []tune.Comparison, from From) *html.Page {
	p := Empty(from)
	source := ""
	for i, name := range from.Args {
		if i > 0 {
			source += " "
		}
		source += name
		p.Provenance.Inputs = append(p.Provenance.Inputs, html.Input{Name: name, About: "table of measurements"})
	}
	p.Title = title("tune", from.Args)
	p.Heat = Heat(t, list, source)
	return p
}
