package report_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mixdown/analyze/report"
)

// on is a kernel of 1000 times the ns given; the names of NCCL's begin with nccl.
func on(stream int, name string, ts, dur int) string {
	return fmt.Sprintf(`{"ph":"X","cat":"kernel","name":%q,"pid":0,"tid":%d,"ts":%d,"dur":%d,"args":{"stream":%d,"device":0}}`, name, stream, ts, dur, stream)
}

func op(name string, ts, dur int) string {
	return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":%q,"pid":10,"tid":10,"ts":%d,"dur":%d,"args":{}}`, name, ts, dur)
}

const (
	gemm = "ampere_sgemm_128x64_tn"
	nccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
)

// TestDegenerateRuns: the numbers are right or null for what a profiler may write
// and nobody expects. Times in us.
func TestDegenerateRuns(t *testing.T) {
	type times struct{ span, compute, comm, exposed, hidden, idle int64 }
	for name, c := range map[string]struct {
		ranks [][]string
		want  []times
	}{
		"zero length": {
			[][]string{{on(7, gemm, 10, 0), on(7, gemm, 20, 10), on(20, nccl, 25, 0)}},
			[]times{{20, 10, 0, 0, 0, 10}},
		},
		"only zero length": {
			[][]string{{on(7, gemm, 10, 0), on(20, nccl, 10, 0)}},
			[]times{{}},
		},
		"nothing anywhere": {
			[][]string{{}, {}},
			[]times{{}, {}},
		},
		"nested": {
			[][]string{{on(7, gemm, 0, 100), on(7, gemm, 10, 20), on(7, gemm, 12, 3), on(20, nccl, 50, 100), on(20, nccl, 60, 10)}},
			[]times{{150, 100, 100, 50, 50, 0}},
		},
		"overlapping streams": {
			[][]string{{on(7, gemm, 0, 60), on(8, gemm, 40, 60), on(20, nccl, 30, 100), on(21, nccl, 90, 60)}},
			[]times{{150, 100, 120, 50, 70, 0}},
		},
		"duplicated": {
			[][]string{{on(7, gemm, 0, 50), on(7, gemm, 0, 50), on(20, nccl, 40, 30), on(20, nccl, 40, 30), on(20, nccl, 40, 30)}},
			[]times{{70, 50, 30, 20, 10, 0}},
		},
		"a rank without device events": {
			[][]string{{on(7, gemm, 0, 50), on(20, nccl, 60, 10)}, {op("aten::mm", 0, 70)}},
			[]times{{70, 50, 10, 10, 0, 10}, {70, 70, 0, 0, 0, 0}},
		},
		"a rank without communication": {
			[][]string{{on(7, gemm, 0, 50), on(20, nccl, 60, 10)}, {on(7, gemm, 5, 50)}},
			[]times{{70, 50, 10, 10, 0, 10}, {50, 50, 0, 0, 0, 0}},
		},
		"a rank without events": {
			[][]string{{on(7, gemm, 0, 50)}, {}},
			[]times{{50, 50, 0, 0, 0, 0}, {}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for r, events := range c.ranks {
				text := fmt.Sprintf(`{"distributedInfo":{"rank":%d,"world_size":%d,"backend":"nccl"},"traceEvents":[%s]}`, r, len(c.ranks), strings.Join(events, ",\n"))
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d.json", r)), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			a := analyzeFiles(t, dir)
			if _, err := json.Marshal(a); err != nil { // also what is no number
				t.Fatal(err)
			}
			if text := textOf(t, a, report.TextOptions{}); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Errorf("no numbers in\n%s", text)
			}
			if len(a.Ranks) != len(c.want) {
				t.Fatalf("%d ranks, want %d", len(a.Ranks), len(c.want))
			}
			for r, want := range c.want {
				g := a.Ranks[r].Time
				if got := (times{g.Span / 1000, g.Compute / 1000, g.Comm / 1000, g.Exposed / 1000, g.Hidden / 1000, g.Idle / 1000}); got != want {
					t.Errorf("rank %d: %+v, want %+v", r, got, want)
				}
			}
		})
	}
}
