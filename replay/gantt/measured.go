package gantt

import (
	"strconv"

	"mixdown/analyze/pipeline"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

// drawnAs is how actions are drawn; those that are not in it take no time.
var drawnAs = map[schedule.Kind]Phase{
	schedule.Forward: Forward, schedule.Backward: Backward, schedule.Input: InputGradient, schedule.Weight: WeightGradient,
	schedule.ReduceGradient: Communication, schedule.Unshard: Communication,
}

// FromStep is the chart of a recorded step, in ms from its first task. Every place
// has tasks.
func FromStep(title string, p *pipeline.Pipeline, s *pipeline.Step) Chart {
	c := Chart{Title: title}
	first := s.Tasks[0][0].Start
	for _, tasks := range s.Tasks {
		first = min(first, tasks[0].Start)
	}
	for place, tasks := range s.Tasks {
		c.Rows = append(c.Rows, Row{Name: "rank " + strconv.Itoa(p.Ranks[place])})
		chunks := chunkNumbers{}
		for i := range tasks {
			t := &tasks[i]
			c.Bars = append(c.Bars, Bar{
				Row: place, Stage: t.Stage, Chunk: chunks.of(t.Stage), Microbatch: t.Microbatch, Phase: drawnAs[schedule.Kind(t.Phase)],
				Start: float64(t.Start-first) / 1e6, End: float64(t.End-first) / 1e6,
			})
		}
	}
	return c
}

// FromRun is the chart of an order that was played, in ms. Ranks are the global
// ranks by place. What runs beside the tasks has rows of its own.
func FromRun(title string, run *sim.Run, ranks []int) Chart {
	c := Chart{Title: title}
	for place, row := range run.Order {
		c.Rows = append(c.Rows, Row{Name: "rank " + strconv.Itoa(ranks[place])})
		chunks := chunkNumbers{}
		at, beside := len(c.Rows)-1, -1
		for i, a := range row {
			m := run.Moments[place][i]
			phase, drawn := drawnAs[a.Kind]
			if !drawn || m.End <= m.Start {
				continue
			}
			bar := Bar{
				Row: at, Stage: int(a.Stage), Chunk: chunks.of(int(a.Stage)), Microbatch: int(a.Microbatch), Phase: phase,
				Start: float64(m.Start) / 1e6, End: float64(m.End) / 1e6,
			}
			if phase == Communication {
				if beside < 0 {
					beside = len(c.Rows)
					c.Rows = append(c.Rows, Row{Name: c.Rows[at].Name + " data-parallel", Beside: true})
				}
				bar.Row, bar.Name = beside, a.String()
			}
			c.Bars = append(c.Bars, bar)
		}
	}
	return c
}

// chunkNumbers numbers a rank's stages in the order it first runs them.
type chunkNumbers map[int]int

func (n chunkNumbers) of(stage int) int {
	k, seen := n[stage]
	if !seen {
		k = len(n)
		n[stage] = k
	}
	return k
}
