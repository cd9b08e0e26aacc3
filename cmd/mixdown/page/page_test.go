package page_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/export"
	"mixdown/analyze/pipeline"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/page"
	"mixdown/ingest/kineto/kinetotest"
)

// analysed is a set of testdata as the command passes it on.
func analysed(t *testing.T, set string) *export.Input {
	t.Helper()
	in := &export.Input{Run: kinetotest.Load(t, "../../../testdata/"+set+"/rank*.gz"), Checksums: map[int]string{0: "abc"}}
	in.Match = collective.Match(in.Run)
	in.Clocks = align.Estimate(in.Run, in.Match)
	found, err := pipeline.Find(in.Run, in.Match, pipeline.Options{Clocks: in.Clocks})
	if err != nil {
		t.Fatal(err)
	}
	in.Pipelines = found.Pipelines
	in.Analysis, err = report.Analyze(in.Run, in.Match, report.Options{Clocks: in.Clocks, Critical: true, Pipelines: found})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

var from = page.From{
	CommandLine: []string{"/usr/local/bin/mixdown", "analyze", "my traces/", "--html", "a.html"}, Args: []string{"my traces/"},
	Now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
}

// TestOrdersAreDrawn: the traced order, the same played, and others, in one
// picture that the page takes.
func TestOrdersAreDrawn(t *testing.T) {
	p, err := page.Analysis(analysed(t, "pipeline_1f1b_4rank"), from)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Orders) != 1 || len(p.Predictions) != 1 || len(p.Predictions[0].Variants) == 0 {
		t.Fatalf("%d pictures, %d predictions", len(p.Orders), len(p.Predictions))
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"as traced in ProfilerStep#4", "the same, simulated", "breadth-first:loops=2: predicted", "my traces: mixdown analysis",
		"mixdown analyze &#39;my traces/&#39; --html a.html", "2026-11-30 12:00:00 UTC", "<code>abc</code>", "mixdown diff BEFORE &#39;my traces/&#39;",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not hold %q", want)
		}
	}
}

// TestEveryPipelineHasAPage whatever its schedule is.
func TestEveryPipelineHasAPage(t *testing.T) {
	for _, set := range []string{"pipeline_sched_p4_zbv", "pipeline_sched_p2dp2_bfs", "pipeline_sched_p8_1f1b", "deepspeed_pipe_2rank", "pipeline_sched_p2_computing_gpipe", "dp_moe_4rank"} {
		p, err := page.Analysis(analysed(t, set), from)
		if err != nil {
			t.Errorf("%s: %v", set, err)
			continue
		}
		if pipes := p.Analysis.Pipeline; len(pipes) > 0 && len(p.Orders) == 0 && len(p.OrdersNote) == 0 {
			t.Errorf("%s: its orders are neither drawn nor is it said why", set)
		}
		if err := p.Write(&bytes.Buffer{}); err != nil {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// TestResultsStandBesideTheirRun, or alone.
func TestResultsStandBesideTheirRun(t *testing.T) {
	in := analysed(t, "dp_moe_4rank")
	result := map[string]any{"schema_version": 1, "device": "host", "baseline": map[string]any{"name": "traced", "iterations_ns": []int{5, 6}, "median_ns": 5, "data_verified": true}}
	for _, job := range []*input.Job{nil, {Run: in.Run, Match: in.Match, Clocks: in.Clocks}} {
		path := filepath.Join(t.TempDir(), "a.html")
		if err := page.WriteResult(path, page.Result{Verb: "replay", Value: result, Job: job}, from); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if !strings.Contains(text, "my traces: mixdown replay") || !strings.Contains(text, "The traced plan was replayed 2 times") || strings.Contains(text, `<section id="ranks"`) != (job != nil) {
			t.Errorf("the page of the result (with its run: %v) lacks what it should show", job != nil)
		}
	}
}

// TestMarkdown holds the same answer, escaped.
func TestMarkdown(t *testing.T) {
	p, err := page.Analysis(analysed(t, "pipeline_1f1b_4rank"), from)
	if err != nil {
		t.Fatal(err)
	}
	p.Title = "<img src=x> www.example.org | [x](y) @who"
	var b bytes.Buffer
	if err := page.WriteMarkdown(&b, p, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"**Of the ranks’ time, ", "## Predicted", "| zb-h1 |", "# Communication analysis", `# &#60;img src=x&#62; www&#46;example.org \| \[x\]\(y\) &#64;who`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in it", want)
		}
	}
}
