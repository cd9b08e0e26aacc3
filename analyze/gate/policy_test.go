package gate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mixdown/analyze/gate"
)

const whole = `version: 1
samples: {warmup: 2, min: 8}
confidence: 0.95
comparable:
  ignore: [versions, gpu]
  tolerance: 2%
rules:
  - step +5% and +2ms
  - name: data parallel
    check: exposed_comm[group=dp] +10%
    level: warn
waivers:
  - rule: step*
    reason: new loader
    expires: 2026-12-31
`

func TestPolicy(t *testing.T) {
	p, err := gate.ReadPolicy(strings.NewReader(whole), "gate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if p.Samples != (gate.Samples{Warmup: 2, Min: 8}) || p.Confidence != 0.95 || p.Comparable.Tolerance != 0.02 || len(p.Comparable.Ignore) != 2 {
		t.Errorf("%+v", p)
	}
	if len(p.Rules) != 2 || p.Rules[0].Line != 8 || p.Rules[1].Name != "data parallel" || !p.Rules[1].Warn || p.Rules[1].Line != 9 {
		t.Errorf("%+v", p.Rules)
	}
	if len(p.Waivers) != 1 || p.Waivers[0].Reason != "new loader" {
		t.Errorf("%+v", p.Waivers)
	}
	p, err = gate.ReadPolicy(strings.NewReader("version: 1\nrules: [step +5%]\n"), "gate.yaml")
	if err != nil || p.Samples != (gate.Samples{Warmup: gate.DefaultWarmup, Min: gate.DefaultMin}) || p.Confidence != gate.DefaultConfidence {
		t.Errorf("defaults: %+v, %v", p, err)
	}
}

// TestPoliciesThatMakeNoSense say where and what.
func TestPoliciesThatMakeNoSense(t *testing.T) {
	for text, says := range map[string]string{
		"":                                "the file is empty",
		"rules: [":                        "line 1",
		"version: 2\nrules: [step +5%]":   "version 2",
		"version: 1":                      "no rules",
		"version: 1\nrule: [step +5%]":    "field rule not found",
		"version: 1\nrules:\n  - step +5": `gate.yaml: line 3: rule "step +5"`,
		"version: 1\nrules:\n  - {check: step +5%, levle: warn}":                                `key "levle"`,
		"version: 1\nrules:\n  - {check: step +5%, level: loud}":                                `level "loud"`,
		"version: 1\nrules: [step +5%, step +5%]":                                               "a second rule",
		"version: 1\nrules: [[step]]":                                                           "expected a mapping",
		"version: 1\nconfidence: 1\nrules: [step +5%]":                                          "confidence 1",
		"version: 1\nsamples: {min: 0}\nrules: [step +5%]":                                      "min 1 or more",
		"version: 1\ncomparable: {ignore: [color]}\nrules: [step +5%]":                          `"color": known are`,
		"version: 1\ncomparable: {tolerance: much}\nrules: [step +5%]":                          "tolerance",
		"version: 1\nrules: [step +5%]\nwaivers: [{rule: step*}]":                               "needs rule, reason and expires",
		"version: 1\nrules: [step +5%]\nwaivers: [{rule: a, reason: b, expires: 2026-12-31}]":   "is of no rule",
		"version: 1\nrules: [step +5%]\nwaivers: [{rule: st*, reason: b, expires: tomorrow}]":   "expected a day",
		"version: 1\nrules: [step +5%]\nwaivers: [{rule: st*, why: b, expires: 2026-12-31}]":    `key "why"`,
		"version: 1\nrules: [step +5%]\nwaivers: [{rule: st*, reason: b, expires: 2026-02-31}]": "expected a day",
	} {
		_, err := gate.ReadPolicy(strings.NewReader(text), "gate.yaml")
		if !errors.Is(err, gate.ErrPolicy) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// TestWaivers accept a breach until their last day is over; then the breach is a
// regression that says so.
func TestWaivers(t *testing.T) {
	p, err := gate.ReadPolicy(strings.NewReader("version: 1\nsamples: {warmup: 0}\nrules: [step +5%]\nwaivers: [{rule: step*, reason: new loader, expires: 2026-12-31}]"), "gate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	x, y := steady(100, 10), steady(120, 10)
	for _, c := range []struct {
		now     time.Time
		y       []float64
		outcome gate.Outcome
		check   gate.Outcome
		says    string
	}{
		{time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC), y, gate.Pass, gate.Waived, "waived until 2026-12-31: new loader"},
		{time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), y, gate.Regression, gate.Regression, "expired on 2026-12-31: new loader"},
		{time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), x, gate.Pass, gate.Pass, "not needed any more"},
	} {
		r, err := gate.Evaluate(made(x), made(c.y), p, c.now)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(r.Notes, "\n")
		if w := r.Checks[0].Waiver; w != nil {
			said += *w
		}
		if r.Outcome != c.outcome || r.Checks[0].Outcome != c.check || !strings.Contains(said, c.says) {
			t.Errorf("%v: %s, %s, %q", c.now, r.Outcome, r.Checks[0].Outcome, said)
		}
	}
}

// TestRulesThatWarn stop nothing, whatever becomes of them.
func TestRulesThatWarn(t *testing.T) {
	p, err := gate.ReadPolicy(strings.NewReader("version: 1\nsamples: {warmup: 0}\nrules: [step +50%, {check: step +5%, level: warn}, {check: 'step +0.001%', level: warn}, {check: 'wait[op=x] +5%', level: warn}]"), "gate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := gate.Evaluate(made(steady(100, 10)), made(steady(120, 10)), p, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome != gate.Pass || r.Count(gate.Warning) != 2 || r.Count(gate.Inconclusive) != 1 || r.Err() != nil {
		t.Errorf("%s, %+v", r.Answer, r.Checks)
	}
}

// steady are n steps of about ms each.
func steady(ms float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = ms * 1e6 * (1 + 0.001*float64(i%5))
	}
	return out
}
