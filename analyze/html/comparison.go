package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"mixdown/analyze/gate"
	"mixdown/analyze/gate/output"
	"mixdown/analyze/report"
)

// comparisonView is a gate or a diff on its page.
type comparisonView struct {
	Gate          bool
	Before, After string // the runs in words
	Method        string

	Rows     []checkRow
	Left     int
	Low, Top string // of the axis of changes
	Told     []toldRow
	ToldLeft int
	Changes  []changeRow
	ChgLeft  int
	Parts    []partRow
	Bars     [2][]segment // of the step before and after
	Steps    *stripView
	Chart    *chart
	Same     []comparedRow // what was held against each other
	Notes    []string
}

// checkRow is a check of the table.
type checkRow struct {
	Outcome, Mark, Name, Of, Limit, Before, After, Change, Interval, P, Steps string
	// The change and its interval on the axis, in per cent of its width; Zero is
	// where no change lies. Drawn says whether there is anything to draw.
	Drawn                 bool
	Kind                  string
	From, Width, At, Zero string
	Threshold             string // where the limit is, "" for none
}

// toldRow is a check with its cause.
type toldRow struct{ Outcome, Mark, Name, Text, Cause, Command string }

// changeRow is how the exposed time of one kind of communication changed.
type changeRow struct {
	Name, Change, Before, After, Kind string
	X, W                              string // the bar, in per cent; 50 is no change
}

// partRow is a part of the step.
type partRow struct{ Name, Kind, Before, After, Change string }

// comparedRow is something in which the runs must agree.
type comparedRow struct {
	Item, Before, After, Status string
	Differs                     bool
}

// marks of outcomes: read without colour.
var outcomeMarks = map[gate.Outcome]string{
	gate.Pass: "·", gate.Improved: "▼", gate.Warning: "▲", gate.Waived: "△", gate.Regression: "▲", gate.Inconclusive: "?", gate.NotComparable: "?",
}

// Limits of the page's tables.
const (
	maxChecks  = 60
	maxTold    = 20
	maxChanges = 16
	maxStatus  = 40
)

func comparisonOf(d *output.Document) *comparisonView {
	v := &comparisonView{Gate: d.Verb == "gate", Method: d.Method, After: output.SideText(d.After)}
	if d.Before != nil {
		v.Before = output.SideText(d.Before)
	}
	v.checks(d)
	v.told(d)
	v.changes(d)
	v.parts(d)
	v.Steps, v.Chart = stripOf(d), stepChart(d)
	for _, c := range d.Comparisons[:min(len(d.Comparisons), maxStatus)] {
		v.Same = append(v.Same, comparedRow{
			Item: string(c.Item), Before: orUnknown(c.Baseline), After: orUnknown(c.Candidate), Status: strings.ReplaceAll(string(c.Status), "_", " "), Differs: c.Status == gate.Differs,
		})
	}
	for _, n := range d.Notes[:min(len(d.Notes), maxStatus)] {
		v.Notes = append(v.Notes, printable(n, 600))
	}
	return v
}

func orUnknown(s string) string {
	if s == "" {
		return "not known"
	}
	return printable(s, 300)
}

// ordered are the checks, those first that stop or warn, then what got better.
func ordered(d *output.Document) []*gate.Check {
	rank := map[gate.Outcome]int{gate.Regression: 0, gate.NotComparable: 1, gate.Inconclusive: 1, gate.Warning: 2, gate.Waived: 3, gate.Improved: 4, gate.Pass: 5}
	var list []*gate.Check
	for i := range d.Checks {
		list = append(list, &d.Checks[i])
	}
	slices.SortStableFunc(list, func(a, b *gate.Check) int { return cmp.Compare(rank[a.Outcome], rank[b.Outcome]) })
	return list
}

func colourOf(o gate.Outcome) string {
	switch o {
	case gate.Regression, gate.Warning, gate.Waived:
		return "bad"
	case gate.Improved:
		return "good"
	}
	return "unsure"
}

// checks makes the table of checks. Changes are drawn relative to the value before,
// on one axis.
func (v *comparisonView) checks(d *output.Document) {
	list := ordered(d)
	reach := 0.05
	for _, c := range list[:min(len(list), maxChecks)] {
		if scale, ok := scaleOf(c); ok {
			reach = max(reach, math.Abs(*c.Low/scale), math.Abs(*c.High/scale))
		}
	}
	reach = min(reach*1.05, 1)
	v.Low, v.Top = fmt.Sprintf("−%.0f %%", 100*reach), fmt.Sprintf("+%.0f %%", 100*reach)
	at := func(share float64) float64 { return 50 + 50*min(max(share/reach, -1), 1) }
	for i, c := range list {
		if i == maxChecks {
			v.Left = len(list) - i
			break
		}
		f := output.FiguresOf(c)
		row := checkRow{
			Outcome: strings.ReplaceAll(string(c.Outcome), "_", " "), Mark: outcomeMarks[c.Outcome], Kind: colourOf(c.Outcome), Name: string(c.Metric), Of: report.Printable(f.Of),
			Limit: c.Limit, Before: f.Before, After: f.After, Change: f.Change, Interval: f.Interval, P: f.P, Steps: f.Steps, Zero: "50",
		}
		if scale, ok := scaleOf(c); ok {
			from, to := at(*c.Low/scale), at(*c.High/scale)
			row.Drawn = true
			row.From, row.Width, row.At = place(from), place(max(to-from, 0.4)), place(min(at(*c.Change/scale), 99.2))
			if c.Threshold != nil && math.Abs(*c.Threshold/scale) < reach {
				side := 1.0
				if c.Metric.HigherIsBetter() {
					side = -1
				}
				row.Threshold = place(at(side * *c.Threshold / scale))
			}
		}
		v.Rows = append(v.Rows, row)
	}
}

// scaleOf is the value that a change is drawn relative to, false when there is none.
func scaleOf(c *gate.Check) (float64, bool) {
	if c.Baseline == nil || c.Baseline.Median == 0 || c.Change == nil || c.Low == nil || c.High == nil {
		return 0, false
	}
	return math.Abs(c.Baseline.Median), true
}

func place(x float64) string { return strings.TrimSuffix(fmt.Sprintf("%.2f", x), ".00") }

// told are the checks that stop, warn or can't be told, with their cause.
func (v *comparisonView) told(d *output.Document) {
	for _, c := range ordered(d) {
		if !output.Told(c) || !v.Gate && c.Cause == nil {
			continue // what has no limit and no cause is in the table
		}
		if len(v.Told) == maxTold {
			v.ToldLeft++
			continue
		}
		row := toldRow{Outcome: string(c.Outcome), Mark: outcomeMarks[c.Outcome], Name: report.Printable(c.Name()), Text: strings.ReplaceAll(printable(c.Reason, 500), " -> ", " → ")}
		if c.Limit != "" && c.Breached() {
			row.Text += "; the limit is " + c.Limit
		}
		if c.Waiver != nil {
			row.Text += "; " + printable(*c.Waiver, 300)
		}
		if c.Cause != nil {
			row.Cause, row.Command = printable(c.Cause.Text, 500), printable(c.Cause.Command, 500)
		}
		v.Told = append(v.Told, row)
	}
}

// changes are those of exposed time by kind of communication, the largest first.
func (v *comparisonView) changes(d *output.Document) {
	var list []*gate.Check
	longest := 0.0
	for i := range d.Checks {
		c := &d.Checks[i]
		if _, of := c.Labels[gate.ByOp]; of && c.Metric == gate.ExposedComm && c.Change != nil && *c.Change != 0 {
			list = append(list, c)
			longest = max(longest, math.Abs(*c.Change))
		}
	}
	slices.SortStableFunc(list, func(a, b *gate.Check) int { return cmp.Compare(math.Abs(*b.Change), math.Abs(*a.Change)) })
	for i, c := range list {
		if i == maxChanges {
			v.ChgLeft = len(list) - i
			break
		}
		f := output.FiguresOf(c)
		row := changeRow{Name: report.Printable(f.Of), Change: c.Unit.Signed(*c.Change), Before: f.Before, After: f.After, Kind: colourOf(c.Outcome), X: "50"}
		width := 50 * math.Abs(*c.Change) / longest
		if *c.Change < 0 {
			row.X = place(50 - width)
		}
		row.W = place(width)
		v.Changes = append(v.Changes, row)
	}
}

// parts are those of the step: a bar of each run and a row of each part.
func (v *comparisonView) parts(d *output.Document) {
	names := map[gate.Metric]string{gate.Compute: "computation", gate.ExposedComm: "exposed communication", gate.HiddenComm: "communication hidden by it", gate.Memory: "copies", gate.Idle: "idle"}
	kinds := map[gate.Metric]string{gate.Compute: "compute", gate.ExposedComm: "exposed", gate.HiddenComm: "hidden", gate.Memory: "memory", gate.Idle: "idle"}
	before, after := map[gate.Metric]int64{}, map[gate.Metric]int64{}
	for _, p := range d.Parts {
		row := partRow{Name: names[p.Metric], Kind: kinds[p.Metric], Before: "?", After: "?", Change: "?"}
		if p.Before != nil {
			before[p.Metric] = int64(*p.Before)
			row.Before = report.Duration(int64(*p.Before))
		}
		if p.After != nil {
			after[p.Metric] = int64(*p.After)
			row.After = report.Duration(int64(*p.After))
		}
		if p.Before != nil && p.After != nil {
			row.Change = gate.Nanoseconds.Signed(*p.After - *p.Before)
		}
		v.Parts = append(v.Parts, row)
	}
	sum := func(m map[gate.Metric]int64) int64 {
		return m[gate.Compute] + m[gate.ExposedComm] + m[gate.Memory] + m[gate.Idle]
	}
	whole := max(sum(before), sum(after))
	for i, m := range []map[gate.Metric]int64{before, after} {
		b := bar{whole: whole}
		hidden := min(m[gate.HiddenComm], m[gate.Compute])
		b.add("compute", "computation", m[gate.Compute]-hidden)
		b.add("hidden", "computation with communication behind it", hidden)
		b.add("exposed", "exposed communication", m[gate.ExposedComm])
		b.add("memory", "copies", m[gate.Memory])
		b.add("idle", "idle", m[gate.Idle])
		v.Bars[i] = b.list
	}
}
