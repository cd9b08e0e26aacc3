package flightrecorder

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

func describeRank(r *trace.Rank, timings []Timing) string {
	var b strings.Builder
	for i := range r.Operations {
		op := &r.Operations[i]
		fmt.Fprintf(&b, "%s #%d of %q seq %d %v %s %v %d/%d %v issued +%d %d..%d timing %d\n", op.Op, op.Index, r.Groups[op.Group].Name, op.Seq, op.SeqKnown, op.DType, op.SizeKnown, op.In, op.Out, op.Transfers,
			(op.Issued-base)/1e6, op.Start-op.Issued, op.End-op.Issued, timings[i])
	}
	return b.String()
}

func TestTraceRank(t *testing.T) {
	d, err := Read(bytes.NewReader(fixture(t, "nccl_p2.pickle")), "nccl_trace_rank_0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, timings, diags := d.TraceRank()
	if len(timings) != len(r.Operations) {
		t.Fatalf("%d timings of %d operations", len(timings), len(r.Operations))
	}
	const want = `all_reduce #0 of "0" seq 5 true float32 true 12/12 [] issued +10 1325133..2575133 timing 2
all_gather #0 of "1" seq 8 true float32 true 12/24 [] issued +11 575133..575133 timing 1
batch #0 of "2" seq 1 true float16 true 16/16 [{true 2 16} {false 2 16}] issued +12 3075133..3575133 timing 2
reduce_scatter #1 of "1" seq 9 true float32 true 12/6 [] issued +15 0..0 timing 0
recv #1 of "2" seq 2 true float32 true 0/12 [] issued +16 0..0 timing 0
barrier #1 of "0" seq 6 true  false 0/0 [] issued +17 0..0 timing 0
`
	if got := describeRank(r, timings); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if r.Rank != 0 || r.Distributed.Backend != "nccl" || r.Distributed.WorldSize != 4 || len(r.Distributed.Groups) != 4 || r.Read != 9 {
		t.Errorf("rank %+v", r)
	}
	var got []string
	for _, x := range diags.List() {
		got = append(got, fmt.Sprintf("%s x%d", x.Code, x.Count))
	}
	if s := strings.Join(got, ", "); s != "peer-unknown x1, untimed-operation x3" {
		t.Errorf("diagnostics %s", s)
	}
	for i := range r.Operations {
		if op := &r.Operations[i]; op.Event != -1 || op.Events != nil || op.Thread != -1 || op.RootKnown || op.SplitsKnown {
			t.Errorf("operation %+v says what a dump does not", op)
		}
	}
}

func TestCoalesced(t *testing.T) {
	entry := func(name, sizes, dtype string, p2p bool, seq int) string {
		return fmt.Sprintf(`{"profiling_name":%q,"pg_id":0,"process_group":["0","default_pg"],"is_p2p":%v,"collective_seq_id":%d,"p2p_seq_id":%d,"input_sizes":%s,"output_sizes":%s,"input_dtypes":[%q],"output_dtypes":[%q],"time_created_ns":5}`,
			name, p2p, seq, seq, sizes, sizes, dtype, dtype)
	}
	const last = "nccl:coalesced"
	for _, c := range []struct {
		name    string
		entries []string
		want    string // operations with sizes
		diags   string
	}{
		{"collectives of one kind", []string{entry("nccl:all_reduce", "[[2]]", "Float", false, 1), entry("nccl:all_reduce", "[[3]]", "Float", false, 1), entry(last, "[]", "Float", false, 1)},
			"all_reduce 5/5", "untimed-operation x1"},
		{"one before that is not part of it", []string{entry("nccl:all_reduce", "[[2]]", "Float", false, 1), entry("nccl:all_reduce", "[[3]]", "Float", false, 2), entry(last, "[]", "Float", false, 2)},
			"all_reduce 2/2, all_reduce 3/3", "untimed-operation x2"},
		{"different collectives", []string{entry("nccl:all_reduce", "[[2]]", "Float", false, 1), entry("nccl:broadcast", "[[3]]", "Float", false, 1), entry(last, "[]", "Float", false, 1)},
			"all_reduce 2/2, broadcast 3/3", "mixed-coalesced x1, untimed-operation x2"},
		{"no operation in it", []string{entry("nccl:split", "[[2]]", "Float", false, 1), entry(last, "[]", "Float", false, 1)}, "batch unknown", "untimed-operation x1"},
		{"nothing in it", []string{entry(last, "[]", "Float", true, 1)}, "batch unknown", "untimed-operation x1"},
		{"two types", []string{entry("nccl:send 0->1", "[[2]]", "Float", true, 1), entry("nccl:recv 0<-1", "[[3]]", "Half", true, 1), entry(last, "[]", "Float", true, 1)},
			"batch unknown [{true 5 2} {false 5 3}]", "untimed-operation x1"},
		{"peer outside of the group", []string{entry("nccl:send 0->7", "[[2]]", "Float", true, 1), entry("nccl:recv 0<-1", "[[3]]", "Float", true, 1), entry(last, "[]", "Float", true, 1)},
			"batch 2/3", "peer-unknown x1, untimed-operation x1"},
		{"two batches", []string{entry("nccl:send 0->1", "[[2]]", "Float", true, 1), entry(last, "[]", "Float", true, 1), entry("nccl:send 0->1", "[[3]]", "Float", true, 2), entry(last, "[]", "Float", true, 2)},
			"batch 2/0 [{true 5 2}], batch 3/0 [{true 5 3}]", "untimed-operation x2"},
		{"sizes beyond int64, unknown type", []string{entry("nccl:all_reduce", "[[4000000000,4000000000]]", "Float", false, 1), entry("nccl:all_reduce", "[[2]]", "Odd", false, 2)},
			"all_reduce unknown, all_reduce unknown", "bad-field x2, untimed-operation x2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Read(strings.NewReader(`{"pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[4, 5]"}},"entries":[`+strings.Join(c.entries, ",")+`]}`), "rank4", Options{})
			if err != nil {
				t.Fatal(err)
			}
			r, _, diags := d.TraceRank()
			var got []string
			for i := range r.Operations {
				op := &r.Operations[i]
				s := string(op.Op) + " unknown"
				if op.SizeKnown {
					s = fmt.Sprintf("%s %d/%d", op.Op, op.In, op.Out)
				}
				if op.Transfers != nil {
					s += fmt.Sprint(" ", op.Transfers)
				}
				got = append(got, s)
			}
			if s := strings.Join(got, ", "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
			got = nil
			for _, x := range diags.List() {
				got = append(got, fmt.Sprintf("%s x%d", x.Code, x.Count))
			}
			if s := strings.Join(got, ", "); s != c.diags {
				t.Errorf("diagnostics %s, want %s", s, c.diags)
			}
		})
	}
}

// FuzzRead checks what holds for every input: no panic, no more than the limits
// allow, and a rank of which every index is right.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"nccl.json", "nccl_p0.pickle", "nccl_p1.pickle", "nccl_p2.pickle", "nccl_p4.pickle", "gloo_rank0.json", "gloo_rank0.pickle", "plain_p0.pickle", "plain_p5.pickle", "plain_py27_p0.pickle"} {
		f.Add(fixture(f, name))
	}
	f.Add([]byte("\x80\x02}q\x00(X\x07\x00\x00\x00entriesh\x00u."))
	f.Add([]byte("(dp0\nVversion\np1\ncposix\nsystem\np2\n(Vtrue\np3\ntp4\nRp5\ns."))
	f.Fuzz(func(t *testing.T, input []byte) {
		opts := Options{MaxObjects: 20000, MaxStack: 5000, MaxMemo: 5000, MaxEntries: 200}
		d, err := Read(bytes.NewReader(input), "rank1", opts)
		if err != nil {
			return
		}
		if len(d.Entries) > opts.MaxEntries {
			t.Fatalf("%d entries", len(d.Entries))
		}
		for i := range d.Entries {
			if e := &d.Entries[i]; e.Group < -1 || e.Group >= len(d.Groups) || e.Op == "" || e.Name == "" {
				t.Fatalf("entry %+v", e)
			}
		}
		r, timings, _ := d.TraceRank()
		if len(timings) != len(r.Operations) {
			t.Fatalf("%d timings of %d operations", len(timings), len(r.Operations))
		}
		for i := range r.Operations {
			op := &r.Operations[i]
			if op.Group < 0 || op.Group >= len(r.Groups) || op.In < 0 || op.Out < 0 || op.Start > op.End || op.Op == comm.Unknown || !op.SizeKnown && op.In+op.Out > 0 {
				t.Fatalf("operation %+v", op)
			}
		}
	})
}
