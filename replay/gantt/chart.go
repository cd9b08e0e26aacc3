package gantt

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Phase is what a bar does.
type Phase uint8

const (
	Forward        Phase = iota
	Backward             // both gradients
	InputGradient        // the part of a backward that the stage before waits for
	WeightGradient       // the part that nobody waits for
	Communication        // a transfer or a collective
	Other                // anything else that takes time

	phases = int(Other) + 1
)

// String is the phase in words.
func (p Phase) String() string {
	names := [phases]string{"forward", "backward", "input gradient", "weight gradient", "communication", "other"}
	if int(p) < phases {
		return names[p]
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// Unknown is a stage, chunk or micro-batch that isn't known or has no meaning.
const Unknown = -1

// Lane is the part of a row's height that a bar takes.
type Lane uint8

const (
	Whole Lane = iota
	Upper      // of two that run at once
	Lower
)

// Bar is one task of a row.
type Bar struct {
	Row        int // index in Chart.Rows
	Stage      int // Unknown where it isn't known, as the next two
	Chunk      int // which of the row's stages, from 0
	Microbatch int
	Phase      Phase
	Lane       Lane
	Start, End float64 // in the figure's unit, from the chart's beginning
	Name       string  // of the task, for the explanation; made up if empty
}

// Row is a line of bars.
type Row struct {
	Name string
	// Beside marks a stream beside a rank's passes, such as that of its
	// reductions: it counts for no bubble.
	Beside bool
}

// Chart is one run of a job.
type Chart struct {
	Title string
	Rows  []Row
	Bars  []Bar // in any order

	// Makespan and Bubble are what is written as such: exact figures of who
	// made the chart. Where they are empty they are computed from the bars.
	Makespan, Bubble string
}

// Figure is charts one below the other on one time axis.
type Figure struct {
	Title  string
	Unit   string // of all times, such as "ms"; may be empty
	Charts []Chart
}

// end is the end of the last bar.
func (c Chart) end() float64 {
	end := 0.0
	for _, b := range c.Bars {
		end = max(end, b.End)
	}
	return end
}

// passes is the end of the last bar that isn't of a stream beside: up to there
// bubbles are counted.
func (c Chart) passes() float64 {
	end := 0.0
	for _, b := range c.Bars {
		if !c.Rows[b.Row].Beside {
			end = max(end, b.End)
		}
	}
	return end
}

// until are the ends of rows: of the passes, or of all for a stream beside.
func (c Chart) until() []float64 {
	passes, all := c.passes(), c.end()
	ends := make([]float64, len(c.Rows))
	for r, row := range c.Rows {
		ends[r] = passes
		if row.Beside {
			ends[r] = all
		}
	}
	return ends
}

// end is the end of the last chart.
func (f Figure) end() float64 {
	end := 0.0
	for _, c := range f.Charts {
		end = max(end, c.end())
	}
	return end
}

// largest is the latest time that is drawn, and its inverse the shortest axis:
// beyond, arithmetic of floats breaks down.
const largest = 1e100

// check refuses what can't be drawn.
func (f Figure) check() error {
	for i, c := range f.Charts {
		for _, b := range c.Bars {
			switch {
			case b.Row < 0 || b.Row >= len(c.Rows):
				return fmt.Errorf("chart %d: bar in row %d of %d", i, b.Row, len(c.Rows))
			case math.IsNaN(b.Start) || b.Start < 0 || !(b.End >= b.Start) || b.End > largest:
				return fmt.Errorf("chart %d: bar from %v to %v", i, b.Start, b.End)
			case int(b.Phase) >= phases || b.Lane > Lower:
				return fmt.Errorf("chart %d: bar of %s in lane %d", i, b.Phase, b.Lane)
			}
		}
	}
	if end := f.end(); end < 1/largest {
		return fmt.Errorf("nothing to draw: no bar takes any time")
	}
	return nil
}

// byRow is the bars of each row in order of time.
func (c Chart) byRow() [][]Bar {
	rows := make([][]Bar, len(c.Rows))
	for _, b := range c.Bars {
		rows[b.Row] = append(rows[b.Row], b)
	}
	for _, row := range rows {
		slices.SortStableFunc(row, func(a, b Bar) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Lane, b.Lane))
		})
	}
	return rows
}

// busy is the time covered by bars that are in order of time.
func busy(row []Bar) float64 {
	covered, until := 0.0, 0.0
	for _, b := range row {
		if from := max(b.Start, until); b.End > from {
			covered += b.End - from
			until = b.End
		}
	}
	return covered
}

// bubbles are the idle shares of each row and of the chart, up to the end of the
// passes.
func (c Chart) bubbles(rows [][]Bar) (each []float64, all float64) {
	end := c.passes()
	count := 0
	for r, row := range rows {
		idle := 1.0
		if end > 0 {
			idle = 1 - busy(row)/end
		}
		each = append(each, idle)
		if !c.Rows[r].Beside {
			all += idle
			count++
		}
	}
	return each, all / float64(max(1, count))
}

// summary says how long a chart takes and how idle it is; of a later chart also
// how that compares with the first.
func (f Figure) summary(i int, bubble float64) string {
	c := f.Charts[i]
	makespan, share := c.Makespan, c.Bubble
	if makespan == "" {
		makespan = number(c.passes())
	}
	if f.Unit != "" {
		makespan += " " + f.Unit
	}
	if share == "" {
		share = percent(bubble)
	} else if share != percent(bubble) {
		share += " (" + percent(bubble) + ")"
	}
	text := "makespan " + makespan + ", bubble " + share
	if late := c.end() - c.passes(); late > 0 {
		text += ", " + number(late) + " after the passes"
	}
	if first := f.Charts[0].end(); i > 0 && first > 0 && c.end() > 0 {
		text += fmt.Sprintf(", %.3g× as fast as the first", first/c.end())
	}
	return text
}

func percent(share float64) string {
	return strconv.FormatFloat(100*share, 'f', 1, 64) + " %"
}

// number is a time with as many digits as a reader wants.
func number(x float64) string {
	return strconv.FormatFloat(x, 'g', 7, 64)
}

// describe is a bar in words.
func (f Figure) describe(c Chart, b Bar) string {
	var parts []string
	if b.Name != "" {
		parts = append(parts, b.Name)
	}
	parts = append(parts, c.Rows[b.Row].Name, b.Phase.String())
	for _, p := range []struct {
		name string
		n    int
	}{{"micro-batch", b.Microbatch}, {"stage", b.Stage}, {"chunk", b.Chunk}} {
		if p.n >= 0 {
			parts = append(parts, p.name+" "+strconv.Itoa(p.n))
		}
	}
	unit := ""
	if f.Unit != "" {
		unit = " " + f.Unit
	}
	return strings.Join(parts, ", ") + ": " + number(b.Start) + " to " + number(b.End) + unit + " (" + number(b.End-b.Start) + ")"
}

// clean replaces what could steer a terminal.
func clean(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}
