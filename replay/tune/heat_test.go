package tune_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// a starts sooner, b moves faster: they meet at 1000 bytes.
func TestHeat(t *testing.T) {
	a := func(n int64) int64 { return 1000 + 10*n }
	b := func(n int64) int64 { return 6000 + 5*n }
	x := lines(t, []int64{8, 64, 512, 4096, 1 << 20}, a, b)
	alone := row("a", 8, 100, func(r *tune.Row) { r.Op = comm.Barrier })
	if err := x.Add(alone); err != nil {
		t.Fatal(err)
	}
	h := tune.NewHeat(tune.Compare(x, nil), 9)
	if diff := cmp.Diff([]int64{8, 64, 512, 4096, 1 << 20}, h.Columns); diff != "" {
		t.Errorf("columns (-want +got)\n%s", diff)
	}
	if len(h.Rows) != 1 || len(h.Contenders) != 2 {
		t.Fatalf("%d rows of %v: what one alone was measured at is no comparison", len(h.Rows), h.Contenders)
	}
	for i, want := range []string{"a", "a", "a", "b", "b"} {
		if c := h.Rows[0].Cells[i]; c.Winner.Backend != want || !c.Clear || c.Places != 1 {
			t.Errorf("at %d bytes: %+v, want %s", h.Columns[i], c, want)
		}
	}
	if got, want := h.Rows[0].Cells[0].Gain, 6040.0/1080; math.Abs(got-want) > 1e-9 {
		t.Errorf("gain %v, want %v", got, want)
	}
	// Sizes of 4, 7, 10, 13 and 21 bits: in sevens they are three columns.
	h = tune.NewHeat(tune.Compare(x, nil), 3)
	if diff := cmp.Diff([]int64{8, 64, 1 << 20}, h.Columns); diff != "" {
		t.Fatalf("columns (-want +got)\n%s", diff)
	}
	// At 64, 512 and 4096 bytes a needs 1640, 6120 and 41960 ns, b 6320, 8560 and
	// 26480: a is ahead over all three, but not at each.
	c := h.Rows[0].Cells[1]
	if want := math.Cbrt(6320.0 / 1640 * 8560 / 6120 * 26480 / 41960); c.Winner.Backend != "a" || c.Clear || c.Places != 3 || math.Abs(c.Gain-want) > 1e-9 {
		t.Errorf("three sizes in one column: %+v, want a by %v, not clearly", c, want)
	}
}

// A contender that was measured at some of a column's sizes alone does not win by
// that.
func TestHeatOfSomeSizes(t *testing.T) {
	x := table(t, row("a", 1000, 100), row("b", 1000, 200), row("a", 1010, 5000), row("b", 1010, 9000), row("c", 1000, 90))
	h := tune.NewHeat(tune.Compare(x, nil), 1)
	if c := h.Rows[0].Cells[0]; c.Winner.Backend != "a" || c.Clear {
		t.Errorf("%+v, want a, not clearly", c)
	}
}

func TestHeatOfNothing(t *testing.T) {
	if h := tune.NewHeat(nil, 0); len(h.Rows) != 0 || len(h.Columns) != 0 {
		t.Errorf("%+v", h)
	}
}
