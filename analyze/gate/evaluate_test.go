package gate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mixdown/analyze/gate"
)

// policy has no warm-up.
func policy(t *testing.T, rules ...string) *gate.Policy {
	t.Helper()
	p := gate.DefaultPolicy()
	p.Samples.Warmup = 0
	for _, r := range rules {
		if err := p.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// evaluate gates the candidate.
func evaluate(t *testing.T, baseline, candidate *gate.Record, p *gate.Policy) *gate.Result {
	t.Helper()
	r, err := gate.Evaluate(baseline, candidate, p, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// two is a run of two ranks with communication in two groups.
func two(change func(*gate.Record)) *gate.Record {
	r := made(steady(100, 12))
	r.Facts = gate.Facts{WorldSize: 2, RanksRead: 2, Device: "gpu", Backend: "nccl", GPU: "NVIDIA H100", Versions: map[string]string{"cuda runtime": "12080"}, Layout: []gate.Layout{{Role: "dp", Size: 2, Groups: 1}}}
	list := func(v int64) []int64 {
		out := make([]int64, 12)
		for i := range out {
			out[i] = v * 1_000_000 * (1000 + int64(i%4)) / 1000
		}
		return out
	}
	same := func(v int64) []int64 { return slices.Repeat([]int64{v}, 12) }
	operation := func(group, op string, ms int64) gate.Operation {
		return gate.Operation{
			Group: group, Op: op, Size: "1..2 MiB", Phase: "backward", Ranks: 2, Count: same(8), Bytes: same(8 << 20), BusBytes: same(8 << 20),
			Comm: list(ms), Exposed: list(ms), Hidden: same(0), Wait: same(0), Transfer: list(ms),
		}
	}
	r.Operations = []gate.Operation{operation("dp", "all_reduce", 20), operation("tp", "all_gather", 10)}
	for rank := range 2 {
		one := *r.Mean
		one.Rank = rank
		r.Ranks = append(r.Ranks, one)
	}
	if change != nil {
		change(r)
	}
	return r
}

func scale(list []int64, by float64) {
	for i := range list {
		list[i] = int64(float64(list[i]) * by)
	}
}

// TestBothLimits: a change must reach the relative and the absolute one.
func TestBothLimits(t *testing.T) {
	for rule, want := range map[string]gate.Outcome{
		"step +5%": gate.Regression, "step +2ms": gate.Regression, "step +5% and +2ms": gate.Regression,
		"step +5% and +8ms": gate.Pass, "step +8% and +2ms": gate.Pass, "step -5%": gate.Pass, "step +-5%": gate.Regression,
		"step <= 107ms": gate.Pass, "step <= 105ms": gate.Regression, "step <= 106.2ms": gate.Inconclusive, "step >= 120ms": gate.Regression,
	} {
		r := evaluate(t, made(steady(100, 10)), made(steady(106, 10)), policy(t, rule))
		if r.Outcome != want {
			t.Errorf("%s: %s, want %s", rule, r.Answer, want)
		}
	}
	r := evaluate(t, made(steady(100, 10)), made(steady(90, 10)), policy(t, "step +5%"))
	if r.Outcome != gate.Pass || r.Checks[0].Outcome != gate.Improved {
		t.Errorf("a faster run: %s, %s", r.Outcome, r.Checks[0].Outcome)
	}
}

// TestWhatStepsCannotTell is inconclusive, and the reason says what to do.
func TestWhatStepsCannotTell(t *testing.T) {
	noisy := func(ms float64) *gate.Record {
		out := make([]float64, 8)
		for i := range out {
			out[i] = ms * 1e6 * (1 + 0.1*float64(i*5%8))
		}
		return made(out)
	}
	for _, c := range []struct {
		name        string
		base, other *gate.Record
		rules       []string
		says        string
	}{
		{"too few", made(steady(100, 4)), made(steady(150, 9)), []string{"step +5%"}, "4 steps of the baseline and 9 of the candidate: at least 5"},
		{"no steps", made(nil), made(steady(100, 9)), []string{"step +5%"}, "baseline: its traces mark no steps"},
		{"too noisy", noisy(100), noisy(100), []string{"step +1%"}, "vary too much for this limit"},
		{"too many tests", made(steady(100, 5)), made(steady(150, 5)), []string{"step +5%", "compute +5%", "comm +5%"}, "too few for 3 tests at once"},
		{"no match", two(nil), two(nil), []string{"comm[group=x*] +5%"}, "the selector matches nothing"},
		{"no match by name", two(nil), two(nil), []string{"comm[group=pp] +5%"}, "the selector matches nothing"},
		{"no such rank", two(nil), two(nil), []string{"step[rank=7] +5%"}, "no rank 7"},
		{"not a replay", two(nil), two(nil), []string{"speedup[variant=a] >= 1.1"}, "no result of"},
		{"wait unknown", two(func(r *gate.Record) { r.Operations[0].Wait = nil }), two(nil), []string{"wait[op=all_reduce] +5%"}, "wait of all_reduce in dp is not known"},
	} {
		r := evaluate(t, c.base, c.other, policy(t, c.rules...))
		if r.Outcome != gate.Inconclusive || !errors.Is(r.Err(), gate.ErrInconclusive) || !strings.Contains(r.Answer, c.says) {
			t.Errorf("%s: %s, want %q", c.name, r.Answer, c.says)
		}
	}
}

// TestManyRulesAreCorrected: what is significant alone need not be among twenty.
func TestManyRulesAreCorrected(t *testing.T) {
	x, y := steady(100, 6), steady(103, 6)
	p := policy(t, "step +1%")
	if r := evaluate(t, made(x), made(y), p); r.Outcome != gate.Regression || *r.Checks[0].PAdjusted != *r.Checks[0].P {
		t.Errorf("alone: %s", r.Answer)
	}
	for _, m := range []string{"compute", "comm", "exposed_comm", "idle", "memory"} {
		if err := p.Add(m + " +1%"); err != nil {
			t.Fatal(err)
		}
	}
	if r := evaluate(t, made(x), made(y), p); r.Outcome != gate.Inconclusive {
		t.Errorf("of six: %s", r.Answer)
	}
}

// TestNotComparable: every item alone stops the gate, unless the policy ignores it.
func TestNotComparable(t *testing.T) {
	for item, change := range map[gate.Item]func(*gate.Record){
		gate.SameWorld:      func(r *gate.Record) { r.Facts.WorldSize = 4 },
		gate.SameDevice:     func(r *gate.Record) { r.Facts.Device = "cpu" },
		gate.SameGPU:        func(r *gate.Record) { r.Facts.GPU = "NVIDIA A100" },
		gate.SameBackend:    func(r *gate.Record) { r.Facts.Backend = "gloo" },
		gate.SameVersions:   func(r *gate.Record) { r.Facts.Versions = map[string]string{"cuda runtime": "12090", "nccl": "2.27"} },
		gate.SameLayout:     func(r *gate.Record) { r.Facts.Layout[0].Groups = 2 },
		gate.SameOperations: func(r *gate.Record) { r.Operations[0].Count = slices.Repeat([]int64{9}, 12) },
		gate.SameBytes:      func(r *gate.Record) { r.Operations[1].Bytes = slices.Repeat([]int64{9 << 20}, 12) },
	} {
		r := evaluate(t, two(nil), two(change), policy(t, "step +5%"))
		if r.Outcome != gate.NotComparable || !errors.Is(r.Err(), gate.ErrNotComparable) || !strings.Contains(r.Answer, string(item)) {
			t.Errorf("%s: %s", item, r.Answer)
		}
		p := policy(t, "step +5%")
		p.Comparable.Ignore = []gate.Item{item}
		if r := evaluate(t, two(nil), two(change), p); r.Outcome != gate.Pass || len(r.Notes) == 0 {
			t.Errorf("%s ignored: %s, %v", item, r.Answer, r.Notes)
		}
	}
	unknown := two(func(r *gate.Record) { r.Facts.GPU = "" })
	if r := evaluate(t, two(nil), unknown, policy(t, "step +5%")); r.Outcome != gate.Pass || !strings.Contains(strings.Join(r.Notes, ""), "gpu is known of one run only") {
		t.Errorf("an unknown GPU: %s, %v", r.Answer, r.Notes)
	}
}

// TestRulesDecideAboutTheWork: with a rule on count or bytes other work is a
// regression, found without a test, from one step on.
func TestRulesDecideAboutTheWork(t *testing.T) {
	more := two(func(r *gate.Record) {
		r.Operations[0].Count = slices.Repeat([]int64{10}, 12)
		r.Operations[0].Bytes = slices.Repeat([]int64{10 << 20}, 12)
	})
	r := evaluate(t, two(nil), more, policy(t, "count[op=*] +-0", "bytes[op=*] +-1%", "step +5%"))
	if r.Outcome != gate.Regression || r.Count(gate.Regression) != 2 || r.Checks[0].Outcome != gate.Pass {
		t.Errorf("%s", r.Answer)
	}
	if c := r.Checks[1]; c.P != nil || c.Cause == nil || *c.Cause.Op != "all_reduce" || *c.Cause.Group != "dp" || *c.Change != 1 {
		t.Errorf("%+v %+v", c, c.Cause)
	}
}

// TestCauses name the communication and the rank.
func TestCauses(t *testing.T) {
	wire := two(func(r *gate.Record) {
		for _, l := range [][]int64{r.Operations[0].Exposed, r.Operations[0].Transfer, r.Operations[0].Comm} {
			scale(l, 1.5)
		}
	})
	late := two(func(r *gate.Record) {
		scale(r.Operations[0].Exposed, 1.5)
		r.Operations[0].Wait = slices.Repeat([]int64{10_000_000}, 12)
		r.Ranks[1].Compute = slices.Clone(r.Ranks[1].Compute)
		scale(r.Ranks[1].Compute, 1.2)
	})
	for _, c := range []struct {
		name string
		run  *gate.Record
		says []string
		rank bool
	}{
		{"wire", wire, []string{"all_reduce 1..2 MiB backward in dp", "the transfer itself"}, false},
		{"waiting", late, []string{"waiting for the last member", "most on rank 1: compute"}, true},
	} {
		r := evaluate(t, two(nil), c.run, policy(t, "exposed_comm[group=dp] +10%"))
		cause := r.Checks[0].Cause
		if cause == nil || *cause.Op != "all_reduce" || *cause.Size != "1..2 MiB" || (cause.Rank != nil) != c.rank {
			t.Errorf("%s: %+v", c.name, cause)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(cause.Text, s) {
				t.Errorf("%s: %q, want %q", c.name, cause.Text, s)
			}
		}
	}
	base, other := two(nil), two(func(r *gate.Record) { scale(r.Mean.Step, 1.2); r.Source = "new run/" })
	base.Source = "main"
	r := evaluate(t, base, other, policy(t, "step +5%"))
	if got := r.Checks[0].Cause.Command; got != "mixdown diff main 'new run/' --rows -1" {
		t.Errorf("command %q", got)
	}
}

// TestSelectors: patterns make one check each, names that are left out are added up.
func TestSelectors(t *testing.T) {
	r := evaluate(t, two(nil), two(nil), policy(t, "exposed_comm[op=*] +5%", "exposed_comm[op=all_reduce] +7%", "step[rank=*] +5%", "busbw[group=dp] -5%", "comm[phase=backward] +5%"))
	var names []string
	for _, c := range r.Checks {
		names = append(names, c.Name())
	}
	want := []string{"exposed_comm[op=all_gather]", "exposed_comm[op=all_reduce]", "exposed_comm[op=all_reduce]", "step[rank=0]", "step[rank=1]", "busbw[group=dp]", "comm[phase=backward]"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if got := r.Checks[1].Baseline.Median; got < 10e6 || got > 10.1e6 {
		t.Errorf("20 ms on two ranks are %v ns a rank", got)
	}
	if got := r.Checks[6].Baseline.Median; got < 15e6 || got > 15.1e6 {
		t.Errorf("both operations: %v ns a rank", got)
	}
}

// TestRecordsSurviveTheirFile: what is written is what is read, and lists that
// don't belong together are refused.
func TestRecordsSurviveTheirFile(t *testing.T) {
	r := two(nil)
	r.SchemaVersion, r.Kind, r.Source = gate.RecordVersion, "mixdown gate record", "a\"b,\"c"
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := gate.ReadRecord(bytes.NewReader(b.Bytes()), "base.json")
	if err != nil {
		t.Fatal(err)
	}
	if got.File != "base.json" {
		t.Errorf("file %q", got.File)
	}
	got.File = ""
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
	var whole map[string]any
	if err := json.Unmarshal(b.Bytes(), &whole); err != nil {
		t.Fatal(err)
	}
	for text, bad := range map[string]func(*gate.Record){
		"values for 12 steps": func(r *gate.Record) { r.Operations[0].Comm = r.Operations[0].Comm[1:] },
		"no times":            func(r *gate.Record) { r.Mean = nil },
		"no ranks":            func(r *gate.Record) { r.Facts.RanksRead = 0 },
		"its version is 99":   func(r *gate.Record) { r.SchemaVersion = 99 },
		"neither a record":    func(r *gate.Record) { r.Kind = "" },
	} {
		r := two(bad)
		if r.SchemaVersion == 0 {
			r.SchemaVersion = gate.RecordVersion
		}
		if text != "neither a record" {
			r.Kind = "mixdown gate record"
		}
		b.Reset()
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := gate.ReadRecord(&b, "base.json"); !errors.Is(err, gate.ErrNotRecord) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

const replayed = `{"schema_version":1,"device":"host","world_size":4,"backends":[{"name":"gloo","version":"1.0"}],
"baseline":{"name":"traced","mix":"*=gloo","iterations_ns":[100,101,102,100,101,102,100,101],"data_verified":true,"fidelity":{"trace_step_ns":95}},
"variants":[
{"name":"fast","mix":"*=openmpi","iterations_ns":[80,81,80,79,80,81,80,80],"baseline_iterations_ns":[100,101,102,100,101,102,100,101],"data_verified":true},
{"name":"same","mix":"*=mpich","iterations_ns":[100,99,104,97,100,103,98,101],"baseline_iterations_ns":[100,101,102,100,101,102,100,101],"data_verified":true},
{"name":"wrong","mix":"*=x","iterations_ns":[50,50,50,50,50,50,50,50],"baseline_iterations_ns":[100,101,102,100,101,102,100,101],"data_verified":false}]}`

// TestReplays are judged by the interval of their speedups and by their fidelity.
func TestReplays(t *testing.T) {
	r, err := gate.ReadRecord(strings.NewReader(replayed), "replay.json")
	if err != nil {
		t.Fatal(err)
	}
	for rule, want := range map[string]gate.Outcome{
		"speedup[variant=fast] >= 1.1": gate.Pass, "speedup[variant=same] >= 1.1": gate.Regression, "speedup[variant=same] >= 1": gate.Inconclusive,
		"speedup[variant=wrong] >= 1.1": gate.Inconclusive, "speedup[variant=none] >= 1": gate.Inconclusive,
		"speedup[variant=fast] <= 1.1": gate.Regression,
		"fidelity within 0.2":          gate.Pass, "fidelity within 0.01": gate.Regression, "step[variant=fast] <= 90ns": gate.Pass,
		"compute <= 1ms": gate.Inconclusive,
	} {
		got := evaluate(t, nil, r, policy(t, rule))
		if got.Outcome != want {
			t.Errorf("%s: %s, want %s", rule, got.Answer, want)
		}
	}
	got := evaluate(t, nil, r, policy(t, "speedup >= 1.1"))
	if len(got.Checks) != 3 || got.Checks[1].Cause == nil || *got.Checks[1].Cause.Mix != "*=mpich" || !strings.Contains(got.Checks[1].Cause.Command, "--mix '*=mpich'") {
		t.Errorf("%+v", got.Checks)
	}
	slower, err := gate.ReadRecord(strings.NewReader(strings.ReplaceAll(replayed, "[80,81,80,79,80,81,80,80]", "[90,91,90,89,90,91,90,90]")), "new.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := evaluate(t, r, slower, policy(t, "speedup[variant=fast] -5%")); got.Outcome != gate.Regression {
		t.Errorf("a smaller speedup: %s", got.Answer)
	}
	if got := evaluate(t, r, two(nil), policy(t, "step +5%")); got.Outcome != gate.NotComparable {
		t.Errorf("a replay and traces: %s", got.Answer)
	}
	if _, err := gate.Evaluate(nil, r, policy(t, "step +5%"), time.Time{}); !errors.Is(err, gate.ErrNoBaseline) {
		t.Errorf("no baseline: %v", err)
	}
}

// TestSuggestedPolicyIsRead, and lets its own baseline pass.
func TestSuggestedPolicyIsRead(t *testing.T) {
	base := two(func(r *gate.Record) { r.Source = "main\n# x"; r.Operations[1].Group = `odd "name": #1, x]` })
	text, err := gate.Suggest([]*gate.Record{base, base}, gate.DefaultSuggestOptions())
	if err != nil {
		t.Fatal(err)
	}
	p, err := gate.ReadPolicy(bytes.NewReader(text), "gate.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(p.Rules) < 5 || !strings.Contains(string(text), "exposed_comm[group=dp,op=all_reduce]") {
		t.Errorf("%s", text)
	}
	if r := evaluate(t, base, base, p); r.Outcome != gate.Pass {
		t.Errorf("%s\n%s", r.Answer, text)
	}
	if _, err := gate.Suggest([]*gate.Record{made(steady(100, 5))}, gate.DefaultSuggestOptions()); !errors.Is(err, gate.ErrTooFewSteps) {
		t.Errorf("five steps with one of warm-up: %v", err)
	}
}

// FuzzReadRecord: what is read can be gated against itself, and never fails.
func FuzzReadRecord(f *testing.F) {
	var b bytes.Buffer
	r := two(nil)
	r.SchemaVersion, r.Kind = gate.RecordVersion, "mixdown gate record"
	if err := r.Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(replayed))
	f.Add([]byte(`{"schema_version":1,"kind":"mixdown gate record","replay":{},"run":{"ranks_read":1}}`))
	f.Add([]byte(`{"schema_version":1,"kind":"mixdown gate record","steps":["a"],"replay":{"variants":[{}]},"run":{"ranks_read":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := gate.ReadRecord(bytes.NewReader(data), "fuzz")
		if err != nil {
			if !errors.Is(err, gate.ErrNotRecord) {
				t.Errorf("%v", err)
			}
			return
		}
		p := policy(t, "step +5%", "step[rank=*] +5%", "exposed_comm[group=*] +5%", "busbw -5%", "speedup -5%", "fidelity within 0.2", "count +-0")
		got := evaluate(t, r, r, p)
		if n := got.Count(gate.Regression); n > 0 && r.Replay == nil {
			t.Errorf("%d regressions against itself: %s", n, got.Answer)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Error(err)
		}
	})
}
