package commslog

import (
	"strings"
	"testing"
)

// BenchmarkRead reads a job's output that is mostly verbose lines and others.
func BenchmarkRead(b *testing.B) {
	const head = "[2022-06-26 01:39:55,722] [INFO] [logging.py:69:log_dist] [Rank 0] "
	input := strings.Repeat(lines(head+"comm op: all_reduce | time (ms): 9.46 | msg size: 678.86 MB | algbw (Gbps): 1204.52 | busbw (Gbps): 1129.23",
		head+"step=40, skipped=2, lr=[5e-05], mom=[[0.9, 0.999]]"), 20_000) +
		lines(header, "all_reduce", row("2.0 KB", 1, "1.00", "1.00", "0.43", "0.41"))
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		log, err := Read(strings.NewReader(input), "x.log", Options{})
		if err != nil || len(log.Calls) != 20_000 {
			b.Fatalf("%d calls, error %v", len(log.Calls), err)
		}
	}
}
