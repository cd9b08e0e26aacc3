package diff_test

import (
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// TestSamplesAreStepsThatAllRanksHave: what others leave out is counted.
func TestSamplesAreStepsThatAllRanksHave(t *testing.T) {
	fewer := func(run *trace.Run) {
		run.Ranks[1].Steps = run.Ranks[1].Steps[:5] // lacks the last one
		for _, rank := range run.Ranks {
			rank.Steps = rank.Steps[1:] // the first is marked on none
		}
	}
	d := compare(made(t, "old", usual()), made(t, "new", usual(), fewer))
	// 5 operations on 4 ranks: of the first step, and of rank 1's and the others' last.
	if d.After.Steps != 4 || d.After.StepRanks != 4 || d.After.Outside != 40 || d.After.Operations != 80 {
		t.Errorf("%+v", d.After)
	}
	if got := standing(d); len(got) > 0 || !hasNote(d, "steps-incomplete") || !hasNote(d, "outside-steps") {
		t.Errorf("%v, notes %+v", got, d.Notes)
	}
}

// TestTheBarIsHigherWithoutATest: 7 % stands out of steps that all show it, and
// not where too few could.
func TestTheBarIsHigherWithoutATest(t *testing.T) {
	for steps, want := range map[int]int{3: 0, 6: 1} {
		opts := usual()
		opts.Steps = steps
		// 52.5 us a rank; 7 % of it is 0.4 % of the step.
		longer := slow(3_700, func(op *comm.Operation) bool { return op.Op == comm.AllReduce && op.In == 1<<20 })
		d := compare(made(t, "old", opts), made(t, "new", opts, longer))
		if got := standing(d); len(got) != want {
			t.Errorf("%d steps: %v\n%s", steps, got, text(t, d))
		}
	}
}

// TestSmallPartsOfTheStepDoNotStandOut: they are still listed.
func TestSmallPartsOfTheStepDoNotStandOut(t *testing.T) {
	// 10.8 us a rank; 7 % of it is less than a thousandth of the step.
	longer := slow(760, func(op *comm.Operation) bool { return op.Op == comm.AllReduce && op.In == 20_000 })
	exact := usual()
	exact.Noise, exact.EndSkewNs = 0, -1
	d := compare(made(t, "old", exact), made(t, "new", exact, longer))
	if got := standing(d); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if !strings.Contains(text(t, d), "all_reduce 64..128 KiB backward in mesh_dp") || *d.Operations[0].Exposed.Change != 4*760 {
		t.Errorf("%s", text(t, d))
	}
}

// TestTheSlowestRankAloneIsSaid: a mean that fell explains no longer step.
func TestTheSlowestRankAloneIsSaid(t *testing.T) {
	uneven := func(run *trace.Run) {
		for r, rank := range run.Ranks {
			for i := range rank.Steps {
				if r == 0 {
					rank.Steps[i].Start -= 50_000
				} else {
					rank.Steps[i].Start += 50_000
				}
			}
		}
	}
	opts := usual()
	opts.Kernels = 20 // all operations stay in their steps
	d := compare(made(t, "old", opts), made(t, "new", opts, uneven))
	if !strings.Contains(d.Answer, "the slowest ranks differ, not all") {
		t.Errorf("%s", d.Answer)
	}
}

// TestSlowComputationIsNotBlamedOnCommunication, though everyone waits for it.
func TestSlowComputationIsNotBlamedOnCommunication(t *testing.T) {
	opts := usual()
	opts.KernelNs = 120_000
	d := compare(made(t, "old", usual()), made(t, "new", opts))
	if !strings.Contains(d.Answer, "because computation +1") {
		t.Errorf("%s", d.Answer)
	}
	if got := standing(d); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
