package whatif

import (
	"errors"
	"testing"

	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// ofSteps and ofOrders are what-ifs that have an effect on the steps and the order of
// TestOrderOfComposition.
var (
	ofSteps = []string{
		"free=all_reduce@<=4000B", "bandwidth=x2", "bandwidth=0.3x", "latency=+7ns", "latency=-9ns", "latency=-1ms", "link=0-1:0.5x", "slow=0:3", "slow=1:0.5", "straggler=heal",
		"overlap=none", "overlap=full", "buckets=12000B", "buckets=4000B", "compress=3x:8GB/s", "compress=all_reduce:2x:1GB/s:16GB/s", "world-size=8", "world-size=2",
	}
	ofOrders = []string{
		"free=send", "free=all_reduce", "bandwidth=x2", "bandwidth=0.3x", "latency=+70ns", "latency=-90ns", "latency=-1ms", "link=0-1:0.5x", "slow=0:3", "slow=1:0.5",
		"repartition", "slices=2", "slices=3:0.5", "reshard=4:2", "recompute=0.5:0.5", "offload=1GB/s:2KB", "local-learning=0.5", "lost=1:3", "fill=100ns",
	}
)

// TestOrderOfComposition: what is supposed together holds together, in whatever order
// it was written. Only a rank that is slowed after all were healed stays slow.
func TestOrderOfComposition(t *testing.T) {
	half := func(s Step) Step {
		s.Fixed = func(sim.Meeting) (float64, bool) { return 0.5, true }
		s.Ratio = func(_ sim.Meeting, _, times int) (float64, bool) { return float64(times), true }
		return s
	}
	// Each message of an order is rounded to a whole ns.
	const rounding = 40
	pairs := func(list []string, off int64, do func(a, b string) (ab, ba int64, err, err2 error)) {
		for i, a := range list {
			for _, b := range list[:i] {
				if (a[:4] == "slow" && b == "straggler=heal") || (b[:4] == "slow" && a == "straggler=heal") {
					continue
				}
				if _, err := Parse(a + "," + b); err != nil { // what is once
					continue
				}
				if ab, ba, err, err2 := do(a, b); max(ab-ba, ba-ab) > off || errors.Is(err, ErrNotApplicable) != errors.Is(err2, ErrNotApplicable) {
					t.Errorf("%s,%s takes %d (%v), in the other order %d (%v)", a, b, ab, err, ba, err2)
				}
			}
		}
	}
	for _, s := range []Step{twoRanks(), half(twoRanks()), beside(), half(reductions())} {
		pairs(ofSteps, 0, func(a, b string) (ab, ba int64, err, err2 error) {
			ab, err = ask(t, s, a+","+b)
			ba, err2 = ask(t, s, b+","+a)
			return
		})
	}
	m := recorded(t, 3, 4, [][]float64{{0.5, 0.5}, {0.25, 0.75}, {0.1, 0.9}}, func(s int) float64 { return float64(s + 1) })
	m.ChangeHops(func(int, int, bool, sim.Hop) sim.Hop { return sim.Hop{Occupied: 300, Latency: 50} })
	m.SetReduction(5000)
	pairs(ofOrders, rounding, func(a, b string) (ab, ba int64, err, err2 error) {
		ab, err = timeOf(t, orderOf(m), a+","+b)
		ba, err2 = timeOf(t, orderOf(m), b+","+a)
		return
	})
}

func timeOf(t *testing.T, o Order, text string) (int64, error) {
	t.Helper()
	a, err := suppose(t, o, text)
	if err != nil {
		return 0, err
	}
	return a.Run.Step, nil
}

// TestNothingChanges: what-ifs that say what is so anyway change nothing, to the ns,
// whatever part of an operation's time depends on its size.
func TestNothingChanges(t *testing.T) {
	for _, part := range []float64{0, 0.1, 1. / 3, 0.7, 0.999999, 1} {
		for ns := int64(1); ns < 1<<49; ns = ns*7 + 1 {
			s := twoRanks()
			s.Costs = costing(map[int64]int64{1000: ns})
			s.Fixed = func(sim.Meeting) (float64, bool) { return part, true }
			for _, text := range []string{"bandwidth=x1", "latency=+0s", "slow=0:1", "bandwidth=x2,bandwidth=0.5x", "latency=+3ns,latency=-3ns", "world-size=2", "free=*,free=*,latency=+1h"} {
				want := 250 + ns
				if text == "free=*,free=*,latency=+1h" {
					want = 250
				}
				if got, err := ask(t, s, text); err != nil || got != want {
					t.Errorf("%s with %g of %d ns without regard to size: the step takes %d (%v), want %d", text, part, ns, got, err, want)
				}
			}
		}
	}
}

// TestWorldSizeUnchanged: as many ranks as there are change nothing, though it is not
// known which groups would grow.
func TestWorldSizeUnchanged(t *testing.T) {
	s := twoRanks()
	s.Workload.WorldSize = 4
	s.Workload.Groups[0].Description = "tensor"
	if got, err := ask(t, s, "world-size=4"); err != nil || got != 290 {
		t.Errorf("%d, %v", got, err)
	}
}

// TestBarrier: what has no size does not get quicker with more bandwidth.
func TestBarrier(t *testing.T) {
	s := twoRanks()
	for _, p := range s.Workload.Programs {
		c := p.Tasks[1].GetCommunication()
		c.Op, c.Dtype = planpb.Op_OP_BARRIER, planpb.DType_DTYPE_UNSPECIFIED
	}
	for text, want := range map[string]int64{"bandwidth=x4": 290, "link=0-1:0.1x": 290, "latency=+5ns": 295, "compress=*:2x:1GB/s": 290} {
		if got, err := ask(t, s, text); err != nil || got != want {
			t.Errorf("%s: %d (%v), want %d", text, got, err, want)
		}
	}
}

// TestTooLong: a time that was cut is said to be.
func TestTooLong(t *testing.T) {
	s := twoRanks()
	s.Costs = costing(map[int64]int64{1000: 1 << 40})
	said := func(text string) bool {
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		a, err := q.Step(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range a.Notes {
			if n == tooLong {
				return true
			}
		}
		return false
	}
	if !said("bandwidth=0.000001x") || said("bandwidth=0.5x") {
		t.Error("13 days are not said where they are cut, or where they are not")
	}
}
