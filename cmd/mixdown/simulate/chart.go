package simulate

import (
	"strconv"

	"mixdown/analyze/pipeline"
	"mixdown/replay/gantt"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

var phases = map[schedule.Kind]gantt.Phase{
	schedule.Forward: gantt.Forward, schedule.Backward: gantt.Backward, schedule.Input: gantt.InputGradient, schedule.Weight: gantt.WeightGradient,
	schedule.ReduceGradient: gantt.Communication, schedule.Unshard: gantt.Communication,
}

// chart draws a played order, in ms. What runs beside the tasks has rows of its
// own.
func chart(title string, p *sim.Prediction, ranks []int) gantt.Chart {
	c := gantt.Chart{Title: title}
	for place, row := range p.Order {
		c.Rows = append(c.Rows, gantt.Row{Name: "rank " + strconv.Itoa(ranks[place])})
		chunks := map[int32]int{}
		for _, a := range row {
			if _, seen := chunks[a.Stage]; !seen {
				chunks[a.Stage] = len(chunks)
			}
		}
		at, beside := len(c.Rows)-1, -1
		for i, a := range row {
			m := p.Run.Moments[place][i]
			if m.End <= m.Start {
				continue
			}
			bar := gantt.Bar{
				Row: at, Stage: int(a.Stage), Chunk: chunks[a.Stage], Microbatch: int(a.Microbatch),
				Start: float64(m.Start) / 1e6, End: float64(m.End) / 1e6,
			}
			if bar.Phase = phases[a.Kind]; bar.Phase == gantt.Communication {
				if beside < 0 {
					beside = len(c.Rows)
					c.Rows = append(c.Rows, gantt.Row{Name: "rank " + strconv.Itoa(ranks[place]) + " data-parallel", Beside: true})
				}
				bar.Row, bar.Name = beside, a.String()
			}
			c.Bars = append(c.Bars, bar)
		}
	}
	return c
}

// recorded draws a step as it was traced, in ms.
func recorded(title string, p *pipeline.Pipeline, s *pipeline.Step) gantt.Chart {
	c := gantt.Chart{Title: title}
	first := s.Tasks[0][0].Start
	for _, tasks := range s.Tasks {
		first = min(first, tasks[0].Start)
	}
	for place, tasks := range s.Tasks {
		c.Rows = append(c.Rows, gantt.Row{Name: "rank " + strconv.Itoa(p.Ranks[place])})
		chunks := map[int]int{}
		for i := range tasks {
			t := &tasks[i]
			if _, seen := chunks[t.Stage]; !seen {
				chunks[t.Stage] = len(chunks)
			}
			c.Bars = append(c.Bars, gantt.Bar{
				Row: place, Stage: t.Stage, Chunk: chunks[t.Stage], Microbatch: t.Microbatch, Phase: phases[schedule.Kind(t.Phase)],
				Start: float64(t.Start-first) / 1e6, End: float64(t.End-first) / 1e6,
			})
		}
	}
	return c
}
