package whatif

import (
	"fmt"
	"testing"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// On a device: kernels of 100 and 200 and an asynchronous all_reduce of 40 that was
// launched between them. Both began together, and stand in the workload by when they
// began: the one that was launched later may come first.
func queued(later bool) Step {
	on := func(stream int32, kind planpb.Span_Kind, ns int64, deps ...int32) *planpb.Task {
		return &planpb.Task{Stream: stream, Deps: deps, Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: kind, DurationNs: ns}}}
	}
	launch := func() *planpb.Task { return on(0, planpb.Span_HOST, 1) }
	kernel := func(ns int64, deps ...int32) *planpb.Task { return on(2, planpb.Span_DEVICE, ns, deps...) }
	tasks := []*planpb.Task{launch(), launch(), launch(), kernel(100, 0), reduction(0, 1000, 1, 3), kernel(200, 2)}
	if later {
		tasks[4], tasks[5] = tasks[5], tasks[4]
	}
	p := programOf(0, tasks...)
	p.Streams = []*planpb.Stream{{Name: plan.HostStream}, {Name: "communication stream 20"}, {Name: "device stream 7"}}
	w := &planpb.Workload{WorldSize: 1, Groups: []*planpb.Group{{Name: "0", Ranks: []int32{0}}}, Programs: []*planpb.Program{p}}
	return Step{Workload: w, Costs: costing(map[int64]int64{1000: 40})}
}

// Computation waits for what was issued before it, whichever began first.
func TestOverlapNoneGoesByIssue(t *testing.T) {
	for _, later := range []bool{false, true} {
		got, err := ask(t, queued(later), "overlap=none")
		if want := int64(1 + 100 + 40 + 200); err != nil || got != want {
			t.Errorf("the kernel first %v: %d (%v), want %d", later, got, err, want)
		}
	}
}

// Numbers and dependencies hold together, and nothing is lost.
func TestByIssue(t *testing.T) {
	p := queued(true).Workload.Programs[0]
	p.Communicators = []*planpb.CommunicatorEvent{{Before: 5}, {Before: 6}}
	byIssue(p)
	var order []string
	for i, task := range p.Tasks {
		if int(task.Id) != i {
			t.Errorf("task %d has the number %d", i, task.Id)
		}
		for _, d := range task.Deps {
			if d >= task.Id {
				t.Errorf("task %d depends on %d", i, d)
			}
		}
		order = append(order, fmt.Sprint(task.Stream, task.Deps))
	}
	if got, want := fmt.Sprint(order), "[0 [] 2 [0] 0 [] 1 [2 1] 0 [] 2 [4]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := fmt.Sprint(p.Communicators[0].Before, p.Communicators[1].Before); got != "3 6" {
		t.Errorf("communicators are made before %s", got)
	}
}
