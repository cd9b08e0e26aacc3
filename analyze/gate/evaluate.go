package gate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"mixdown/analyze/gate/shift"
	"mixdown/analyze/report"
)

// ErrNoBaseline: a policy whose rules limit changes, and nothing to compare with.
var ErrNoBaseline = errors.New("the policy limits changes, and there is no baseline")

// Evaluate holds the candidate against the baseline, which may be nil when no rule
// of the policy limits a change. Now decides which waivers hold.
func Evaluate(baseline, candidate *Record, p *Policy, now time.Time) (*Result, error) {
	changes := slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Changes() })
	if changes && baseline == nil {
		return nil, ErrNoBaseline
	}
	r := &Result{
		SchemaVersion: ResultVersion, Policy: p.File, Confidence: p.Confidence,
		Candidate: sideOf(candidate, p), Comparisons: []Comparison{}, Checks: []Check{}, Notes: []string{},
	}
	e := &evaluation{baseline: baseline, candidate: candidate, policy: p, result: r, movements: map[string]movement{}, tops: map[string]topRank{}}
	if changes {
		r.Baseline = sideOf(baseline, p)
		r.Comparisons = comparisons(baseline, candidate, p)
		e.differs = slices.ContainsFunc(r.Comparisons, func(c Comparison) bool { return c.Status == Differs })
	}
	for i := range p.Rules {
		e.add(&p.Rules[i])
	}
	e.decide()
	e.waive(now)
	e.notes()
	r.conclude()
	return r, nil
}

func sideOf(r *Record, p *Policy) *Side {
	s := &Side{Source: r.Name(), Facts: r.Facts, Steps: len(r.Steps)}
	s.Skipped = min(p.Samples.Warmup, s.Steps)
	if r.Replay != nil {
		s.Steps = len(r.Replay.Variants[0].Step)
	}
	return s
}

// evaluation is a gate at work.
type evaluation struct {
	baseline, candidate *Record
	policy              *Policy
	differs             bool // the runs are not comparable
	result              *Result
	rules               []*Rule // by index of check
	tests               []*test // the same; nil where nothing can be tested

	// What causes were looked for in, see search.
	movements map[string]movement
	tops      map[string]topRank
}

// add makes the checks of a rule.
func (e *evaluation) add(rule *Rule) {
	runs := []*Record{e.candidate}
	if rule.Changes() {
		runs = append(runs, e.baseline)
	}
	choices, ok := expand(rule, runs...)
	if !ok {
		choices = []Labels{rule.Select}
	}
	for _, labels := range choices {
		c := Check{Rule: rule.Name, Line: rule.Line, Warn: rule.Warn, Metric: rule.Metric, Labels: labels, Unit: rule.Metric.Unit(), Limit: rule.Limit.String(rule.Metric.Unit())}
		var t *test
		switch {
		case rule.Changes() && e.differs:
			c.Outcome, c.Reason = NotComparable, "the runs are not comparable"
		case !ok:
			c.Outcome, c.Reason = Inconclusive, "the selector matches nothing in these runs"
		default:
			t = e.sample(rule, &c)
		}
		e.result.Checks = append(e.result.Checks, c)
		e.rules, e.tests = append(e.rules, rule), append(e.tests, t)
	}
}

// sample takes the values of a check out of the runs; it is nil when they are not
// known.
func (e *evaluation) sample(rule *Rule, c *Check) *test {
	t := &test{limit: rule.Limit, exact: metrics[rule.Metric].exact, min: e.policy.Samples.Min}
	y := e.candidate.values(c.Metric, c.Labels, e.policy.Samples.Warmup)
	if y.unknown != "" {
		c.Outcome, c.Reason = Inconclusive, "candidate: "+y.unknown
		return nil
	}
	t.y = y.list
	c.Candidate = sampleOf(t.y)
	absent := y.absent
	if rule.Changes() {
		x := e.baseline.values(c.Metric, c.Labels, e.policy.Samples.Warmup)
		if x.unknown != "" {
			c.Outcome, c.Reason = Inconclusive, "baseline: "+x.unknown
			return nil
		}
		t.x = x.list
		c.Baseline = sampleOf(t.x)
		absent = absent && x.absent
	}
	if absent && len(c.Labels) > 0 {
		c.Outcome, c.Reason = Inconclusive, "the selector matches nothing in these runs"
		c.Baseline, c.Candidate = nil, nil
		return nil
	}
	return t
}

func sampleOf(values []float64) *Sample {
	return &Sample{N: len(values), Median: shift.Median(values, 0).Median, Values: values}
}

// decide tests all changes together.
func (e *evaluation) decide() {
	alpha := 1 - e.policy.Confidence
	tests := 0
	for i, t := range e.tests {
		if t != nil && e.rules[i].Changes() {
			t.prepare(e.policy.Confidence)
			if !t.certain {
				tests++
			}
		}
	}
	var p []float64
	var tested []int
	for i, t := range e.tests {
		if t == nil || !e.rules[i].Changes() {
			continue
		}
		if t.require(alpha, tests); !t.certain && t.few == "" {
			p, tested = append(p, t.estimate.P), append(tested, i)
		}
	}
	adjusted := make([]float64, len(e.tests))
	for n, v := range shift.Holm(p) {
		i := tested[n]
		adjusted[i] = v
		e.result.Checks[i].P, e.result.Checks[i].PAdjusted = &p[n], &adjusted[i]
	}
	for i, t := range e.tests {
		if t == nil {
			continue
		}
		c := &e.result.Checks[i]
		if e.rules[i].Changes() {
			c.note(t)
			c.Outcome, c.Reason = t.outcome(adjusted[i], alpha)
			c.Reason = joinReason(c.changed(), c.Reason)
		} else {
			var center shift.Center
			c.Outcome, c.Reason, center = t.bounded()
			c.Low, c.High = &center.Low, &center.High
			c.Reason = joinReason(c.measured(), c.Reason)
		}
		if c.Outcome == Regression {
			c.Cause = e.cause(c, e.rules[i])
			if e.rules[i].Warn {
				c.Outcome = Warning
			}
		}
	}
}

// note keeps the figures of a test.
func (c *Check) note(t *test) {
	if t.estimate.N == 0 || t.estimate.M == 0 {
		return
	}
	e := t.estimate
	threshold, ruledOut, dependence, bound := t.threshold(), t.ruledOut, t.dependence, t.dependenceBound
	c.Dependence, c.DependenceBound = &dependence, &bound
	c.Change, c.Low, c.High, c.Threshold, c.RuledOut = &e.Shift, &e.Low, &e.High, &threshold, &ruledOut
	if c.Baseline.Median != 0 {
		relative := e.Shift / math.Abs(c.Baseline.Median)
		c.Relative = &relative
	}
}

func joinReason(what, why string) string {
	if why == "" || what == "" {
		return what + why
	}
	return what + ": " + why
}

// changed is the change in words.
func (c *Check) changed() string {
	if c.Change == nil {
		return ""
	}
	text := fmt.Sprintf("%s -> %s (%s", c.Unit.Format(c.Baseline.Median), c.Unit.Format(c.Candidate.Median), c.Unit.Signed(*c.Change))
	if c.Relative != nil {
		text += ", " + percent(*c.Relative)
	}
	return text + ")"
}

// measured is the value and its interval in words.
func (c *Check) measured() string {
	if c.Candidate.N == 0 {
		return ""
	}
	return fmt.Sprintf("%s, between %s and %s", c.Unit.Format(c.Candidate.Median), c.Unit.Format(*c.Low), c.Unit.Format(*c.High))
}

// percent writes a share with its sign and as many digits as tell something.
func percent(share float64) string {
	digits := 1
	if math.Abs(share) < 0.00995 {
		digits = 2
	}
	text := strconv.FormatFloat(100*share, 'f', digits, 64)
	if !strings.HasPrefix(text, "-") {
		text = "+" + text
	}
	return text + " %"
}

// String is the limit as rules are written.
func (l *Limit) String(u Unit) string {
	if l.Bound != nil {
		return string(l.How) + " " + u.Format(*l.Bound)
	}
	sign := map[int]string{1: "+", -1: "-", 0: "+-"}[l.Direction]
	var parts []string
	if l.Relative != nil {
		parts = append(parts, sign+strconv.FormatFloat(100**l.Relative, 'g', 4, 64)+" %")
	}
	if l.Absolute != nil {
		parts = append(parts, sign+u.Format(*l.Absolute))
	}
	return strings.Join(parts, " and ")
}

// notes says what to keep in mind about the samples.
func (e *evaluation) notes() {
	add := func(format string, args ...any) {
		e.result.Notes = append(e.result.Notes, fmt.Sprintf(format, args...))
	}
	for _, side := range []struct {
		name string
		run  *Record
	}{{"baseline", e.baseline}, {"candidate", e.candidate}} {
		if side.run == nil || side.run.Mean == nil {
			continue
		}
		v := side.run.values(Step, nil, e.policy.Samples.Warmup)
		if r := shift.Dependence(v.list); r > dependent {
			add("%s: a step's time says much about the next one's (autocorrelation %.2f): the run drifts, and many steps say little", side.name, r)
		}
		if out := shift.Outliers(v.list); len(out) > 0 {
			var names []string
			for _, i := range out {
				names = append(names, report.Printable(side.run.Steps[e.policy.Samples.Warmup+i]))
			}
			add("%s: %d of %d steps are outliers: %s", side.name, len(out), len(v.list), strings.Join(names[:min(len(names), 5)], ", "))
		}
	}
	for _, c := range e.result.Comparisons {
		switch c.Status {
		case Ignored:
			add("%s differs (%s, %s); the policy ignores that", c.Item, c.Baseline, c.Candidate)
		case Unknown:
			add("%s is known of one run only (%s%s)", c.Item, c.Baseline, c.Candidate)
		}
	}
}

// dependent is the autocorrelation from which steps count as dependent on each
// other.
const dependent = 0.5
