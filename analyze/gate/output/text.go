package output

import (
	"fmt"
	"io"
	"math"
	"strings"

	"mixdown/analyze/gate"
	"mixdown/analyze/report"
)

// shownChecks is how many checks a page of text shows.
const shownChecks = 40

// writeText writes the result of a gate for a terminal: the answer, a table of the checks,
// then what stops the gate, each with its cause and the command that shows it.
func writeText(w io.Writer, r *Document, opts Options) error {
	p := report.NewPageFor(opts.Wide, opts.Look)
	p.Linef("%s", report.Printable(r.Answer))
	if r.Before != nil {
		p.Linef("baseline  %s", SideText(r.Before))
	}
	p.Linef("candidate %s", SideText(r.After))
	writeChecks(p, r, opts)
	for i := range r.Checks {
		c := &r.Checks[i]
		if !Told(c) {
			continue
		}
		p.Headingf("%s: %s", c.Outcome, report.Printable(c.Name()))
		p.Linef("  %s", message(c))
		if a := advice(c); a != "" {
			p.Linef("  see: %s", a)
		}
	}
	if differs := comparisonLines(r, gate.Differs); len(differs) > 0 {
		p.Headingf("What differs between the runs (comparable.ignore in the policy accepts it)")
		for _, line := range differs {
			p.Linef("  %s", line)
		}
	}
	if len(r.Notes) > 0 {
		p.Headingf("Notes")
		for _, n := range r.Notes {
			p.Linef("  %s", report.Printable(n))
		}
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// writeChecks writes the table: all checks, or those that matter first when there
// are many. Checks of runs that are not comparable have nothing to show.
func writeChecks(p *report.Page, r *Document, opts Options) {
	var first, rest []*gate.Check
	for i := range r.Checks {
		switch c := &r.Checks[i]; {
		case c.Outcome == gate.NotComparable:
		case Told(c):
			first = append(first, c)
		default:
			rest = append(rest, c)
		}
	}
	list, left := append(first, rest...), 0
	if !opts.Wide && len(list) > shownChecks {
		list, left = list[:shownChecks], len(list)-shownChecks
	}
	if len(list) == 0 {
		return
	}
	p.Headingf("Checks (changes are Hodges-Lehmann shifts; p is corrected for all tests, below %.3g is no chance)", 1-r.Confidence)
	reach := reachOf(list)
	axis := fmt.Sprintf("%-*s%*s", intervalColumns/2, fmt.Sprintf("-%.0f %%", 100*reach), intervalColumns-intervalColumns/2, fmt.Sprintf("+%.0f %%", 100*reach))
	g := report.NewGrid(report.Column{Head: "outcome"}, report.Column{Head: "metric"}, report.Column{Head: "of", Kind: report.Names}, report.Column{Head: "limit"},
		report.Column{Head: "baseline"}, report.Column{Head: "candidate"}, report.Column{Head: "change"}, report.Column{Head: "p"},
		report.Column{Head: "steps", Kind: report.Detail}, report.Column{Head: "interval", Kind: report.Detail}, report.Column{Head: axis, Kind: report.Picture})
	for _, c := range list {
		before, after, change, interval := figures(c)
		g.Row(string(c.Outcome), string(c.Metric), report.Printable(where(c)), strings.ReplaceAll(c.Limit, " and ", ", "), before, after, change, significance(c), steps(c), interval, drawn(c, reach, opts.Look))
	}
	p.Grid(g)
	if left > 0 {
		p.Linef("... and %d more checks (--wide shows all)", left)
	}
}

// intervalColumns is how wide the picture of a change and its interval is.
const intervalColumns = 21

// reachOf is the largest change, relative to the value before, that the intervals of
// checks reach, at most 1.
func reachOf(list []*gate.Check) float64 {
	reach := 0.05
	for _, c := range list {
		if low, high, _, ok := relative(c); ok {
			reach = max(reach, math.Abs(low), math.Abs(high))
		}
	}
	return min(reach, 1)
}

// relative is a change and its interval over the value before; false when it has none.
func relative(c *gate.Check) (low, high, at float64, ok bool) {
	if c.Baseline == nil || c.Baseline.Median == 0 || c.Change == nil || c.Low == nil || c.High == nil {
		return 0, 0, 0, false
	}
	scale := math.Abs(c.Baseline.Median)
	return *c.Low / scale, *c.High / scale, *c.Change / scale, true
}

// drawn is the change and its interval as a picture, padded to its width.
func drawn(c *gate.Check, reach float64, look report.Look) string {
	low, high, at, ok := relative(c)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%-*s", intervalColumns, look.Interval(low, at, high, 0, -reach, reach, intervalColumns))
}

// SideText is a run in words: where it is from, its ranks and its steps.
func SideText(s *gate.Side) string {
	text := fmt.Sprintf("%s: %d ranks", report.Printable(s.Source), s.Facts.RanksRead)
	if s.Facts.Device != "" {
		text += ", " + report.Printable(s.Facts.Device)
	}
	text += fmt.Sprintf(", %d steps", s.Steps)
	if s.Skipped > 0 {
		text += fmt.Sprintf(" (the first %d left out)", s.Skipped)
	}
	return text
}

// comparisonLines are the items with a status in words.
func comparisonLines(r *Document, status gate.Status) []string {
	var list []string
	for _, c := range r.Comparisons {
		if c.Status == status {
			list = append(list, fmt.Sprintf("%s: %s in the baseline, %s in the candidate", c.Item, report.Printable(c.Baseline), report.Printable(c.Candidate)))
		}
	}
	return list
}
