package pipeline

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/analyze/collective"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/trace"
)

const testdata = "../../testdata"

// truth is what the program that made a set of traces recorded itself.
type truth struct {
	Ranks []struct {
		Rank  int `json:"rank"`
		Steps []struct {
			Number int   `json:"profiler_step"`
			Start  int64 `json:"start_unix_ns"`
			Spans  []struct {
				Kind       string `json:"kind"`
				Stage      int    `json:"stage"`
				Microbatch *int   `json:"microbatch"`
				Start      int64  `json:"start_ns"`
				End        int64  `json:"end_ns"`
			} `json:"spans"`
		} `json:"steps"`
	} `json:"ranks"`
}

var phaseOfSpan = map[string]Phase{
	"forward": Forward, "backward": Backward,
	"input": InputGradient, "weight": WeightGradient,
	"ForwardPass": Forward, "BackwardPass": Backward,
}

// readTruth returns the tasks of each rank and step, with absolute times. Where
// the program knew no micro-batch it is the count.
func readTruth(t *testing.T, dir string) map[[2]int][]Task {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var tr truth
	if err := json.Unmarshal(data, &tr); err != nil {
		t.Fatal(err)
	}
	tasks := map[[2]int][]Task{}
	for _, r := range tr.Ranks {
		for _, s := range r.Steps {
			count := map[Phase]int{}
			var list []Task
			for _, sp := range s.Spans {
				phase, ok := phaseOfSpan[sp.Kind]
				if !ok {
					continue
				}
				task := Task{Phase: phase, Stage: sp.Stage, Microbatch: count[phase], Start: s.Start + sp.Start, End: s.Start + sp.End}
				count[phase]++
				if sp.Microbatch != nil {
					task.Microbatch = *sp.Microbatch
				}
				list = append(list, task)
			}
			slices.SortStableFunc(list, func(a, b Task) int { return int(a.Start - b.Start) })
			tasks[[2]int{r.Rank, s.Number}] = list
		}
	}
	return tasks
}

func find(t *testing.T, run *trace.Run) *Result {
	t.Helper()
	res, err := Find(run, collective.Match(run), Options{}) // one host: one clock
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func text(tasks []Task) string {
	var list []string
	for i := range tasks {
		list = append(list, tasks[i].String())
	}
	return strings.Join(list, " ")
}

// tolerance is how far, in ns, a task's ends may be from what the program itself
// measured around the call that ran it. The typical one is the interpreter
// between the two; the most is what a machine of 2 cores with more ranks than that
// may put between any two statements.
const (
	typicalTolerance = 150_000
	mostTolerance    = 6_000_000
)

// TestTruth holds every set of pipeline traces against what its program recorded.
func TestTruth(t *testing.T) {
	var dirs []string
	for _, glob := range []string{"pipeline_*rank", "pipeline_sched_*", "deepspeed_pipe_*"} {
		found, err := filepath.Glob(filepath.Join(testdata, glob))
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) { checkTruth(t, dir) })
	}
}

func checkTruth(t *testing.T, dir string) {
	want := readTruth(t, dir)
	res := find(t, kinetotest.Load(t, dir))
	for _, d := range res.Diagnostics.List() {
		t.Error("diagnostic:", d)
	}
	seen := 0
	var starts, ends []int64
	for _, p := range res.Pipelines {
		t.Logf("ranks %v, stages on %v, loops %d, %d micro-batches, %d steps: %s", p.Ranks, p.StagePlace, p.Loops, p.Microbatches, len(p.Steps), p.Evidence)
		for i := range p.Steps {
			s := &p.Steps[i]
			if !s.Complete || !s.Comparable {
				t.Errorf("%s: complete %v, comparable %v", s.Name, s.Complete, s.Comparable)
			}
			for place, rank := range p.Ranks {
				seen++
				wanted := want[[2]int{rank, s.Number}]
				if got, want := text(s.Tasks[place]), text(wanted); got != want {
					t.Errorf("%s, rank %d:\n got %s\nwant %s", s.Name, rank, got, want)
					continue
				}
				for k, task := range s.Tasks[place] {
					starts = append(starts, off(t, fmt.Sprintf("%s rank %d %s start", s.Name, rank, &task), task.Start-wanted[k].Start))
					ends = append(ends, off(t, fmt.Sprintf("%s rank %d %s end", s.Name, rank, &task), task.End-wanted[k].End))
					if task.Remote != (task.Arrived != Unknown) || task.Arrived > task.Start {
						t.Errorf("%s rank %d %s: remote %v, arrived %d ns after its start", s.Name, rank, &task, task.Remote, task.Arrived-task.Start)
					}
				}
			}
			messages := 0
			for stage := range p.Stages() - 1 {
				if p.StagePlace[stage] != p.StagePlace[stage+1] {
					messages += 2 * p.Microbatches
				}
			}
			if len(s.Transfers) != messages {
				t.Errorf("%s: %d transfers, want %d", s.Name, len(s.Transfers), messages)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d of the %d steps of ranks are in a pipeline", seen, len(want))
	}
	for name, list := range map[string][]int64{"starts": starts, "ends": ends} {
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		t.Logf("%s: off by median %d us, 95%% %d us, most %d us", name, list[len(list)/2]/1000, list[len(list)*95/100]/1000, list[len(list)-1]/1000)
		if list[len(list)/2] > typicalTolerance {
			t.Errorf("%s are off by %d ns in the median", name, list[len(list)/2])
		}
	}
}

func off(t *testing.T, what string, d int64) int64 {
	t.Helper()
	if d < 0 {
		d = -d
	}
	if d > mostTolerance {
		t.Errorf("%s is off by %d us", what, d/1000)
	}
	return d
}
