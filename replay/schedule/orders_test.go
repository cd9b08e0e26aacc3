package schedule

import (
	"strings"
	"testing"
)

// TestOrders compares generated orders with literal ones. A rank's fixture that
// ends in "..." is the beginning of its order.
func TestOrders(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		ranks      map[int]string
	}{
		{"BFS FIFO", "breadth-first:ranks=2,microbatches=4,loops=2", map[int]string{
			0: "0F0 0F1 0F2 0F3 2F0 2F1 2F2 2F3 2B0 2B1 2B2 2B3 0B0 0B1 0B2 0B3",
			1: "1F0 1F1 1F2 1F3 3F0 3F1 3F2 3F3 3B0 3B1 3B2 3B3 1B0 1B1 1B2 1B3",
		}},
		{"BFS LIFO", "breadth-first:ranks=2,microbatches=2,loops=2,backward-order=lifo", map[int]string{
			0: "0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0",
			1: "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0",
		}},
		{"BFS in a V", "breadth-first:ranks=2,microbatches=2,loops=2,placement=v", map[int]string{
			0: "0F0 0F1 3F0 3F1 3B0 3B1 0B0 0B1",
			1: "1F0 1F1 2F0 2F1 2B0 2B1 1B0 1B1",
		}},
		{"DFS", "depth-first:ranks=2,microbatches=4,loops=2", map[int]string{
			0: "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3",
			1: "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3",
		}},
		// Megatron-LM's documented table, micro-batches 0 1 2 0 1 2 3 4 3 4 of
		// chunks 0 0 0 1 1 1 0 0 1 1, read off the forwards.
		{"DFS group 3", "interleaved:ranks=2,microbatches=5,loops=2,group=3", map[int]string{
			0: "0F0 0F1 0F2 2F0 2F1 2F2 2B0 0F3 2B1 0F4 2B2 2F3 0B0 2F4 0B1 0B2 2B3 2B4 0B3 0B4",
		}},
		{"1F1B", "1f1b:ranks=4,microbatches=8", map[int]string{
			0: "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7",
			3: "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7",
		}},
		{"1F1B m<p", "1F1B:ranks=4,microbatches=2", map[int]string{0: "0F0 0F1 0B0 0B1", 3: "3F0 3B0 3F1 3B1"}},
		{"eager", "eager-1f1b:ranks=4,microbatches=8", map[int]string{
			0: "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0B0 0F7 0B1 0B2 0B3 0B4 0B5 0B6 0B7",
			2: "2F0 2F1 2F2 2B0 2F3 2B1 ...",
		}},
		{"GPipe", "gpipe:ranks=2,microbatches=3", map[int]string{0: "0F0 0F1 0F2 0B0 0B1 0B2", 1: "1F0 1F1 1F2 1B0 1B1 1B2"}},
		{"hybrid", "hybrid:ranks=2,microbatches=4,loops=2,rounds=2", map[int]string{
			0: "0F0 0F2 2F0 2F2 2B0 2B2 0B0 0B2 0F1 0F3 2F1 2F3 2B1 2B3 0B1 0B3",
		}},
		{"ZB-H1", "zb-h1:ranks=4,microbatches=8", map[int]string{
			0: "0F0 0F1 0F2 0F3 0I0 0W0 0F4 0I1 0W1 ...",
			3: "3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3F4 3I4 3W1 ...",
		}},
		{"ZBV", "zbv:ranks=2,microbatches=4", map[int]string{
			0: "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3",
			1: "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3",
		}},
		{"DualPipeV", "dualpipev:ranks=1,microbatches=3", map[int]string{
			0: "0F0 1F0 0F1 1B0 (1F1;0B0)OVERLAP_F_B (0F2;1B1)OVERLAP_F_B (1F2;0B1)OVERLAP_F_B 1B2 0I2 0W2",
		}},
		{"Chimera", "chimera:ranks=4,microbatches=4", map[int]string{
			0: "0F0 0F1 3F2 3B2 3F3 3B3 0B0 0B1",
			3: "0F2 0F3 3F0 3B0 3F1 3B1 0B2 0B3",
		}},
		{"inference", "inference:ranks=2,microbatches=2,loops=2", map[int]string{0: "0F0 0F1 2F0 2F1", 1: "1F0 1F1 3F0 3F1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := specOrder(t, c.spec)
			for r, want := range c.ranks {
				got := strings.Join(o.Cells(r), " ")
				if head, open := strings.CutSuffix(want, "..."); open && strings.HasPrefix(got, head) {
					continue
				}
				if got != want {
					t.Errorf("rank %d:\n got %s\nwant %s", r, got, want)
				}
			}
		})
	}
}

func specOrder(t testing.TB, text string) Order {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Order()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestDualPipeIsTwoHalves: each half of the ranks runs DualPipeV's order for
// half the ranks and micro-batches.
func TestDualPipeIsTwoHalves(t *testing.T) {
	dual := specOrder(t, "dualpipe:ranks=8,microbatches=20")
	v := specOrder(t, "dualpipev:ranks=4,microbatches=10")
	for r := range 8 {
		half := v[min(r, 7-r)]
		if len(dual[r]) != len(half) {
			t.Fatalf("rank %d has %d actions, want %d", r, len(dual[r]), len(half))
		}
		for i, a := range dual[r] {
			if b := half[i]; a.Kind != b.Kind || a.Microbatch%10 != b.Microbatch || a.Overlap != b.Overlap {
				t.Fatalf("rank %d, place %d: %s, want the like of %s", r, i, a, b)
			}
		}
	}
	line := mustEvaluate(t, dual, DefaultCosts())
	if line.Messages() != 2*7*20 {
		t.Errorf("%d messages, want %d", line.Messages(), 2*7*20)
	}
	// The source: activations of PP+1 micro-batches, two copies of the weights.
	if o := line.Order(); o.Loops() != 2 || o.Stages() != 8 {
		t.Errorf("%d chunks per rank of %d stages, want 2 of 8", o.Loops(), o.Stages())
	}
	for r, peak := range line.PeakChunks() {
		if peak > 9 {
			t.Errorf("rank %d holds %d chunks, at most 9 expected", r, peak)
		}
	}
}
