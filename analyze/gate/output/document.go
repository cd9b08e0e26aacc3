package output

import (
	"fmt"
	"io"
	"strings"

	"mixdown/analyze/gate"
	"mixdown/analyze/gate/shift"
	"mixdown/analyze/report"
)

// Document is a comparison of two runs in the shape that every format is written
// from, whichever verb made it: checks with their values before and after, the
// outcome of each, and an answer. OfGate and OfDiff make one.
type Document struct {
	// Verb is what made it: gate or diff.
	Verb    string
	Outcome gate.Outcome
	Answer  string // in a sentence
	// Policy is the file of the rules, "" when there is none.
	Policy string
	// Before is nil when nothing was compared, only bounds were held against.
	Before, After *gate.Side

	Comparisons []gate.Comparison
	Checks      []gate.Check
	Notes       []string
	// Method says how changes, intervals and p were computed.
	Method string
	// Confidence of the intervals.
	Confidence float64

	// Parts are where the time of a step went, empty when that is not known.
	Parts []Part
	// Diagnostics of both runs; nil where a run was read from a record, which has none.
	Diagnostics []SideDiagnostics
	// StepsBefore and StepsAfter are the times of all steps that count, ns.
	StepsBefore, StepsAfter []float64

	value any // what JSON has
	text  func(io.Writer, Options) error
}

// SideDiagnostics are those of one run.
type SideDiagnostics struct {
	Of   string // before, after
	List []report.Diagnostic
}

// Part is a part of the time of a step, mean over the ranks, ns.
type Part struct {
	Metric        gate.Metric
	Before, After *float64 // nil: not known
}

// tool is what programs are told made the document.
func (d *Document) tool() string { return "mixdown " + d.Verb }

// sides is what the two runs are called.
func (d *Document) sides() (before, after string) {
	if d.Verb == "diff" {
		return "before", "after"
	}
	return "baseline", "candidate"
}

// limited says whether the checks have limits.
func (d *Document) limited() bool { return d.Verb == "gate" }

// OfGate is the document of a gate's result.
func OfGate(r *gate.Result) *Document {
	d := &Document{
		Verb: "gate", Outcome: r.Outcome, Answer: r.Answer, Policy: r.Policy, Before: r.Baseline, After: r.Candidate,
		Comparisons: r.Comparisons, Checks: r.Checks, Notes: r.Notes, Confidence: r.Confidence,
		Method: fmt.Sprintf("Changes are Hodges-Lehmann shifts with intervals of %.4g %%; p is that of Mann-Whitney tests, corrected for all of them (Holm).", 100*r.Confidence),
		value:  r,
	}
	d.text = func(w io.Writer, opts Options) error { return writeText(w, d, opts) }
	return d
}

// AddRecords adds what the records of the two runs say beyond the checks: the
// parts of a step and the times of all steps but the first warmup. Before may be
// nil.
func (d *Document) AddRecords(before, after *gate.Record, warmup int) {
	values := func(r *gate.Record, m gate.Metric) []float64 {
		if r == nil {
			return nil
		}
		return r.Values(m, nil, warmup)
	}
	d.StepsBefore, d.StepsAfter = values(before, gate.Step), values(after, gate.Step)
	for _, m := range parts {
		if p := (Part{Metric: m, Before: Median(values(before, m)), After: Median(values(after, m))}); p.After != nil {
			d.Parts = append(d.Parts, p)
		}
	}
}

// parts of a step's time, in the order of reports.
var parts = []gate.Metric{gate.Compute, gate.ExposedComm, gate.Memory, gate.Idle, gate.HiddenComm}

// Median of values; it is nil without values.
func Median(values []float64) *float64 {
	c := shift.Median(values, 0)
	if c.N == 0 {
		return nil
	}
	return &c.Median
}

// Count counts the checks with an outcome.
func (d *Document) Count(o gate.Outcome) int {
	n := 0
	for i := range d.Checks {
		if d.Checks[i].Outcome == o {
			n++
		}
	}
	return n
}

// title is a check with its limit, if it has one.
func title(c *gate.Check) string { return strings.TrimSpace(c.Name() + " " + c.Limit) }

// Figures are what tables show of a check, as text; what is not known is empty.
type Figures struct {
	Of                              string // what it is about beside its metric
	Before, After, Change, Interval string
	P, Steps                        string
}

// FiguresOf are those of a check.
func FiguresOf(c *gate.Check) Figures {
	f := Figures{Of: where(c), P: significance(c), Steps: steps(c)}
	f.Before, f.After, f.Change, f.Interval = figures(c)
	return f
}
