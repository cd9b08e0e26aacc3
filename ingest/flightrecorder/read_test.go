package flightrecorder

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mixdown/ingest/comm"
)

func (n Int) String() string {
	if !n.Known {
		return "-"
	}
	return fmt.Sprint(n.V)
}

const base = 1796030320880424867 // time_created_ns of record 0 in nccl.*

func describe(d *Dump) string {
	var b strings.Builder
	fmt.Fprintf(&b, "rank %d (%s) version %s lib %s cut %v\n", d.Rank, d.RankFrom, d.Version, d.CommVersion, d.Truncated)
	for _, g := range d.Groups {
		fmt.Fprintf(&b, "group %v %q %q %v of %d: %v %v %v\n", g.ID, g.Name, g.Description, g.Ranks, g.Size, g.LastEnqueued, g.LastStarted, g.LastCompleted)
	}
	for _, e := range d.Entries {
		fmt.Fprintf(&b, "%v %s=%s/%s group %d pg %v seq %v/%v op %v p2p %v %v->%v", e.RecordID, e.Name, e.Backend, e.Op, e.Group, e.PGID, e.CollectiveSeq, e.P2PSeq, e.OpID, e.IsP2P, e.Src, e.Dst)
		fmt.Fprintf(&b, " in %v out %v %s retired %v", e.Inputs, e.Outputs, e.State, e.Retired)
		fmt.Fprintf(&b, " created %v started %v completed %v dur %v timeout %v thread %s/%s frames %d\n", e.Created, e.Started, e.Completed, e.Duration, e.Timeout, e.ThreadName, e.ThreadID, len(e.Frames))
	}
	for _, x := range d.Diagnostics.List() {
		fmt.Fprintf(&b, "! %s x%d\n", x.Code, x.Count)
	}
	return b.String()
}

const ncclWant = `rank 0 (file name) version 2.10 lib 2.27.3 cut false
group 0 "0" "default_pg" [0 1 2 3] of 4: 7 6 5
group 1 "1" "mesh_tp" [0 1] of 2: 9 8 8
group 2 "2" "" [0 2] of 2: 3 - 3
group - "3" "idle" [1 3] of 2: - - -
10 nccl:all_reduce=nccl/all_reduce group 0 pg 0 seq 5/0 op 10 p2p false -->- in [{[4 3] float32 Float}] out [{[4 3] float32 Float}] completed retired true created 1796030320890424867 started 1796030320891000000 completed 1796030320893000000 dur 1250000 timeout 600000000000 thread pt_main/7 frames F
11 nccl:_all_gather_base=nccl/all_gather group 1 pg 1 seq 8/0 op 11 p2p false -->- in [{[4 3] float32 Float}] out [{[8 3] float32 Float}] completed retired true created 1796030320891424867 started 1796030320892000000 completed 1796030320892000000 dur - timeout 600000000000 thread pt_main/7 frames F
12 nccl:send 0->1=nccl/send group 2 pg 2 seq 3/1 op 12 p2p true 0->1 in [{[2 8] float16 Half}] out [{[2 8] float16 Half}] scheduled retired false created 1796030320892424867 started - completed - dur - timeout 600000000000 thread pt_main/7 frames F
13 nccl:recv 0<-1=nccl/recv group 2 pg 2 seq 3/1 op 13 p2p true 1->0 in [{[2 8] float16 Half}] out [{[2 8] float16 Half}] scheduled retired false created 1796030320893424867 started - completed - dur - timeout 600000000000 thread pt_main/7 frames F
14 nccl:coalesced=nccl/batch group 2 pg 2 seq 3/1 op 14 p2p true -->- in [] out [] completed retired true created 1796030320894424867 started 1796030320895000000 completed 1796030320896000000 dur 500000 timeout 600000000000 thread pt_main/7 frames F
15 nccl:reduce_scatter_tensor_coalesced=nccl/reduce_scatter group 1 pg 1 seq 9/0 op 15 p2p false -->- in [{[4 3] float32 Float}] out [{[2 3] float32 Float}] scheduled retired false created 1796030320895424867 started - completed - dur - timeout 600000000000 thread pt_main/7 frames F
16 nccl:recv 0<-3=nccl/recv group 2 pg 2 seq 0/2 op 16 p2p true 3->0 in [{[4 3] float32 Float}] out [{[4 3] float32 Float}] scheduled retired false created 1796030320896424867 started - completed - dur - timeout 600000000000 thread pt_main/7 frames F
17 nccl:barrier=nccl/barrier group 0 pg 0 seq 6/0 op 17 p2p false -->- in [] out [] started retired false created 1796030320897424867 started 1796030320899000000 completed - dur - timeout 600000000000 thread pt_main/7 frames F
18 nccl:split=nccl/unknown group 0 pg 0 seq 7/0 op 18 p2p false -->- in [] out [] scheduled retired false created 1796030320898424867 started - completed - dur - timeout 600000000000 thread pt_main/7 frames F
! unknown-operation x1
`

// TestNCCL reads one dump in both forms and all protocols; see
// testdata/generate.py.
func TestNCCL(t *testing.T) {
	names := []string{"nccl.json"}
	for p := range 6 {
		names = append(names, fmt.Sprintf("nccl_p%d.pickle", p))
	}
	for _, name := range names {
		d, err := Read(bytes.NewReader(fixture(t, name)), "/tmp/nccl_trace_rank_0", Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		frames := "2"
		if name == "nccl.json" {
			frames = "0"
		}
		if got, want := describe(d), strings.ReplaceAll(ncclWant, "frames F", "frames "+frames); got != want {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
		if frames == "2" && d.Entries[0].Frames[1] != (Frame{"main", "train.py", 34}) {
			t.Errorf("%s: frames %v", name, d.Entries[0].Frames)
		}
	}
}

// TestGloo reads real dumps of PyTorch 2.15. Gloo names no group in pg_config,
// completes no entry, and records neither sends nor receives.
func TestGloo(t *testing.T) {
	for _, name := range []string{"gloo_rank0.json", "gloo_rank0.pickle"} {
		d, err := Read(bytes.NewReader(fixture(t, name)), name, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, e := range d.Entries {
			got = append(got, fmt.Sprintf("%s %v %s %v %v %v", e.Op, e.CollectiveSeq, d.Groups[e.Group].Name, e.Inputs, e.Outputs, e.State))
			if e.Backend != "gloo" || !e.Retired || !e.Created.Known || e.Started.Known || e.Completed.Known || e.Duration.Known || !e.SizesKnown {
				t.Errorf("%s: entry %+v", name, e)
			}
			if isPickle := strings.HasSuffix(name, "pickle"); (len(e.Frames) > 0) != isPickle {
				t.Errorf("%s: %d frames", name, len(e.Frames))
			}
		}
		want := []string{
			"all_reduce 1 0 [{[4 3] float32 Float}] [{[4 3] float32 Float}] scheduled",
			"broadcast 2 0 [{[5] int64 Long}] [{[5] int64 Long}] scheduled",
			"all_gather 3 0 [{[2] float32 Float}] [{[3 2] float32 Float}] scheduled",
			"all_reduce 1 1 [{[3] bfloat16 BFloat16}] [{[3] bfloat16 BFloat16}] scheduled",
			"all_to_all 4 0 [{[6] float32 Float}] [{[6] float32 Float}] scheduled",
			"barrier 5 0 [] [] scheduled",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if g := d.Groups; len(g) != 2 || g[1].Description != "pair" || g[0].Ranks != nil || g[0].LastCompleted != known(6) || g[0].LastStarted.Known {
			t.Errorf("%s: groups %+v", name, g)
		}
		if got := fmt.Sprint(d.Diagnostics.List()); !strings.Contains(got, CodeUnnamedGroup) || !strings.Contains(got, CodeMissingGroup) {
			t.Errorf("%s: diagnostics %s", name, got)
		}
		if d.Rank != 0 || d.Version != "2.10" {
			t.Errorf("%s: rank %d, version %q", name, d.Rank, d.Version)
		}
	}
}

func TestRank(t *testing.T) {
	pattern := regexp.MustCompile(`container-node\d+_(?P<rank>\d+)$`)
	for _, c := range []struct {
		name string
		opts Options
		rank int
		from string
	}{
		{"/tmp/nccl_trace_rank_3", Options{}, 3, "file name"},
		{"comm_lib_trace_rank_12", Options{}, 12, "file name"},
		{"dump.pickle", Options{}, -1, ""},
		// Report 73: the name holds host and rank.
		{"nccl_trace_rank_container-node02_5", Options{}, -1, ""},
		{"nccl_trace_rank_container-node02_5", Options{RanksFrom: pattern}, 5, "--ranks-from"},
		{"nccl_trace_rank_3", Options{RanksFrom: pattern}, -1, ""},
	} {
		d, err := Read(strings.NewReader(`{"version":"2.4","entries":[]}`), c.name, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if d.Rank != c.rank || d.RankFrom != c.from {
			t.Errorf("%s: rank %d from %q, want %d from %q", c.name, d.Rank, d.RankFrom, c.rank, c.from)
		}
	}
}

func TestFields(t *testing.T) {
	for _, c := range []struct{ name, input, want string }{
		{"no entries", `{"version":"2.10","pg_config":{},"pg_status":{}}`, "! no-entries x1\n"},
		{"not dictionaries", `{"entries":[7,{"record_id":1}],"pg_config":[],"pg_status":{"x":1}}`, "! bad-entry x2\n! bad-field x2\n"},
		{"a list, with the keys of older dumps", `[{"profiling_name":"nccl:send","seq_id":4,"pg_id":0,"state":"started","input_sizes":[[2]],"input_dtypes":["Foo"],"output_sizes":[]}]`,
			"group 0 \"\" \"\" [] of 0: - - -\n- nccl:send=nccl/send group 0 pg 0 seq 4/- op - p2p true -->- in [{[2]  Foo}] out [] started retired false created - started - completed - dur - timeout - thread / frames 0\n"},
		{"bad values", `{"entries":[{"profiling_name":"nccl:all_reduce","record_id":1.5,"is_p2p":"x","duration_ms":-1,"timeout_ms":1e300,"state":"odd","process_group":["0"],"input_sizes":[[-1]],"output_sizes":7,"thread_id":5}]}`,
			"group - \"0\" \"\" [] of 0: - - -\n- nccl:all_reduce=nccl/all_reduce group 0 pg - seq -/- op - p2p false -->- in [] out [] odd retired false created - started - completed - dur - timeout - thread / frames 0\n! bad-field x7\n! unknown-state x1\n"},
		{"members that are cut, a list of them, statuses of a group without entries", `{"pg_config":{"0":{"name":"0","ranks":"[0, 1, ...]"},"1":{"name":"1","ranks":[4,5]}},"pg_status":{"9":{"last_enqueued_collective":"-1","last_completed_collective":"4"}},"entries":[]}`,
			"group - \"0\" \"\" [] of 0: - - -\ngroup - \"1\" \"\" [4 5] of 2: - - -\ngroup 9 \"\" \"\" [] of 0: - - 4\n! bad-ranks x1\n"},
		{"receive from any", `{"entries":[{"profiling_name":"nccl:recv 2<--1","is_p2p":true}]}`,
			"- nccl:recv 2<--1=nccl/recv group -1 pg - seq -/- op - p2p true -->2 in [] out []  retired false created - started - completed - dur - timeout - thread / frames 0\n"},
		{"names of coalesced collectives and torchcomms", `{"entries":[{"profiling_name":"nccl:REDUCE_SCATTER_coalesced"},{"profiling_name":"xccl:all_to_all_v_single"}]}`,
			"- nccl:REDUCE_SCATTER_coalesced=nccl/reduce_scatter group -1 pg - seq -/- op - p2p false -->- in [] out []  retired false created - started - completed - dur - timeout - thread / frames 0\n- xccl:all_to_all_v_single=xccl/all_to_allv group -1 pg - seq -/- op - p2p false -->- in [] out []  retired false created - started - completed - dur - timeout - thread / frames 0\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Read(strings.NewReader(c.input), "x", Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, got, _ := strings.Cut(describe(d), "\n")
			if got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	for _, c := range []struct {
		name, input string
		opts        Options
		want        error
	}{
		{"empty", "", Options{}, ErrEmpty},
		{"text", "hello", Options{}, ErrNotDump},
		{"other JSON", `{"traceEvents":[]}`, Options{}, ErrNotDump},
		{"broken JSON", `{`, Options{}, nil},
		{"JSON of one value", `[1]`, Options{}, ErrNotDump},
		{"other pickle", "\x80\x02K\x01.", Options{}, ErrNotDump},
		{"too large", `{"version":"2.10"}`, Options{MaxBytes: 10}, ErrLimit},
		{"too deep", `{"version":` + strings.Repeat("[", 100), Options{}, ErrLimit},
		{"too many values", `{"version":[1,2,3,4]}`, Options{MaxObjects: 5}, ErrLimit},
		{"too many entries", `{"entries":[1,2,3]}`, Options{MaxEntries: 2}, ErrLimit},
	} {
		_, err := Read(strings.NewReader(c.input), "x", c.opts)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}

// TestTruncated cuts real dumps everywhere: what is there of whole entries is
// kept, and the cut is reported.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"gloo_rank0.json", "gloo_rank0.pickle", "nccl_p2.pickle", "nccl_p4.pickle"} {
		whole := fixture(t, name)
		full, err := Read(bytes.NewReader(whole), name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		last, most := 0, 0
		for n := range len(whole) - 2 {
			d, err := Read(bytes.NewReader(whole[:n]), name, Options{})
			if err != nil {
				continue
			}
			if !d.Truncated || len(d.Entries) < last || len(d.Entries) > len(full.Entries) {
				t.Fatalf("%s cut at %d: truncated %v, %d entries after %d", name, n, d.Truncated, len(d.Entries), last)
			}
			last = len(d.Entries)
			most = max(most, last)
			for i := range max(last-1, 0) {
				if got, want := fmt.Sprint(d.Entries[i].Name, d.Entries[i].Created, d.Entries[i].Inputs, d.Entries[i].State), fmt.Sprint(full.Entries[i].Name, full.Entries[i].Created, full.Entries[i].Inputs, full.Entries[i].State); got != want {
					t.Fatalf("%s cut at %d: entry %d is %s, want %s", name, n, i, got, want)
				}
			}
		}
		if most < len(full.Entries)-1 {
			t.Errorf("%s: at most %d of %d entries were saved", name, most, len(full.Entries))
		}
	}
}

func TestOpsAreKnown(t *testing.T) {
	for name, op := range spellings {
		if _, ok := comm.ParseOp(name); ok {
			t.Errorf("%s is known to package comm: remove it here", name)
		}
		if op == comm.Unknown {
			t.Errorf("%s is unknown", name)
		}
	}
}
