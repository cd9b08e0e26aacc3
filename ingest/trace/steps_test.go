package trace_test

import (
	"errors"
	"strings"
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

// TestChooseStep: by name, by number, or the one of median length.
func TestChooseStep(t *testing.T) {
	run := &trace.Run{Ranks: []*trace.Rank{
		{Steps: []trace.Step{{"s1", 1, 0, 90}, {"s2", 2, 90, 100}, {"s3", 3, 100, 120}, {"s4", 4, 120, 190}}},
		{Steps: []trace.Step{{"s1", 1, 0, 10}, {"s2", 2, 10, 20}, {"s3", 3, 20, 30}}},
	}}
	for name, want := range map[string]string{"": "s3", "2": "s2", "s1": "s1"} {
		if s, err := run.ChooseStep(name); err != nil || s == nil || s.Name != want {
			t.Errorf("%q: %+v, %v, want %s", name, s, err, want)
		}
	}
	if s, err := run.ChooseStep(trace.WholeTrace); s != nil || err != nil {
		t.Errorf("all: %+v, %v", s, err)
	}
	if _, err := run.ChooseStep("s4"); !errors.Is(err, trace.ErrNoStep) || !strings.Contains(err.Error(), "every rank has 1, 2, 3") {
		t.Errorf("a step that one rank has: %v", err)
	}
	without := &trace.Run{Ranks: []*trace.Rank{{}}}
	if s, err := without.ChooseStep(""); s != nil || err != nil {
		t.Errorf("no steps: %+v, %v", s, err)
	}
	if _, err := without.ChooseStep("1"); !errors.Is(err, trace.ErrNoStep) {
		t.Errorf("no steps, and one is asked for: %v", err)
	}
}
