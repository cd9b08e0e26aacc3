package gate_test

import (
	"errors"
	"strings"
	"testing"

	"mixdown/analyze/gate"
)

// TestRules reads checks and writes them again.
func TestRules(t *testing.T) {
	for _, c := range []struct{ text, metric, labels, limit string }{
		{"step +5%", "step", "", "+5 %"},
		{"exposed_comm[group=dp,op=all_reduce] +5% and +2ms", "exposed_comm", "[group=dp,op=all_reduce]", "+5 % and +2.00 ms"},
		{"exposed_comm[ op = all_* , group=* ] +2ms and +5%", "exposed_comm", "[group=*,op=all_*]", "+5 % and +2.00 ms"},
		{`comm[group="groups of 2, stride 4",size=64..128 KiB] +0.5%`, "comm", `[group="groups of 2, stride 4",size=64..128 KiB]`, "+0.5 %"},
		{`wait[group="a \"b\" ]"] +1s`, "wait", `[group="a \"b\" ]"]`, "+1.000 s"},
		{"busbw[op=all_reduce] -5% and -1 GB/s", "busbw", "[op=all_reduce]", "-5 % and -1 GB/s"},
		{"count +-0", "count", "", "+-0"},
		{"bytes ±1MiB", "bytes", "", "+-1 MiB"},
		{"step[rank=max] +10us", "step", "[rank=max]", "+10.0 us"},
		{"step <= 250ms", "step", "", "<= 250.00 ms"},
		{"speedup[variant=*=openmpi] >= 1.1", "speedup", `[variant="*=openmpi"]`, ">= 1.1"},
		{"speedup >= 1.1x", "speedup", "[variant=*]", ">= 1.1"},
		{"fidelity within 0.2", "fidelity", "", "within 0.2"},
	} {
		r, err := gate.ParseRule(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := r.Limit.String(r.Metric.Unit()); string(r.Metric) != c.metric || r.Select.String() != c.labels || got != c.limit {
			t.Errorf("%s: %s %s %s, want %s %s %s", c.text, r.Metric, r.Select, got, c.metric, c.labels, c.limit)
		}
	}
}

// TestRulesThatMakeNoSense say what is wrong.
func TestRulesThatMakeNoSense(t *testing.T) {
	for text, says := range map[string]string{
		"":                                "known are",
		"steps +5%":                       `metric "steps": known are`,
		"step":                            "no limit",
		"step 5%":                         "expected +, - or +-",
		"step +5":                         "expected a unit: ms, ns, s, us",
		"step +5% and -2ms":               "the same sign",
		"step +5% and +6%":                "two percentages",
		"step +5ms and +6ms":              "at most one percentage",
		"step +x%":                        "expected a percentage",
		"step +nan%":                      "expected a percentage",
		"step +1e400ms":                   "is no quantity",
		"step[op=all_reduce] +5%":         "step is not known by op",
		"exposed_comm[op=a,rank=3] +5%":   "not by both at once",
		"step[rank=three] +5%":            "expected a number, a pattern or max",
		"comm[op=a +5%":                   "the bracket is not closed",
		`comm[op="a] +5%`:                 "the bracket is not closed",
		`comm[op="a"b] +5%`:               "expected a comma",
		"comm[op] +5%":                    "expected LABEL=VALUE",
		"comm[op=] +5%":                   "op has no value",
		"comm[op=a,op=b] +5%":             "op twice",
		"comm[color=a] +5%":               "with a label of",
		"step within 2ms":                 "within is of ratios",
		"count +5ms":                      "without a unit",
		"step >= fast":                    "is no quantity",
		"speedup[variant=a,group=b] >= 1": "speedup is not known by group",
	} {
		_, err := gate.ParseRule(text)
		if !errors.Is(err, gate.ErrPolicy) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"step +5% and +2ms", `comm[group="a,]"] -1GB/s`, "fidelity within 0.2", "count +-0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := gate.ParseRule(text)
		if err != nil {
			return
		}
		again, err := gate.ParseRule(string(r.Metric) + r.Select.String() + " " + strings.ReplaceAll(r.Limit.String(r.Metric.Unit()), " %", "%"))
		if err == nil && again.Select.String() != r.Select.String() {
			t.Errorf("%q: %s became %s", text, r.Select, again.Select)
		}
	})
}
