package output_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/diff"
	"mixdown/analyze/gate"
	"mixdown/analyze/gate/output"
	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
)

// summary is a synthetic run of 8 steps, summarized. Its all_reduce has so many
// elements; without it there is a broadcast.
func summary(t *testing.T, name string, elements int64) *diff.Summary {
	t.Helper()
	opts := synthetic.Options{Ranks: 2, Steps: 8, Noise: 0.01, Seed: 3, Collectives: []synthetic.Collective{
		{Op: comm.AllGather, Scope: synthetic.World, Elements: 1 << 20},
		{Op: comm.AllReduce, Scope: synthetic.World, Elements: elements},
	}}
	if elements == 0 {
		opts.Collectives[1] = synthetic.Collective{Op: comm.Broadcast, Scope: synthetic.World, Elements: 1 << 20}
	}
	run, _, err := synthetic.Load(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	in := diff.Input{Name: name, Run: run, Match: collective.Match(run)}
	in.Clocks = align.Estimate(run, in.Match)
	align.Apply(run, in.Clocks)
	align.UpdateArrivals(run, in.Match)
	return diff.Summarize(in)
}

// compared is a diff against a run whose all_reduce is larger by half.
func compared(t *testing.T) (*diff.Diff, *output.Document) {
	t.Helper()
	d := diff.Compare(summary(t, "main "+hostile, 2<<20), summary(t, "branch "+hostile, 3<<20))
	return d, output.OfDiff(d)
}

// TestDiffIsWrittenInEveryFormat: what the gate's readers rely on holds of diffs, and
// names get out of no format.
func TestDiffIsWrittenInEveryFormat(t *testing.T) {
	d, doc := compared(t)
	for _, name := range output.Formats() {
		text := write(t, output.Format(name), doc)
		if text == "" || strings.ContainsAny(text, "\x1b\r") {
			t.Errorf("%s: %q", name, text)
		}
	}
	var own, there diff.Diff
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(data, &own) != nil || json.Unmarshal([]byte(write(t, output.JSON, doc)), &there) != nil || own.Answer != there.Answer || len(own.Operations) != len(there.Operations) {
		t.Error("the JSON is not the diff's own")
	}
	for format, want := range map[output.Format][]string{
		output.Markdown: {"### ⚠️ mixdown diff: step time", "| ⚠️ warning | step |", "before main", "after branch"},
		output.JUnit:    {`<testsuites name="mixdown diff"`, `failures="0"`, `classname="mixdown.diff.exposed_comm"`},
		output.SARIF:    {`"name": "mixdown diff"`, `"level": "warning"`},
		output.GitHub:   {"::warning title=step::"},
		output.Benchfmt: {"run: baseline", "run: candidate", "/op=all_reduce/"},
	} {
		text := write(t, format, doc)
		for _, s := range want {
			if !strings.Contains(text, s) {
				t.Errorf("%s: no %q in\n%s", format, s, text)
			}
		}
	}
	for _, line := range strings.Split(write(t, output.Markdown, doc), "\n") {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != 9 {
			t.Errorf("cells: %s", line)
		}
	}
}

// TestDiffIsJudgedByItself: verdicts of the diff are outcomes, and figures are those
// of the diff over the ranks.
func TestDiffIsJudgedByItself(t *testing.T) {
	d, doc := compared(t)
	step := doc.Checks[0]
	if doc.Outcome != gate.Warning || step.Metric != gate.Step || step.Outcome != gate.Warning || step.Cause == nil || !strings.Contains(step.Cause.Text, "all_reduce") {
		t.Errorf("%s %+v", doc.Outcome, step)
	}
	if *step.Change != float64(*d.Time.Step.Change) || *step.Low > *step.Change || *step.High < *step.Change || len(doc.StepsBefore) != 8 {
		t.Errorf("%+v", step)
	}
	found := false
	for _, c := range doc.Checks {
		if c.Labels[gate.ByOp] != "all_reduce" || c.Metric != gate.ExposedComm {
			continue
		}
		found = true
		o := d.Operations[0]
		if c.Outcome != gate.Warning || math.Abs(*c.Change*2-float64(*o.Exposed.Change)) > 1 || c.P == nil || !strings.Contains(c.Cause.Text, "transfer +") {
			t.Errorf("%+v", c)
		}
		if _, err := gate.ParseRule(c.Name() + " +5%"); err != nil {
			t.Errorf("its name is no selector: %v", err)
		}
	}
	if !found {
		t.Error("no check of all_reduce")
	}

	back := output.OfDiff(diff.Compare(summary(t, "a", 3<<20), summary(t, "b", 2<<20)))
	if back.Outcome != gate.Improved || back.Count(gate.Warning) != 0 {
		t.Errorf("the other way: %s, %d warnings", back.Outcome, back.Count(gate.Warning))
	}
	same := output.OfDiff(diff.Compare(summary(t, "a", 2<<20), summary(t, "b", 2<<20)))
	if same.Outcome != gate.Pass || same.Count(gate.Pass) != len(same.Checks) {
		t.Errorf("the same: %s", same.Outcome)
	}
	other := output.OfDiff(diff.Compare(summary(t, "a", 2<<20), summary(t, "b", 0)))
	counts := map[string]gate.Outcome{}
	for _, c := range other.Checks {
		if c.Metric == gate.Count {
			counts[c.Labels[gate.ByOp]] = c.Outcome
		}
	}
	if counts["all_reduce"] != gate.Improved || counts["broadcast"] != gate.Warning || len(counts) != 2 {
		t.Errorf("%v", counts)
	}
}
