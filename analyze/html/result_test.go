package html_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/analyze/html"
)

// TestResultsAreToldApart by what they hold.
func TestResultsAreToldApart(t *testing.T) {
	p := &html.Page{}
	for want, text := range map[string]string{"replay": replayJSON, "simulate": simulateJSON, "analyze": `{"schema_version":1,"run":{"world_size":1},"ranks":[]}`} {
		kind, err := p.AddResult([]byte(text))
		if err != nil || kind != want {
			t.Errorf("%q, expected %q: %v", kind, want, err)
		}
	}
	for name, text := range map[string]string{
		"no JSON": "{", "another schema": `{"schema_version":2,"run":{}}`, "nothing known": `{"schema_version":1,"rows":[]}`, "a list": "[]",
		"a second analysis": `{"schema_version":1,"run":{}}`, "a wrong type": `{"schema_version":1,"baseline":{"median_ns":"long"}}`,
	} {
		if _, err := p.AddResult([]byte(text)); !errors.Is(err, html.ErrResult) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestJSONSaysTheSame: a page of the analysis' JSON has the answers of one of the
// traces.
func TestJSONSaysTheSame(t *testing.T) {
	for _, set := range []string{"dp_moe_4rank", "pipeline_1f1b_4rank", "world_36rank_bare"} {
		in := load(t, "../../testdata/"+set+"/rank*.gz")
		traced, read := &html.Page{}, &html.Page{}
		traced.AddRun(in, html.TimelineOptions{})
		data, err := json.Marshal(in.Analysis)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read.AddResult(data); err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		if d := cmp.Diff(traced.Answer(), read.Answer()); d != "" {
			t.Errorf("%s: the answer of the JSON differs (-traces +JSON):\n%s", set, d)
		}
		if d := cmp.Diff(traced.Questions(), read.Questions()); d != "" {
			t.Errorf("%s: questions differ (-traces +JSON):\n%s", set, d)
		}
		if d := cmp.Diff(traced.Phases, read.Phases); d != "" {
			t.Errorf("%s: rows by phase differ (-traces +JSON):\n%s", set, d)
		}
		if d := cmp.Diff(traced.Steps, read.Steps); d != "" && in.Analysis.StepsByRank != nil {
			t.Logf("%s: steps differ:\n%s", set, d)
		}
		checkSafe(t, write(t, read))
	}
}

// TestReplayAnswers: what is measured is said with its interval; what is not
// beyond doubt is not called faster.
func TestReplayAnswers(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"faster":       {"", "", "2.05 times as fast as the traced plan (95 % interval 1.90 to 2.20, n = 3)"},
		"unsure":       {`"ci95":[1.9,2.2]`, `"ci95":[0.9,2.2]`, "No alternative is faster than the traced plan beyond doubt"},
		"wrong data":   {`"ci_coverage":0.96,"predicted_speedup":1.8,"data_verified":true`, `"data_verified":false`, "No alternative is faster"},
		"few runs":     {`"ci_coverage":0.96`, `"ci_coverage":0.938`, "(93.8 % interval 1.90 to 2.20, n = 3)"},
		"host":         {`"device":"NAME"`, `"device":"host"`, "says nothing about GPUs"},
		"no variant":   {`"variants":[{`, `"variants":[],"others":[{`, "replayed 3 times, without an alternative"},
		"far from it":  {`"ratio":1.05`, `"ratio":2.5`, "2.05 times as fast"},
		"not verified": {`"data_verified":true,"fidelity"`, `"data_verified":false,"fidelity"`, "2.05 times as fast"},
	} {
		p := &html.Page{}
		if _, err := p.AddResult([]byte(strings.Replace(replayJSON, c.old, c.new, 1))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := p.Answer().Sentence; !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
		page := write(t, p)
		if warned := bytes.Contains(page, []byte("far from the trace")); warned != (name == "far from it") {
			t.Errorf("%s: warned of the fidelity: %v", name, warned)
		}
		if bytes.Contains(page, []byte("not verified")) != (name == "wrong data" || name == "not verified") {
			t.Errorf("%s: what the page says of the data is wrong", name)
		}
	}
}

// TestUnknownIsNotZero: an analysis without waiting, sizes or clocks.
func TestUnknownIsNotZero(t *testing.T) {
	p := &html.Page{}
	if _, err := p.AddResult([]byte(`{"schema_version":1,"run":{"world_size":2,"ranks_present":[0,1]},
"ranks":[{"rank":0,"time":{"span_ns":1000,"compute_ns":600,"exposed_comm_ns":300,"comm_ns":300,"idle_ns":100}}],
"communication":[{"group":"0","op":"all_reduce","count":4,"total_ns":300,"exposed_ns":300}]}`)); err != nil {
		t.Fatal(err)
	}
	a := p.Answer()
	if strings.Contains(a.Sentence, "waiting") || a.Figures[1].Label != "computation" {
		t.Errorf("%+v", a)
	}
	page := string(write(t, p))
	for _, want := range []string{"not known", "<td>?</td>", "how much of it is waiting is not known"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}
