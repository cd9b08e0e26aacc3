package critical_test

import (
	"path/filepath"
	"strings"
	"testing"

	"mixdown/analyze/collective"
	"mixdown/analyze/critical"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/trace"
)

// checkSet analyses every step of a set, and the whole trace, and holds the
// step's time against the trace's own events.
func checkSet(t *testing.T, path string) map[string]*critical.Result {
	t.Helper()
	run := kinetotest.Load(t, path)
	match := collective.Match(run)
	results := map[string]*critical.Result{}
	for _, step := range append([]trace.Step{{Name: "all"}, {}}, run.Ranks[0].Steps...) {
		g, _, err := critical.Build(run, match, critical.Options{Step: step.Name})
		if err != nil {
			t.Fatal(err)
		}
		r := g.Analyze()
		check(t, g, r)
		results[step.Name] = r
		if step.Name == "" || step.Name == "all" {
			continue
		}
		if got, want := r.StepNS, stepTime(run, step.Name); got-want > us || want-got > us {
			t.Errorf("%s: the path is %d ns long, the step %d", step.Name, got, want)
		}
	}
	return results
}

// stepTime is from the first rank's start of a step to the end of the last that
// the step started, calculated from the events alone.
func stepTime(run *trace.Run, name string) int64 {
	var first, last int64
	for r, rank := range run.Ranks {
		var step trace.Step
		for _, s := range rank.Steps {
			if s.Name == name {
				step = s
			}
		}
		if r == 0 {
			first, last = step.Start, step.End
		}
		first, last = min(first, step.Start), max(last, step.End)
		launched := map[int64]bool{}
		ev := &rank.Events
		for i := range ev.Len() {
			if ev.Category[i] == trace.Runtime && ev.TS[i] >= step.Start && ev.TS[i] < step.End {
				launched[ev.Correlation[i]] = true
			}
		}
		for i := range ev.Len() {
			if ev.Category[i].OnDevice() && launched[ev.Correlation[i]] {
				last = max(last, ev.End(i))
			}
		}
		for i := range rank.Operations {
			if op := &rank.Operations[i]; rank.CPUOnly && op.Issued >= step.Start && op.Issued < step.End {
				last = max(last, op.End)
			}
		}
	}
	return last - first
}

func TestDLRM(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	r := checkSet(t, filepath.Join(corpus, "param/dlrm_8rank/kineto"))["ProfilerStep#10"]
	if !r.ClocksAligned || r.Backward != 0 || r.StepNS != 20823*us || r.Bound.Rank != 7 {
		t.Errorf("aligned %v, %d backward, step %d, bound %+v", r.ClocksAligned, r.Backward, r.StepNS, r.Bound)
	}
	// The ranks enter their step up to 7.5 ms apart and then launch: nearly all
	// of their exposed communication is waiting, which no backend shortens.
	if r.Free.GainNS > 1000*us {
		t.Errorf("free %+v", r.Free)
	}
}

func TestRealSets(t *testing.T) {
	r := checkSet(t, "../../testdata/dp_moe_4rank")[""]
	if !r.ClocksAligned || r.Backward != 0 || r.Free.Speedup == nil || *r.Free.Speedup < 1.2 {
		t.Errorf("dp_moe: aligned %v, %d backward, %+v", r.ClocksAligned, r.Backward, r.Free)
	}
	// Without interleaving the path of a pipeline runs down to the last stage,
	// along it for all micro-batches, and back up.
	r = checkSet(t, "../../testdata/pipeline_1f1b_4rank")[""]
	if !r.ClocksAligned || r.Backward != 0 || r.Bound.Rank != 3 || !strings.Contains(r.Bound.Name, "StageWorkBackward") {
		t.Errorf("pipeline: aligned %v, %d backward, %+v", r.ClocksAligned, r.Backward, r.Bound)
	}
}
