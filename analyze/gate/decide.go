package gate

import (
	"fmt"
	"math"
	"slices"

	"mixdown/analyze/gate/shift"
)

// test is a check on its way: the samples, and what they say.
type test struct {
	limit    Limit
	exact    bool // the metric needs no test where its values don't vary
	min      int  // samples
	x, y     []float64
	estimate shift.Estimate
	// certain: programs make the values the same in every step, and both samples are
	// of one value each, or are alike step by step.
	certain bool
	// dependence of each step on the one before, see shift.Dependence, and what it is
	// below with dependenceConfidence.
	dependence, dependenceBound float64
	// ruledOut is the largest change, towards worse, that the values leave possible.
	ruledOut float64
	// few says why there are too few values for a test; "" when there are enough.
	few string
}

// ruleOutConfidence is that of the interval which must lie below twice the limit
// for a check to pass.
const ruleOutConfidence = 0.999

// dependenceConfidence is that of the dependence which intervals and p allow for. What
// must be ruled out before a check passes allows for all that ruleOutConfidence can't
// exclude.
const dependenceConfidence = 0.95

// prepare estimates the change.
func (t *test) prepare(confidence float64) {
	n := (len(t.x) + len(t.y)) / 2
	t.dependence, t.dependenceBound = shift.Dependence(t.x, t.y), shift.DependenceBound(dependenceConfidence, t.x, t.y)
	t.estimate = shift.Compare(t.x, t.y, confidence).Widen(shift.Widening(t.dependenceBound, n))
	if len(t.x) > 0 && len(t.y) > 0 {
		e := t.estimate
		_, e.Low, e.High, e.Coverage = shift.Interval(t.x, t.y, ruleOutConfidence)
		t.ruledOut = t.worst(e.Widen(shift.Widening(shift.DependenceBound(ruleOutConfidence, t.x, t.y), n)))
	}
	same := slices.Equal(t.x, t.y) || !shift.Varies(t.x) && !shift.Varies(t.y)
	t.certain = t.exact && same && len(t.x) > 0 && len(t.y) > 0
}

// require sees whether there are enough values, when so many tests are made at
// once and alpha is the chance of any false alarm.
func (t *test) require(alpha float64, tests int) {
	n, m := len(t.x), len(t.y)
	switch {
	case t.certain:
	case n < t.min || m < t.min || n == 0 || m == 0:
		t.few = fmt.Sprintf("%d steps of the baseline and %d of the candidate: at least %d of both are needed", n, m, max(t.min, 1))
	case shift.LeastP(n, m)*float64(tests) >= alpha:
		t.few = fmt.Sprintf("%d and %d steps are too few for %d tests at once, however clear: record at least %d of both", n, m, tests, enough(alpha, tests))
	}
}

// enough is the number of steps of both runs from which tests can be significant.
func enough(alpha float64, tests int) int {
	n := 2
	for shift.LeastP(n, n)*float64(tests) >= alpha {
		n++
	}
	return n
}

// threshold is the change, in the metric's unit, from which the limit is breached.
func (t *test) threshold() float64 {
	limit := 0.0
	if t.limit.Absolute != nil {
		limit = *t.limit.Absolute
	}
	if t.limit.Relative != nil {
		limit = max(limit, *t.limit.Relative*math.Abs(shift.Median(t.x, 0).Median))
	}
	return limit
}

// up says whether a growing value is what the rule limits.
func (t *test) up() bool {
	return t.limit.Direction > 0 || t.limit.Direction == 0 && t.estimate.Shift >= 0
}

// worse is the change, positive in the direction that the rule limits.
func (t *test) worse() float64 {
	if t.up() {
		return t.estimate.Shift
	}
	return -t.estimate.Shift
}

// worst is the end of an interval that lies in that direction.
func (t *test) worst(e shift.Estimate) float64 {
	if t.up() {
		return e.High
	}
	return -e.Low
}

// outcome decides. P is the corrected p-value.
//
// A change is a breach when it is as large as the limit and no chance. It is
// inconclusive when the values could hide one of twice the limit: so no breach that
// large passes, but by a chance of one in two thousand.
func (t *test) outcome(p, alpha float64) (Outcome, string) {
	if t.few != "" {
		return Inconclusive, t.few
	}
	d := t.worse()
	limit := t.threshold()
	beyond := d > 0 && d >= limit
	switch {
	case t.certain && beyond:
		return Regression, ""
	case t.certain && d < 0 && -d >= limit && t.limit.Direction != 0:
		return Improved, ""
	case t.certain:
		return Pass, ""
	case beyond && p < alpha:
		return Regression, ""
	case beyond:
		return Inconclusive, "the change is beyond the limit, but the steps vary so much that it may be chance"
	case limit > 0 && t.ruledOut >= 2*limit:
		return Inconclusive, "the steps vary too much for this limit: twice of it can't be ruled out; record more steps, or widen it (mixdown gate init)"
	case d < 0 && -d >= limit && p < alpha && t.limit.Direction != 0:
		return Improved, ""
	}
	return Pass, ""
}

// boundConfidence is that of the interval of a value that has a bound, as of the
// speedups in reports.
const boundConfidence = 0.95

// bounded decides about a rule that bounds the value itself.
func (t *test) bounded() (Outcome, string, shift.Center) {
	c := shift.Median(t.y, boundConfidence)
	low, high := c.Low, c.High
	bound := *t.limit.Bound
	if c.N == 0 {
		return Inconclusive, "no steps left", c
	}
	if t.limit.How == Within { // how far from 1, at least and at most
		a, b := low-1, high-1
		low, high = min(math.Abs(a), math.Abs(b)), max(math.Abs(a), math.Abs(b))
		if a <= 0 && b >= 0 {
			low = 0
		}
	}
	good, bad := high <= bound, low > bound
	if t.limit.How == AtLeast {
		good, bad = low >= bound, high < bound
	}
	certain := t.exact && !shift.Varies(t.y)
	switch {
	case !certain && c.Coverage < boundConfidence:
		return Inconclusive, fmt.Sprintf("%d values: an interval of %.0f %% needs 6", c.N, 100*boundConfidence), c
	case good:
		return Pass, "", c
	case bad:
		return Regression, "", c
	}
	return Inconclusive, "the interval of the median includes the limit", c
}
