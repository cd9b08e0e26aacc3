package html

import (
	"fmt"
	"math"
	"strings"

	"mixdown/analyze/report"
)

// HeatMap is who wins by operation and size, of a table of measurements, and what
// each contender takes. Contenders are libraries and their settings.
type HeatMap struct {
	// Source is the table's file, About what was measured where.
	Source string
	About  []string
	// Host: measured in host memory, which says nothing about GPUs.
	Host         bool
	Measurements int

	// The map: a row for each question, a column for each range of sizes.
	Columns []int64 // the least size of each, bytes
	Winners []string
	Rows    []HeatRow

	Questions []HeatQuestion
	Losses    []HeatLoss
}

// HeatRow is a question of the map: one operation in groups of one size.
type HeatRow struct {
	Question string
	Cells    []HeatCell
}

// HeatCell is the outcome in a range of sizes.
type HeatCell struct {
	Winner int     // index into Winners; negative: nothing was compared
	Clear  bool    // it wins by more than noise
	Gain   float64 // the next best's time over the winner's
}

// HeatQuestion is what each contender takes at each size.
type HeatQuestion struct {
	Name       string
	Sizes      []int64 // bytes
	Contenders []HeatContender
	// Winner is the index of the fastest contender by size, Clear whether it wins by
	// more than noise, Crossed whether another one won clearly up to here.
	Winner         []int
	Clear, Crossed []bool
	// Crossings are the changes of the winner in words.
	Crossings []string
}

// HeatContender is a contender's row.
type HeatContender struct {
	Name  string
	Times []int64 // ns by size; negative: not measured
}

// HeatLoss is what one contender for everything takes, over the best at each place.
type HeatLoss struct {
	Name           string
	Mean, Worst    float64
	Where          string
	Places, Of     int
	Everywhere     bool
	MeanText, Text string // set by the page
}

// heatView is a map as it is drawn.
type heatView struct {
	*HeatMap
	Heads     []string
	Legend    []heatKey
	Lines     []heatLine
	Maps      []heatTable
	MapsLeft  int
	LossesTop []HeatLoss
}

// heatKey is a winner of the legend.
type heatKey struct{ Letter, Name, Class string }

// heatLine is a row of the map.
type heatLine struct {
	Question string
	Cells    []heatSquare
}

// heatSquare is a cell: its text, its class and what it says in words.
type heatSquare struct{ Text, Class, Tip string }

// heatTable is the times of one question.
type heatTable struct {
	Name      string
	Heads     []string
	Lines     []heatLine
	Crossings []string
}

// maxHeats is how many questions have a table of times.
const maxHeats = 40

// slower are the shades of times over the winner's: up to each of these.
var slower = [...]float64{1, 1.03, 1.25, 1.6, 2.5, 5}

func heatViewOf(h *HeatMap) *heatView {
	v := &heatView{HeatMap: h}
	letters := heatLetters(h.Winners)
	for i, name := range h.Winners {
		v.Legend = append(v.Legend, heatKey{letters[i], report.Printable(name), fmt.Sprintf("h-%d", i%8)})
	}
	for _, bytes := range h.Columns {
		v.Heads = append(v.Heads, report.Size(bytes))
	}
	for _, row := range h.Rows {
		line := heatLine{Question: report.Printable(row.Question)}
		for _, c := range row.Cells {
			if c.Winner < 0 || c.Winner >= len(h.Winners) {
				line.Cells = append(line.Cells, heatSquare{})
				continue
			}
			s := heatSquare{Text: letters[c.Winner], Class: fmt.Sprintf("h-%d", c.Winner%8), Tip: fmt.Sprintf("%s, %s", report.Printable(h.Winners[c.Winner]), gainText(c.Gain, c.Clear))}
			if c.Clear {
				s.Text += fmt.Sprintf(" %.2g", c.Gain)
			} else {
				s.Text, s.Class = "~"+s.Text, s.Class+" unclear"
			}
			line.Cells = append(line.Cells, s)
		}
		v.Lines = append(v.Lines, line)
	}
	for i := range h.Questions {
		if i == maxHeats {
			v.MapsLeft = len(h.Questions) - i
			break
		}
		v.Maps = append(v.Maps, heatTableOf(&h.Questions[i]))
	}
	for _, l := range h.Losses[:min(len(h.Losses), maxRows)] {
		l.Name, l.Everywhere = report.Printable(l.Name), l.Places == l.Of
		l.MeanText = fmt.Sprintf("%+.1f %%", 100*(l.Mean-1))
		l.Text = fmt.Sprintf("%.1f times the time: %s", l.Worst, report.Printable(l.Where))
		v.LossesTop = append(v.LossesTop, l)
	}
	return v
}

func gainText(gain float64, clear bool) string {
	if !clear {
		return "not clear"
	}
	return fmt.Sprintf("the next best takes %.2f times as long", gain)
}

// heatLetters gives every winner a letter, of its name where that is free.
func heatLetters(names []string) []string {
	out, taken := make([]string, len(names)), map[rune]bool{}
	for i, name := range names {
		out[i] = "?"
		if _, variant, ok := strings.Cut(name, ":"); ok { // settings of one library differ in these
			name = variant
		}
		for _, r := range name + "abcdefghijklmnopqrstuvwxyz" {
			if r >= 'A' && r <= 'Z' {
				r += 'a' - 'A'
			}
			if r >= 'a' && r <= 'z' && !taken[r] {
				out[i], taken[r] = string(r+'A'-'a'), true
				break
			}
		}
	}
	return out
}

// heatTableOf shades the times of one question by how much longer than the best
// they are. Crossed columns begin with a line.
func heatTableOf(q *HeatQuestion) heatTable {
	t := heatTable{Name: report.Printable(q.Name)}
	for _, bytes := range q.Sizes {
		t.Heads = append(t.Heads, report.Size(bytes))
	}
	for k, c := range q.Contenders {
		line := heatLine{Question: report.Printable(c.Name)}
		for i, ns := range c.Times {
			s := heatSquare{Text: "–", Tip: "not measured"}
			best := q.Contenders[q.Winner[i]].Times[i]
			if ns >= 0 && best > 0 {
				ratio := float64(ns) / float64(best)
				s = heatSquare{Text: report.Duration(ns), Class: fmt.Sprintf("t-%d", shade(ratio)), Tip: fmt.Sprintf("%.2f times the best", ratio)}
			}
			if q.Winner[i] == k && q.Clear[i] {
				s.Class += " wins"
			}
			if q.Crossed[i] {
				s.Class += " crossed"
			}
			line.Cells = append(line.Cells, s)
		}
		t.Lines = append(t.Lines, line)
	}
	for _, x := range q.Crossings {
		t.Crossings = append(t.Crossings, printable(x, 300))
	}
	return t
}

// shade is the index of the first bound that holds the ratio.
func shade(ratio float64) int {
	for i, bound := range slower {
		if ratio <= bound {
			return i
		}
	}
	return len(slower)
}

// places counts the cells of the map and those of each winner that wins clearly.
func (h *HeatMap) places() (all, clear int, wins []int) {
	wins = make([]int, len(h.Winners))
	for _, row := range h.Rows {
		for _, c := range row.Cells {
			if c.Winner < 0 || c.Winner >= len(wins) {
				continue
			}
			all++
			if c.Clear {
				clear++
				wins[c.Winner]++
			}
		}
	}
	return all, clear, wins
}

// where is what the times are of.
func (h *HeatMap) where() string {
	if h.Host {
		return "in host memory, which says nothing about GPUs"
	}
	return "on GPUs"
}

// answer says who wins most, and what one library for everything costs.
func (h *HeatMap) answer() Answer {
	all, clear, wins := h.places()
	if all == 0 {
		return Answer{Sentence: "The table compares nothing: no operation was measured with more than one library."}
	}
	best := 0
	for i := range wins {
		if wins[i] > wins[best] {
			best = i
		}
	}
	out := Answer{Sentence: fmt.Sprintf("Of %d places (operations by size), %s wins clearly at %d", all, report.Printable(h.Winners[best]), wins[best])}
	if clear == 0 {
		out.Sentence = fmt.Sprintf("At none of %d places (operations by size) does any library win by more than noise", all)
	}
	crossings := 0
	for i := range h.Questions {
		crossings += len(h.Questions[i].Crossings)
	}
	switch {
	case crossings == 1:
		out.Sentence += ", and the winner changes with the size once"
	case crossings > 1:
		out.Sentence += fmt.Sprintf(", and the winner changes with the size %d times", crossings)
	}
	out.Figures = append(out.Figures, Figure{Label: "of places have a clear winner", Value: percent(int64(clear), int64(all)), About: fmt.Sprintf("%d of %d, %s", clear, all, h.where())})
	if len(h.Losses) > 0 && !math.IsNaN(h.Losses[0].Mean) {
		l := h.Losses[0]
		out.Sentence += fmt.Sprintf("; %s for everything takes %.1f %% longer than the best at each place", report.Printable(l.Name), 100*(l.Mean-1))
		out.Figures = append(out.Figures, Figure{
			Label: "lost by one library for everything, at least", Value: fmt.Sprintf("%.1f %%", 100*(l.Mean-1)), Kind: "transfer",
			About: fmt.Sprintf("%s; at worst it takes %.1f times the best", report.Printable(l.Name), l.Worst),
		})
	}
	out.Sentence += "."
	out.Figures = append(out.Figures, Figure{Label: "changes of the winner with size", Value: fmt.Sprint(crossings), About: fmt.Sprintf("over %d questions, of %d measurements", len(h.Questions), h.Measurements)})
	return out
}

// questions are what a reader of a map by itself asks.
func (h *HeatMap) questions() []Question {
	list := []Question{{Ask: "Which library for which operation and size?", Section: "heat", Answer: "The map shows the winner of each place."}}
	changes := Question{Ask: "Where does the winner change?", Section: "heat", Answer: "Nowhere, as far as was measured."}
	for i := range h.Questions {
		if x := h.Questions[i].Crossings; len(x) > 0 {
			changes.Answer = fmt.Sprintf("%s: %s.", report.Printable(h.Questions[i].Name), printable(x[0], 200))
			break
		}
	}
	use := Question{Ask: "How do I apply it?", Answer: "Let a replay choose a mix from the table and measure it on your job:", Command: "mixdown replay traces/ --mix auto --table " + Quote(h.Source)}
	return append(list, changes, use)
}
