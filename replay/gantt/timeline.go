package gantt

import (
	"fmt"
	"math/big"
	"slices"

	"mixdown/replay/schedule"
)

// FromTimeline is the chart of a schedule: its passes, one row a rank. Transfers
// and collectives take no time in a timeline and are left out.
func FromTimeline(title string, line *schedule.Timeline) Chart {
	c := Chart{Title: title, Makespan: line.Makespan().String(), Bubble: line.Bubble().String()}
	for r, row := range line.Order() {
		c.Rows = append(c.Rows, Row{Name: fmt.Sprintf("rank %d", r)})
		chunks := chunksOf(row)
		for i, a := range row {
			if !a.Kind.Computes() {
				continue
			}
			b := Bar{
				Row: r, Stage: int(a.Stage), Chunk: chunks[a.Stage], Microbatch: int(a.Microbatch), Phase: phaseOf(a.Kind),
				Start: float(line.Start(r, i)), End: float(line.End(r, i)), Name: a.String(),
			}
			switch {
			case a.Overlap:
				b.Lane = Upper
			case i > 0 && row[i-1].Overlap:
				b.Lane = Lower
			}
			c.Bars = append(c.Bars, b)
		}
	}
	return c
}

// chunksOf numbers the stages of a rank from the lowest.
func chunksOf(row []schedule.Action) map[int32]int {
	chunks := map[int32]int{}
	var stages []int32
	for _, a := range row {
		if _, seen := chunks[a.Stage]; !seen {
			chunks[a.Stage] = 0
			stages = append(stages, a.Stage)
		}
	}
	slices.Sort(stages)
	for i, s := range stages {
		chunks[s] = i
	}
	return chunks
}

func phaseOf(k schedule.Kind) Phase {
	switch k {
	case schedule.Backward:
		return Backward
	case schedule.Input:
		return InputGradient
	case schedule.Weight:
		return WeightGradient
	}
	return Forward
}

// float is the nearest to an exact number.
func float(r schedule.Rational) float64 {
	if n, ok := r.Int64(); ok {
		return float64(n)
	}
	exact, ok := new(big.Rat).SetString(r.String())
	if !ok {
		return 0
	}
	f, _ := exact.Float64()
	return f
}
