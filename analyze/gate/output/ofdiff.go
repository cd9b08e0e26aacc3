package output

import (
	"fmt"
	"io"
	"math"
	"slices"

	"mixdown/analyze/diff"
	"mixdown/analyze/gate"
	"mixdown/analyze/gate/shift"
)

// diffConfidence is that of the intervals of a diff.
const diffConfidence = 0.95

// OfDiff is the document of a diff. A diff judges nothing, so what got worse is a
// warning, what got better an improvement, and the rest passes. Its checks have the
// metrics and labels of gates: each can be made a rule as it stands.
func OfDiff(d *diff.Diff) *Document {
	doc := &Document{
		Verb: "diff", Outcome: gate.Pass, Answer: d.Answer, Confidence: diffConfidence,
		Before: sideOfDiff(&d.Before), After: sideOfDiff(&d.After), Comparisons: []gate.Comparison{}, Checks: []gate.Check{}, Notes: []string{},
		Method: fmt.Sprintf("Values are means over ranks, changes are those of medians over steps; intervals (%.4g %%) are of Hodges-Lehmann shifts, p is that of Mann-Whitney tests, not corrected for the number of rows.", 100*diffConfidence),
		value:  d,
	}
	doc.text = func(w io.Writer, opts Options) error {
		return d.WriteText(w, diff.TextOptions{Rows: opts.Rows, Look: opts.Look})
	}
	for _, n := range d.Notes {
		doc.Notes = append(doc.Notes, n.Text)
	}
	doc.StepsBefore, doc.StepsAfter = d.Time.Step.Samples()
	doc.Diagnostics = []SideDiagnostics{{"before", d.Before.Diagnostics}, {"after", d.After.Diagnostics}}
	if !d.Comparable {
		doc.Outcome = gate.NotComparable
	}
	o := ofDiff{d: d, doc: doc}
	o.times()
	for i := range d.Operations {
		o.operation(&d.Operations[i])
	}
	return doc
}

func sideOfDiff(s *diff.Side) *gate.Side {
	return &gate.Side{
		Source: s.Name, Steps: s.Steps,
		Facts: gate.Facts{WorldSize: s.WorldSize, RanksRead: s.RanksRead, Device: s.Device, Backend: s.Backend},
	}
}

// ofDiff is a document of a diff in the making.
type ofDiff struct {
	d   *diff.Diff
	doc *Document
}

// times makes the checks of the step and its parts, and the parts themselves.
func (o *ofDiff) times() {
	t := &o.d.Time
	step := o.check(gate.Step, nil, &t.Step, o.d.StepVerdict(), 1)
	if cause := o.d.Cause(); cause != "" && step.Outcome != gate.Pass {
		step.Cause = &gate.Cause{Text: cause, Command: o.command()}
	}
	if o.d.Comparable {
		o.doc.Outcome = step.Outcome
	}
	o.doc.Checks = append(o.doc.Checks, step)
	for _, metric := range parts {
		m := map[gate.Metric]*diff.Metric{gate.Compute: &t.Compute, gate.ExposedComm: &t.Exposed, gate.Memory: &t.Memory, gate.Idle: &t.Idle, gate.HiddenComm: &t.Hidden}[metric]
		o.doc.Parts = append(o.doc.Parts, Part{Metric: metric, Before: m.PerRankBefore, After: m.PerRankAfter})
		verdict := o.d.PartVerdict(m)
		if metric == gate.HiddenComm {
			verdict = diff.Unchanged // more of it is neither better nor worse
		}
		o.doc.Checks = append(o.doc.Checks, o.check(metric, nil, m, verdict, o.ranks()))
	}
}

// ranks is what sums over ranks are divided by.
func (o *ofDiff) ranks() float64 {
	if o.d.Basis == diff.BySum {
		return float64(max(o.d.After.StepRanks, 1))
	}
	return 1
}

// operation makes the checks of one kind of communication: its exposed time, and
// what else stands out.
func (o *ofDiff) operation(op *diff.Operation) {
	labels := gate.Labels{gate.ByOp: string(op.Op)}
	if op.Group != nil {
		labels[gate.ByGroup] = *op.Group
	}
	if op.SizeTo != nil {
		labels[gate.BySize] = op.Class()
	}
	if op.Phase != nil {
		labels[gate.ByPhase] = *op.Phase
	}
	metrics := []struct {
		name   string
		metric gate.Metric
		m      *diff.Metric
	}{{"exposed_ns", gate.ExposedComm, &op.Exposed}, {"total_ns", gate.Comm, &op.Total}, {"count", gate.Count, &op.Count}, {"bytes", gate.Bytes, &op.Bytes}}
	for i, one := range metrics {
		verdict := diff.Unchanged
		for _, name := range op.Changed {
			if name == one.name {
				verdict = op.Verdict
				if change, ok := changeOf(one.m); ok && (verdict == diff.Grew || verdict == diff.Shrank) {
					verdict = map[bool]diff.Verdict{true: diff.Grew, false: diff.Shrank}[change > 0]
				}
			}
		}
		news := op.Verdict == diff.Appeared || op.Verdict == diff.Vanished
		if i > 0 && (verdict == diff.Unchanged || news && one.metric != gate.Count) {
			continue // of what came or went its time and count say all
		}
		if one.metric == gate.Comm && slices.Contains(op.Changed, "exposed_ns") {
			continue // the same said twice
		}
		c := o.check(one.metric, labels, one.m, verdict, o.ranks())
		if c.Outcome != gate.Pass && one.metric == gate.ExposedComm {
			c.Cause = &gate.Cause{Text: o.split(op), Group: op.Group, Phase: op.Phase, Command: o.command()}
		}
		o.doc.Checks = append(o.doc.Checks, c)
	}
}

// split says whether waiting or transfer changed.
func (o *ofDiff) split(op *diff.Operation) string {
	wait, known := changeOf(&op.Wait)
	transfer, also := changeOf(&op.Transfer)
	if !known || !also {
		return ""
	}
	n := o.ranks()
	return fmt.Sprintf("waiting %s, transfer %s", gate.Nanoseconds.Signed(wait/n), gate.Nanoseconds.Signed(transfer/n))
}

// command shows more than the diff does.
func (o *ofDiff) command() string {
	return "mixdown analyze " + gate.Quote(o.d.After.Name) + " --breakdown --rows -1"
}

// changeOf is the change that was compared, false when it is not known.
func changeOf(m *diff.Metric) (float64, bool) {
	switch {
	case m.Change != nil:
		return float64(*m.Change), true
	case m.PerRankChange != nil:
		return *m.PerRankChange, true
	}
	return 0, false
}

// check makes a check of a quantity whose values are divided by ranks.
func (o *ofDiff) check(metric gate.Metric, labels gate.Labels, m *diff.Metric, verdict diff.Verdict, ranks float64) gate.Check {
	c := gate.Check{Rule: string(metric), Metric: metric, Labels: labels, Unit: metric.Unit(), Warn: true, Outcome: gate.Pass, P: m.P}
	if m.P != nil && *m.P == 1 {
		c.P = nil // the values are the same
	}
	x, y := m.Samples()
	c.Baseline, c.Candidate = sampleOf(x, ranks), sampleOf(y, ranks)
	change, known := changeOf(m)
	if !known || c.Baseline == nil || c.Candidate == nil {
		if verdict == diff.Unchanged {
			c.Reason = "the change is not known"
		}
	} else {
		change /= ranks
		c.Change, c.Relative = &change, m.Relative
		if o.d.Before.Steps >= diff.MinSteps && o.d.After.Steps >= diff.MinSteps {
			_, low, high, _ := shift.Interval(c.Baseline.Values, c.Candidate.Values, diffConfidence)
			c.Low, c.High = &low, &high
		}
		c.Reason = fmt.Sprintf("%s -> %s (%s", c.Unit.Format(c.Baseline.Median), c.Unit.Format(c.Candidate.Median), c.Unit.Signed(change))
		if m.Relative != nil && math.Abs(*m.Relative) < 10 {
			c.Reason += fmt.Sprintf(", %+.1f %%", 100**m.Relative)
		}
		c.Reason += ")"
	}
	switch verdict {
	case diff.Appeared, diff.Vanished:
		c.Reason = string(verdict) + ": " + c.Reason
	}
	switch verdict {
	case diff.Grew, diff.Appeared:
		c.Outcome = gate.Warning
	case diff.Shrank, diff.Vanished:
		c.Outcome = gate.Improved
	}
	return c
}

// sampleOf is nil without values.
func sampleOf(values []float64, ranks float64) *gate.Sample {
	if len(values) == 0 {
		return nil
	}
	s := &gate.Sample{N: len(values)}
	for _, v := range values {
		s.Values = append(s.Values, v/ranks)
	}
	s.Median = shift.Median(s.Values, 0).Median
	return s
}
