package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/analyze/collective"
	"mixdown/analyze/pipeline"
	"mixdown/analyze/report"
	"mixdown/ingest/kineto/kinetotest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func analyze(t *testing.T, set string) *report.Analysis {
	t.Helper()
	return analyzeFiles(t, filepath.Join("../../testdata", set, "rank*.gz"))
}

func analyzeFiles(t *testing.T, traces string) *report.Analysis {
	t.Helper()
	run := kinetotest.Load(t, traces)
	match := collective.Match(run)
	found, err := pipeline.Find(run, match, pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := report.Analyze(run, match, report.Options{Critical: true, Breakdown: true, Pipelines: found, NameSchedule: named})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// named stands in for those who know the schedules: of the first rank's order it
// tells how far it runs ahead.
func named(s *pipeline.Step) report.ScheduleName {
	ahead := 0
	for ahead < len(s.Tasks[0]) && s.Tasks[0][ahead].Phase == pipeline.Forward {
		ahead++
	}
	return report.ScheduleName{Spec: "ahead", Text: fmt.Sprintf("%d ahead", ahead), Exact: true}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}

func TestText(t *testing.T) {
	for _, set := range []string{"dp_moe_4rank", "pipeline_1f1b_4rank"} {
		var out bytes.Buffer
		if err := analyze(t, set).WriteText(&out, report.TextOptions{Rows: 12}); err != nil {
			t.Fatal(err)
		}
		golden(t, set+".txt", out.Bytes())
	}
}

func TestJSON(t *testing.T) {
	for _, set := range []string{"dp_moe_4rank", "pipeline_1f1b_4rank"} {
		data, err := json.MarshalIndent(analyze(t, set), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, set+".json", append(data, '\n'))
	}
}

// TestTotalsOfTheTable: what the rows say adds up to what the ranks did.
func TestTotalsOfTheTable(t *testing.T) {
	a := analyze(t, "dp_moe_4rank")
	var rows, exposed int64
	for _, c := range a.Communication {
		rows += c.Total
		exposed += c.Exposed
		if c.Wait != nil && *c.Wait+*c.Transfer != c.Total {
			t.Errorf("%s: wait %d and transfer %d are not the total %d", c.Op, *c.Wait, *c.Transfer, c.Total)
		}
		if c.Exposed > c.Total {
			t.Errorf("%s: exposed %d of %d", c.Op, c.Exposed, c.Total)
		}
	}
	var union, unionExposed int64
	for _, r := range a.Ranks {
		union += r.Time.Comm
		unionExposed += r.Time.Exposed
	}
	if rows < union || exposed < unionExposed {
		t.Errorf("rows add up to %d (exposed %d), less than the ranks' unions %d (%d)", rows, exposed, union, unionExposed)
	}
}

// TestDLRM: of the eight ranks of a real GPU job every collective is matched, the
// clocks' residual is known, waiting and transfer add up, and the straggler is the
// rank that the arrival times show: rank 7 is last in 5 of 8.
func TestDLRM(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	a := analyzeFiles(t, filepath.Join(corpus, "param/dlrm_8rank/kineto"))
	if a.Matched != 8 || a.Unmatched != 0 {
		t.Errorf("%d matched, %d not; want 8 and none", a.Matched, a.Unmatched)
	}
	operations := 0
	for _, c := range a.Communication {
		operations += c.Count
		if c.Wait == nil || *c.Wait+*c.Transfer != c.Total {
			t.Errorf("%s: waiting and transfer are not known, or not the total %d", c.Op, c.Total)
		}
	}
	if operations != 8*8 {
		t.Errorf("%d operations in the table, want 64", operations)
	}
	if a.Clocks.Applied || a.Clocks.Spread == nil || *a.Clocks.Spread != 2500 {
		t.Errorf("clocks: %+v; want 2500 ns apart and left alone", a.Clocks)
	}
	for _, r := range a.Clocks.Ranks {
		if r.Residual <= 0 || r.Residual > 1250 {
			t.Errorf("rank %d: residual %d ns", r.Rank, r.Residual)
		}
	}
	if s := a.Stragglers.Ranks[0]; s.Rank != 7 || s.Count != 5 || s.Caused != 9163000 {
		t.Errorf("first straggler: %+v", s)
	}
}

func TestNamesFromTracesCannotControlTheTerminal(t *testing.T) {
	for name, want := range map[string]string{
		"all_reduce": "all_reduce", "a\x1b[2Jb": `a\u001b[2Jb`, "x\r\ny": `x\u000d\u000ay`, "\u202egnp": `\u202egnp`, "größe": "größe", "\xff": `\ufffd`,
	} {
		if got := report.Printable(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
}

func TestRanges(t *testing.T) {
	if got := report.Ranges([]int{0, 1, 2, 5, 7, 8}); got != "0-2, 5, 7-8" {
		t.Errorf("got %s", got)
	}
}
