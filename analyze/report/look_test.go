package report_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"mixdown/analyze/report"
)

// TestBars: as long as their share, in eighths of a column or in ASCII, and never
// nothing for something.
func TestBars(t *testing.T) {
	plain, ascii := report.Look{}, report.Look{ASCII: true}
	for _, c := range []struct {
		share       float64
		bar, hashes string
	}{
		{0, "", ""}, {1, "████", "####"}, {7, "████", "####"}, {0.5, "██", "##"}, {0.40625, "█▋", "##"}, {1e-9, "▏", "#"}, {-1, "", ""},
	} {
		if got := plain.Bar(c.share, 4); got != c.bar {
			t.Errorf("%v: %q, want %q", c.share, got, c.bar)
		}
		if got := ascii.Bar(c.share, 4); got != c.hashes {
			t.Errorf("%v in ASCII: %q, want %q", c.share, got, c.hashes)
		}
	}
}

// TestIntervals lie where their figures do, and end at the axis.
func TestIntervals(t *testing.T) {
	plain, ascii := report.Look{}, report.Look{ASCII: true}
	if got := plain.Interval(2, 4, 6, 0, 0, 10, 11); got != "│ ──●──" {
		t.Errorf("%q", got)
	}
	if got := ascii.Interval(-9, -1, 3, 0, -2, 2, 5); got != "-o|--" {
		t.Errorf("%q", got)
	}
	if got := ascii.Interval(0, 0, 0, 0, -1, 1, 3); got != " o" {
		t.Errorf("%q", got)
	}
	if got := plain.Interval(1, 1, 1, 0, 5, 5, 10); got != "" {
		t.Errorf("an axis of no length: %q", got)
	}
}

// TestSharesAddUp: the parts of the ranks' time are written whole, 40 % as 40.
func TestSharesAddUp(t *testing.T) {
	part := report.Rank{Time: report.Time{Span: 1000, Compute: 400, Exposed: 600}}
	a := &report.Analysis{Ranks: []report.Rank{part}}
	var b strings.Builder
	if err := a.WriteText(&b, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  computation            0.40 us  40 %  █", "  exposed communication  0.60 us  60 %  █", "  idle                         0   0 %\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestPagesFitTheirTerminal, and pages for pipes stay as wide as they were.
func TestPagesFitTheirTerminal(t *testing.T) {
	a := analyze(t, "dp_moe_4rank")
	for columns, want := range map[int]int{0: 100, 72: 72, 140: 140, 10: 60, 1000: 160} {
		var b strings.Builder
		look := report.Look{Columns: columns, ASCII: columns == 72}
		if err := a.WriteText(&b, report.TextOptions{Look: look}); err != nil {
			t.Fatal(err)
		}
		if look.Width() != want {
			t.Errorf("%d columns: a page of %d", columns, look.Width())
		}
		for _, line := range strings.Split(b.String(), "\n") {
			// Figures that don't fit are better too wide than wrong; paths stay whole.
			room := want
			if strings.Contains(strings.TrimSpace(line), "  ") {
				room = max(want, 90) // a table
			}
			if n := utf8.RuneCountInString(line); n > room && !strings.Contains(line, "/") {
				t.Errorf("%d columns: %d in %q", columns, n, line)
			}
			if columns == 72 && strings.ContainsAny(line, "█▏│●─") {
				t.Errorf("not ASCII: %q", line)
			}
		}
		if !strings.Contains(b.String(), "Where the ranks' time goes") {
			t.Error("no bars")
		}
	}
}
