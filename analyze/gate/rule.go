package gate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrPolicy: a policy, or a rule of it, that makes no sense.
var ErrPolicy = errors.New("policy makes no sense")

// Rule limits one metric, or each of several where its selector has patterns.
type Rule struct {
	// Name is what waivers and reports call it; the check itself where none is given.
	Name string
	// Check is the rule as it was written, e.g. "step +5% and +2ms".
	Check string
	// Warn: a breach is shown and changes no outcome.
	Warn bool
	// Line of the policy file, from 1; 0 when the rule has no file.
	Line int

	Metric Metric
	Select Labels
	Limit  Limit
}

// Limit is what a rule allows. Either a change from the baseline (Relative,
// Absolute or both are set), or a bound of the value itself (Bound is set).
type Limit struct {
	// Direction of the change that is limited: 1 up, -1 down, 0 either.
	Direction int
	// Relative is a share of the baseline's median, Absolute in the metric's unit.
	// Where both are set a change must reach both.
	Relative, Absolute *float64
	// Bound of the value: AtLeast or AtMost it, or, with Within, not further than
	// it from 1.
	Bound *float64
	How   Bounding
}

// Bounding says which side of a bound is allowed.
type Bounding string

// The kinds of bounds.
const (
	AtLeast Bounding = ">="
	AtMost  Bounding = "<="
	Within  Bounding = "within"
)

// Changes says whether the rule needs a baseline.
func (r *Rule) Changes() bool { return r.Limit.Bound == nil }

// ParseRule reads a check:
//
//	METRIC [SELECTOR] CHANGE [and CHANGE]     exposed_comm[group=dp,op=all_reduce] +5% and +2ms
//	METRIC [SELECTOR] >= VALUE                speedup[variant=*] >= 1.1
//	METRIC [SELECTOR] <= VALUE                step <= 250ms
//	METRIC within VALUE                       fidelity within 0.2: at most so far from 1
func ParseRule(text string) (Rule, error) {
	r, err := parseRule(text)
	if err != nil {
		return Rule{}, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	return r, nil
}

func parseRule(text string) (Rule, error) {
	r := Rule{Name: strings.TrimSpace(text), Check: strings.TrimSpace(text), Select: Labels{}}
	fail := func(err error) (Rule, error) { return Rule{}, fmt.Errorf("rule %q: %w", r.Check, err) }
	rest := r.Check
	end := strings.IndexFunc(rest, func(c rune) bool { return (c < 'a' || c > 'z') && c != '_' })
	if end < 0 {
		end = len(rest)
	}
	r.Metric, rest = Metric(rest[:end]), strings.TrimSpace(rest[end:])
	what, known := metrics[r.Metric]
	if !known {
		return fail(fmt.Errorf("metric %q: known are %s", r.Metric, metricNames()))
	}
	if strings.HasPrefix(rest, "[") {
		end := closing(rest)
		if end < 0 {
			return fail(errors.New("the bracket is not closed"))
		}
		var err error
		if r.Select, err = parseSelector(rest[1:end]); err != nil {
			return fail(err)
		}
		rest = strings.TrimSpace(rest[end+1:])
	}
	if err := checkSelector(r.Metric, what, r.Select); err != nil {
		return fail(err)
	}
	var err error
	if r.Limit, err = parseLimit(rest, what.unit); err != nil {
		return fail(err)
	}
	return r, nil
}

// checkSelector refuses labels that the metric does not have, alone or together.
func checkSelector(m Metric, what about, l Labels) error {
	for label := range l {
		if kindOf[label]&what.kinds == 0 {
			return fmt.Errorf("%s is not known by %s", m, label)
		}
	}
	if k := l.kinds(); k&(k-1) != 0 {
		return fmt.Errorf("%s is known by rank or by operation, not by both at once", m)
	}
	if rank, ok := l[ByRank]; ok && rank != "max" && !strings.ContainsAny(rank, "*?") {
		if _, err := strconv.Atoi(rank); err != nil {
			return fmt.Errorf("rank=%s: expected a number, a pattern or max", rank)
		}
	}
	if m == Speedup && l[ByVariant] == "" {
		l[ByVariant] = "*" // speedups of different variants have no sum
	}
	return nil
}

// closing is the index of the bracket that closes the first, -1 when none does.
func closing(text string) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return i
		}
	}
	return -1
}

func parseLimit(text string, unit Unit) (Limit, error) {
	for _, how := range []Bounding{AtLeast, AtMost, Within} {
		if after, ok := strings.CutPrefix(text, string(how)); ok {
			v, err := unit.parse(after)
			if err != nil {
				return Limit{}, err
			}
			if how == Within && unit != Ratio {
				return Limit{}, fmt.Errorf("within is of ratios, which should be 1; use >= or <=")
			}
			return Limit{Bound: &v, How: how}, nil
		}
	}
	var l Limit
	if text == "" {
		return l, errors.New("no limit: write +5%, +2ms, both with \"and\", >= or <=")
	}
	for i, part := range strings.Split(text, " and ") {
		if err := l.addChange(strings.TrimSpace(part), unit, i == 0); err != nil {
			return Limit{}, err
		}
	}
	return l, nil
}

// addChange reads one change, such as "+5%" or "-2 GB/s".
func (l *Limit) addChange(text string, unit Unit, first bool) error {
	direction, number := 0, ""
	for _, sign := range []struct {
		text      string
		direction int
	}{{"+-", 0}, {"±", 0}, {"+", 1}, {"-", -1}} {
		if after, ok := strings.CutPrefix(text, sign.text); ok {
			direction, number = sign.direction, strings.TrimSpace(after)
			break
		}
	}
	switch {
	case number == "":
		return fmt.Errorf("limit %q: expected +, - or +- and a number", text)
	case !first && direction != l.Direction:
		return fmt.Errorf("limit %q: both parts must have the same sign", text)
	}
	l.Direction = direction
	if share, ok := strings.CutSuffix(number, "%"); ok {
		v, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err != nil || !(v >= 0 && v < 1e6) {
			return fmt.Errorf("limit %q: expected a percentage", text)
		}
		if l.Relative != nil {
			return fmt.Errorf("limit %q: two percentages", text)
		}
		v /= 100
		l.Relative = &v
		return nil
	}
	v, err := unit.parse(number)
	if err != nil {
		return fmt.Errorf("limit: %w", err)
	}
	if v < 0 || l.Absolute != nil {
		return fmt.Errorf("limit %q: expected one amount and at most one percentage", text)
	}
	l.Absolute = &v
	return nil
}

func metricNames() string {
	var names []string
	for _, m := range Metrics() {
		names = append(names, string(m))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
