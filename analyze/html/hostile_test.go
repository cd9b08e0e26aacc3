package html_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"mixdown/analyze/html"
	"mixdown/analyze/report"
)

// hostile are names that try to get out of where they are put.
var hostile = []string{
	`</script><script>alert(1)</script>`,
	`"><img src=x onerror=alert(1)>`,
	`'onmouseover='alert(1)`,
	`</style></title><svg/onload=alert(1)>`,
	`{{.Script}}<!--`,
	"javascript:alert(1)",
	"\x1b[31mred\x1b]0;title\a",
	"\u202edetrever\u2066 \u200f",
	"line\u2028and\u2029paragraph\x00\r\n",
	strings.Repeat("very long <b>name</b> ", 5000), // 100 kB
	"not utf-8: \xff\xfe",
}

// checkNames says that no name got out, and that all are there to be read.
func checkNames(t *testing.T, page []byte) {
	t.Helper()
	checkSafe(t, page)
	for _, bad := range []string{"<script>alert", "<img", "<svg/onload", "<b>name", "\x1b", "\a", "\x00", "\u202e", "\u2066", "\u200f", "\u2028", "\u2029"} {
		if bytes.Contains(page, []byte(bad)) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if bytes.Contains(page, []byte(strings.Repeat("very long &lt;b&gt;name&lt;/b&gt; ", 200))) {
		t.Error("a long name is shown whole")
	}
	if bytes.Contains(page, []byte("\xff")) {
		t.Error("the page is not UTF-8")
	}
}

// TestHostileTraces: names of kernels, steps, groups, threads, files and backends.
func TestHostileTraces(t *testing.T) {
	for i, bad := range hostile {
		in := made(t, 3, 3, 40, func(s string) string { return s + bad })
		p := &html.Page{Title: bad, Provenance: html.Provenance{
			Tool: bad, Command: bad, Args: []string{bad}, Inputs: []html.Input{{Name: bad, About: bad, SHA256: bad}},
		}}
		p.AddRun(in, html.TimelineOptions{})
		p.Analysis.Diagnostics = append(p.Analysis.Diagnostics, report.Diagnostic{Code: bad, Count: 1, Example: bad})
		p.Note(bad)
		page := write(t, p)
		checkNames(t, page)
		if len(page) > 1<<20 {
			t.Errorf("name %d makes a page of %d bytes", i, len(page))
		}
	}
}

// TestHostileResults: every text of a result's JSON.
func TestHostileResults(t *testing.T) {
	for _, bad := range hostile {
		name, err := json.Marshal(bad)
		if err != nil {
			t.Fatal(err)
		}
		p := &html.Page{}
		for _, text := range []string{replayJSON, simulateJSON} {
			if _, err := p.AddResult([]byte(strings.ReplaceAll(text, `"NAME"`, string(name)))); err != nil {
				t.Fatal(err)
			}
		}
		checkNames(t, write(t, p))
	}
}

// The JSON of replay and simulate, as their help describes it.
const (
	replayJSON = `{"schema_version":1,"device":"NAME","world_size":4,"workers":4,"step":"NAME","operations":44,"operations_estimated":2,
"backends":[{"name":"NAME","version":"NAME"}],"substitutions":[{"traced":"NAME","replayed":"NAME"}],
"baseline":{"name":"NAME","mix":"NAME","iterations_ns":[100,110,105],"median_ns":105,"data_verified":true,"fidelity":{"trace_step_ns":100,"replayed_step_ns":105,"ratio":1.05}},
"variants":[{"name":"NAME","mix":"NAME","schedule":"NAME","iterations_ns":[50,52,51],"median_ns":51,"speedup":2.05,"ci95":[1.9,2.2],"ci_coverage":0.96,"predicted_speedup":1.8,"data_verified":true,"activation_memory":1.5,"reasons":[{"rule":"NAME","text":"NAME"}]}],
"traced_step":null,"diagnostics":[{"code":"NAME","rank":1,"count":2,"offset":null,"example":"NAME"}]}`
	simulateJSON = `{"schema_version":1,"device":"none","world_size":4,"ranks":[0,1,2,3],"microbatches":8,"stages":4,"searched":3,
"baseline":{"name":"traced","schedule":"NAME","step_ns":1000,"bubble":0.3,"bubble_longest_span":0.2,"activation_memory":1,"messages":48,"memory":null,"fidelity":{"trace_step_ns":1010,"simulated_step_ns":1000,"ratio":0.99}},
"variants":[{"name":"NAME","schedule":"NAME","step_ns":800,"bubble":0.1,"bubble_longest_span":0.1,"activation_memory":2,"messages":96,"memory":[{"rank":0,"total_bytes":1024}],"predicted_speedup":1.25,"within_error":false,"pareto":true,"assumptions":["NAME"],"apply":"NAME"},
{"name":"NAME","mix":"NAME","schedule":"traced","mix_step_ns":900,"predicted_speedup":1.1,"reasons":["NAME"],"assumptions":["NAME"]}],
"workload":{"step":"NAME","backend":"NAME","fidelity":{"trace_step_ns":1000,"simulated_step_ns":990,"ratio":0.99}},
"diagnostics":[{"code":"NAME","rank":null,"count":1,"offset":1,"example":"NAME"}]}`
)
