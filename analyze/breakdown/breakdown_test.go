package breakdown_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/breakdown"
	"mixdown/analyze/collective"
	"mixdown/analyze/overlap"
	"mixdown/analyze/report"
	"mixdown/ingest/comm"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
)

// job is a run as commands have it.
type job struct {
	run    *trace.Run
	match  *collective.Matching
	clocks *align.Result
}

func prepare(run *trace.Run) job {
	j := job{run: run, match: collective.Match(run)}
	j.clocks = align.Estimate(run, j.match)
	align.Apply(run, j.clocks)
	align.UpdateArrivals(run, j.match)
	return j
}

func testdata(t *testing.T, set string) job {
	t.Helper()
	run := kinetotest.Load(t, filepath.Join("../../testdata", set, "rank*.gz"))
	return prepare(run)
}

func made(t *testing.T, opts synthetic.Options) job {
	t.Helper()
	run, _, err := synthetic.Load(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return prepare(run)
}

// asynchronous is a run whose communication goes on into later steps' work.
var asynchronous = synthetic.Options{Ranks: 4, Steps: 5, Noise: 0.1, Seed: 3, Collectives: []synthetic.Collective{
	{Op: comm.AllReduce, Scope: synthetic.World, Elements: 1 << 18, Async: true},
	{Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 1 << 16},
	{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 22, Async: true},
}}

func jobs(t *testing.T) map[string]job {
	host := synthetic.Options{Ranks: 4, Host: true, Noise: 0.1}
	return map[string]job{
		"dp_moe": testdata(t, "dp_moe_4rank"), "pipeline": testdata(t, "pipeline_1f1b_4rank"), "fsdp": testdata(t, "fsdp1_4rank"),
		"usual": made(t, synthetic.Options{Ranks: 4}), "asynchronous": made(t, asynchronous), "host": made(t, host),
		"clocks": made(t, synthetic.Options{Ranks: 2, Steps: 6, Clocks: []synthetic.Clock{{}, {Offset: 5_000_000}}}),
	}
}

// TestRowsAddUp: every grouping has the totals of the communication table.
func TestRowsAddUp(t *testing.T) {
	for name, j := range jobs(t) {
		a, err := report.Analyze(j.run, j.match, report.Options{Clocks: j.clocks})
		if err != nil {
			t.Fatal(err)
		}
		want := map[comm.Op][3]int64{}
		for _, c := range a.Communication {
			w := want[c.Op]
			want[c.Op] = [3]int64{w[0] + int64(c.Count), w[1] + c.Total, w[2] + c.Exposed}
		}
		b := breakdown.Analyze(j.run, j.match, j.clocks)
		for d := breakdown.Dimension(0); d <= breakdown.ByAll; d++ {
			got := map[comm.Op][3]int64{}
			var total, rows int64
			for _, r := range b.By(d) {
				if r.Exposed+r.Hidden != r.Total || r.TimesKnown && r.Wait+r.Transfer != r.Total && !j.coalesced() {
					t.Errorf("%s: the parts of row %+v are not its total", name, r)
				}
				w := got[r.Op]
				got[r.Op] = [3]int64{w[0] + int64(r.Count), w[1] + r.Total, w[2] + r.Exposed}
				total += r.Total
				rows++
			}
			var all int64
			for op, w := range want {
				all += w[1]
				if d&breakdown.ByOp != 0 && got[op] != w {
					t.Errorf("%s, dimensions %b: %s is %v, want %v", name, d, op, got[op], w)
				}
			}
			if total != all || d == 0 && rows != 1 {
				t.Errorf("%s, dimensions %b: %d in %d rows, want %d", name, d, total, rows, all)
			}
		}
	}
}

// coalesced: an operation has several kernels, whose union may have holes.
func (j job) coalesced() bool {
	for _, rank := range j.run.Ranks {
		for i := range rank.Operations {
			if len(rank.Operations[i].Events) > 1 {
				return true
			}
		}
	}
	return false
}

// TestStepsAddUp: the steps of a rank and what is outside them are the whole
// rank, and each is what a look at that step alone finds.
func TestStepsAddUp(t *testing.T) {
	for name, j := range jobs(t) {
		b := breakdown.Analyze(j.run, j.match, j.clocks)
		for r, rank := range j.run.Ranks {
			got := b.Ranks[r].Total()
			if want := breakdown.Times(overlap.Measure(rank).Times()); got != want {
				t.Errorf("%s, rank %d: steps add up to\n%+v, want\n%+v", name, r, got, want)
			}
			for i, s := range b.Ranks[r].Steps {
				if s.Hidden+s.Exposed != s.Comm || s.Span < 0 || s.Idle < 0 || s.Idle > s.Span {
					t.Errorf("%s, rank %d, step %d: %+v", name, r, i, s.Times)
				}
				if name == "usual" { // no step's work runs beside another one's
					one := overlap.MeasureStep(rank, rank.Steps[i]).Times()
					if one.Compute != s.Compute || one.Comm != s.Comm || one.Exposed != s.Exposed || one.Memory != s.Memory {
						t.Errorf("%s, rank %d, step %d: %+v, alone %+v", name, r, i, s.Times, one)
					}
				}
			}
		}
	}
}

func TestAsynchronousWorkBelongsToTheStepThatLaunchedIt(t *testing.T) {
	j := made(t, synthetic.Options{Ranks: 2, Steps: 2})
	rank := j.run.Ranks[0]
	before := breakdown.Analyze(j.run, j.match, j.clocks).Ranks[0]
	// The first operation of the second step runs with the last of the first.
	ev := &rank.Events
	var last int
	for i := range rank.Operations {
		if rank.Operations[i].Issued < rank.Steps[0].End {
			last = i
		}
	}
	op := &rank.Operations[last]
	op.End += 3_000_000
	ev.Dur[op.Event] = op.End - op.Start
	after := breakdown.Analyze(j.run, j.match, j.clocks).Ranks[0]
	if got := after.Steps[0].Comm - before.Steps[0].Comm; got <= 2_000_000 {
		t.Errorf("the step that launched it has %d ns more, want about 3 ms", got)
	}
	if got := after.Steps[1].Comm; got > before.Steps[1].Comm {
		t.Errorf("the step it ran into has %d ns, %d before", got, before.Steps[1].Comm)
	}
	if got, want := after.Total(), breakdown.Times(overlap.Measure(rank).Times()); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestStepsThatOverlapAreCut(t *testing.T) {
	j := made(t, synthetic.Options{Ranks: 2, Steps: 3})
	for _, rank := range j.run.Ranks {
		rank.Steps[0].End += 200_000                     // into the second
		rank.Steps = append(rank.Steps, rank.Steps[1])   // twice the same
		rank.Steps[2].Start = rank.Steps[1].End + 50_000 // a hole
	}
	b := breakdown.Analyze(j.run, j.match, j.clocks)
	for r, rank := range j.run.Ranks {
		if got, want := b.Ranks[r].Total(), breakdown.Times(overlap.Measure(rank).Times()); got != want {
			t.Errorf("rank %d: %+v, want %+v", r, got, want)
		}
	}
	if len(b.Steps) != 4 {
		t.Errorf("steps %+v", b.Steps)
	}
}

// TestWithoutADeviceAStepIsItsOwnWindow, as far as anything ran in it.
func TestWithoutADeviceAStepIsItsOwnWindow(t *testing.T) {
	j := testdata(t, "pipeline_1f1b_4rank")
	b := breakdown.Analyze(j.run, j.match, j.clocks)
	for r, rank := range j.run.Ranks {
		a := overlap.Measure(rank)
		for i, s := range rank.Steps {
			want := min(s.End, a.End) - max(s.Start, a.Start)
			if got := b.Ranks[r].Steps[i]; got.Span != want || got.Dur != s.End-s.Start {
				t.Errorf("rank %d, step %d: span %d, want %d", r, i, got.Span, want)
			}
		}
	}
}

func TestPhasesAndSteps(t *testing.T) {
	j := made(t, synthetic.Options{Ranks: 4, Steps: 3})
	for _, rank := range j.run.Ranks {
		for i := range rank.Operations {
			if op := &rank.Operations[i]; op.Op == comm.AllReduce {
				rank.Events.Phase[op.Event] = trace.Backward
			}
		}
	}
	b := breakdown.Analyze(j.run, j.match, j.clocks)
	rows := b.By(breakdown.ByOp | breakdown.ByPhase | breakdown.ByStep)
	count := map[string]int{}
	for _, r := range rows {
		count[fmt.Sprintf("%s %s", r.Op, r.Phase)]++
		if r.Ranks != 4 {
			t.Errorf("%+v", r)
		}
	}
	if len(count) != 4 || count["all_reduce backward"] != 3 || count["all_gather "] != 3 {
		t.Errorf("got %v", count)
	}
	data, err := json.Marshal(rows[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"group":null`, `"size_from":null`, `"ranks":4`, `"step":"ProfilerStep#`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s lacks %s", data, want)
		}
	}
}

// TestUnknownStaysUnknown: a sum with an unknown part is unknown.
func TestUnknownStaysUnknown(t *testing.T) {
	j := made(t, synthetic.Options{Ranks: 2, Steps: 2})
	j.clocks.Connected = false
	j.run.Ranks[0].Operations[0].SizeKnown = false
	b := breakdown.Analyze(j.run, j.match, j.clocks)
	all := b.By(0)[0]
	if all.TimesKnown || all.BytesKnown {
		t.Errorf("%+v", all)
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"wait_ns":null,"transfer_ns":null,"bytes":null`) {
		t.Errorf("%s", data)
	}
}

// TestAWrongMatchHasNoWait, and the rows without it have theirs.
func TestAWrongMatchHasNoWait(t *testing.T) {
	j := made(t, synthetic.Options{Ranks: 2, Steps: 4})
	j.clocks.Impossible = []int{0}
	wrong := j.match.Collectives[0].Members[0]
	step := j.run.Ranks[wrong.Rank].Steps[0].Name
	if op := j.run.Ranks[wrong.Rank].Operations[wrong.Operation]; op.Issued > j.run.Ranks[wrong.Rank].Steps[0].End {
		t.Fatalf("%+v is not of the first step", op)
	}
	b := breakdown.Analyze(j.run, j.match, j.clocks)
	for _, r := range b.By(breakdown.ByStep) {
		if known := b.Steps[r.Key.Step].Name != step; r.TimesKnown != known {
			t.Errorf("%s: %v, want %v", b.Steps[r.Key.Step].Name, r.TimesKnown, known)
		}
	}
}

func TestClasses(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1..2 B", 3: "2..4 B", 1023: "512..1024 B", 1024: "1..2 KiB", 65536: "64..128 KiB",
		131071: "64..128 KiB", 131072: "128..256 KiB", 1 << 40: "1..2 TiB", 1<<63 - 1: "4..8 EiB",
	} {
		c := breakdown.Class(n)
		if c.String() != want || n > 0 && n < 1<<62 && (n < c.From || n >= c.To) {
			t.Errorf("%d: %s, want %s", n, c, want)
		}
	}
	if got := (breakdown.SizeClass{}).String(); got != "?" {
		t.Errorf("unknown is %s", got)
	}
}
