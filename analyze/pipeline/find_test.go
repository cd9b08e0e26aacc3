package pipeline

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/trace"
)

// TestNoPipeline: runs without a pipeline give none, and no diagnostic, whatever
// messages their ranks exchange.
func TestNoPipeline(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(testdata, "*rank*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if strings.Contains(dir, "pipe") {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			res := find(t, kinetotest.Load(t, dir))
			if len(res.Pipelines) > 0 || len(res.Diagnostics.List()) > 0 {
				t.Errorf("%d pipelines, diagnostics %v", len(res.Pipelines), res.Diagnostics.List())
			}
		})
	}
}

func load(t *testing.T, name string) *trace.Run {
	t.Helper()
	return kinetotest.Load(t, filepath.Join(testdata, name))
}

func codes(res *Result) []string {
	var list []string
	for _, d := range res.Diagnostics.List() {
		if !slices.Contains(list, d.Code) {
			list = append(list, d.Code)
		}
	}
	return list
}

// TestMissingRanks: labels with stages tell a pipeline as far as its ranks were
// read, and that it is not whole; without stages nothing is told.
func TestMissingRanks(t *testing.T) {
	for _, c := range []struct {
		set  string
		keep []int
		code string
		told bool
	}{
		{"pipeline_sched_p4_bfs", []int{0, 1, 3}, CodeMissing, true},
		{"pipeline_sched_p4_bfs", []int{1}, CodeMissing, true},
		{"pipeline_sched_p4_1f1b", []int{0, 1, 3}, CodeUnclear, false},
		{"pipeline_sched_p4_gpipe", []int{0, 1, 3}, CodeUnnumbered, false},
		{"pipeline_sched_p4_gpipe", []int{0, 1}, CodeUnnumbered, false},
	} {
		run := load(t, c.set)
		run.Ranks = slices.DeleteFunc(run.Ranks, func(r *trace.Rank) bool { return !slices.Contains(c.keep, r.Rank) })
		res := find(t, run)
		if got := codes(res); !slices.Equal(got, []string{c.code}) {
			t.Errorf("%s, ranks %v: diagnostics %v", c.set, c.keep, res.Diagnostics.List())
		}
		if told := len(res.Pipelines) == 1; told != c.told || len(res.Pipelines) > 1 {
			t.Errorf("%s, ranks %v: %d pipelines", c.set, c.keep, len(res.Pipelines))
		} else if p := res.Pipelines; told && (!slices.Equal(p[0].Ranks, c.keep) || p[0].Steps[0].Complete || p[0].Stages() < 7 || !slices.Contains(p[0].StagePlace, Unknown)) {
			t.Errorf("%s, ranks %v: ranks %v, stages on %v", c.set, c.keep, p[0].Ranks, p[0].StagePlace)
		}
	}
}

// TestWithoutLabels takes the labels away: what the messages tell is as before, the
// rest is told to be unclear, and never guessed.
func TestWithoutLabels(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(testdata, "pipeline_sched_*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		run := load(t, name)
		for _, rank := range run.Ranks {
			for i := range rank.Events.Len() {
				if actions, _ := readLabel(rank.Name(i)); actions != nil {
					rank.Events.Category[i] = trace.Other
				}
			}
		}
		res := find(t, run)
		if strings.HasSuffix(name, "1f1b") || name == "pipeline_sched_p4_interleaved" {
			continue // below
		}
		if got := codes(res); len(res.Pipelines) > 0 || !slices.Equal(got, []string{CodeUnclear}) {
			t.Errorf("%s: %d pipelines, diagnostics %v", name, len(res.Pipelines), res.Diagnostics.List())
		}
	}
	for _, name := range []string{"pipeline_sched_p4_interleaved"} {
		run := load(t, name)
		labelled := find(t, run).Pipelines[0]
		for _, rank := range run.Ranks {
			for i := range rank.Events.Len() {
				if actions, _ := readLabel(rank.Name(i)); actions != nil {
					rank.Events.Category[i] = trace.Other
				}
			}
		}
		res := find(t, run)
		if len(res.Pipelines) != 1 || len(res.Diagnostics.List()) > 0 {
			t.Errorf("%s: %d pipelines, diagnostics %v", name, len(res.Pipelines), res.Diagnostics.List())
			continue
		}
		for i := range labelled.Steps {
			for place := range labelled.Ranks {
				tasks, want := res.Pipelines[0].Steps[i].Tasks[place], labelled.Steps[i].Tasks[place]
				if text(tasks) != text(want) {
					t.Errorf("%s, place %d:\n got %s\nwant %s", name, place, text(tasks), text(want))
					continue
				}
				for k := range tasks {
					off(t, tasks[k].String(), tasks[k].Start-want[k].Start)
					off(t, tasks[k].String(), tasks[k].End-want[k].End)
				}
			}
		}
	}
}

// TestLostEvents: a task whose label the profiler lost is missed.
func TestLostEvents(t *testing.T) {
	run := load(t, "pipeline_sched_p4_bfs")
	rank := run.Ranks[2]
	for i := range rank.Events.Len() {
		if rank.Name(i) == "PP:2F5" {
			rank.Events.Category[i] = trace.Other
			break
		}
	}
	res := find(t, run)
	if got := codes(res); !slices.Equal(got, []string{CodeMissing}) {
		t.Errorf("diagnostics %v", res.Diagnostics.List())
	}
	if s := res.Pipelines[0].Steps; s[0].Complete || !s[1].Complete {
		t.Errorf("complete: %v, %v", s[0].Complete, s[1].Complete)
	}
	// Messages that no label claims lead to no other guess.
	run = load(t, "pipeline_sched_p4_1f1b")
	rank = run.Ranks[1]
	for i := range rank.Operations {
		if rank.Operations[i].Op == "send" {
			rank.Operations = slices.Delete(rank.Operations, i, i+1)
			break
		}
	}
	res = find(t, run)
	if got := codes(res); !slices.Equal(got, []string{CodeUnclear}) {
		t.Errorf("diagnostics %v", res.Diagnostics.List())
	}
	if len(res.Pipelines) != 1 || len(res.Pipelines[0].Steps) != 1 {
		t.Errorf("%d pipelines: the step that is whole is told, the other is not", len(res.Pipelines))
	}
}

func TestForeignMatching(t *testing.T) {
	run := load(t, "pipeline_sched_p4_bfs")
	if _, err := Find(run, &collective.Matching{}, Options{}); err == nil {
		t.Error("no error for the matching of another run")
	}
}

// TestRepeated: a program may run its schedule several times within a step.
func TestRepeated(t *testing.T) {
	run := load(t, "pipeline_sched_p2_bfs")
	for _, rank := range run.Ranks {
		rank.Steps = []trace.Step{{Name: "both", Number: 7, Start: rank.Steps[0].Start, End: rank.Steps[1].End}}
	}
	res := find(t, run)
	if len(res.Pipelines) != 1 || len(res.Diagnostics.List()) > 0 {
		t.Fatalf("%d pipelines, diagnostics %v", len(res.Pipelines), res.Diagnostics.List())
	}
	s := res.Pipelines[0].Steps
	if len(s) != 2 || s[0].Number != 7 || s[1].Number != 7 || s[1].Tasks[0][0].Start < s[0].Tasks[0][15].End || !s[1].Complete {
		t.Errorf("%d steps", len(s))
	}
	// Without any step the whole trace is one.
	for _, rank := range run.Ranks {
		rank.Steps = nil
	}
	if again := find(t, run).Pipelines[0].Steps; len(again) != 2 || text(again[1].Tasks[1]) != text(s[1].Tasks[1]) {
		t.Errorf("%d steps without steps", len(again))
	}
}

// TestClocks: what needs two clocks is left out where they don't compare.
func TestClocks(t *testing.T) {
	run := load(t, "pipeline_sched_p2_bfs")
	clocks := &align.Result{Clocks: []align.Clock{{Rank: 0, Component: 0}, {Rank: 1, Component: 1}}}
	res, err := Find(run, collective.Match(run), Options{Clocks: clocks})
	if err != nil {
		t.Fatal(err)
	}
	s := &res.Pipelines[0].Steps[0]
	if s.Comparable || s.Bubbles().Makespan != Unknown || len(s.Transfers) != 24 {
		t.Errorf("comparable %v, %d transfers", s.Comparable, len(s.Transfers))
	}
	for _, tr := range s.Transfers {
		if tr.Timed {
			t.Fatalf("%+v is timed", tr)
		}
	}
	for place := range s.Tasks {
		for _, task := range s.Tasks[place] {
			if task.Remote && (task.Arrived == Unknown || task.Arrived > task.Start) {
				t.Errorf("%s arrived %d ns after its start", &task, task.Arrived-task.Start)
			}
		}
	}
}

// TestForeignLabels: labels of programs that are no pipelines, and of none that
// can be.
func TestForeignLabels(t *testing.T) {
	for _, c := range []struct {
		labels, codes []string
	}{
		{[]string{"Forward 0", "Forward 1", "Backward 0"}, nil},
		{[]string{"PP:0F0", "PP:0B0"}, nil}, // one rank alone
		{[]string{"PP:999999999F1", "PP:0F99999999999999999999"}, []string{CodeLabelOdd}},
		{[]string{"PP:16000F1"}, []string{CodeMissing}},
	} {
		run := load(t, "dp_moe_4rank")
		run.Ranks = run.Ranks[:1]
		for i := range run.Ranks {
			rank := run.Ranks[i]
			for _, name := range c.labels {
				rank.Events.Append(trace.Row{Name: rank.Names.InternString(name), Category: trace.UserAnnotation,
					TS: rank.Steps[0].Start + 10, Dur: 1000, Correlation: trace.NoID})
			}
		}
		if res := find(t, run); !slices.Equal(codes(res), c.codes) {
			t.Errorf("%q: diagnostics %v", c.labels, res.Diagnostics.List())
		}
	}
}

// TestReductions: Gloo's trace does not say which group two of three groups'
// threads serve, so the collectives are listed and nothing is said of stages.
func TestReductions(t *testing.T) {
	res := find(t, load(t, "pipeline_sched_p2dp2_1f1b"))
	if len(res.Pipelines) != 2 {
		t.Fatalf("%d pipelines, diagnostics %v", len(res.Pipelines), res.Diagnostics.List())
	}
	for _, p := range res.Pipelines {
		for i := range p.Steps {
			if n := len(p.Steps[i].Reductions); n != 4 {
				t.Errorf("%d reductions, want gradients and norm of two ranks", n)
			}
			for _, r := range p.Steps[i].Reductions {
				if r.DataParallel || r.Stage != Unknown || r.Op != comm.AllReduce {
					t.Errorf("%+v", r)
				}
			}
		}
	}
}
