package report_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"mixdown/analyze/collective"
	"mixdown/analyze/report"
	"mixdown/ingest/kineto/kinetotest"
)

func textOf(t *testing.T, a *report.Analysis, opts report.TextOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := a.WriteText(&out, opts); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// checkWidth: only a path, which cannot be broken, may be wider than the page.
func checkWidth(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > report.PageWidth && (len(strings.Fields(line)) > 1 || !strings.Contains(line, "/")) {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("blanks at the end of %q", line)
		}
	}
}

// TestRows: of more ranks than rows, those with the most exposed communication are
// shown, and every table that is cut says so.
func TestRows(t *testing.T) {
	a := analyze(t, "dp_moe_4rank")
	text := textOf(t, a, report.TextOptions{Rows: 2})
	_, ranks, _ := strings.Cut(text, "Time of each rank")
	ranks, _, _ = strings.Cut(ranks, "Clocks")
	for _, r := range a.Ranks {
		more := 0
		for _, other := range a.Ranks {
			if other.Time.Exposed > r.Time.Exposed {
				more++
			}
		}
		if got := strings.Contains(ranks, fmt.Sprintf("\n     %d  ", r.Rank)); got != (more < 2) {
			t.Errorf("rank %d, with %d others more exposed: shown %v in\n%s", r.Rank, more, got, ranks)
		}
	}
	for _, want := range []string{"... and 2 more ranks, with less exposed communication", "... and 29 more rows", "... and 6 more rows", "... and 10 more rows"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if all := textOf(t, a, report.TextOptions{Rows: -1}); strings.Contains(all, "more") {
		t.Errorf("rows are left out of\n%s", all)
	}
}

func TestTextFitsThePage(t *testing.T) {
	for _, set := range []string{"dp_moe_4rank", "pipeline_1f1b_4rank", "fsdp2_4rank", "world_36rank"} {
		t.Run(set, func(t *testing.T) {
			a := analyze(t, set)
			for _, rows := range []int{0, -1} {
				checkWidth(t, textOf(t, a, report.TextOptions{Rows: rows}))
			}
			wide := textOf(t, a, report.TextOptions{Rows: -1, Wide: true})
			for _, c := range a.Communication {
				if !strings.Contains(wide, c.Group+"  ") {
					t.Errorf("the wide text lacks the group %s", c.Group)
				}
			}
			for _, head := range []string{"dtype", "ranks", "total"} {
				if !strings.Contains(wide, "  "+head+"  ") {
					t.Errorf("the wide text lacks the column %s", head)
				}
			}
		})
	}
}

// TestLongNamesDoNotWidenThePage: names come from traces and may have any length.
func TestLongNamesDoNotWidenThePage(t *testing.T) {
	run := kinetotest.Load(t, filepath.Join("../../testdata/dp_moe_4rank/rank*.gz"))
	for _, name := range []string{strings.Repeat("x", 5000), strings.Repeat("long words ", 90), strings.Repeat("/a/path", 80), strings.Repeat("größe\x1b", 70)} {
		for _, r := range run.Ranks {
			r.Distributed.Backend = name
			for g := range r.Groups {
				r.Groups[g].Name = fmt.Sprint(name[:100], g, name[:100])
				r.Groups[g].Description = name
			}
			for s := range r.Steps {
				r.Steps[s].Name = name
			}
		}
		run.Diagnostics.Addf("name", 1, 0, "found %s in %s", name, name)
		a, err := report.Analyze(run, collective.Match(run), report.Options{Critical: true, Breakdown: true})
		if err != nil {
			t.Fatal(err)
		}
		a.Communication[0].Op = "an operation with " + a.Communication[0].Op
		a.CriticalPath.Bound.Text += ", " + name
		for i := range a.Ranks {
			a.Ranks[i].Time.Span = 12_345_678_900_000_000
			a.Ranks[i].Time.Hidden = 12_345_678_900_000_000
		}
		text := textOf(t, a, report.TextOptions{Rows: -1})
		checkWidth(t, text)
		if !strings.Contains(text, "(--wide shows all)") {
			t.Error("nothing says how to see the names whole")
		}
	}
}

func TestProseIsWrapped(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("nine char ", 9))
	for name, c := range map[string]struct{ line, want string }{
		"fits":                {"  " + words, "  " + words + "\n"},
		"indented two more":   {"  " + words + " and these", "  " + words + " and\n    these\n"},
		"figures keep units":  {words + " took (12.5 ms), later", words + " took\n  (12.5 ms), later\n"},
		"percentages as well": {words + " were a 30 %; more", words + " were a\n  30 %; more\n"},
		"empty":               {"", "\n"},
	} {
		p := report.NewPage(false)
		p.Linef("%s", c.line)
		if diff := cmp.Diff(c.want, p.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		p = report.NewPage(true)
		p.Linef("%s", c.line)
		if p.String() != c.line+"\n" {
			t.Errorf("%s: a wide page has %q", name, p.String())
		}
	}
}

// TestShortenedNamesStayDifferent: two groups must not look like one.
func TestShortenedNamesStayDifferent(t *testing.T) {
	same := strings.Repeat("x", 200)
	p := report.NewPage(false)
	g := report.NewGrid(report.Column{Head: "group", Kind: report.Names}, report.Column{Head: "count"})
	for _, name := range []string{same + "a" + same, same + "b" + same, same + "a" + same, "short"} {
		g.Row(name, "1")
	}
	p.Grid(g)
	checkWidth(t, p.String())
	lines := strings.Split(p.String(), "\n")
	if lines[1] == lines[2] || lines[1] != lines[3] || !strings.Contains(lines[4], " short ") {
		t.Errorf("got\n%s", p.String())
	}
}

func TestSizesAreShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 96 << 10: "96 KiB", 100 << 10: "100 KiB", 16600: "16.2 KiB", 1 << 20: "1 MiB", 3 << 29: "1.5 GiB"} {
		if got := report.Size(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
