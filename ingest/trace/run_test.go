package trace_test

import (
	"testing"

	"mixdown/ingest/trace"
)

// TestStepAt: a step has its start and not its end; where two overlap, the later
// one counts, and what it leaves of the earlier one belongs to none.
func TestStepAt(t *testing.T) {
	r := trace.Rank{Steps: []trace.Step{{Name: "a", Start: 10, End: 20}, {Name: "b", Start: 20, End: 50}, {Name: "c", Start: 30, End: 40}}}
	for ts, want := range map[int64]string{9: "", 10: "a", 19: "a", 20: "b", 29: "b", 30: "c", 39: "c", 40: "", 50: ""} {
		if got := r.StepAt(ts); got != want {
			t.Errorf("at %d: %q, want %q", ts, got, want)
		}
	}
	for ts, want := range map[int64]int{9: 0, 10: 1, 29: 2, 99: 3} {
		if got := r.StepsBegun(ts); got != want {
			t.Errorf("%d steps begun by %d, want %d", got, ts, want)
		}
	}
}
