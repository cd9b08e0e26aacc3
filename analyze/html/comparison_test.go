package html_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mixdown/analyze/diff"
	"mixdown/analyze/gate"
	"mixdown/analyze/gate/output"
	"mixdown/analyze/html"
)

// documents are a diff and a gate of the same two runs, whose names are changed; in
// the second one collectives take longer.
func documents(t *testing.T, name func(string) string) []*output.Document {
	t.Helper()
	a, b := made(t, 2, 8, 40, name), made(t, 2, 8, 60, name)
	of := func(where string, in html.Source) *diff.Summary {
		return diff.Summarize(diff.Input{Name: name(where), Run: in.Run, Match: in.Match, Clocks: in.Clocks})
	}
	record := func(where string, in html.Source) *gate.Record {
		return gate.Measure(gate.Input{Source: name(where), Run: in.Run, Match: in.Match, Clocks: in.Clocks, GPU: name("H100"), Versions: map[string]string{name("nccl"): name("2")}})
	}
	p := gate.DefaultPolicy()
	p.Comparable.Ignore = gate.Items()
	for _, rule := range []string{"step +5%", "exposed_comm[group=*] +5%", "busbw[op=all_reduce] -1%", "step <= 1ns", "idle +50%"} {
		if err := p.Add(rule); err != nil {
			t.Fatal(err)
		}
	}
	x, y := record("main", a), record("branch", b)
	r, err := gate.Evaluate(x, y, p, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	gated := output.OfGate(r)
	gated.AddRecords(x, y, 1)
	return []*output.Document{output.OfDiff(diff.Compare(of("main", a), of("branch", b))), gated}
}

// TestComparisonAnswersFirst: the sentence, three numbers, then the checks with
// their figures, causes and commands.
func TestComparisonAnswersFirst(t *testing.T) {
	for _, d := range documents(t, func(s string) string { return s }) {
		p := &html.Page{Title: d.Verb, Comparison: d}
		answer := p.Answer()
		if len(answer.Figures) != 3 || answer.Figures[0].Label != "step time" || !strings.HasPrefix(answer.Figures[0].Value, "+") || answer.Figures[0].Kind != "bad" {
			t.Errorf("%s: %+v", d.Verb, answer)
		}
		if len(p.Questions()) != 6 || !strings.HasPrefix(p.Questions()[0].Answer, "Yes") || p.Questions()[1].Command == "" {
			t.Errorf("%s: %+v", d.Verb, p.Questions())
		}
		page := string(write(t, p))
		for _, want := range []string{`id="checks"`, `id="causes"`, `id="parts"`, `id="steps"`, `id="comparable"`, "data-chart=\"compared-steps\"", "<strong>Cause</strong>", "mixdown "} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q", d.Verb, want)
			}
		}
		for _, q := range p.Questions() {
			if q.Section != "" && !strings.Contains(page, `id="`+q.Section+`"`) {
				t.Errorf("%s: %q points at %q, which is not there", d.Verb, q.Ask, q.Section)
			}
		}
	}
}

// TestComparisonDrawsWithinItsAxes: every dot and bar lies in its picture, however
// far values are apart.
func TestComparisonDrawsWithinItsAxes(t *testing.T) {
	number := regexp.MustCompile(`<(circle|rect class="[a-z-]+") (?:cx|x)="([^"]*)" (?:cy|y)="([^"]*)"(?: width="([^"]*)")?`)
	d := documents(t, func(s string) string { return s })[0]
	d.StepsBefore[0], d.StepsAfter[0] = 1, 1e15
	page := string(write(t, &html.Page{Comparison: d}))
	found := 0
	for _, m := range number.FindAllStringSubmatch(page, -1) {
		x, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatalf("%v", m)
		}
		w, _ := strconv.ParseFloat(m[4], 64)
		room := 100.5
		if m[1] == "circle" || strings.Contains(m[1], "middle") {
			room = 640
		}
		if x < 0 || x+w > room {
			t.Errorf("%v", m)
		}
		found++
	}
	if found < 20 {
		t.Errorf("%d marks found", found)
	}
}

// TestHostileComparisons: names of groups, files, versions and steps.
func TestHostileComparisons(t *testing.T) {
	for i, bad := range hostile {
		for _, d := range documents(t, func(s string) string { return s + bad }) {
			d.Notes = append(d.Notes, bad)
			d.Answer += bad
			page := write(t, &html.Page{Title: bad, Comparison: d})
			checkNames(t, page)
			if len(page) > 1<<20 {
				t.Errorf("name %d makes a page of %d bytes", i, len(page))
			}
		}
	}
}

// TestComparisonOfLittle: what is not known is not shown as 0.
func TestComparisonOfLittle(t *testing.T) {
	side := &gate.Side{Source: "a"}
	for i, d := range []*output.Document{
		{Verb: "gate", Outcome: gate.Pass, Answer: "pass", After: side},
		{Verb: "gate", Outcome: gate.NotComparable, Answer: "not comparable: ranks", Before: side, After: side, Checks: []gate.Check{{Metric: gate.Step, Outcome: gate.NotComparable}}},
		{Verb: "diff", Outcome: gate.NotComparable, Answer: "not comparable: nothing", Before: side, After: side, StepsAfter: []float64{5, 5}},
	} {
		p := &html.Page{Comparison: d}
		page := string(write(t, p))
		if v := p.Answer().Figures[0].Value; i < 2 && v != "?" {
			t.Errorf("%d: the step's change is %q", i, v)
		}
		for _, bad := range []string{"NaN", "Inf", "%!"} {
			if strings.Contains(page[strings.Index(page, "<body>"):strings.Index(page, "<script")], bad) {
				t.Errorf("%d: the page holds %s", i, bad)
			}
		}
	}
}
