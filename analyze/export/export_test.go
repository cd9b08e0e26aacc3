package export_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/export"
	"mixdown/analyze/pipeline"
	"mixdown/analyze/report"
	"mixdown/ingest/chrome"
	"mixdown/ingest/comm"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/perfetto"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
)

// analyze does what the command line does with a run.
func analyze(t testing.TB, run *trace.Run) *export.Input {
	t.Helper()
	in := &export.Input{Run: run, Match: collective.Match(run), Tool: "mixdown test"}
	in.Clocks = align.Estimate(run, in.Match)
	align.Apply(run, in.Clocks)
	align.UpdateArrivals(run, in.Match)
	found, err := pipeline.Find(run, in.Match, pipeline.Options{Clocks: in.Clocks})
	if err != nil {
		t.Fatal(err)
	}
	in.Pipelines = found.Pipelines
	a, err := report.Analyze(run, in.Match, report.Options{Clocks: in.Clocks})
	if err != nil {
		t.Fatal(err)
	}
	in.Analysis = a
	return in
}

func load(t testing.TB, set string) *export.Input {
	t.Helper()
	run := kinetotest.Load(t, filepath.Join("../../testdata", set, "rank*.gz"))
	return analyze(t, run)
}

// device is a made run on GPUs whose clocks differ, in two ways of overlap.
func device(t testing.TB) *export.Input {
	t.Helper()
	run, _, err := synthetic.Load(t.TempDir(), synthetic.Options{
		Ranks: 4, Steps: 3, Generation: synthetic.CommSeq,
		Clocks: []synthetic.Clock{{}, {Offset: 5_000_000}, {Offset: -7_000_000}, {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return analyze(t, run)
}

// inputs are runs of different kinds.
func inputs(t testing.TB) map[string]*export.Input {
	return map[string]*export.Input{
		"data parallel": load(t, "dp_moe_4rank"), "pipeline": load(t, "pipeline_1f1b_4rank"),
		"some ranks": load(t, "world_36rank_bare"), "no clocks": load(t, "p2p_batch_4rank"), "device": device(t), "hostile": hostile(t),
	}
}

// hostileName is what a trace may call things to harm who looks at it.
const hostileName = "\x1b[2Ja|b`<script>alert(1)</script>[x](http://evil) \xff\u202e\"\\\n# @all"

// hostile is a run whose names are hostile and whose times are negative.
func hostile(t testing.TB) *export.Input {
	t.Helper()
	run := &trace.Run{}
	for rank := range 2 {
		r := &trace.Rank{
			Rank: rank, Source: hostileName, Names: trace.NewStrings(), Threads: []trace.Thread{{PID: hostileName, TID: hostileName}},
			Groups:      []comm.Group{{Name: hostileName, Description: "d" + hostileName, Ranks: []int{0, 1}, Size: 2}},
			Steps:       []trace.Step{{Name: hostileName, Number: 1, Start: -5000, End: 5000}},
			Distributed: trace.Distributed{Backend: hostileName},
		}
		name := r.Names.InternString(hostileName)
		for i := range int64(6) {
			e := r.Events.Append(trace.Row{Name: name, Category: trace.Kernel, TS: -4000 + 1000*i, Dur: 1500, Stream: 7, Device: 0, Correlation: trace.NoID})
			if i%2 == 0 {
				r.Operations = append(r.Operations, comm.Operation{
					Op: comm.AllReduce, DType: comm.Float32, SizeKnown: true, In: 10, Out: 10, Index: int(i / 2), Thread: -1,
					Issued: -4000 + 1000*i, Start: -4000 + 1000*i, End: -2500 + 1000*i, Event: e, Events: []int{e},
					Stream: hostileName, Name: hostileName, Module: hostileName,
				})
			}
		}
		run.Ranks = append(run.Ranks, r)
	}
	run.Diagnostics.Addf("test", 0, 1, "%s", hostileName)
	return analyze(t, run)
}

type writer func(context.Context, io.Writer, *export.Input) error

func write(t testing.TB, f writer, in *export.Input) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f(context.Background(), &b, in); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPprofAddsUp: a profile is valid and sums to the report's table.
func TestPprofAddsUp(t *testing.T) {
	for name, in := range inputs(t) {
		p, err := profile.ParseData(write(t, export.WritePprof, in))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := p.CheckValid(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got, want [3]int64
		for _, s := range p.Sample {
			got[0], got[1], got[2] = got[0]+s.Value[0], got[1]+s.Value[1], got[2]+s.Value[4]
			if len(s.Location) != 5 || len(s.Label["rank"]) != 1 {
				t.Errorf("%s: sample of %d frames, labels %v", name, len(s.Location), s.Label)
			}
		}
		for _, c := range in.Analysis.Communication {
			want[0], want[1], want[2] = want[0]+c.Exposed, want[1]+c.Total, want[2]+int64(c.Count)
		}
		if got != want {
			t.Errorf("%s: exposed, total, count %v, in the report %v", name, got, want)
		}
		for _, f := range p.Function {
			if strings.ContainsAny(f.Name, "\x1b\n") {
				t.Errorf("%s: frame %q", name, f.Name)
			}
		}
	}
}

// TestPprofTool: the real tool reads a profile, and the difference of one with
// itself is nothing.
func TestPprofTool(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	file := filepath.Join(t.TempDir(), "run.pb.gz")
	if err := os.WriteFile(file, write(t, export.WritePprof, load(t, "dp_moe_4rank")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-top", file}, "Type: exposed"},
		{[]string{"-top", "-cum", file}, "all_reduce"},
		{[]string{"-top", "-sample_index=wait", "-tagfocus=rank=2", file}, "Type: wait"},
		{[]string{"-top", "-diff_base", file, file}, "Showing nodes accounting for 0"},
	} {
		out, err := exec.Command(goTool, append([]string{"tool", "pprof"}, c.args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("go tool pprof %v: %v, want %q in\n%s", c.args, err, c.want, out)
		}
	}
}

// piece is a slice as read back.
type piece struct {
	pid     string
	ts, dur int64
	name    string
	cat     string
	args    string
}

// TestTimelinesReadBack: both formats hold the same slices, which are those of
// the run to the nanosecond.
func TestTimelinesReadBack(t *testing.T) {
	for name, in := range inputs(t) {
		data := write(t, export.WriteChrome, in)
		if !json.Valid(data) {
			t.Fatalf("%s: not JSON", name)
		}
		var head struct {
			BaseTimeNanoseconds int64
		}
		if err := json.Unmarshal(data, &head); err != nil {
			t.Fatal(err)
		}
		cr := chrome.NewReader(bytes.NewReader(data), chrome.Options{})
		fromChrome := pieces(t, cr.Next, 0, head.BaseTimeNanoseconds)
		if d := cr.Diagnostics(); len(d) > 0 {
			t.Errorf("%s: chrome: %v", name, d)
		}
		data = write(t, export.WritePerfetto, in)
		pr := perfetto.NewReader(bytes.NewReader(data), perfetto.Options{})
		fromPerfetto := pieces(t, pr.Next, -1, -moved(in))
		for _, d := range pr.Diagnostics() {
			if d.Code != perfetto.CodeUnreadEvent { // the counter
				t.Errorf("%s: perfetto: %v", name, d)
			}
		}
		if diff := gocmp.Diff(fromChrome, fromPerfetto, gocmp.AllowUnexported(piece{})); diff != "" {
			t.Errorf("%s: Chrome and Perfetto differ (-chrome +perfetto):\n%.3000s", name, diff)
		}
		checkCommunication(t, name, in, fromChrome)
		for _, b := range [][]byte{data, write(t, export.WriteChrome, in)} {
			if bytes.Contains(b, []byte("\x1b[2J")) {
				t.Errorf("%s: an escape sequence came through", name)
			}
		}
	}
}

// moved is what Perfetto's times are moved by to be no less than 0, ns.
func moved(in *export.Input) int64 {
	first := int64(0)
	for _, rank := range in.Run.Ranks {
		for _, s := range rank.Steps {
			first = min(first, s.Start)
		}
		for _, ts := range rank.Events.TS {
			first = min(first, ts)
		}
	}
	return -first
}

func pieces(t *testing.T, next func() (*chrome.Event, error), pid, shift int64) []piece {
	t.Helper()
	var list []piece
	for {
		ev, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev.Phase != 'X' {
			continue
		}
		if !ev.HasTS || !ev.HasDur {
			t.Errorf("%s has no time", ev.Name)
		}
		n, _ := ev.PID.Int()
		p := piece{pid: chrome.IntID(n + pid).String(), ts: ev.TS + shift, dur: ev.Dur, name: string(ev.Name), cat: string(ev.Cat)}
		ev.Args.Each(func(key []byte, v chrome.Value) bool {
			p.args += string(key) + "=" + string(v.Raw()) + " "
			return true
		})
		p.args = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(p.args)
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b piece) int {
		return strings.Compare(a.pid+a.cat+a.name+a.args, b.pid+b.cat+b.name+b.args)*4 + cmp.Compare(a.ts, b.ts)*2 + cmp.Compare(a.dur, b.dur)
	})
	return list
}

// checkCommunication: every operation is there, at its time.
func checkCommunication(t *testing.T, name string, in *export.Input, list []piece) {
	t.Helper()
	type at struct {
		pid     string
		ts, dur int64
	}
	have := map[at]int{}
	for _, p := range list {
		if p.cat == "communication" {
			have[at{p.pid, p.ts, p.dur}]++
		}
	}
	for _, rank := range in.Run.Ranks {
		for i := range rank.Operations {
			e := rank.Operations[i].Event
			k := at{chrome.IntID(int64(rank.Rank)).String(), rank.Events.TS[e], rank.Events.Dur[e]}
			if have[k] == 0 {
				t.Errorf("%s: operation %d of rank %d is missing", name, i, rank.Rank)
			}
		}
	}
}

// TestBrokenTimes: times at the ends of int64, and everything overlapping, cost no
// more than other traces do.
func TestBrokenTimes(t *testing.T) {
	in := hostile(t)
	for _, rank := range in.Run.Ranks {
		name := rank.Names.InternString("k")
		for i := range int64(20_000) {
			rank.Events.Append(trace.Row{Name: name, Category: trace.Kernel, TS: i, Dur: 1_000_000, Stream: 7, Correlation: trace.NoID})
		}
		for _, ts := range []int64{-1 << 63, -1 << 62, 1 << 62, 1<<63 - 1} {
			rank.Events.Append(trace.Row{Name: name, Category: trace.Kernel, TS: ts, Stream: 7, Correlation: trace.NoID})
		}
	}
	for _, f := range []writer{export.WritePprof, export.WritePerfetto} {
		write(t, f, in)
	}
	data := write(t, export.WriteChrome, in)
	if !json.Valid(data) || !bytes.Contains(data, []byte(`"ts":-9223372036854775.808`)) || !bytes.Contains(data, []byte(`"ts":9223372036854775.807`)) {
		t.Error("the extreme times are not there")
	}
	if err := export.WriteParquet(context.Background(), filepath.Join(t.TempDir(), "tables"), in); err != nil {
		t.Error(err)
	}
}

// TestCancelled: an export of a large run can be stopped.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	in := load(t, "world_36rank_bare")
	for _, f := range []writer{export.WritePprof, export.WritePerfetto, export.WriteChrome} {
		if err := f(ctx, io.Discard, in); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
}
