package report

import (
	"errors"
	"runtime"
	"sync"

	"mixdown/analyze/align"
	"mixdown/analyze/breakdown"
	"mixdown/analyze/collective"
	"mixdown/analyze/critical"
	"mixdown/analyze/overlap"
	"mixdown/analyze/pipeline"
	"mixdown/analyze/straggler"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// SchemaVersion is that of the JSON written by this package.
const SchemaVersion = 1

// Analysis is the result of "mixdown analyze".
type Analysis struct {
	SchemaVersion int             `json:"schema_version"`
	Run           Run             `json:"run"`
	Ranks         []Rank          `json:"ranks"`
	Communication []Communication `json:"communication"`
	CriticalPath  *CriticalPath   `json:"critical_path"` // null: not asked for, or not known
	Clocks        Clocks          `json:"clocks"`

	// Breakdown is communication by group, op, size class, phase and step, over
	// all ranks; StepsByRank the times of each rank and step. Both are null when
	// not asked for.
	Breakdown   []breakdown.Row `json:"breakdown"`
	StepsByRank []RankSteps     `json:"steps_by_rank"`

	phases      []breakdown.Row // by group, op and phase, for the text
	Stragglers  Stragglers      `json:"stragglers"`
	Matched     int             `json:"collectives_matched"`
	Unmatched   int             `json:"collectives_unmatched"`
	Pipeline    []Pipeline      `json:"pipeline"` // null: the run has none
	Diagnostics []Diagnostic    `json:"diagnostics"`
}

// Run describes the job.
type Run struct {
	WorldSize    int    `json:"world_size"`
	RanksPresent []int  `json:"ranks_present"`
	RanksMissing []int  `json:"ranks_missing"`
	Backend      string `json:"backend"`
	Steps        []Step `json:"steps"`
}

// Step is a training iteration; its duration is the longest of the ranks', as
// the CPU saw it.
type Step struct {
	Name  string `json:"name"`
	Ranks int    `json:"ranks"`
	Dur   int64  `json:"dur_ns"`
}

// Rank is the time of one rank.
type Rank struct {
	Rank      int    `json:"rank"`
	RankFrom  string `json:"rank_from"`
	Source    string `json:"source"`
	Events    int64  `json:"events"`
	Device    string `json:"device"` // "gpu", or "cpu" when the trace has no device events
	Truncated bool   `json:"truncated"`
	Time      Time   `json:"time"`
}

// Time is the decomposition of a rank's span; see package overlap.
type Time struct {
	Span    int64 `json:"span_ns"`
	Compute int64 `json:"compute_ns"`
	Comm    int64 `json:"comm_ns"`
	Exposed int64 `json:"exposed_comm_ns"`
	Hidden  int64 `json:"hidden_comm_ns"`
	Memory  int64 `json:"memory_ns"`
	Idle    int64 `json:"idle_ns"`

	// Parts of the idle time; see overlap.Idle.
	IdleLaunch int64 `json:"idle_launch_ns"`
	IdleSync   int64 `json:"idle_sync_ns"`
	IdleOther  int64 `json:"idle_other_ns"`
}

// Communication is a row of the communication table: the operations that are
// alike in group, operation, type and size. Every rank's operations are counted
// and their times added up.
type Communication struct {
	Group    string   `json:"group"`
	Op       comm.Op  `json:"op"`
	DType    *string  `json:"dtype"`
	InBytes  *int64   `json:"in_bytes"`
	OutBytes *int64   `json:"out_bytes"`
	Ranks    *int     `json:"ranks"`
	Count    int      `json:"count"`
	Total    int64    `json:"total_ns"`
	Exposed  int64    `json:"exposed_ns"`
	Wait     *int64   `json:"wait_ns"`
	Transfer *int64   `json:"transfer_ns"`
	AlgBW    *float64 `json:"algbw_gbps"`
	BusBW    *float64 `json:"busbw_gbps"`
	Splits   *Splits  `json:"splits"`
}

// Splits says how well the parts of an all_to_all are known.
type Splits string

// Exact, or estimated from the totals of all members. Operations that the
// caller does not cut have null.
const (
	SplitsExact     Splits = "exact"
	SplitsEstimated Splits = "estimated"
)

// Diagnostic is a counted fault.
type Diagnostic struct {
	Code    string `json:"code"`
	Rank    *int   `json:"rank"`
	Count   int64  `json:"count"`
	Offset  *int64 `json:"offset"`
	Example string `json:"example"`
}

// Options of an analysis. The zero value is ready.
type Options struct {
	// Critical finds the critical path of a step, whose name or number is Step;
	// "" chooses the step of median length.
	Critical bool
	Step     string
	// Breakdown splits communication by phase and step, and times by step.
	Breakdown bool
	// Clocks is how far the ranks' clocks can be compared; nil finds it out.
	Clocks *align.Result
	// Pipelines are those of the run, nil when they were not looked for;
	// NameSchedule says what their orders are called, see Pipelines.
	Pipelines    *pipeline.Result
	NameSchedule func(*pipeline.Step) ScheduleName
}

// Analyze measures every rank and tabulates the communication of the run.
func Analyze(run *trace.Run, m *collective.Matching, opts Options) (*Analysis, error) {
	a := &Analysis{
		SchemaVersion: SchemaVersion,
		Run:           describeRun(run),
		Ranks:         []Rank{},
		Matched:       len(m.Collectives),
	}
	for _, u := range m.Unmatched {
		if !run.Ranks[u.Rank].Operations[u.Operation].Op.IsP2P() {
			a.Unmatched++
		}
	}
	clocks := opts.Clocks
	if clocks == nil {
		clocks = align.Estimate(run, m)
	}
	a.Clocks = describeClocks(clocks)
	if opts.Breakdown {
		b, err := breakdown.RankByRank(run, m, clocks)
		if err != nil {
			return nil, err
		}
		a.Breakdown, a.StepsByRank = b.By(breakdown.ByAll), stepsByRank(b)
		a.phases = b.By(breakdown.ByGroup | breakdown.ByOp | breakdown.ByPhase)
	}
	a.Stragglers = describeStragglers(straggler.Find(run, m, clocks), m)
	t := newTable(clocks)
	if err := a.measure(run, m, t); err != nil {
		return nil, err
	}
	a.Communication = t.rows()
	var diags diagnostic.Set
	diags.Merge(&run.Diagnostics)
	diags.Merge(&m.Diagnostics)
	diags.Merge(&clocks.Diagnostics)
	if opts.Pipelines != nil {
		a.Pipeline = Pipelines(opts.Pipelines.Pipelines, opts.NameSchedule)
		diags.Merge(&opts.Pipelines.Diagnostics)
	}
	if opts.Critical {
		result, found, err := critical.Analyze(run, m, critical.Options{Step: opts.Step})
		if found != nil {
			diags.Merge(found)
		}
		switch {
		case err == nil:
			a.CriticalPath = summarize(result)
		case !errors.Is(err, critical.ErrEmpty): // without work there is no path
			return nil, err
		}
	}
	a.Diagnostics = Diagnostics(&diags)
	return a, nil
}

// measure measures the ranks and tabulates their communication, several ranks at
// once, each forgotten before the next.
func (a *Analysis) measure(run *trace.Run, m *collective.Matching, t *table) error {
	a.Ranks = make([]Rank, len(run.Ranks))
	failures := make([]error, len(run.Ranks))
	var wg sync.WaitGroup
	var tabulating sync.Mutex
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for r, rank := range run.Ranks {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if failures[r] = rank.Acquire(); failures[r] != nil {
				return
			}
			defer rank.Release()
			activity, idle := overlap.Explain(rank)
			device := "gpu"
			if rank.CPUOnly {
				device = "cpu"
			}
			a.Ranks[r] = Rank{
				Rank: rank.Rank, RankFrom: rank.RankFrom, Source: rank.Source, Events: rank.Read,
				Device: device, Truncated: rank.Truncated,
				Time: timeOf(activity.Times(), idle),
			}
			tabulating.Lock()
			defer tabulating.Unlock()
			t.add(run, m, r, activity)
		})
	}
	wg.Wait()
	return errors.Join(failures...)
}

func timeOf(t overlap.Times, idle overlap.Idle) Time {
	return Time{
		Span: t.Span, Compute: t.Compute, Comm: t.Comm, Exposed: t.Exposed, Hidden: t.Hidden, Memory: t.Memory, Idle: t.Idle,
		IdleLaunch: idle.Launch, IdleSync: idle.Sync, IdleOther: idle.Other,
	}
}

func describeRun(run *trace.Run) Run {
	d := Run{WorldSize: run.WorldSize(), RanksPresent: []int{}, RanksMissing: run.Missing(), Steps: []Step{}}
	steps := map[string]int{}
	for _, rank := range run.Ranks {
		d.RanksPresent = append(d.RanksPresent, rank.Rank)
		if d.Backend == "" {
			d.Backend = rank.Distributed.Backend
		}
		for _, s := range rank.Steps {
			i, ok := steps[s.Name]
			if !ok {
				i = len(d.Steps)
				steps[s.Name] = i
				d.Steps = append(d.Steps, Step{Name: s.Name})
			}
			d.Steps[i].Ranks++
			d.Steps[i].Dur = max(d.Steps[i].Dur, s.End-s.Start)
		}
	}
	return d
}

// Diagnostics turns counted faults into their JSON form.
func Diagnostics(set *diagnostic.Set) []Diagnostic {
	list := []Diagnostic{}
	for _, d := range set.List() {
		out := Diagnostic{Code: d.Code, Count: d.Count, Example: d.Example}
		if d.Rank != diagnostic.NoRank {
			out.Rank = &d.Rank
		}
		if d.Offset != diagnostic.NoOffset {
			out.Offset = &d.Offset
		}
		list = append(list, out)
	}
	return list
}
