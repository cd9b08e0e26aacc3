package sim

import (
	"math"

	"mixdown/analyze/overlap"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
	"mixdown/replay/plan/planpb"
)

// RankFidelity is one rank of a simulated step beside the trace: from its own
// start to the end of its last task.
type RankFidelity struct {
	Rank      int     `json:"rank"`
	Traced    int64   `json:"trace_ns"`
	Simulated int64   `json:"simulated_ns"`
	Ratio     float64 `json:"ratio"`
}

// Makeup is what the time of the ranks goes to in a simulated step: sums over
// ranks and their streams, ns, some of it at the same time.
type Makeup struct {
	Work     int64 `json:"work_ns"`     // spans, of hosts and of devices, fixed waits among them
	Transfer int64 `json:"transfer_ns"` // of operations that moved
	Waiting  int64 `json:"waiting_ns"`  // for the other members of operations: what a simulation makes anew
	Own      int64 `json:"own_ns"`      // of one member of an operation alone, before it arrived and after the others left
	// FixedWait is waiting for operations that are not in the workload. It stays as
	// it was whatever changes.
	FixedWait int64 `json:"fixed_wait_ns"`
}

// Sources says where the dependencies of a workload are from.
type Sources struct {
	Recorded     int64 `json:"recorded"`     // the trace says so
	Inferred     int64 `json:"inferred"`     // from order and times
	Contradicted int64 `json:"contradicted"` // by the times: not made
}

// StepFidelity is how well a step, played with what its operations took, comes to
// what the trace shows.
type StepFidelity struct {
	Step      string         `json:"step"` // "" for a whole trace
	Traced    int64          `json:"trace_step_ns"`
	Simulated int64          `json:"simulated_step_ns"`
	Ratio     float64        `json:"ratio"`
	Ranks     []RankFidelity `json:"ranks"`
	Time      Makeup         `json:"time"`
	Sources   Sources        `json:"dependencies"`
}

// Error is how far the simulated step is off, as a share of the traced one.
func (f *StepFidelity) Error() float64 { return math.Abs(f.Ratio - 1) }

// Worst is the rank whose simulated length is furthest off, nil without ranks.
func (f *StepFidelity) Worst() *RankFidelity {
	var worst *RankFidelity
	for i := range f.Ranks {
		if r := &f.Ranks[i]; worst == nil || math.Abs(r.Ratio-1) > math.Abs(worst.Ratio-1) {
			worst = r
		}
	}
	return worst
}

// Fidelity plays the workload unchanged, with what its operations took in the
// trace, and compares.
func (g *Graph) Fidelity() (*StepFidelity, error) {
	run, err := g.Play(TracedCosts(g.w))
	if err != nil {
		return nil, err
	}
	w := g.w
	f := &StepFidelity{Step: w.Step, Traced: w.TraceStepNs, Simulated: run.Step, Ratio: ratio(run.Step, w.TraceStepNs), Ranks: []RankFidelity{}}
	for r, program := range w.Programs {
		end := program.StartOffsetNs
		for _, at := range run.Ends[r] {
			end = max(end, at)
		}
		length := end - program.StartOffsetNs
		f.Ranks = append(f.Ranks, RankFidelity{Rank: int(program.Rank), Traced: program.TraceNs, Simulated: length, Ratio: ratio(length, program.TraceNs)})
	}
	if w.ClocksDiffer { // all start together, so the step is that of the rank that takes longest
		f.Simulated = 0
		for _, r := range f.Ranks {
			f.Simulated = max(f.Simulated, r.Simulated)
		}
		f.Ratio = ratio(f.Simulated, f.Traced)
	}
	d := w.GetDependencies()
	f.Sources = Sources{Recorded: d.GetRecorded() + int64(len(g.members)-len(g.meetings)), Inferred: d.GetInferred(), Contradicted: d.GetRejected() + int64(g.contradicted)}
	f.Time = g.makeup(run)
	return f, nil
}

func ratio(a, b int64) float64 {
	if b <= 0 {
		return 1
	}
	return float64(a) / float64(b)
}

// makeup adds up what the time of a played step went to.
func (g *Graph) makeup(run *WorkloadRun) Makeup {
	m := Makeup{FixedWait: g.w.GetDependencies().GetFixedWaitNs()}
	for n, t := range g.tasks {
		if t.GetSpan() != nil {
			m.Work += g.own[n]
		} else {
			m.Own += g.own[n]
		}
	}
	for i := range g.meetings {
		met := &g.meetings[i]
		var last int64
		members := g.members[met.first : met.first+met.count]
		start := func(x member) int64 { return run.Starts[g.rank[x.task]][x.task-g.offset[g.rank[x.task]]] }
		for _, x := range members {
			last = max(last, start(x))
		}
		for _, x := range members {
			if x.need != everyone {
				m.Own += max(x.own, 0)
				continue
			}
			m.Waiting += last - start(x)
			m.Transfer += met.Traced
			m.Own += max(x.own, -x.own)
		}
	}
	return m
}

// Evidence is what is known about a run beside its workload, for Doubts.
type Evidence struct {
	Steps        int   // that all ranks have
	Missing      []int // ranks of the job whose traces were not read
	Synchronised bool  // some rank's trace has calls that block until a device is done, or it has no device
}

// EvidenceOf collects it.
func EvidenceOf(run *trace.Run) Evidence {
	e := Evidence{Steps: len(run.CommonSteps()), Missing: run.Missing()}
	for _, rank := range run.Ranks {
		e.Synchronised = e.Synchronised || rank.CPUOnly || synchronises(rank)
	}
	return e
}

func synchronises(rank *trace.Rank) bool {
	ev := &rank.Events
	for i := range ev.Len() {
		if ev.Category[i] == trace.Sync || ev.Category[i] == trace.Runtime && overlap.Blocks(rank.Name(i)) {
			return true
		}
	}
	return false
}

// fixedShare is how much of the ranks' time may be fixed waiting before it is said.
const fixedShare = 0.02

// Doubts says in which way predictions made from a workload are less certain than
// its fidelity shows: a simulation of what did not change is right whatever is not
// known of what it depends on.
func Doubts(w *planpb.Workload, e Evidence) diagnostic.Set {
	var diags diagnostic.Set
	say := func(code, format string, args ...any) {
		diags.Addf(code, diagnostic.NoRank, diagnostic.NoOffset, format, args...)
	}
	if e.Steps < 2 {
		say("simulated-one-step", "the traces have one step in common: how much steps differ, and predictions with them, is not known")
	}
	if n := len(e.Missing); n > 0 {
		say("simulated-ranks-missing", "%d ranks are missing, the first is %d: what they do, and operations with them, stays as it was", n, e.Missing[0])
	}
	if !e.Synchronised {
		say("simulated-no-synchronisation", "no call that waits for a device is in the traces: hosts are taken never to wait for one")
	}
	if fixed := FixedWaits(w); fixed > 0 {
		say("simulated-fixed-waits", "%.1f %% of the ranks' time they wait for operations that could not be matched or lie outside of the step: that stays as it was", 100*fixed)
	}
	if w.ClocksDiffer {
		say("simulated-clocks-differ", "the ranks' clocks can't be compared: all start together, and an operation takes what it took on the member on which it was shortest")
	}
	return diags
}

// FixedWaits is the share of the ranks' time in which they wait for operations that are
// not simulated, which stays as it was whatever is changed; 0 where it is too little to
// matter.
func FixedWaits(w *planpb.Workload) float64 {
	var traced int64
	for _, p := range w.Programs {
		traced += p.TraceNs
	}
	if fixed := w.GetDependencies().GetFixedWaitNs(); traced > 0 && float64(fixed) > fixedShare*float64(traced) {
		return float64(fixed) / float64(traced)
	}
	return 0
}
