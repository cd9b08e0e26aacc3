package gate

import (
	"errors"
	"fmt"
	"strings"
)

// ResultVersion is that of the JSON of results.
const ResultVersion = 1

// Outcome is what became of a check or of the whole gate.
type Outcome string

// The outcomes. Regression, Inconclusive and NotComparable stop a gate, the others
// don't.
const (
	Pass          Outcome = "pass"
	Improved      Outcome = "improved"       // as sure as a regression, and the other way
	Warning       Outcome = "warning"        // a breach of a rule whose level is warn
	Waived        Outcome = "waived"         // a breach that a waiver accepts
	Regression    Outcome = "regression"     // a breach
	Inconclusive  Outcome = "inconclusive"   // the values can't tell
	NotComparable Outcome = "not_comparable" // the runs differ in what must be the same
)

// Result is what a gate found.
type Result struct {
	SchemaVersion int     `json:"schema_version"`
	Outcome       Outcome `json:"outcome"`
	Answer        string  `json:"answer"` // in a sentence
	Policy        string  `json:"policy"` // file
	Confidence    float64 `json:"confidence"`

	Baseline  *Side `json:"baseline"` // null when no rule needs one
	Candidate *Side `json:"candidate"`

	Comparisons []Comparison `json:"comparisons"`
	Checks      []Check      `json:"checks"` // in the order of the policy
	Notes       []string     `json:"notes"`
}

// Side is one of the runs.
type Side struct {
	Source  string `json:"source"`
	Facts   Facts  `json:"run"`
	Steps   int    `json:"steps"`   // in the run
	Skipped int    `json:"skipped"` // of them as warm-up
}

// Check is a rule applied to one choice of labels.
type Check struct {
	Rule   string `json:"rule"`
	Line   int    `json:"line"` // of the policy file; 0 when not known
	Metric Metric `json:"metric"`
	Labels Labels `json:"labels"`
	Unit   Unit   `json:"unit"`
	Limit  string `json:"limit"`

	// Warn: the rule's level is warn, and whatever becomes of it stops no gate.
	Warn    bool    `json:"warn"`
	Outcome Outcome `json:"outcome"`
	// Reason says in words what was found.
	Reason string `json:"reason"`

	Baseline  *Sample `json:"baseline"` // null when the rule bounds the value itself
	Candidate *Sample `json:"candidate"`

	// Change is the Hodges-Lehmann shift of the candidate, Low and High its
	// interval, in the metric's unit; Relative is Change over the baseline's
	// median. Null without a baseline, or when not known.
	Change   *float64 `json:"change"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
	Relative *float64 `json:"relative"`
	// Threshold is the change, towards worse, from which the limit is breached, and
	// RuledOut the largest that the values leave possible: below twice the threshold
	// where a check passes. Both are without a sign, in the metric's unit, and null
	// without a baseline.
	Threshold *float64 `json:"threshold"`
	RuledOut  *float64 `json:"ruled_out"`
	// Dependence of each step on the one before, 0 to 0.9, as estimated, and what it is
	// below with 95 % confidence: the interval is wider and P is larger for the latter.
	Dependence      *float64 `json:"dependence"`
	DependenceBound *float64 `json:"dependence_bound"`
	// P is the two-sided p-value of a Mann-Whitney U test, or of the shift over the
	// standard error that dependent steps give it, the larger of both; PAdjusted is
	// Holm's for all tests of the gate. Null where nothing was tested.
	P         *float64 `json:"p"`
	PAdjusted *float64 `json:"p_adjusted"`

	Cause  *Cause  `json:"cause"`  // of a breach, null when there is none
	Waiver *string `json:"waiver"` // what a waiver says about it
}

// Name is the metric with its labels.
func (c *Check) Name() string { return string(c.Metric) + c.Labels.String() }

// Sample is the values of one run that a check looked at.
type Sample struct {
	N      int       `json:"n"`
	Median float64   `json:"median"`
	Values []float64 `json:"values"`
}

// Breached says whether the limit of the check was.
func (c *Check) Breached() bool {
	return c.Outcome == Regression || c.Outcome == Warning || c.Outcome == Waived
}

// Stops says whether the check stops the gate.
func (c *Check) Stops() bool {
	return !c.Warn && (c.Outcome == Regression || c.Outcome == Inconclusive || c.Outcome == NotComparable)
}

// stopping counts the checks with an outcome that stop the gate.
func (r *Result) stopping(o Outcome) int {
	n := 0
	for i := range r.Checks {
		if r.Checks[i].Stops() && r.Checks[i].Outcome == o {
			n++
		}
	}
	return n
}

// Count counts the checks with an outcome.
func (r *Result) Count(o Outcome) int {
	n := 0
	for i := range r.Checks {
		if r.Checks[i].Outcome == o {
			n++
		}
	}
	return n
}

// What a gate ends with when it does not pass.
var (
	ErrRegression    = errors.New("regression")
	ErrInconclusive  = errors.New("inconclusive")
	ErrNotComparable = errors.New("not comparable")
)

// Err is one of them with the answer; nil when the gate passed.
func (r *Result) Err() error {
	err := map[Outcome]error{Regression: ErrRegression, Inconclusive: ErrInconclusive, NotComparable: ErrNotComparable}[r.Outcome]
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, strings.TrimPrefix(r.Answer, err.Error()+": "))
}

// Matches says whether the check is meant by a pattern: its rule or its name is it,
// where * and ? stand for any characters.
func (c *Check) Matches(pattern string) bool { return glob(pattern, c.Rule) || glob(pattern, c.Name()) }
