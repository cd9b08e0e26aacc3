package gantt

import (
	"testing"

	"mixdown/analyze/pipeline"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

func TestFromStep(t *testing.T) {
	p := &pipeline.Pipeline{Ranks: []int{3, 7}}
	s := &pipeline.Step{Tasks: [][]pipeline.Task{
		{{Stage: 0, Start: 5e6, End: 6e6}, {Stage: 2, Microbatch: 1, Phase: pipeline.Backward, Start: 8e6, End: 9e6}},
		{{Stage: 1, Start: 4e6, End: 5e6}},
	}}
	c := FromStep("x", p, s)
	if len(c.Rows) != 2 || c.Rows[1].Name != "rank 7" || len(c.Bars) != 3 {
		t.Fatalf("%+v", c)
	}
	if b := c.Bars[1]; b.Start != 4 || b.End != 5 || b.Chunk != 1 || b.Phase != Backward || b.Microbatch != 1 {
		t.Errorf("%+v", b)
	}
}

// What runs beside the tasks counts for no bubble.
func TestFromRun(t *testing.T) {
	run := &sim.Run{
		Order: schedule.Order{{
			{Kind: schedule.Forward}, {Kind: schedule.Backward}, {Kind: schedule.ReduceGradient, Microbatch: schedule.NoMicrobatch},
			{Kind: schedule.Reshard, Microbatch: schedule.NoMicrobatch},
		}},
		Moments: [][]sim.Moment{{{Start: 0, End: 1e6}, {Start: 1e6, End: 3e6}, {Start: 3e6, End: 9e6}, {Start: 3e6, End: 4e6}}},
	}
	c := FromRun("x", run, []int{5})
	if len(c.Rows) != 2 || !c.Rows[1].Beside || c.Rows[1].Name != "rank 5 data-parallel" || len(c.Bars) != 3 {
		t.Fatalf("%+v", c)
	}
	if b := c.Bars[2]; b.Row != 1 || b.Name != "0REDUCE_GRAD" || b.Phase != Communication {
		t.Errorf("%+v", b)
	}
}
