package commslog

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	header = "Comm. Op            Message Size        Count               Total Latency(ms)   Avg Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)    "

	stragglerHeader = "Comm. Op            Message Size        Count               Total comm lat(ms)  Total straggler(ms) Avg comm lat(ms)    Avg straggler(ms)   "

	stragglerTitle = "_______________________________\nBreakdown with straggler effect\n-------------------------------\n"
)

// row writes a row as log_all does.
func row(size string, count int, numbers ...string) string {
	s := fmt.Sprintf("%-20s%-20s%-20d", " ", size, count)
	for _, n := range numbers {
		s += fmt.Sprintf("%-20s", n)
	}
	return s
}

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

// describe writes a log in short: one line for each row and call.
func describe(log *Log) string {
	var b strings.Builder
	for i, t := range log.Tables {
		fmt.Fprintf(&b, "table %d", i)
		if t.RankKnown {
			fmt.Fprintf(&b, " rank %d", t.Rank)
		}
		if t.WorldSize > 0 {
			fmt.Fprintf(&b, " of %d at %s", t.WorldSize, t.Timestamp)
		}
		b.WriteString("\n")
		for _, r := range t.Rows {
			fmt.Fprintf(&b, "  %s=%s", r.Name, r.Op)
			if r.Caller != "" {
				fmt.Fprintf(&b, " by %s", r.Caller)
			}
			fmt.Fprintf(&b, " [%d,%d] x%d", r.SizeLo, r.SizeHi, r.Count)
			if r.HasTimes {
				fmt.Fprintf(&b, " %d/%d", r.TotalNS, r.AvgNS)
			}
			if r.TputGbpsKnown || r.BusGbpsKnown {
				fmt.Fprintf(&b, " %v/%v", r.TputGbps, r.BusGbps)
			}
			if s := r.Straggler; s != nil {
				fmt.Fprintf(&b, " straggler x%d %d/%d %d/%d", s.Count, s.TotalCommNS, s.TotalStragglerNS, s.AvgCommNS, s.AvgStragglerNS)
			}
			b.WriteString("\n")
		}
	}
	for _, c := range log.Calls {
		fmt.Fprintf(&b, "call %s=%s", c.Name, c.Op)
		if c.Caller != "" {
			fmt.Fprintf(&b, " by %s", c.Caller)
		}
		if c.RankKnown {
			fmt.Fprintf(&b, " rank %d", c.Rank)
		}
		fmt.Fprintf(&b, " [%d,%d] %d %v/%v @%s\n", c.SizeLo, c.SizeHi, c.DurNS, c.AlgGbps, c.BusGbps, c.Stamp)
	}
	for _, d := range log.Diagnostics.List() {
		fmt.Fprintf(&b, "! %s x%d\n", d.Code, d.Count)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	const head = "[2022-06-26 01:39:55,722] [INFO] [logging.py:69:log_dist] [Rank 0] "
	verbose := "comm op: reduce_scatter_tensor | time (ms): 9.46 | msg size: 678.86 MB | algbw (Gbps): 1204.52 | busbw (Gbps): 1129.23"
	const verboseWant = " [711831061,711841546] 9460000 1204.52/1129.23 @2022-06-26 01:39:55,722\n"
	for _, c := range []struct {
		name, input, want string
	}{
		// The numbers are those of DeepSpeed's documentation.
		{"summary", lines(header,
			"broadcast",
			row("2.0 KB", 146, "11.12", "0.08", "0.43", "0.41"),
			row("98.25 MB", 1, "8317.12", "8317.12", "0.20", "0.19"),
			"reduce_scatter_tensor",
			row("678.86 MB", 40, "602.29", "9.69", "1468.06", "1376.31"),
			"log_summary_barrier",
			row("0B", 1, "0.11", "0.11", "0.00", "0.00")),
			`table 0
  broadcast=broadcast [2043,2053] x146 11120000/80000 0.43/0.41
  broadcast=broadcast [103017350,103027834] x1 8317120000/8317120000 0.2/0.19
  reduce_scatter_tensor=reduce_scatter [711831061,711841546] x40 602290000/9690000 1468.06/1376.31
  log_summary_barrier=barrier [0,0] x1 110000/110000 0/0
`},
		{"debug names the caller", lines(header, "broadcast | [Caller Func: _broadcast_model]", row("128.0 B", 2, "1.00", "0.50", "0.10", "0.10")),
			"table 0\n  broadcast=broadcast by _broadcast_model [128,128] x2 1000000/500000 0.1/0.1\n"},
		{"trailing blanks cut, CRLF", strings.ReplaceAll(lines(strings.TrimSpace(header), "all_reduce", strings.TrimRight(row("1.0 B", 20, "5.00", "0.25", "0.00", "0.00"), " ")), "\n", "\r\n"),
			"table 0\n  all_reduce=all_reduce [1,1] x20 5000000/250000 0/0\n"},
		{"a value of 17 characters", lines(header, "all_reduce", row("2.0 KB", 1, "1234567890123.45", "11.12", "0.43", "0.41")),
			"table 0\n  all_reduce=all_reduce [2043,2053] x1 1234567890123450000/11120000 0.43/0.41\n"},
		{"values that touch, columns hold", lines(header, "all_reduce", row("2.0 KB", 1, "11.12", "0.08", "12345678901234567.00", "0.41")),
			"table 0\n  all_reduce=all_reduce [2043,2053] x1 11120000/80000 1.2345678901234568e+16/0.41\n"},
		{"values that touch, columns shifted", lines(header, "all_reduce", row("2.0 KB", 1, "11.12", "0.08", "100000000000000000000.00", "0.41")),
			"table 0\n  all_reduce=all_reduce [2043,2053] x1 11120000/80000 1e+20/0.41\n"},
		{"nan and inf are unknown", lines(header, "all_reduce", row("2.0 KB", 1, "11.12", "0.08", "nan", "inf")),
			"table 0\n  all_reduce=all_reduce [2043,2053] x1 11120000/80000\n"},
		{"blanks instead of columns", lines(header, "all_reduce", "                        2.0 KB   146  11.12 0.08  0.43 0.41"),
			"table 0\n  all_reduce=all_reduce [2043,2053] x146 11120000/80000 0.43/0.41\n"},
		{"blanks squeezed", "Comm. Op Message Size Count Total Latency(ms) Avg Latency(ms) tput_avg (Gbps) busbw_avg (Gbps)\nall_reduce\n 2.0 KB 146 11.12 0.08 0.43 0.41\n4.0 KB 1 1.00 1.00 0.43 0.41\n",
			"table 0\n  all_reduce=all_reduce [2043,2053] x146 11120000/80000 0.43/0.41\n  all_reduce=all_reduce [4091,4101] x1 1000000/1000000 0.43/0.41\n"},
		{"straggler", lines(header, "all_reduce", row("2.0 KB", 4, "12.00", "3.00", "0.43", "0.41"), row("2.0 KB", 5, "13.00", "2.60", "0.43", "0.41")) +
			stragglerTitle + lines(stragglerHeader, "all_reduce", row("2.0 KB", 4, "8.00", "4.00", "2.00", "1.00"), row("2.0 KB", 5, "9.00", "4.00", "1.80", "0.80")),
			`table 0
  all_reduce=all_reduce [2043,2053] x4 12000000/3000000 0.43/0.41 straggler x4 8000000/4000000 2000000/1000000
  all_reduce=all_reduce [2043,2053] x5 13000000/2600000 0.43/0.41 straggler x5 9000000/4000000 1800000/800000
`},
		{"straggler alone", lines(stragglerHeader, "all_reduce", row("2.0 KB", 4, "8.00", "4.00", "2.00", "1.00")),
			"table 0\n  all_reduce=all_reduce [2043,2053] x4 straggler x4 8000000/4000000 2000000/1000000\n! comms-log-unmatched-row x1\n"},
		{"two summaries", lines(header, "barrier", row("0B", 1, "1.00", "1.00", "0.00", "0.00"), header, "barrier", row("0B", 2, "2.00", "1.00", "0.00", "0.00")),
			"table 0\n  barrier=barrier [0,0] x1 1000000/1000000 0/0\ntable 1\n  barrier=barrier [0,0] x2 2000000/1000000 0/0\n"},
		{"other output between", lines("loading", header, "all_reduce", head+"step=40, skipped=2, lr=[5e-05]", row("2.0 KB", 1, "1.00", "1.00", "0.43", "0.41"), "Traceback (most recent call last):", row("4.0 KB", 1, "1.00", "1.00", "0.43", "0.41")),
			"table 0\n  all_reduce=all_reduce [2043,2053] x1 1000000/1000000 0.43/0.41\n  all_reduce=all_reduce [4091,4101] x1 1000000/1000000 0.43/0.41\n"},
		{"a launcher's prefix, and another process's table", lines("[rank3]:"+header, "[rank3]:all_reduce", "[rank1]:all_gather", "[rank3]:"+row("2.0 KB", 1, "1.00", "1.00", "0.43", "0.41"), row("8.0 KB", 1, "1.00", "1.00", "0.43", "0.41")),
			"table 0 rank 3\n  all_reduce=all_reduce [2043,2053] x1 1000000/1000000 0.43/0.41\n"},
		{"a prefix with the time", lines("12:00:01.5 "+header, "12:00:02.7 all_reduce", "12:10:02.7 "+row("2.0 KB", 1, "1.00", "1.00", "0.43", "0.41")),
			"table 0\n  all_reduce=all_reduce [2043,2053] x1 1000000/1000000 0.43/0.41\n"},
		{"a local rank is no rank", lines("[local_rank 3]:"+header, "[local_rank 3]:all_reduce", "[local_rank 3]:"+row("2.0 KB", 1, "1.00", "1.00", "0.43", "0.41")),
			"table 0\n  all_reduce=all_reduce [2043,2053] x1 1000000/1000000 0.43/0.41\n"},
		{"broken rows", lines(header, row("2.0 KB", 1, "1.00", "1.00", "0.43", "0.41"), "all_reduce", row("2.0 XB", 1, "1.00", "1.00", "0.43", "0.41"), row("2.0 KB", 1, "1.00", "1.00", "0.43"), row("2.0 KB", 1, "1.00", "1.00", "0.43", "0.41", "7"), row("2.0 KB", 1, "99999999999999999999.00", "1.00", "0.43", "0.41")),
			"table 0\n! comms-log-bad-row x4\n! comms-log-orphan-row x1\n"},
		{"an operation with a name of its own", lines(header, "my_all_to_all", row("1.0 B", 1, "1.00", "1.00", "0.00", "0.00")),
			"table 0\n  my_all_to_all=unknown [1,1] x1 1000000/1000000 0/0\n! comms-log-unknown-operation x1\n"},

		{"verbose", lines(head + verbose), "call reduce_scatter_tensor=reduce_scatter rank 0" + verboseWant},
		{"verbose, old form", lines(head + "rank=0 | " + strings.ReplaceAll(verbose, "1204.52 |", "1204.52  |") + " "),
			"call reduce_scatter_tensor=reduce_scatter rank 0" + verboseWant},
		{"verbose with caller", lines(head + "rank=0 | comm op: broadcast | [Caller Func: _broadcast_model] | time (ms): 4138.40 | msg size: 1.12 KB | algbw (Gbps): 0.00  | busbw (Gbps): 0.00 "),
			"call broadcast=broadcast by _broadcast_model rank 0 [1142,1152] 4138400000 0/0 @2022-06-26 01:39:55,722\n"},
		{"verbose of two ranks in one line", lines(head + "rank=0 | " + verbose + strings.ReplaceAll(head, "Rank 0", "Rank 5") + "rank=5 | " + verbose),
			"call reduce_scatter_tensor=reduce_scatter rank 0" + verboseWant + "call reduce_scatter_tensor=reduce_scatter rank 5" + verboseWant},
		{"verbose line cut by another's", lines(head+verbose[:50]+head+verbose, head+verbose[:80]),
			"call reduce_scatter_tensor=reduce_scatter rank 0" + verboseWant + "! comms-log-bad-line x2\n"},
		{"verbose lines inside a table", lines(header, "all_reduce", head+verbose, row("2.0 KB", 1, "1.00", "1.00", "0.43", "0.41")),
			"table 0\n  all_reduce=all_reduce [2043,2053] x1 1000000/1000000 0.43/0.41\ncall reduce_scatter_tensor=reduce_scatter rank 0" + verboseWant},

		{"json", `{"summary": {"all_reduce | [Caller Func: f]": {"2049": {"count": 3, "total_latency_ms": 11.119999885559082, "avg_latency_ms": 3.7, "tput_avg_gbps": 1.5, "busbw_avg_gbps": NaN, "msg_size_bytes": 2049, "msg_size_str": "2.0 KB"}},
			"barrier": {"0": {"count": 1, "total_latency_ms": 1e-05, "avg_latency_ms": 0.25, "tput_avg_gbps": 0.0, "busbw_avg_gbps": 0.0, "msg_size_bytes": 0, "msg_size_str": "0B"}}},
			"straggler_analysis": {"barrier": {"0": {"count": 1, "total_comm_lat_ms": 1, "total_straggler_ms": 2, "avg_comm_lat_ms": 3, "avg_straggler_ms": 4, "msg_size_bytes": 0, "msg_size_str": "0B"}}},
			"metadata": {"world_size": 8, "rank": 2, "timestamp": "2025-07-09T12:00:00.5"}}`,
			`table 0 rank 2 of 8 at 2025-07-09T12:00:00.5
  all_reduce=all_reduce by f [2049,2049] x3 11120000/3700000 1.5/0
  barrier=barrier [0,0] x1 10/250000 0/0 straggler x1 1000000/2000000 3000000/4000000
`},
		{"json, no stragglers, bad entries", ` {"summary": {"send": {"8": {"count": 1, "total_latency_ms": 1.5, "avg_latency_ms": 1.5}, "x": {"count": 1}, "9": {"count": -1}, "10": 7}}, "straggler_analysis": null, "metadata": {}}`,
			"table 0\n  send=send [8,8] x1 1500000/1500000\n! comms-log-bad-row x4\n"},
		{"json of two ranks", `{"summary": {}, "metadata": {"rank": 0}}` + "\n" + `{"summary": {}, "metadata": {"rank": 1}}{"cut`,
			"table 0 rank 0\ntable 1 rank 1\n! truncated-file x1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, err := Read(iotest.HalfReader(strings.NewReader(c.input)), "x.log", Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(log); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestReadFails(t *testing.T) {
	for _, c := range []struct {
		name, input string
		want        error
	}{
		{"empty", "", ErrEmpty},
		{"blank", " \n\t\n", ErrEmpty},
		{"other text", "hello\nworld\n", ErrNotLog},
		{"other JSON", `{"traceEvents": []}`, ErrNotLog},
		{"broken JSON", `{"summary": {`, ErrNotLog},
		{"name without fields", "comm op: all_reduce\n", ErrNotLog},
	} {
		if _, err := Read(strings.NewReader(c.input), "x.log", Options{}); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	r := row("1.0 B", 1, "1.00", "1.00", "0.00", "0.00")
	log, err := Read(strings.NewReader(lines(header, "barrier", r, strings.Repeat("x", 4000), r, r, r)), "x.log", Options{MaxRows: 3, MaxLineBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Tables[0].Rows) != 3 {
		t.Errorf("%d rows, want 3", len(log.Tables[0].Rows))
	}
	if got := fmt.Sprint(log.Diagnostics.List()); !strings.Contains(got, CodeLimit) || !strings.Contains(got, CodeLineTooLong) {
		t.Errorf("diagnostics %s", got)
	}
	if _, err := Read(strings.NewReader(`{"summary": {}}`), "x.json", Options{MaxJSONBytes: 10}); err == nil {
		t.Error("JSON beyond MaxJSONBytes was read")
	}
}

// TestTruncated: what was read before the input failed remains.
func TestTruncated(t *testing.T) {
	in := io.MultiReader(strings.NewReader(lines(header, "barrier", row("1.0 B", 1, "1.00", "1.00", "0.00", "0.00"))), iotest.ErrReader(io.ErrUnexpectedEOF))
	log, err := Read(in, "x.log", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Tables[0].Rows) != 1 || log.Diagnostics.List()[0].Code != CodeTruncated {
		t.Errorf("got\n%s", describe(log))
	}
}

// TestOffsets: what is reported is where it says.
func TestOffsets(t *testing.T) {
	first := lines("noise", header, "barrier")
	input := first + lines(row("1.0 B", 1, "1.00", "1.00", "0.00", "0.00"), "[Rank 1] comm op: send | time (ms): 1.00 | msg size: 0B | algbw (Gbps): 0.00 | busbw (Gbps): 0.00")
	log, err := Read(strings.NewReader(input), "x.log", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if at := log.Tables[0].Rows[0].Offset; at != int64(len(first)) {
		t.Errorf("row at %d, want %d", at, len(first))
	}
	if at := log.Calls[0].Offset; !strings.HasPrefix(input[at:], verboseStart) {
		t.Errorf("call at %d", at)
	}
}
