package sim_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/slowdown"
	"mixdown/ingest/kineto"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/source"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// maxFidelityError is how far unchanged runs may be off in the mean: what Lumos
// (MLSys 2025) reports of its own.
const maxFidelityError = 0.033

// fidelityOf simulates every step of a run. Refused says why there is none.
func fidelityOf(t *testing.T, run *trace.Run) (steps []*sim.StepFidelity, crossed []float64, refused string) {
	t.Helper()
	match := collective.Match(run)
	clocks := align.Estimate(run, match)
	align.Apply(run, clocks)
	align.UpdateArrivals(run, match)
	names := []string{"all"}
	if common := run.CommonSteps(); len(common) > 0 {
		names = nil
		for _, s := range common {
			names = append(names, s.Name)
		}
	}
	measured, err := slowdown.Measure(run)
	if err != nil {
		t.Fatal(err)
	}
	var graphs []*sim.Graph
	for _, name := range names {
		w, _, err := plan.Build(run, match, plan.Options{Step: name, Clocks: clocks, Simulate: true})
		if errors.Is(err, plan.ErrNothingToReplay) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if measured.Known {
			if err := sim.Contend(w, []*planpb.Slowdown{{Factor: measured.Factor}}); err != nil {
				t.Fatal(err)
			}
		}
		graphs = append(graphs, sim.NewGraph(w))
		f, err := graphs[len(graphs)-1].Fidelity()
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, f)
	}
	if len(steps) == 0 {
		return nil, nil, sim.WhyNot(run, match)
	}
	if crossed, err := sim.CrossValidate(graphs); err != nil {
		t.Fatal(err)
	} else {
		return steps, crossed, ""
	}
	return nil, nil, ""
}

// fidelityTable collects rows and errors.
type fidelityTable struct {
	rows   strings.Builder
	errors []float64

	crossed []float64
}

func (f *fidelityTable) add(t *testing.T, name string, run *trace.Run) {
	t.Helper()
	steps, crossed, refused := fidelityOf(t, run)
	if refused != "" {
		fmt.Fprintf(&f.rows, "| %s | %d | - | - | - | - | - | - | - | refused: %s |\n", name, len(run.Ranks), refused)
		return
	}
	var sum, worst, traced, own, fixed, all float64
	who := "-"
	for _, s := range steps {
		sum += s.Error()
		traced += float64(s.Traced)
		for _, r := range s.Ranks {
			all += float64(r.Traced)
		}
		own += float64(s.Time.Own)
		fixed += float64(s.Time.FixedWait)
		if w := s.Worst(); w != nil && math.Abs(w.Ratio-1) >= worst {
			worst, who = math.Abs(w.Ratio-1), fmt.Sprintf("%+.2f %%, rank %d", 100*(w.Ratio-1), w.Rank)
		}
	}
	n := float64(len(steps))
	others := "-"
	if len(crossed) > 0 {
		var off float64
		for _, ratio := range crossed {
			off += math.Abs(ratio-1) / float64(len(crossed))
		}
		f.crossed = append(f.crossed, off)
		others = fmt.Sprintf("%.1f %%", 100*off)
	}
	f.errors = append(f.errors, sum/n)
	d := steps[0].Sources
	fmt.Fprintf(&f.rows, "| %s | %d | %d | %.1f | %.2f %% | %s | %s | %.0f %% | %.0f %% | %d recorded, %d inferred, %d contradicted |\n",
		name, len(run.Ranks), len(steps), traced/n/1e6, 100*sum/n, who, others, 100*own/all, 100*fixed/all, d.Recorded, d.Inferred, d.Contradicted)
}

const fidelityHead = "| run | ranks | steps | traced ms | error | worst rank | with the operations of other steps | a rank's own | fixed waits | dependencies of the first step |\n|---|---|---|---|---|---|---|---|---|---|\n"

func mean(list []float64) float64 {
	var sum float64
	for _, e := range list {
		sum += e
	}
	return sum / float64(max(len(list), 1))
}

// summary checks the means and says them.
func (f *fidelityTable) summary(t *testing.T) string {
	t.Helper()
	if mean(f.errors) > maxFidelityError {
		t.Errorf("mean error %.2f %%", 100*mean(f.errors))
	}
	text := fmt.Sprintf("\nMean error of the %d runs that can be simulated: %.2f %%.", len(f.errors), 100*mean(f.errors))
	if len(f.crossed) > 0 {
		text += fmt.Sprintf(" With the operations of other steps, %d runs: %.1f %%.", len(f.crossed), 100*mean(f.crossed))
	}
	return fidelityHead + f.rows.String() + text + "\n"
}

// Every test run simulated unchanged, none left out, and generated runs.
func TestFidelity(t *testing.T) {
	var f fidelityTable
	sets, err := filepath.Glob(testdata + "*/rank0.pt.trace.json.gz")
	if err != nil || len(sets) < 30 {
		t.Fatalf("%d sets: %v", len(sets), err)
	}
	for _, set := range sets {
		dir := filepath.Dir(set)
		f.add(t, "`"+filepath.Base(dir)+"`", kinetotest.Load(t, dir))
	}
	all := maps.Clone(generated)
	maps.Copy(all, besides)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		opts := all[name]
		opts.Noise, opts.Seed = 0.1, 3
		run, _, err := synthetic.Load(t.TempDir(), opts)
		if err != nil {
			t.Fatal(err)
		}
		f.add(t, "generated: "+name, run)
	}
	run, _, err := synthetic.Load(t.TempDir(), contended(1.4, 3))
	if err != nil {
		t.Fatal(err)
	}
	f.add(t, "generated: device, kernels 1.4 times as long beside communication", run)
	inReadme(t, "fidelity: go test ./replay/sim -run Fidelity -update", f.summary(t))
}

// The same of real traces of other people, which are not part of the project.
func TestFidelityOfOthers(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	var f fidelityTable
	seen := map[string]bool{}
	err := filepath.WalkDir(corpus, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(d.Name(), ".json") {
			return err
		}
		name, _ := filepath.Rel(corpus, path)
		// Several ranks of one job are in these folders.
		for _, job := range []string{"param/dlrm_8rank/kineto", "hta/trace_filter"} {
			if strings.HasPrefix(name, job+"/") {
				name, path = job, filepath.Join(corpus, job)
			}
		}
		if seen[name] {
			return nil
		}
		seen[name] = true
		files, err := source.Find([]string{path}, source.Options{})
		if err != nil {
			return nil // no trace
		}
		run, err := kineto.Load(context.Background(), files, kineto.Options{})
		if err != nil || len(run.Ranks) == 0 {
			return nil // an execution trace, or nothing Kineto wrote
		}
		f.add(t, "`"+name+"`", run)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	inReadme(t, "fidelity of others: go test ./replay/sim -run FidelityOfOthers -update", f.summary(t))
}
