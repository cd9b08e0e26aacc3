package plan_test

import (
	"testing"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
	"mixdown/replay/plan"
)

// TestPlanSaysWhereItRan: host, GPU and channels, where the trace has them.
func TestPlanSaysWhereItRan(t *testing.T) {
	op := sized(comm.AllReduce, 8, 8)
	op.Channels = 24
	run, _ := synthetic([]comm.Operation{op}, []comm.Operation{sized(comm.AllReduce, 8, 8)})
	run.Ranks[0].Host, run.Ranks[0].SMs, run.Ranks[0].CPUOnly = "node7", 132, false
	run.Ranks[0].Events = trace.Events{}
	run.Ranks[0].Operations[0].Event = run.Ranks[0].Events.Append(trace.Row{Category: trace.Kernel, Dur: 50, Stream: 20, Device: 3})
	w, diags, err := plan.Build(run, collective.Match(run), plan.Options{Step: "all"})
	if err != nil {
		t.Fatalf("%v: %v", err, diags.List())
	}
	p := w.Programs[0].Place
	if p.GetHost() != "node7" || p.Device == nil || p.GetDevice() != 3 || p.GetSms() != 132 || p.GetEnvironment() != "" {
		t.Errorf("rank 0 ran at %v", p)
	}
	if w.Programs[1].Place != nil {
		t.Errorf("rank 1 ran at %v, which its trace does not say", w.Programs[1].Place)
	}
	for r, want := range []int32{24, 0} {
		for _, task := range w.Programs[r].Tasks {
			if c := task.GetCommunication(); c != nil && c.Channels != want {
				t.Errorf("rank %d: %d channels, want %d", r, c.Channels, want)
			}
		}
	}
}
