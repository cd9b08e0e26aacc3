package gate

import (
	"fmt"
	"strings"
	"time"
)

// waive turns breaches that waivers accept into such, and says which waivers have
// expired. A waiver that has expired accepts nothing.
func (e *evaluation) waive(now time.Time) {
	for w := range e.policy.Waivers {
		waiver := &e.policy.Waivers[w]
		used := false
		for i := range e.result.Checks {
			c := &e.result.Checks[i]
			if c.Outcome != Regression || !waiver.covers(e.rules[i]) {
				continue
			}
			used = true
			day := waiver.Expires.Format(dateFormat)
			text := fmt.Sprintf("waived until %s: %s", day, waiver.Reason)
			if waiver.expired(now) {
				text = fmt.Sprintf("the waiver expired on %s: %s", day, waiver.Reason)
			} else {
				c.Outcome = Waived
			}
			c.Waiver = &text
		}
		if !used && waiver.expired(now) {
			e.result.Notes = append(e.result.Notes, fmt.Sprintf("the waiver of %q expired on %s and is not needed any more: remove it", waiver.Rule, waiver.Expires.Format(dateFormat)))
		}
	}
}

// conclude makes one outcome of all checks: the worst, where a regression is worse
// than what can't be told.
func (r *Result) conclude() {
	r.Outcome = Pass
	switch {
	case r.stopping(Regression) > 0:
		r.Outcome = Regression
	case r.stopping(NotComparable) > 0:
		r.Outcome = NotComparable
	case r.stopping(Inconclusive) > 0:
		r.Outcome = Inconclusive
	}
	r.Answer = r.answer()
}

func (r *Result) answer() string {
	switch r.Outcome {
	case Regression:
		return "regression: " + r.list(Regression)
	case NotComparable:
		var parts []string
		for _, c := range r.Comparisons {
			if c.Status == Differs {
				parts = append(parts, fmt.Sprintf("%s: %s in the baseline, %s in the candidate", c.Item, c.Baseline, c.Candidate))
			}
		}
		return "not comparable: " + strings.Join(parts, "; ")
	case Inconclusive:
		return "inconclusive: " + r.list(Inconclusive)
	}
	text := fmt.Sprintf("pass: %s within the limits", counting(r.Count(Pass)+r.Count(Improved), "check"))
	if n := r.Count(Improved); n > 0 {
		text += fmt.Sprintf(", %d of them better than before", n)
	}
	for _, o := range []Outcome{Waived, Warning} {
		if n := r.Count(o); n > 0 {
			text += fmt.Sprintf(", %d %s", n, map[Outcome]string{Waived: "waived", Warning: "with a warning"}[o])
		}
	}
	return text
}

// list names the checks with an outcome, the first few of them in full.
func (r *Result) list(o Outcome) string {
	const shown = 3
	var parts []string
	for i := range r.Checks {
		if c := &r.Checks[i]; c.Outcome == o && c.Stops() && len(parts) < shown {
			parts = append(parts, c.Name()+" "+c.Reason)
		}
	}
	text := fmt.Sprintf("%s of %d: %s", counting(r.stopping(o), "check"), len(r.Checks), strings.Join(parts, "; "))
	if n := r.stopping(o) - shown; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}

func counting(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
