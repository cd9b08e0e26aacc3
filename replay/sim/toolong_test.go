package sim

import (
	"errors"
	"testing"

	"mixdown/replay/plan/planpb"
	"mixdown/replay/schedule"
)

// TestTooLong: sums beyond 64 bits are refused, not wrapped.
func TestTooLong(t *testing.T) {
	w := &planpb.Workload{WorldSize: 1, Programs: []*planpb.Program{{Streams: []*planpb.Stream{{Name: "host"}}}}}
	for i := range int32(300) {
		w.Programs[0].Tasks = append(w.Programs[0].Tasks, &planpb.Task{Id: i, Kind: &planpb.Task_Span{Span: &planpb.Span{DurationNs: 1 << 55}}})
		run, err := PlayWorkload(w, TracedCosts(w))
		if want := int64(i+1) << 55; i < 64 {
			if err != nil || run.Step != want {
				t.Fatalf("%d spans take %v (%v), want %d", i+1, run, err, want)
			}
		} else if !errors.Is(err, ErrTooLong) {
			t.Fatalf("%d spans of %d ns: %v, want a refusal", i+1, int64(1)<<55, err)
		}
	}
	order := schedule.Order{{}}
	for mb := range int32(300) {
		order[0] = append(order[0], schedule.Action{Microbatch: mb, Kind: schedule.Forward}, schedule.Action{Microbatch: mb, Kind: schedule.Backward})
	}
	costs := &Costs{stages: 1, microbatches: 300}
	for k := range costs.task {
		costs.task[k] = make([]int64, 300)
		for i := range costs.task[k] {
			costs.task[k][i] = 1 << 54
		}
	}
	if _, err := Play(order, costs, Options{}); !errors.Is(err, ErrTooLong) {
		t.Errorf("%v, want a refusal", err)
	}
	costs.pace = []float64{1e-3}
	if run, err := Play(order, costs, Options{}); err != nil || run.Step <= 0 {
		t.Errorf("%v, %v", run, err)
	}
}
