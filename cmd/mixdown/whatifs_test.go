package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/root"
	"mixdown/ingest/readme"
	"mixdown/replay/schedule"
	"mixdown/replay/whatif"
)

const testdata = "../../testdata/"

// realJob is a job that PyTorch ran without the profiler, see testdata/README.md.
type realJob struct {
	Name  string
	About string
	Step  int64      `json:"median_ns"`
	IQR   int64      `json:"iqr_ns"`
	Order [][]string // of a job that ran an order of its own
	// Pieces of other work that ran on each rank in a step.
	Pieces []int
}

// realCase is a job, and the same with a change that really was made.
type realCase struct {
	WhatIf                               string `json:"what_if"`
	Schedule, Trace, Base, Changed, Note string
}

func (c *realCase) asked() string {
	if c.WhatIf == "" {
		return "`--schedule " + c.Schedule + "`"
	}
	if c.Schedule == schedule.Traced {
		return "`" + c.WhatIf + "` of the order"
	}
	if c.Schedule != "" {
		return "`" + c.WhatIf + "` of `" + c.Schedule + "`"
	}
	return "`" + c.WhatIf + "`"
}

// notReal says of every other what-if why no job with the change was run.
var notReal = map[string]string{
	"reshard": "needs a stage on several ranks that each take the whole message, which no schedule of PyTorch has",
}

// maxWhatIfError is how far predictions of what-ifs may be off on average.
const maxWhatIfError = 0.05

// TestWhatIfs: what a change would do, predicted from a trace of the job before,
// against what it did when the job was really changed. No case is left out.
func TestWhatIfs(t *testing.T) {
	data, err := os.ReadFile(testdata + "what_ifs.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []realCase
		Jobs  []realJob
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	jobs := map[string]*realJob{}
	for i := range file.Jobs {
		jobs[file.Jobs[i].Name] = &file.Jobs[i]
	}
	asked := map[string]bool{}
	var rows strings.Builder
	var sum float64
	for _, c := range file.Cases {
		base, changed := jobs[c.Base], jobs[c.Changed]
		if base == nil || changed == nil {
			t.Fatalf("%s: no times of %s or %s", c.asked(), c.Base, c.Changed)
		}
		for _, name := range kindsOf(t, c.WhatIf) {
			asked[name] = true
		}
		checkOrder(t, &c, changed)
		predicted, fits := predict(t, &c)
		measured := float64(base.Step) / float64(changed.Step)
		off := predicted/measured - 1
		sum += math.Abs(off)
		noise := float64(max(base.IQR, changed.IQR)) / float64(changed.Step)
		if effect := measured - 1; math.Abs(effect) > noise && math.Abs(effect) > 0.02 && (predicted > 1) != (effect > 0) {
			t.Errorf("%s: measured %.3f, predicted %.3f: not even which of the two is quicker", c.asked(), measured, predicted)
		}
		note := changed.About
		if c.Note != "" {
			note += "; " + c.Note
		}
		if fits != nil {
			note += fmt.Sprintf("; ran %v pieces, predicted %v", changed.Pieces, fits)
		}
		fmt.Fprintf(&rows, "| %s | %s | %.1f | %.1f | %.1f | %.3f | %.3f | %+.1f %% |\n", c.asked(), note,
			float64(base.Step)/1e6, float64(changed.Step)/1e6, float64(changed.IQR)/2e6, measured, predicted, 100*off)
	}
	for _, k := range whatif.Known() {
		switch reason, not := notReal[k.Name]; {
		case not == asked[k.Name]:
			t.Errorf("%s: has a case: %t, has a reason to have none: %t", k.Name, asked[k.Name], not)
		case not:
			fmt.Fprintf(&rows, "| `%s` | not made real: %s | - | - | - | - | - | - |\n", k.Name, reason)
		}
	}
	mean := sum / float64(len(file.Cases))
	if mean > maxWhatIfError {
		t.Errorf("mean error %.1f %%", 100*mean)
	}
	table := "| what-if | the job that was run with the change | before ms | after ms | +- | measured speedup | predicted | off |\n|---|---|---|---|---|---|---|---|\n" + rows.String() +
		fmt.Sprintf("\nMean error of the %d predictions: %.1f %%.\n", len(file.Cases), 100*mean)
	if err := readme.Table(testdata+"README.md", "what-ifs: go test ./cmd/mixdown -run WhatIfs -update", table, *update); err != nil {
		t.Error(err)
	}
}

func kindsOf(t *testing.T, text string) []string {
	t.Helper()
	if text == "" {
		return nil
	}
	q, err := whatif.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range q.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// checkOrder compares the order that ran with the one that is predicted.
func checkOrder(t *testing.T, c *realCase, ran *realJob) {
	t.Helper()
	if c.Schedule == "" || c.Schedule == schedule.Traced {
		return
	}
	spec, err := schedule.Parse(c.Schedule)
	if err != nil {
		t.Fatal(err)
	}
	order, err := spec.Fill(4, 8, 2).Order()
	if err != nil {
		t.Fatal(err)
	}
	var want [][]string
	for _, row := range order {
		var list []string
		for _, a := range row {
			list = append(list, a.String())
		}
		want = append(want, list)
	}
	if !slices.EqualFunc(want, ran.Order, slices.Equal[[]string]) {
		t.Errorf("%s ran %v, the schedule is %v", c.Changed, ran.Order, want)
	}
}

// predict asks the command for the speedup, and for how many pieces fit on each rank.
func predict(t *testing.T, c *realCase) (speedup float64, fits []int) {
	t.Helper()
	args := []string{"simulate", testdata + c.Trace, "--format", "json"}
	if c.Schedule != "" {
		args = append(args, "--schedule", c.Schedule)
	}
	if c.WhatIf != "" {
		args = append(args, "--what-if", c.WhatIf)
	}
	var out, messages bytes.Buffer
	streams := &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &messages, Quiet: true}
	if code := root.Execute(context.Background(), streams, args); code != cli.Done {
		t.Fatalf("%v: exit code %d\n%s", args, code, messages.Bytes())
	}
	var result struct {
		Variants []struct {
			Predicted float64 `json:"predicted_speedup"`
			Fills     []struct{ Fits int }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil || len(result.Variants) == 0 {
		t.Fatalf("%v: %v\n%s", args, err, out.Bytes())
	}
	v := result.Variants[len(result.Variants)-1]
	for _, f := range v.Fills {
		fits = append(fits, f.Fits)
	}
	return v.Predicted, fits
}
