package sim

import (
	"math"
	"testing"

	"mixdown/analyze/pipeline"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/megatron"
	"mixdown/ingest/source"
)

// A merged Megatron trace of two runs, which says nothing of messages. A model
// without gaps plays the breadth-first one 11 % too fast.
func TestMegatron(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	files, err := source.Find([]string{corpus + "/megatronapp/merged_trace.json.gz"}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := files[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read, err := megatron.Read(r, files[0].Name, megatron.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := pipeline.FromMegatron(read)
	if len(found.Pipelines) != 2 {
		t.Fatalf("%d pipelines, want 2 runs", len(found.Pipelines))
	}
	models := make([]*Model, 2)
	for i, p := range found.Pipelines {
		if models[i], err = Calibrate(p, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range models {
		bare := m.Costs(m.order, Shape{})
		bare.gaps, bare.hops, bare.Head = [sends][]gapTable{}, nil, nil
		without, err := Play(m.order, bare, Options{})
		if err != nil {
			t.Fatal(err)
		}
		base, _, err := m.Baseline()
		if err != nil {
			t.Fatal(err)
		}
		own := base.Run
		off := func(r *Run) float64 { return float64(r.Makespan())/float64(m.Makespan) - 1 }
		t.Logf("run %d: measured %.1f ms, without gaps %+.1f %%, simulated %+.1f %% (%+v)", i, float64(m.Makespan)/1e6, 100*off(without), 100*off(own), base.Options)
		// Run 1 is breadth-first. Run 0 is depth-first and goes in lock step: its gaps
		// grow with the ranks at work, which no gap of one rank describes.
		limit := []float64{0.2, 0.05}[i]
		if math.Abs(off(own)) > limit {
			t.Errorf("run %d: simulated span is off by %+.1f %%", i, 100*off(own))
		}
	}
}
