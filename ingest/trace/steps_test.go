package trace_test

import (
	"testing"

	"mixdown/ingest/trace"
)

// TestCommonSteps: a name that comes twice on one rank is not one that two ranks
// have, and its first time counts.
func TestCommonSteps(t *testing.T) {
	run := &trace.Run{Ranks: []*trace.Rank{
		{Steps: []trace.Step{{"a", 1, 0, 10}, {"b", 2, 10, 20}, {"b", 2, 20, 90}, {"c", 3, 90, 99}}},
		{Steps: []trace.Step{{"b", 2, 5, 25}, {"c", 3, 30, 31}, {"c", 3, 31, 80}}},
	}}
	steps := run.CommonSteps()
	if len(steps) != 2 || steps[0].Name != "b" || steps[1].Name != "c" {
		t.Fatalf("%+v, want b and c", steps)
	}
	if b := steps[0]; b.Longest != 20 || b.Ranks[0] != (trace.Step{"b", 2, 10, 20}) || b.Ranks[1] != (trace.Step{"b", 2, 5, 25}) {
		t.Errorf("b: %+v", b)
	}
	if c := steps[1]; c.Longest != 9 || c.Ranks[1].End != 31 {
		t.Errorf("c: %+v", c)
	}
}
