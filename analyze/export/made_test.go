package export

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/overlap"
	"mixdown/analyze/report"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// made is a run of two ranks with one all_reduce, at which rank 0 arrives 30 ns
// after rank 1; they end together. It is issued inside two annotations.
func made(t *testing.T) *Input {
	t.Helper()
	run := &trace.Run{}
	for rank := range 2 {
		r := &trace.Rank{
			Rank: rank, Names: trace.NewStrings(), Threads: []trace.Thread{{PID: "1", TID: "2"}},
			Groups: []comm.Group{{Name: "0", Ranks: []int{0, 1}, Size: 2}},
			Steps:  []trace.Step{{Name: "first", Number: 1, End: 50}, {Name: "second", Number: 2, Start: 50, End: 500}},
		}
		add := func(c trace.Category, name string, ts, end int64) int {
			return r.Events.Append(trace.Row{Name: r.Names.InternString(name), Category: c, TS: ts, Dur: end - ts, Stream: trace.NoStream, Device: -1, Correlation: trace.NoID})
		}
		add(trace.UserAnnotation, "ProfilerStep#1", 0, 500)
		add(trace.UserAnnotation, "outer", 10, 300)
		add(trace.UserAnnotation, "over before", 20, 40)
		add(trace.UserAnnotation, "inner", 50, 90)
		add(trace.UserAnnotation, "nccl:all_reduce", 59, 62)
		add(trace.UserAnnotation, "later", 70, 80)
		start := int64(130 - 30*rank)
		k := r.Events.Append(trace.Row{Name: r.Names.InternString("ncclKernel"), Category: trace.Kernel, TS: start, Dur: 200 - start, Stream: 7, Correlation: trace.NoID})
		r.Events.Append(trace.Row{Name: r.Names.InternString("gemm"), Category: trace.Kernel, TS: 150, Dur: 20, Stream: 8, Correlation: trace.NoID})
		r.Operations = []comm.Operation{{
			Op: comm.AllReduce, DType: comm.Float32, SizeKnown: true, In: 8, Out: 8, Issued: 60, Returned: 61, Start: start, End: 200,
			Event: k, Events: []int{k}, Stream: "7", Name: "ncclKernel",
		}}
		run.Ranks = append(run.Ranks, r)
	}
	in := &Input{Run: run, Match: collective.Match(run), Clocks: &align.Result{Connected: true, Clocks: []align.Clock{{Rank: 0}, {Rank: 1}}}}
	a, err := report.Analyze(run, in.Match, report.Options{Clocks: in.Clocks})
	if err != nil {
		t.Fatal(err)
	}
	in.Analysis = a
	return in
}

func TestWhatIsKnownOfAnOperation(t *testing.T) {
	in := made(t)
	for r, wantWait := range []int64{0, 30} {
		o := newExporter(in).operations(r, overlap.Measure(in.Run.Ranks[r]))[0]
		if o.annotation != "inner" || o.step != "second" || o.label != "0" || o.match != 0 {
			t.Errorf("annotation %q, step %q, group %q, collective %d", o.annotation, o.step, o.label, o.match)
		}
		if !o.timed || o.wait != wantWait || o.transfer != 70 || o.exposed != 50+wantWait {
			t.Errorf("rank %d: wait %d, transfer %d, exposed %d (known: %v)", r, o.wait, o.transfer, o.exposed, o.timed)
		}
	}
	row := newExporter(in).collectiveRows()[0]
	if row.lastRank != 0 || row.first != 100 || row.last != 130 || row.end != 200 || row.wait != 30 || row.in != 32 || !row.sized {
		t.Errorf("collective %+v", row)
	}
}

// TestClocksThatCannotBeCompared: nothing that compares them is said.
func TestClocksThatCannotBeCompared(t *testing.T) {
	for name, spoil := range map[string]func(*align.Result){
		"apart": func(r *align.Result) { r.Connected = false }, "impossible": func(r *align.Result) { r.Impossible = []int{0} },
	} {
		in := made(t)
		spoil(in.Clocks)
		x := newExporter(in)
		if o := x.operations(1, overlap.Measure(in.Run.Ranks[1]))[0]; o.timed || o.wait != 0 {
			t.Errorf("%s: the operation's wait is %d (known: %v)", name, o.wait, o.timed)
		}
		row := x.collectiveRows()[0]
		if _, _, ok := row.bandwidth(); row.timed || ok {
			t.Errorf("%s: the collective has times across ranks", name)
		}
	}
}

// TestPerfettoPackets looks at the bytes: every rank begins with a state of its
// own, and the members of the collective share a flow.
func TestPerfettoPackets(t *testing.T) {
	var b bytes.Buffer
	if err := WritePerfetto(context.Background(), &b, made(t)); err != nil {
		t.Fatal(err)
	}
	cleared := 0
	flows := map[uint64]int{}
	each(t, b.Bytes(), func(_ protowire.Number, packet []byte, _ uint64) {
		each(t, packet, func(n protowire.Number, data []byte, v uint64) {
			switch {
			case n == packetSequenceFlags && v&stateCleared != 0:
				cleared++
			case n == packetTrackEvent:
				each(t, data, func(n protowire.Number, _ []byte, v uint64) {
					if n == eventFlows {
						flows[v]++
					}
				})
			}
		})
	})
	if cleared != 2 || !maps.Equal(flows, map[uint64]int{1: 2}) {
		t.Errorf("%d clean states, flows %v", cleared, flows)
	}
}

// each visits the fields of a message.
func each(t *testing.T, b []byte, f func(protowire.Number, []byte, uint64)) {
	t.Helper()
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		var data []byte
		var v uint64
		switch typ {
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		default:
			t.Fatalf("field %d of type %d", num, typ)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		b = b[n:]
		f(num, data, v)
	}
}

// TestChromeFlows: a flow starts at the first arrival and ends at the last.
func TestChromeFlows(t *testing.T) {
	var b bytes.Buffer
	if err := WriteChrome(context.Background(), &b, made(t)); err != nil {
		t.Fatal(err)
	}
	var file struct {
		TraceEvents []struct {
			Ph  string
			Pid int
			ID  int
		}
	}
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	at := map[string][]int{}
	for _, e := range file.TraceEvents {
		if e.ID != 0 {
			at[e.Ph] = append(at[e.Ph], e.Pid)
		}
	}
	if !slices.Equal(at["s"], []int{1}) || !slices.Equal(at["f"], []int{0}) || len(at) != 2 {
		t.Errorf("flows %v", at)
	}
}

// TestFilesHaveTheUsualMode: what the umask makes of any new file.
func TestFilesHaveTheUsualMode(t *testing.T) {
	dir := t.TempDir()
	usual, err := os.Create(filepath.Join(dir, "usual"))
	if err != nil {
		t.Fatal(err)
	}
	defer usual.Close()
	want, err := usual.Stat()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "a")
	if err := WriteFile(name, func(io.Writer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != want.Mode() {
		t.Errorf("mode %v, others have %v (%v)", info.Mode(), want.Mode(), err)
	}
}
