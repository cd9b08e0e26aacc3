package mix

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
)

// ErrSyntax: a mix could not be read.
var ErrSyntax = errors.New("invalid mix")

// Traced is the mix that leaves every operation on the backend of the trace.
const Traced = "traced"

// Auto is the mix that is chosen for a job, from a tuning table.
const Auto = "auto"

// Rule sends the operations that it matches to a backend.
type Rule struct {
	Op       comm.Op // "" matches all
	Min, Max int64   // bytes, both included
	Group    string  // name or description, "" matches all
	Backend  string
}

// Mix is a list of rules; the first that matches an operation decides.
type Mix struct {
	Text  string // as the user wrote it
	Rules []Rule
}

// IsTraced says whether the mix keeps the traced backends.
func (m Mix) IsTraced() bool { return m.Text == Traced }

// Backends lists the backends that the rules name, sorted.
func (m Mix) Backends() []string {
	var names []string
	for _, r := range m.Rules {
		names = append(names, r.Backend)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Backend is the backend for an operation, false when no rule matches.
func (m Mix) Backend(op comm.Op, bytes int64, groupName, groupDescription string) (string, bool) {
	for _, r := range m.Rules {
		if r.matches(op, bytes, groupName, groupDescription) {
			return r.Backend, true
		}
	}
	return "", false
}

func (r Rule) matches(op comm.Op, bytes int64, name, description string) bool {
	return (r.Op == "" || r.Op == op) && bytes >= r.Min && bytes <= r.Max &&
		(r.Group == "" || r.Group == name || r.Group == description)
}

// Parse reads a mix.
func Parse(text string) (Mix, error) {
	m := Mix{Text: strings.TrimSpace(text)}
	if m.IsTraced() {
		return m, nil
	}
	if m.Text == Auto {
		return m, fmt.Errorf("%w: auto is chosen for a job, from a tuning table (--table)", ErrSyntax)
	}
	for part := range strings.SplitSeq(m.Text, ",") {
		rule, err := parseRule(strings.TrimSpace(part))
		if err != nil {
			return m, fmt.Errorf("%w %q: %v", ErrSyntax, text, err)
		}
		m.Rules = append(m.Rules, rule)
	}
	return m, nil
}

// parseRule reads "op@cond@cond=backend". The last '=' separates, because
// conditions may hold one (">="), but not that of a setting ("nccl:ring/ch=8").
func parseRule(text string) (Rule, error) {
	var rule Rule
	if text == "" {
		return rule, errors.New("a rule is empty")
	}
	at := strings.LastIndexByte(text, '=')
	for at > 0 && endsInSetting(text[:at]) {
		at = strings.LastIndexByte(text[:at], '=')
	}
	if at <= 0 || at == len(text)-1 {
		return rule, fmt.Errorf("rule %q: expected OPERATION=BACKEND, for example all_to_all=openmpi or *=gloo", text)
	}
	if err := checkBackend(text[at+1:]); err != nil {
		return rule, fmt.Errorf("rule %q: %w", text, err)
	}
	rule, err := parseMatch(text, text[:at])
	rule.Backend = text[at+1:]
	return rule, err
}

// parseMatch reads what stands on the left side of a rule: "op@cond@cond".
func parseMatch(text, match string) (Rule, error) {
	rule := Rule{Max: math.MaxInt64}
	left, conditions, _ := strings.Cut(match, "@")
	if left == "" {
		return rule, fmt.Errorf("rule %q: an operation or * is missing before @", text)
	}
	if left != "*" {
		rule.Op = comm.Op(left)
		if !slices.Contains(comm.Ops(), rule.Op) {
			return rule, fmt.Errorf("unknown operation %q: known are %s", left, opList())
		}
	}
	if conditions == "" {
		if strings.Contains(match, "@") {
			return rule, fmt.Errorf("rule %q: nothing follows @", text)
		}
		return rule, nil
	}
	for c := range strings.SplitSeq(conditions, "@") {
		if err := rule.condition(c); err != nil {
			return rule, fmt.Errorf("rule %q: %w", text, err)
		}
	}
	if rule.Min > rule.Max {
		return rule, fmt.Errorf("rule %q: no size can match", text)
	}
	return rule, nil
}

func opList() string {
	var names []string
	for _, op := range comm.Ops() {
		names = append(names, string(op))
	}
	return strings.Join(names, " ")
}

// condition reads ">=1MiB", "<64KiB", "4KiB-1MiB" or "group:NAME".
func (r *Rule) condition(c string) error {
	if name, ok := strings.CutPrefix(c, "group:"); ok {
		if name == "" {
			return errors.New("group: needs a name")
		}
		r.Group = name
		return nil
	}
	for _, o := range []struct {
		prefix string
		set    func(int64)
	}{
		{">=", func(n int64) { r.Min = max(r.Min, n) }},
		{"<=", func(n int64) { r.Max = min(r.Max, n) }},
		{">", func(n int64) { r.Min = max(r.Min, n+1) }},
		{"<", func(n int64) { r.Max = min(r.Max, n-1) }},
	} {
		if size, ok := strings.CutPrefix(c, o.prefix); ok {
			n, err := ParseSize(size)
			if err != nil {
				return err
			}
			o.set(n)
			return nil
		}
	}
	if from, to, ok := strings.Cut(c, "-"); ok {
		lo, err := ParseSize(from)
		if err != nil {
			return err
		}
		hi, err := ParseSize(to)
		if err != nil {
			return err
		}
		r.Min, r.Max = max(r.Min, lo), min(r.Max, hi)
		return nil
	}
	return fmt.Errorf("condition %q: expected a size as >=1MiB, <64KiB, 4KiB-1MiB, or group:NAME", c)
}

var units = map[string]int64{
	"": 1, "B": 1,
	"K": 1 << 10, "KIB": 1 << 10, "M": 1 << 20, "MIB": 1 << 20, "G": 1 << 30, "GIB": 1 << 30,
	"KB": 1e3, "MB": 1e6, "GB": 1e9,
}

// ParseSize reads a number of bytes with a unit: KiB, MiB, GiB (also K, M, G)
// are powers of 1024, KB, MB, GB of 1000.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, "BGKMbgikm")
	unit, ok := units[strings.ToUpper(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 0 || n > (math.MaxInt64-1)/unit {
		return 0, fmt.Errorf("size %q: expected a number with B, KiB, MiB, GiB, KB, MB or GB", text)
	}
	return n * unit, nil
}
