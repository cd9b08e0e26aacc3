package gate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Policy is what a gate demands of a run. It is read from YAML, which unlike JSON
// has room for the reason of every limit; yaml.v3 is the decoder that cobra's own
// world uses, needs nothing itself, and knows the line of every rule.
type Policy struct {
	// File is where the policy was read from, for messages.
	File    string
	Samples Samples
	// Confidence that no rule of the policy fails by chance, and of the intervals.
	Confidence float64
	Rules      []Rule
	Comparable Comparable
	Waivers    []Waiver
}

// Samples says which steps are compared.
type Samples struct {
	Warmup int `yaml:"warmup"` // steps left out at the start of each run
	Min    int `yaml:"min"`    // fewer steps in either run are inconclusive
}

// Comparable says which differences between the runs are accepted.
type Comparable struct {
	Ignore []Item `yaml:"ignore"`
	// Tolerance is the share by which operations and bytes of a step may differ.
	Tolerance float64 `yaml:"-"`
}

// Waiver accepts breaches of a rule for a time.
type Waiver struct {
	// Rule is the name or check of rules, where * and ? stand for any.
	Rule   string
	Reason string
	// Expires is the last day, in UTC, on which the waiver holds.
	Expires time.Time
	Line    int
}

// Defaults of a policy.
const (
	DefaultWarmup     = 1
	DefaultMin        = 5
	DefaultConfidence = 0.99
	DefaultTolerance  = 0.01
)

// dateFormat is how days are written.
const dateFormat = "2006-01-02"

// PolicyVersion is the version of policies that this package reads.
const PolicyVersion = 1

// policyYAML is the file.
type policyYAML struct {
	Version    int         `yaml:"version"`
	Samples    samplesYAML `yaml:"samples"`
	Confidence *float64    `yaml:"confidence"`
	Rules      []ruleYAML  `yaml:"rules"`
	Comparable struct {
		Ignore    []Item  `yaml:"ignore"`
		Tolerance *string `yaml:"tolerance"`
	} `yaml:"comparable"`
	Waivers []waiverYAML `yaml:"waivers"`
}

type samplesYAML struct {
	Warmup *int `yaml:"warmup"`
	Min    *int `yaml:"min"`
}

// ruleYAML is a rule: its check alone, or a mapping.
type ruleYAML struct {
	Name  string `yaml:"name"`
	Check string `yaml:"check"`
	Level string `yaml:"level"`
	line  int
}

// UnmarshalYAML reads either form.
func (r *ruleYAML) UnmarshalYAML(n *yaml.Node) error {
	r.line = n.Line
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&r.Check)
	}
	if err := knownKeys(n, "name", "check", "level"); err != nil {
		return err
	}
	type plain ruleYAML
	return n.Decode((*plain)(r))
}

type waiverYAML struct {
	Rule    string `yaml:"rule"`
	Reason  string `yaml:"reason"`
	Expires string `yaml:"expires"`
	line    int
}

// UnmarshalYAML notes the line.
func (w *waiverYAML) UnmarshalYAML(n *yaml.Node) error {
	w.line = n.Line
	if err := knownKeys(n, "rule", "reason", "expires"); err != nil {
		return err
	}
	type plain waiverYAML
	return n.Decode((*plain)(w))
}

// knownKeys refuses others: the decoder does so only where no method is in between.
func knownKeys(n *yaml.Node, names ...string) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: expected a mapping with %s", n.Line, strings.Join(names, ", "))
	}
	for i := 0; i < len(n.Content); i += 2 {
		if k := n.Content[i]; !slices.Contains(names, k.Value) {
			return fmt.Errorf("line %d: key %q: known are %s", k.Line, k.Value, strings.Join(names, ", "))
		}
	}
	return nil
}

// maxPolicy bounds a policy file, in bytes.
const maxPolicy = 4 << 20

// ReadPolicy reads a policy; file is what messages call it.
func ReadPolicy(r io.Reader, file string) (*Policy, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPolicy))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	fail := func(err error) (*Policy, error) { return nil, fmt.Errorf("%w: %s: %w", ErrPolicy, file, err) }
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var y policyYAML
	if err := dec.Decode(&y); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the file is empty")
		}
		return fail(oneLine(err))
	}
	if y.Version != PolicyVersion {
		return fail(fmt.Errorf("version %d: expected \"version: %d\"", y.Version, PolicyVersion))
	}
	p := DefaultPolicy()
	p.File, p.Comparable.Ignore = file, y.Comparable.Ignore
	if err := p.addSettings(&y); err != nil {
		return fail(err)
	}
	for i := range y.Rules {
		if err := p.addRule(&y.Rules[i]); err != nil {
			return fail(fmt.Errorf("line %d: %w", y.Rules[i].line, err))
		}
	}
	if len(p.Rules) == 0 {
		return fail(errors.New("it has no rules"))
	}
	for i := range y.Waivers {
		if err := p.addWaiver(&y.Waivers[i]); err != nil {
			return fail(fmt.Errorf("line %d: %w", y.Waivers[i].line, err))
		}
	}
	return p, nil
}

// oneLine joins the decoder's list of errors.
func oneLine(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n  ")
	return errors.New(strings.ReplaceAll(text, "\n  ", "; "))
}

func (p *Policy) addSettings(y *policyYAML) error {
	if y.Samples.Warmup != nil {
		p.Samples.Warmup = *y.Samples.Warmup
	}
	if y.Samples.Min != nil {
		p.Samples.Min = *y.Samples.Min
	}
	if y.Confidence != nil {
		p.Confidence = *y.Confidence
	}
	switch {
	case p.Samples.Warmup < 0 || p.Samples.Min < 1:
		return errors.New("samples: warmup must be 0 or more, min 1 or more")
	case !(p.Confidence >= 0.5 && p.Confidence < 1):
		return fmt.Errorf("confidence %v: expected at least 0.5 and less than 1", p.Confidence)
	}
	if t := y.Comparable.Tolerance; t != nil {
		l := Limit{}
		if err := l.addChange("+"+strings.TrimPrefix(*t, "+"), Ratio, true); err != nil || l.Relative == nil {
			return fmt.Errorf("comparable: tolerance %q: expected a percentage", *t)
		}
		p.Comparable.Tolerance = *l.Relative
	}
	for _, item := range p.Comparable.Ignore {
		if !slices.Contains(Items(), item) {
			return fmt.Errorf("comparable: ignore: %q: known are %s", item, joinItems(Items()))
		}
	}
	return nil
}

// DefaultPolicy is a policy without rules.
func DefaultPolicy() *Policy {
	return &Policy{
		Samples: Samples{DefaultWarmup, DefaultMin}, Confidence: DefaultConfidence,
		Comparable: Comparable{Tolerance: DefaultTolerance},
	}
}

// Add adds a rule, given as its check.
func (p *Policy) Add(check string) error {
	if err := p.addRule(&ruleYAML{Check: check}); err != nil {
		return fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	return nil
}

func (p *Policy) addRule(y *ruleYAML) error {
	r, err := parseRule(y.Check)
	if err != nil {
		return err // shows the rule
	}
	r.Line = y.line
	if y.Name != "" {
		r.Name = y.Name
	}
	switch y.Level {
	case "", "fail":
	case "warn":
		r.Warn = true
	default:
		return fmt.Errorf("level %q: expected fail or warn", y.Level)
	}
	if slices.ContainsFunc(p.Rules, func(other Rule) bool { return other.Name == r.Name }) {
		return fmt.Errorf("a second rule %q", r.Name)
	}
	p.Rules = append(p.Rules, r)
	return nil
}

func (p *Policy) addWaiver(y *waiverYAML) error {
	w := Waiver{Rule: y.Rule, Reason: strings.TrimSpace(y.Reason), Line: y.line}
	if w.Rule == "" || w.Reason == "" || y.Expires == "" {
		return errors.New("a waiver needs rule, reason and expires")
	}
	day, err := time.Parse(dateFormat, y.Expires)
	if err != nil {
		return fmt.Errorf("expires %q: expected a day such as 2026-12-31", y.Expires)
	}
	w.Expires = day
	if !slices.ContainsFunc(p.Rules, func(r Rule) bool { return w.covers(&r) }) {
		return fmt.Errorf("the waiver of %q is of no rule", y.Rule)
	}
	p.Waivers = append(p.Waivers, w)
	return nil
}

// covers says whether the waiver is of the rule.
func (w *Waiver) covers(r *Rule) bool {
	return w.Rule == r.Name || w.Rule == r.Check || glob(w.Rule, r.Name) || glob(w.Rule, r.Check)
}

// expired says whether the waiver's last day is over.
func (w *Waiver) expired(now time.Time) bool { return !now.UTC().Before(w.Expires.AddDate(0, 0, 1)) }
