package simulate

import (
	"errors"
	"fmt"
	"math"

	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/planning"
	"mixdown/ingest/diagnostic"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// Unchanged is the run as it was, simulated and compared with its trace, before
// anything is predicted.
type Unchanged struct {
	Steps     []*sim.StepFidelity `json:"steps"`
	MeanError float64             `json:"mean_error"` // of the steps, as a share
	// OtherSteps is the mean error of steps that are played with what operations
	// took in the other steps; null with one step.
	OtherSteps *float64 `json:"error_with_other_steps"`

	workloads []*planpb.Workload
}

// Limits of what is simulated unchanged: steps beside the one that predictions are
// made of, and tasks of all of them.
const (
	maxSteps = 8
	maxTasks = 4_000_000
)

// unchanged simulates the steps of the run, the one that was asked for first. Where
// there is none to simulate, it says why.
func (r *Result) unchanged(job *input.Job, step string) error {
	u := &Unchanged{}
	var graphs []*sim.Graph
	tasks := 0
	var first error
	for _, name := range stepNames(job, step) {
		w, diags, err := plan.Build(job.Run, job.Match, plan.Options{Step: name, Clocks: job.Clocks, Simulate: true})
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		r.Contention.Apply(w)
		g := sim.NewGraph(w)
		if tasks += g.Len(); len(graphs) > 0 && tasks > maxTasks {
			break
		}
		f, err := g.Fidelity()
		if err != nil {
			return err
		}
		if len(graphs) == 0 {
			r.diags.Merge(diags)
		}
		graphs, u.workloads, u.Steps = append(graphs, g), append(u.workloads, w), append(u.Steps, f)
		u.MeanError += f.Error()
	}
	if len(graphs) == 0 {
		if errors.Is(first, plan.ErrNothingToReplay) {
			r.diags.Addf("not-simulated", diagnostic.NoRank, diagnostic.NoOffset, "the run as a whole is not simulated: %s", sim.WhyNot(job.Run, job.Match))
		}
		return nil
	}
	u.MeanError /= float64(len(graphs))
	crossed, err := sim.CrossValidate(graphs)
	if err != nil {
		return err
	}
	if len(crossed) > 0 {
		var sum float64
		for _, ratio := range crossed {
			sum += math.Abs(ratio - 1)
		}
		sum /= float64(len(crossed))
		u.OtherSteps = &sum
	}
	doubts := sim.Doubts(u.workloads[0], sim.EvidenceOf(job.Run))
	r.diags.Merge(&doubts)
	r.Unchanged = u
	return nil
}

// stepNames lists the step that was asked for, then others, spread over the run.
func stepNames(job *input.Job, step string) []string {
	names := []string{step}
	common := job.Run.CommonSteps()
	if step == "all" {
		return names
	}
	chosen, err := plan.StepName(job.Run, step)
	if err != nil {
		return names
	}
	var others []string
	for _, s := range common {
		if s.Name != chosen {
			others = append(others, s.Name)
		}
	}
	n := min(len(others), maxSteps-1)
	for i := range n {
		names = append(names, others[i*len(others)/n])
	}
	return names
}

// over asks a question of every step that was simulated, and gives the least and
// the largest answer, of those steps that have what is asked about; null where that is
// one step only. The answer is the speedup
// over the step with the traced backend.
func (u *Unchanged) over(p *planning.Plans, v *planpb.Plan, ask func(w *planpb.Workload) (int64, error)) (*[2]float64, error) {
	if u == nil || len(u.workloads) < 2 || p.Fused[v.Name] { // other steps are not fused
		return nil, nil
	}
	m := v.Mix
	parsed, err := mix.Parse(m)
	if m == mix.Traced {
		parsed, err = mix.Mix{Text: mix.Traced}, nil
	}
	if err != nil {
		return nil, nil // fused operations and the like, which are no mix alone
	}
	span, answered := [2]float64{math.Inf(1), 0}, 0
	for _, w := range u.workloads {
		base, err := mix.Decide(w, mix.Mix{Text: mix.Traced}, mix.Traced, p.Stand)
		if err != nil {
			return nil, err
		}
		before, err := sim.PlayWorkload(base.Workload, p.CostsOf(w, w).Cost)
		if err != nil {
			return nil, err
		}
		changed, err := mix.Decide(w, parsed, m, p.Stand)
		if errors.Is(err, mix.ErrNoRule) {
			continue // it has an operation that the step asked about has not
		}
		if err != nil {
			return nil, err
		}
		holdHosts(p, changed.Workload)
		after, err := ask(changed.Workload)
		if err != nil {
			continue // the step lacks what was asked about
		}
		answered++
		speedup := float64(before.Step) / float64(max(after, 1))
		span = [2]float64{min(span[0], speedup), max(span[1], speedup)}
	}
	if answered < 2 {
		return nil, nil
	}
	return &span, nil
}

// judge says whether a prediction of the traced step is within its error: smaller
// than what the simulation of the unchanged step is off, or gained in some steps
// and lost in others, or at one end of the interval of a slowdown only.
func (r *Result) judge(v *Variant) {
	off, effect := r.Workload.Fidelity.Ratio-1, v.Predicted-1
	v.WithinError = effect*effect < off*off || v.Range != nil && v.Range[0] < 1 && v.Range[1] > 1 || v.Slowed != nil && v.Slowed[0] < 1 && v.Slowed[1] > 1
}

// shown is the least error of a rank that is shown in text.
const shown = 0.0005

// writeUnchanged says how well the run is simulated.
func (r *Result) writeUnchanged(p *report.Page) {
	u := r.Unchanged
	if u == nil {
		return
	}
	ranks := len(u.Steps[0].Ranks)
	var worst *sim.RankFidelity
	in := ""
	for _, s := range u.Steps {
		if w := s.Worst(); w != nil && (worst == nil || math.Abs(w.Ratio-1) > math.Abs(worst.Ratio-1)) {
			worst, in = w, s.Step
		}
	}
	text := fmt.Sprintf("Unchanged, simulated and compared with the trace: %s of %s, %.1f %% off in the mean",
		count(len(u.Steps), "step"), count(ranks, "rank"), 100*u.MeanError)
	if worst != nil && math.Abs(worst.Ratio-1) >= shown {
		text += fmt.Sprintf(", rank %d", worst.Rank)
		if in != "" {
			text += " of " + in
		}
		text += fmt.Sprintf(" %+.1f %% at most", 100*(worst.Ratio-1))
	}
	p.Linef("%s.", text)
	if u.OtherSteps != nil {
		p.Linef("Played with what operations took in the other steps: %.1f %% off.", 100**u.OtherSteps)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
