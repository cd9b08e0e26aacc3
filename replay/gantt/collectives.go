package gantt

import (
	"fmt"

	"mixdown/replay/schedule"
)

// WithCollectives is the chart with a row below each rank's for its collectives
// over data-parallel ranks, which run beside its passes. Those that take no time
// are left out.
func (c Chart) WithCollectives(list []schedule.Collective) Chart {
	var added []Bar
	for _, r := range list {
		if r.Start.Equal(r.End) {
			continue
		}
		name := "reduction of stage %d"
		if r.Kind == schedule.Unshard {
			name = "gather of stage %d"
		}
		added = append(added, Bar{
			Row: 2*r.Rank + 1, Stage: r.Stage, Chunk: Unknown, Microbatch: Unknown, Phase: Communication,
			Start: float(r.Start), End: float(r.End), Name: fmt.Sprintf(name, r.Stage),
		})
	}
	if len(added) == 0 {
		return c
	}
	rows := make([]Row, 0, 2*len(c.Rows))
	for r, row := range c.Rows {
		rows = append(rows, row, Row{Name: fmt.Sprintf("data %d", r), Beside: true})
	}
	bars := make([]Bar, 0, len(c.Bars)+len(added))
	for _, b := range c.Bars {
		b.Row *= 2
		bars = append(bars, b)
	}
	c.Rows, c.Bars = rows, append(bars, added...)
	return c
}
