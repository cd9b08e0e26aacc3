package sim_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/pipeline"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/readme"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

var update = flag.Bool("update", false, "rewrite the tables in testdata/README.md")

const testdata = "../../testdata/"

// configuration is one program that PyTorch ran, and how long its steps took.
type configuration struct {
	Name         string
	Schedule     string
	Ranks        int
	Replicas     int
	Loops        int
	Microbatches int
	Layer        string // "waiting" or "computing"
	Clean        struct {
		Median int64 `json:"median_ns"`
		IQR    int64 `json:"iqr_ns"`
		Steps  int
	}
}

// ours is what each of PyTorch's schedules is called here.
var ours = map[string]string{
	"gpipe": "gpipe", "1f1b": "1f1b", "interleaved": "depth-first:loops=2", "bfs": "breadth-first:loops=2,backward-order=lifo",
	"izb": "interleaved-zero-bubble:loops=2", "zbv": "zbv",
}

func configurations(t *testing.T) []configuration {
	t.Helper()
	data, err := os.ReadFile(testdata + "pipeline_times.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Configurations []configuration }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Configurations
}

func find(t *testing.T, set string) *pipeline.Pipeline {
	t.Helper()
	run := kinetotest.Load(t, testdata+set)
	match := collective.Match(run)
	clocks := align.Estimate(run, match)
	align.Apply(run, clocks)
	align.UpdateArrivals(run, match)
	found, err := pipeline.Find(run, match, pipeline.Options{Clocks: clocks})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Pipelines) == 0 {
		t.Fatalf("%s: no pipeline", set)
	}
	return found.Pipelines[0]
}

// Every trace that PyTorch made is recognised as the schedule that ran.
func TestRecognised(t *testing.T) {
	sets, err := filepath.Glob(testdata + "pipeline_sched_*")
	if err != nil || len(sets) < 20 {
		t.Fatalf("%d sets: %v", len(sets), err)
	}
	for _, path := range sets {
		set := filepath.Base(path)
		want := ours[set[strings.LastIndexByte(set, '_')+1:]]
		r := schedule.Recognise(sim.Order(&find(t, set).Steps[0]))
		same := append([]string{r.Schedule()}, r.Same...)
		spec, err := schedule.Parse(want)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(want, ":")
		if !r.Exact || !slices.ContainsFunc(same, func(s string) bool { n, _, _ := strings.Cut(s, ":"); return n == name || n == spec.Name }) {
			t.Errorf("%s: %s (same as %v), want %s", set, r, r.Same, want)
		}
	}
}

// maxMeanError is how far predictions may be off on average.
const maxMeanError = 0.08

// From the trace of 1F1B alone, what every other schedule takes, against what
// it took under PyTorch, measured without a profiler. The order of any two is
// right where they differ by more than the noise.
func TestPredictions(t *testing.T) {
	var rows strings.Builder
	var errors []float64
	groups := map[string][]configuration{}
	var order []string
	for _, c := range configurations(t) {
		if c.Replicas > 1 {
			continue
		}
		k := fmt.Sprintf("%d ranks, %s", c.Ranks, c.Layer)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], c)
	}
	for _, k := range order {
		base := slices.IndexFunc(groups[k], func(c configuration) bool { return c.Schedule == "1f1b" })
		if base < 0 {
			continue
		}
		m, err := sim.Calibrate(find(t, groups[k][base].Name), nil)
		if err != nil {
			t.Fatal(err)
		}
		predicted := make([]int64, len(groups[k]))
		for i, c := range groups[k] {
			spec, err := schedule.Parse(ours[c.Schedule])
			if err != nil {
				t.Fatal(err)
			}
			p, err := m.Predict(spec, sim.Shape{}, sim.Options{})
			if i == base {
				p, _, err = m.Baseline()
			}
			if err != nil {
				t.Fatal(err)
			}
			predicted[i] = p.Run.Step
			off := float64(p.Run.Step)/float64(c.Clean.Median) - 1
			mark := ""
			if i == base {
				mark = " (the trace)"
			} else {
				errors = append(errors, math.Abs(off))
			}
			fmt.Fprintf(&rows, "| %s | %s%s | %.1f | %.1f | %.1f | %+.1f %% |\n", k, ours[c.Schedule], mark,
				float64(c.Clean.Median)/1e6, float64(c.Clean.IQR)/2e6, float64(p.Run.Step)/1e6, 100*off)
		}
		for i, a := range groups[k] {
			for j, b := range groups[k][:i] {
				noise := max(a.Clean.IQR, b.Clean.IQR)
				if measured := a.Clean.Median - b.Clean.Median; measured > noise || measured < -noise {
					if measured > 0 != (predicted[i] > predicted[j]) {
						t.Errorf("%s: %s takes %.1f ms longer than %s, predicted %.1f ms", k, a.Schedule, float64(measured)/1e6, b.Schedule, float64(predicted[i]-predicted[j])/1e6)
					}
				}
			}
		}
	}
	var sum float64
	for _, e := range errors {
		sum += e
	}
	mean := sum / float64(len(errors))
	t.Logf("mean error of %d predictions %.1f %%\n%s", len(errors), 100*mean, rows.String())
	if mean > maxMeanError {
		t.Errorf("mean error %.1f %%", 100*mean)
	}
	table := "| job | schedule | measured ms | +- | predicted ms | error |\n|---|---|---|---|---|---|\n" + rows.String() +
		fmt.Sprintf("\nMean error of the %d predictions: %.1f %%.\n", len(errors), 100*mean)
	inReadme(t, "predictions: go test ./replay/sim -run Predictions -update", table)
}

// inReadme checks that a table stands between its marks.
func inReadme(t *testing.T, mark, table string) {
	t.Helper()
	if err := readme.Table(testdata+"README.md", mark, table, *update); err != nil {
		t.Error(err)
	}
}

// DeepSpeed's engine sends and receives one after the other: only a model of that
// explains its step, and others are predicted the same way.
func TestDeepSpeedSendsBlock(t *testing.T) {
	m, err := sim.Calibrate(find(t, "deepspeed_pipe_2rank"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, f, err := m.Baseline()
	if err != nil {
		t.Fatal(err)
	}
	if m.Sends != sim.Blocking || f.Ratio < 0.9 || f.Ratio > 1.1 {
		t.Errorf("%s, ratio %.2f", m.Sends, f.Ratio)
	}
	running, err := sim.Calibrate(find(t, "pipeline_sched_p4_bfs"), nil)
	if err != nil || running.Sends != sim.Running {
		t.Errorf("PyTorch's runtime: %s, %v", running.Sends, err)
	}
}
