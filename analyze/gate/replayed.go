package gate

import (
	"encoding/json"
	"fmt"
)

// replayJSON is what a gate reads of the documented JSON of "mixdown replay". The
// package that writes it lies above this one.
type replayJSON struct {
	Device    string `json:"device"`
	WorldSize int    `json:"world_size"`
	Backends  []struct{ Name, Version string }
	Baseline  struct {
		Name       string
		Mix        string
		Iterations []int64 `json:"iterations_ns"`
		Verified   bool    `json:"data_verified"`
		Fidelity   struct {
			TraceStep int64 `json:"trace_step_ns"`
		}
	}
	Variants []struct {
		Name, Mix, Schedule string
		Iterations          []int64 `json:"iterations_ns"`
		Baseline            []int64 `json:"baseline_iterations_ns"`
		Verified            bool    `json:"data_verified"`
	}
}

// readReplay makes a record of the result of a replay.
func readReplay(data []byte, source string) (*Record, error) {
	var j replayJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", source, ErrNotRecord, err)
	}
	if len(j.Baseline.Iterations) == 0 {
		return nil, fmt.Errorf("%s: %w: its baseline has no iterations_ns", source, ErrNotRecord)
	}
	r := &Record{
		SchemaVersion: RecordVersion, Kind: recordKind, Source: source,
		Facts: Facts{WorldSize: j.WorldSize, RanksRead: j.WorldSize, Device: j.Device, Versions: map[string]string{}, Layout: []Layout{}},
		Steps: []string{}, Ranks: []Times{}, Operations: []Operation{}, Replay: &Replay{},
	}
	for _, b := range j.Backends {
		r.Facts.Versions[b.Name] = b.Version
	}
	if t := j.Baseline.Fidelity.TraceStep; t > 0 {
		for _, ns := range j.Baseline.Iterations {
			r.Replay.Fidelity = append(r.Replay.Fidelity, float64(ns)/float64(t))
		}
	}
	r.Replay.Variants = append(r.Replay.Variants, Variant{
		Name: j.Baseline.Name, Mix: j.Baseline.Mix, Step: j.Baseline.Iterations, Unverified: !j.Baseline.Verified,
	})
	for _, v := range j.Variants {
		if len(v.Iterations) != len(v.Baseline) {
			return nil, fmt.Errorf("%s: %w: variant %q has %d iterations and %d of its baseline", source, ErrNotRecord, v.Name, len(v.Iterations), len(v.Baseline))
		}
		one := Variant{Name: v.Name, Mix: v.Mix, Schedule: v.Schedule, Step: v.Iterations, Speedup: []float64{}, Unverified: !v.Verified}
		for i, ns := range v.Iterations {
			if ns <= 0 || v.Baseline[i] <= 0 {
				return nil, fmt.Errorf("%s: %w: variant %q: iteration %d took %d ns, its baseline %d", source, ErrNotRecord, v.Name, i, ns, v.Baseline[i])
			}
			one.Speedup = append(one.Speedup, float64(v.Baseline[i])/float64(ns))
		}
		r.Replay.Variants = append(r.Replay.Variants, one)
	}
	return r, nil
}
