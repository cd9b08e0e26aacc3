package commslog

import (
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzRead checks what holds for every input: no panic, sizes and offsets in
// order, an operation for every name, and the same result in pieces.
func FuzzRead(f *testing.F) {
	r := row("2.0 KB", 1, "11.12", "0.08", "100000000000000000000.00", "0.41")
	f.Add(lines(header, "all_reduce | [Caller Func: f]", r))
	f.Add(lines(header, "all_reduce", r) + stragglerTitle + lines(stragglerHeader, "all_reduce", r))
	f.Add("[2022-06-26 01:39:55,722] [INFO] [logging.py:69:log_dist] [Rank 0] rank=0 | comm op: send | time (ms): 9.46 | msg size: 1.0 KB | algbw (Gbps): 1.52  | busbw (Gbps): 1.23\n")
	f.Add("12:00:01 rank7: " + header + "\n12:00:02 rank7: x\n12:00:03 rank7: " + r)
	f.Add("\u2126RANK1" + header) // lower case is shorter
	f.Add(`{"summary": {"send": {"8": {"count": 1, "total_latency_ms": 1.5e-3, "avg_latency_ms": NaN}}}, "straggler_analysis": {}, "metadata": {"rank": 1}}`)
	f.Fuzz(func(t *testing.T, input string) {
		opts := Options{MaxLineBytes: 400, MaxRows: 50}
		log, err := Read(strings.NewReader(input), "x", opts)
		again, err2 := Read(iotest.OneByteReader(strings.NewReader(input)), "x", opts)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("in one piece %v, in pieces %v", err, err2)
		}
		if err != nil {
			return
		}
		if a, b := describe(log), describe(again); a != b {
			t.Fatalf("in one piece\n%sin pieces\n%s", a, b)
		}
		n := len(log.Calls)
		for _, table := range log.Tables {
			n += len(table.Rows)
			for _, r := range table.Rows {
				if r.SizeLo < 0 || r.SizeHi < r.SizeLo || r.Count < 0 || r.Op == "" || r.Name == "" || r.Offset < 0 || r.Offset > int64(len(input)) {
					t.Fatalf("row %+v", r)
				}
			}
		}
		for _, c := range log.Calls {
			if c.SizeLo < 0 || c.SizeHi < c.SizeLo || c.DurNS < 0 || c.Op == "" || c.Offset < 0 || c.Offset > int64(len(input)) {
				t.Fatalf("call %+v", c)
			}
		}
		if n > opts.MaxRows+len(input)/len(verboseStart) {
			t.Fatalf("%d rows", n)
		}
	})
}
