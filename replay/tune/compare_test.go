package tune_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// lines makes a table of two contenders that are lines alpha + beta x bytes.
func lines(t *testing.T, sizes []int64, a, b func(int64) int64) *tune.Table {
	var rows []tune.Row
	for _, s := range sizes {
		rows = append(rows, row("a", s, a(s)), row("b", s, b(s)))
	}
	return table(t, rows...)
}

func TestCrossing(t *testing.T) {
	// a: small start, slow wire. b: the other way round. They meet at 1000 bytes.
	a := func(n int64) int64 { return 1000 + 10*n }
	b := func(n int64) int64 { return 6000 + 5*n }
	x := lines(t, []int64{8, 64, 512, 900, 1100, 4096, 1 << 20}, a, b)
	list := tune.Compare(x, nil)
	if len(list) != 1 || len(list[0].Crossings) != 1 {
		t.Fatalf("%+v", list)
	}
	c := list[0].Crossings[0]
	if c.Below.Backend != "a" || c.Above.Backend != "b" || math.Abs(float64(c.Bytes-1000)) > 10 || c.Lower != 900 || c.Higher != 1100 {
		t.Errorf("crossing %+v, want a below and b above 1000 bytes", c)
	}
	want := []tune.Choice{{Contender: tune.Contender{Backend: "a"}, Max: c.Bytes - 1}, {Contender: tune.Contender{Backend: "b"}, Min: c.Bytes, Max: math.MaxInt64}}
	if diff := cmp.Diff(want, list[0].Choices()); diff != "" {
		t.Errorf("choices (-want +got)\n%s", diff)
	}
	losses := tune.Losses(list)
	if len(losses) != 2 || losses[0].Mean < 1 || losses[1].Worst < 1.9 || losses[0].Places != 7 || losses[0].Of != 7 {
		t.Errorf("losses %+v", losses)
	}
}

// TestNoiseMakesNoCrossing: a winner within the noise does not change hands.
func TestNoiseMakesNoCrossing(t *testing.T) {
	a := func(n int64) int64 { return 1000 }
	b := func(n int64) int64 { // ahead by 2 % at two sizes, behind at the others
		if n == 64 || n == 4096 {
			return 980
		}
		return 1500
	}
	list := tune.Compare(lines(t, []int64{8, 64, 512, 4096, 32768}, a, b), nil)
	if c := list[0]; len(c.Crossings) != 0 || len(c.Choices()) != 1 || c.Choices()[0].Backend != "a" {
		t.Errorf("%+v", c)
	}
	for _, p := range list[0].Places {
		if p.Clear != (p.Winner.Backend == "a") {
			t.Errorf("%d bytes: %+v", p.Bytes, p)
		}
	}
	// Intervals that overlap make a win of 50 % unclear.
	wide := func(r *tune.Row) { r.CILow, r.CIHigh = 10, 100000 }
	list = tune.Compare(table(t, row("a", 8, 1000, wide), row("b", 8, 1500, wide)), nil)
	if list[0].Places[0].Clear {
		t.Error("overlapping intervals give a clear winner")
	}
}

// TestOneContenderIsNoCrossing: sizes that only one was measured at change nothing.
func TestOneContenderIsNoCrossing(t *testing.T) {
	x := table(t, row("a", 8, 100), row("b", 8, 200), row("a", 64, 100), row("b", 64, 200), row("b", 1<<20, 9000))
	if c := tune.Compare(x, nil)[0]; len(c.Crossings) != 0 || c.Choices()[0].Backend != "a" {
		t.Errorf("%+v", c)
	}
	keep := func(c tune.Contender) bool { return c.Backend == "b" }
	if c := tune.Compare(x, keep)[0]; len(c.Contenders) != 1 || c.Choices()[0].Backend != "b" {
		t.Errorf("%+v", c)
	}
}

func TestQuestionsAreApart(t *testing.T) {
	x := table(t, row("a", 8, 100), row("b", 8, 100, func(r *tune.Row) { r.DType = comm.BFloat16 }), row("a", 8, 100, func(r *tune.Row) { r.Ranks = 8 }))
	if n := len(tune.Compare(x, nil)); n != 3 {
		t.Errorf("%d questions, want 3", n)
	}
}

// TestOwnChoiceStays: settings of a library that win nowhere clearly are not chosen.
func TestOwnChoiceStays(t *testing.T) {
	x := table(t, row("openmpi", 8, 1000), row("openmpi:ring", 8, 990), row("openmpi", 64, 1000), row("openmpi:ring", 64, 995))
	if c := tune.Compare(x, nil)[0].Choices(); len(c) != 1 || c[0].Variant != "" {
		t.Errorf("%+v", c)
	}
}
