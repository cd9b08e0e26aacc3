package gantt

import (
	"io"
	"strings"
	"testing"

	"mixdown/replay/schedule"
)

func timeline(t testing.TB, spec string) *schedule.Timeline {
	t.Helper()
	s, err := schedule.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Order()
	if err != nil {
		t.Fatal(err)
	}
	line, err := schedule.Evaluate(o, s.Costs)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// figure is the charts of some schedules.
func figure(t testing.TB, specs ...string) Figure {
	t.Helper()
	var f Figure
	for _, s := range specs {
		f.Charts = append(f.Charts, FromTimeline(s, timeline(t, s)))
	}
	return f
}

func text(t testing.TB, f Figure, opts TextOptions) string {
	t.Helper()
	var b strings.Builder
	if err := f.Text(&b, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		spec  string
		width int
		want  string
	}{
		{"1f1b:ranks=3,microbatches=3", 15, `
rank 0 |012....aa.bb.cc| 40.0 %
rank 1 |.01..aa2bb.cc..| 40.0 %
rank 2 |..0aa1bb2cc....| 40.0 %
`},
		// Nine units of time in 20 columns: two columns each.
		{"gpipe:ranks=2,microbatches=2", 20, `
rank 0 |0011......aaaabbbb| 33.3 %
rank 1 |..0011aaaabbbb....| 33.3 %
`},
		// In four columns, what happens in the middle of each.
		{"gpipe:ranks=2,microbatches=2", 4, `
rank 0 |1.ab| 33.3 %
rank 1 |0ab.| 33.3 %
`},
		{"zb-h1:ranks=2,microbatches=2", 7, `
rank 0 |01.aAbB| 14.3 %
rank 1 |.0a1bAB| 14.3 %
`},
		{"dualpipev:ranks=1,microbatches=2", 12, `
rank 0 |001aa1a1bbbB|  0.0 %
`},
	} {
		if got := text(t, figure(t, c.spec), TextOptions{Width: c.width}); "\n"+got != c.want {
			t.Errorf("%s:\n%swant%s", c.spec, got, c.want)
		}
	}
	lines := strings.Split(strings.TrimSuffix(text(t, figure(t, "gpipe:ranks=12,microbatches=2"), TextOptions{}), "\n"), "\n")
	for r, line := range lines {
		if len(line) > len("rank 11 || 33.3 %")+80 || len(line) != len(lines[0]) {
			t.Errorf("line %d is %d long: %q", r, len(line), line)
		}
	}
	if err := figure(t, "gpipe:ranks=2,microbatches=2").Text(brokenPipe{}, TextOptions{}); err == nil {
		t.Error("a failed write went unnoticed")
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestTextBeforeAfter: two charts share their axis, and the later one says how
// they compare.
func TestTextBeforeAfter(t *testing.T) {
	f := figure(t, "gpipe:ranks=2,microbatches=2,forward=2,backward=4", "breadth-first:ranks=2,microbatches=2,loops=2")
	f.Title = "before and after\x1b[31m"
	f.Unit = "ms"
	want := `before and after?[31m
gpipe:ranks=2,microbatches=2,forward=2,backward=4: makespan 18 ms, bubble 1/3 (33.3 %)
rank 0 |0011......aaaabbbb| 33.3 %
rank 1 |..0011aaaabbbb....| 33.3 %

breadth-first:ranks=2,microbatches=2,loops=2: makespan 15 ms, bubble 1/5 (20.0 %), 1.2x as fast as the first
rank 0 |0101..aabbaabb.   | 20.0 %
`
	got := text(t, f, TextOptions{Width: 18})
	if !strings.HasPrefix(got, want[:strings.LastIndex(want, "rank 0")]) {
		t.Errorf("got\n%s", got)
	}
	for _, line := range strings.Split(strings.TrimSpace(got), "\n")[5:] {
		if strings.HasPrefix(line, "rank") && !strings.Contains(line, "   |") {
			t.Errorf("the shorter chart fills the axis: %q", line)
		}
	}
}

// TestTextMeasured: bars of unknown micro-batches, other work, a stream beside.
func TestTextMeasured(t *testing.T) {
	f := Figure{Charts: []Chart{{
		Rows: []Row{{Name: "rank 0"}, {Name: "reduce", Beside: true}},
		Bars: []Bar{
			{Row: 0, Microbatch: Unknown, Phase: Backward, Start: 4, End: 6},
			{Row: 0, Microbatch: Unknown, Phase: Forward, Start: 0, End: 2},
			{Row: 0, Microbatch: Unknown, Phase: WeightGradient, Start: 6, End: 7},
			{Row: 0, Microbatch: Unknown, Phase: Other, Start: 7, End: 8},
			{Row: 1, Microbatch: Unknown, Phase: Communication, Start: 5, End: 10},
		},
	}}}
	want := `
rank 0 |>>..<<=#  | 25.0 %
reduce |.....~~~~~|
`
	if got := text(t, f, TextOptions{Width: 10}); "\n"+got != want {
		t.Errorf("got\n%s", got)
	}
	colours := text(t, f, TextOptions{Width: 10, Colour: true})
	if !strings.Contains(colours, "\x1b[34m>>\x1b[90m..\x1b[33m<<\x1b[32m=\x1b[36m#\x1b[90m  \x1b[0m| 25.0 %") {
		t.Errorf("got %q", colours)
	}
}

func TestCheck(t *testing.T) {
	nan := 0.0
	nan /= nan
	for want, f := range map[string]Figure{
		"nothing to draw":         {Charts: []Chart{{Rows: []Row{{}}}}},
		"bar in row 1 of 1":       {Charts: []Chart{{Rows: []Row{{}}, Bars: []Bar{{Row: 1, End: 1}}}}},
		"bar from 2 to 1":         {Charts: []Chart{{Rows: []Row{{}}, Bars: []Bar{{Start: 2, End: 1}}}}},
		"bar from NaN to 1":       {Charts: []Chart{{Rows: []Row{{}}, Bars: []Bar{{Start: nan, End: 1}}}}},
		"bar of Phase(99) in lan": {Charts: []Chart{{Rows: []Row{{}}, Bars: []Bar{{Phase: 99, End: 1}}}}},
	} {
		for _, err := range []error{f.Text(io.Discard, TextOptions{}), f.SVG(io.Discard)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want ...%s...", err, want)
			}
		}
	}
}
