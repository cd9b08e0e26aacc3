package report_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/pipeline"
	"mixdown/analyze/report"
	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
)

// analysis is the JSON of the analysis of a run.
func analysis(t *testing.T, run *trace.Run, step string) (string, error) {
	t.Helper()
	m := collective.Match(run)
	clocks := align.Estimate(run, m)
	align.Apply(run, clocks)
	align.UpdateArrivals(run, m)
	found, err := pipeline.Find(run, m, pipeline.Options{Clocks: clocks})
	if err != nil {
		return "", err
	}
	a, err := report.Analyze(run, m, report.Options{Clocks: clocks, Critical: true, Step: step, Breakdown: true, Pipelines: found,
		NameSchedule: func(*pipeline.Step) report.ScheduleName { return report.ScheduleName{} }})
	if err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(a, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data), nil
}

// store keeps the events of ranks and counts of how many they are in memory.
type store struct {
	saved      map[int]trace.Events
	live, most atomic.Int64
	fail       error
}

// keep takes the events out of the ranks of a run.
func keep(run *trace.Run, fail error) *store {
	s := &store{saved: map[int]trace.Events{}, fail: fail}
	for _, r := range run.Ranks {
		s.saved[r.Rank] = r.Events
		r.Events = trace.Events{}
		r.KeepEvents(s)
	}
	return s
}

// LoadEvents gives a copy: what adjusts events must do it each time.
func (s *store) LoadEvents(r *trace.Rank) error {
	if s.fail != nil {
		return s.fail
	}
	n := s.live.Add(1)
	for old := s.most.Load(); n > old && !s.most.CompareAndSwap(old, n); old = s.most.Load() {
	}
	r.Events = s.saved[r.Rank]
	r.Events.TS = slices.Clone(r.Events.TS)
	r.Events.Dur = slices.Clone(r.Events.Dur)
	return nil
}

func (s *store) DropEvents(*trace.Rank) { s.live.Add(-1) }

// An analysis that loads the events of ranks when it looks at them says what one
// says that has them all, and holds those of few ranks at a time.
func TestEventsKeptElsewhere(t *testing.T) {
	opts := map[string]synthetic.Options{
		"device": {Ranks: 60, Steps: 4, Seed: 1, Clocks: []synthetic.Clock{{}, {Offset: 5e8}, {}, {Offset: -3e7, DriftPPB: 40_000}},
			Stragglers: []synthetic.Straggler{{Rank: 41, Step: 2, Collective: 5, Delay: 3e6}}},
		"host": {Ranks: 40, Steps: 3, Seed: 2, Host: true, Collectives: []synthetic.Collective{
			{Op: comm.AllReduce, Scope: synthetic.World, Elements: 1 << 16}, {Op: comm.AllGather, Scope: synthetic.World, Elements: 1 << 14}}},
		"pipeline": {Ranks: 24, Steps: 2, Seed: 3, Collectives: []synthetic.Collective{
			{Op: comm.Send, Scope: synthetic.Forward, Elements: 1 << 14}, {Op: comm.Send, Scope: synthetic.Backward, Elements: 1 << 14}}},
	}
	for name, o := range opts {
		for _, step := range []string{"", "all"} {
			t.Run(name+" "+step, func(t *testing.T) {
				whole, _, err := synthetic.Load(t.TempDir(), o)
				if err != nil {
					t.Fatal(err)
				}
				want, err := analysis(t, whole, step)
				if err != nil {
					t.Fatal(err)
				}
				run, _, err := synthetic.Load(t.TempDir(), o)
				if err != nil {
					t.Fatal(err)
				}
				kept := keep(run, nil)
				got, err := analysis(t, run, step)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := withoutSources(got), withoutSources(want); got != want {
					t.Error("the analyses differ")
				}
				if limit := int64(16 + runtime.GOMAXPROCS(0)); kept.live.Load() != 0 || kept.most.Load() > limit || kept.most.Load() == 0 {
					t.Errorf("the events of %d ranks were in memory at once, %d still are; limit %d", kept.most.Load(), kept.live.Load(), limit)
				}
			})
		}
	}
}

func withoutSources(s string) string {
	var kept []string
	for line := range strings.Lines(s) {
		if !strings.Contains(line, `"source":`) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// Events that can't be loaded are an error of the analysis.
func TestEventsLost(t *testing.T) {
	run, _, err := synthetic.Load(t.TempDir(), synthetic.Options{Ranks: 3})
	if err != nil {
		t.Fatal(err)
	}
	lost := errors.New("lost")
	keep(run, lost)
	if _, err := analysis(t, run, ""); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
	m := collective.Match(run)
	if _, err := report.Analyze(run, m, report.Options{Critical: true, Breakdown: true}); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
}
