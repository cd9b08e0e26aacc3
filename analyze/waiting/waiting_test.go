package waiting_test

import (
	"encoding/json"
	"os"
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
