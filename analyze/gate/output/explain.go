package output

import (
	"fmt"
	"io"

	"mixdown/analyze/gate"
	"mixdown/analyze/gate/shift"
	"mixdown/analyze/report"
)

// Explain shows how the checks that a pattern means were decided: all values, the
// estimate and each condition of the outcome. The error is ErrCheck when there are
// no such checks.
func Explain(w io.Writer, r *Document, pattern string) error {
	p := report.NewPage(false)
	found := false
	for i := range r.Checks {
		c := &r.Checks[i]
		if !c.Matches(pattern) {
			continue
		}
		if found {
			p.Linef("")
		}
		found = true
		explain(p, r, c)
	}
	if !found {
		return fmt.Errorf("%w: %q: \"--format json\" lists the checks", ErrCheck, pattern)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

func explain(p *report.Page, r *Document, c *gate.Check) {
	p.Linef("%s: %s, limit %s", c.Outcome, report.Printable(c.Name()), c.Limit)
	if c.Line > 0 {
		p.Linef("  rule: %s, line %d of %s", report.Printable(c.Rule), c.Line, report.Printable(r.Policy))
	}
	for _, side := range []struct {
		name   string
		sample *gate.Sample
	}{{"baseline", c.Baseline}, {"candidate", c.Candidate}} {
		if side.sample == nil || side.sample.N == 0 {
			continue
		}
		var values []string
		for _, v := range side.sample.Values {
			values = append(values, c.Unit.Format(v))
		}
		sd, outliers := shift.Spread(side.sample.Values)
		p.Linef("  %s: %d values, median %s, noise %s without %d outliers", side.name, side.sample.N, c.Unit.Format(side.sample.Median), c.Unit.Format(sd), outliers)
		p.List("    ", values)
	}
	if c.Change != nil {
		_, _, relative, interval := figures(c)
		p.Linef("  change: %s (%s), between %s with %.4g %% confidence", c.Unit.Signed(*c.Change), relative, interval, 100*r.Confidence)
		p.Linef("  a breach: %s or more that way; a pass: less than twice that is possible, %s is", c.Unit.Format(*c.Threshold), c.Unit.Format(*c.RuledOut))
	} else if c.Low != nil && c.Candidate != nil && c.Candidate.N > 0 {
		p.Linef("  the median lies between %s and %s with 95 %% confidence", c.Unit.Format(*c.Low), c.Unit.Format(*c.High))
	}
	if c.DependenceBound != nil && *c.DependenceBound > 0 {
		p.Linef("  each step depends on the one before by %.2f, by less than %.2f with 95 %% confidence: intervals are wider and p is larger for that", *c.Dependence, *c.DependenceBound)
	}
	switch {
	case c.P != nil:
		p.Linef("  p: %.3g, corrected for all tests %.3g; below %.3g is no chance", *c.P, *c.PAdjusted, 1-r.Confidence)
	case c.Change != nil:
		p.Linef("  p: none: the values are the same in all steps, or too few")
	}
	p.Linef("  so: %s", message(c))
	if a := advice(c); a != "" {
		p.Linef("  see: %s", a)
	}
}
