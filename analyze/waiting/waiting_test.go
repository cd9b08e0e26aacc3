package waiting_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mixdown/analyze/waiting"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/trace"
)

// TestWaitsOfAPipeline compares the waits found in the traces with those that
// the traced program recorded around each Work.wait of its sends and receives.
// (Of a collective the trace shows the end of the run, and the program wakes up
// some time after it.)
func TestWaitsOfAPipeline(t *testing.T) {
	const dir = "../../testdata/pipeline_1f1b_4rank"
	data, err := os.ReadFile(dir + "/truth.json")
	if err != nil {
		t.Fatal(err)
	}
	var truth struct {
		Ranks []struct {
			Rank  int
			Steps []struct {
				Number int   `json:"profiler_step"`
				Start  int64 `json:"start_unix_ns"`
				Calls  []struct{ Op string }
				Waits  []struct {
					Seq   int
					Start int64 `json:"start_ns"`
					End   int64 `json:"end_ns"`
				}
			}
		}
	}
	if err := json.Unmarshal(data, &truth); err != nil {
		t.Fatal(err)
	}
	run := kinetotest.Load(t, dir)
	const tolerance = 200_000 // ns: a wait's own call, and the two clocks
	for _, r := range truth.Ranks {
		rank := run.ByRank(r.Rank)
		for _, step := range r.Steps {
			var recorded int64
			blocked := 0
			for _, w := range step.Waits {
				if op := step.Calls[w.Seq].Op; op != "send" && op != "recv" || w.End-w.Start < tolerance {
					continue // a collective, or it did not block
				}
				blocked++
				recorded += w.End - w.Start
				if !found(rank, step.Start+w.End, tolerance) {
					t.Errorf("rank %d step %d: no wait ends at the return of the wait for call %d, %.2f ms into the step", r.Rank, step.Number, w.Seq, float64(w.End)/1e6)
				}
			}
			if blocked == 0 {
				t.Fatalf("rank %d step %d: the program never blocked: this is not the trace the test is for", r.Rank, step.Number)
			}
			s := stepOf(rank, step.Number)
			var total int64
			for _, w := range waiting.Find(rank) {
				if rank.Operations[w.Operation].Op.IsP2P() && w.Start >= s.Start && w.End <= s.End && w.End-w.Start >= tolerance {
					total += w.End - w.Start
				}
			}
			if diff := total - recorded; diff < -int64(blocked)*tolerance || diff > int64(blocked)*tolerance {
				t.Errorf("rank %d step %d: %.2f ms of waiting found, the program recorded %.2f ms", r.Rank, step.Number, float64(total)/1e6, float64(recorded)/1e6)
			}
		}
	}
}

func found(rank *trace.Rank, end, tolerance int64) bool {
	for _, w := range waiting.Find(rank) {
		if w.End > end-tolerance && w.End < end+tolerance {
			return true
		}
	}
	return false
}

func stepOf(rank *trace.Rank, number int) trace.Step {
	for _, s := range rank.Steps {
		if s.Number == number {
			return s
		}
	}
	return trace.Step{}
}

// TestSeenLate: the thread that ran a collective wakes the program and notes its own
// end a little later, when the program has gone on.
func TestSeenLate(t *testing.T) {
	for _, c := range []struct {
		name  string
		copy  int // us, when the program goes on
		end   int // us, of the collective
		waits bool
	}{
		{"at once", 5000, 4990, true},
		{"before the end is noted", 5000, 5100, true},
		{"long before", 5000, 6000, false},
		{"after a moment that is no wait", 600, 700, false},
	} {
		event := func(cat, name string, tid, from, to int) string {
			return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":%d,"ts":%d,"dur":%d}`, cat, name, tid, from, to-from)
		}
		text := `{"schemaVersion":1,"distributedInfo":{"backend":"gloo","rank":0,"world_size":2},"traceEvents":[` +
			event("cpu_op", "c10d::allreduce_", 1, 100, 110) + "," + event("user_annotation", "gloo:all_reduce", 2, 105, c.end) + "," +
			event("cpu_op", "aten::mul", 1, 120, 130) + "," + event("cpu_op", "aten::copy_", 1, c.copy, c.copy+2000) + `]}`
		file := filepath.Join(t.TempDir(), "rank0.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		waits := waiting.Find(kinetotest.Load(t, file).Ranks[0])
		if found := len(waits) == 1; found != c.waits {
			t.Errorf("%s: %v", c.name, waits)
		} else if found && (waits[0].Start != 130_000 || waits[0].End != int64(min(c.copy, c.end))*1000) {
			t.Errorf("%s: from %d to %d", c.name, waits[0].Start, waits[0].End)
		}
	}
}
