package plan_test

import (
	"fmt"
	"testing"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

func TestResize(t *testing.T) {
	for _, c := range []struct {
		kernels, beside, to int64
		want                string
	}{
		{100, 50, 200, "200 200 100"},
		{80, 30, 50, "50 40 15"},
		{80, 30, 0, "0 0 0"},
		{0, 0, 7, "7 0 0"},
	} {
		s := &planpb.Span{DurationNs: 100, KernelNs: c.kernels, BesideNs: c.beside}
		plan.Resize(s, c.to)
		if got := fmt.Sprint(s.DurationNs, s.KernelNs, s.BesideNs); got != c.want {
			t.Errorf("to %d: %s, want %s", c.to, got, c.want)
		}
	}
	s := &planpb.Span{}
	if plan.Resize(s, 9); s.DurationNs != 9 || s.KernelNs != 0 {
		t.Errorf("of nothing: %v", s)
	}
}
