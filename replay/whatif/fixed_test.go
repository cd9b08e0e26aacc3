package whatif

import (
	"strings"
	"testing"

	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// TestFixedWaits: a bound that leaves out operations which are not simulated says so.
func TestFixedWaits(t *testing.T) {
	for fixed, want := range map[int64]bool{0: false, 300: true} {
		s := twoRanks()
		s.Workload.Dependencies = &planpb.Dependencies{FixedWaitNs: fixed}
		for _, p := range s.Workload.Programs {
			p.TraceNs = 500
		}
		s.FixedWaits = sim.FixedWaits(s.Workload)
		q, err := Parse("free=*")
		if err != nil {
			t.Fatal(err)
		}
		a, err := q.Step(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(a.Notes, "; "), "wait for them in 30.0 %"); got != want {
			t.Errorf("%d of 1000 ns are fixed: notes %q", fixed, a.Notes)
		}
	}
}
