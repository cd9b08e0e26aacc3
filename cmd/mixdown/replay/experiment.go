package replay

import (
	"context"
	"fmt"
	"slices"

	"mixdown/analyze/collective"
	"mixdown/analyze/report"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
	"mixdown/replay/launch"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/speedup"
)

// experiment is a baseline and its variants, ready to run.
type experiment struct {
	opts     *Options
	worker   launch.Worker
	workload *planpb.Workload
	baseline *planpb.Plan
	variants []*planpb.Plan
	report   *speedup.Report
	errors   []string // of the data check
}

// prepare reads the traces and makes all plans, so that every mistake shows
// before anything runs.
func (o *Options) prepare(ctx context.Context) (*experiment, error) {
	var mixes []mix.Mix
	for _, text := range o.Mixes {
		m, err := mix.Parse(text)
		if err != nil {
			return nil, err
		}
		mixes = append(mixes, m)
	}
	substitutes, err := mix.ParseMap(o.Map)
	if err != nil {
		return nil, err
	}
	e := &experiment{opts: o}
	if e.worker, err = launch.FindWorker(); err != nil {
		return nil, err
	}
	checked := map[string]error{}
	canRun := func(name string) error {
		err, ok := checked[name]
		if !ok {
			_, err = e.worker.Check(ctx, name)
			checked[name] = err
		}
		return err
	}
	for _, m := range mixes {
		for _, name := range m.Backends() {
			if err := canRun(name); err != nil {
				return nil, fmt.Errorf("--mix %q: %w", m.Text, err)
			}
		}
	}
	for _, name := range substitutes {
		if err := canRun(name); err != nil {
			return nil, fmt.Errorf("--map: %w", err)
		}
	}

	job, err := o.Input.Load(ctx, o.Streams)
	if err != nil {
		return nil, err
	}
	run, match := job.Run, job.Match
	var diags diagnostic.Set
	diags.Merge(&run.Diagnostics)
	diags.Merge(&match.Diagnostics)
	diags.Merge(&job.Clocks.Diagnostics)
	workload, planDiags, err := plan.Build(run, match, plan.Options{Step: o.Step, Clocks: job.Clocks})
	diags.Merge(planDiags)
	if err != nil {
		return nil, err
	}
	if err := o.Input.Refuse(&diags); err != nil {
		return nil, err
	}
	e.workload = workload

	traced := mix.TracedBackend(run.Ranks[0].Distributed.Backend, run.Ranks[0].CPUOnly)
	var available []string
	if canRun(traced) == nil {
		available = append(available, traced)
	}
	stand, err := substitutes.Substitute(traced, available)
	if err != nil {
		return nil, err
	}
	tracedMix := mix.Mix{Text: mix.Traced}
	if e.baseline, err = mix.Decide(workload, tracedMix, mix.Traced, stand); err != nil {
		return nil, err
	}
	for _, m := range mixes {
		p, err := mix.Decide(workload, m, m.Text, stand)
		if err != nil {
			return nil, err
		}
		e.variants = append(e.variants, p)
	}
	e.report = &speedup.Report{
		SchemaVersion: speedup.SchemaVersion, Device: "host",
		WorldSize: int(workload.WorldSize), Workers: len(workload.Programs), Step: workload.Step,
		Backends: []speedup.Backend{}, Substitutions: []speedup.Substitution{}, Variants: []speedup.Variant{},
		Baseline:    speedup.Baseline{Name: mix.Traced, Mix: "*=" + stand},
		Diagnostics: report.Diagnostics(&diags),
	}
	e.report.Operations, e.report.Estimated = count(workload)
	e.report.Traced = bound(run, match, workload.Step)
	if stand != traced {
		e.report.Substitutions = append(e.report.Substitutions, speedup.Substitution{Traced: traced, Replayed: stand})
	}
	return e, nil
}

// bound is what the traced step could gain at most, nil when that is not known:
// then the replay stands for itself.
func bound(run *trace.Run, match *collective.Matching, step string) *report.CriticalPath {
	if step == "" {
		step = "all"
	}
	a, err := report.Critical(run, match, step)
	if err != nil {
		return nil
	}
	return a
}

// count is the number of communications and of those whose splits are estimated.
func count(w *planpb.Workload) (all, estimated int) {
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			if c := t.GetCommunication(); c != nil {
				all++
				if c.SplitsEstimated {
					estimated++
				}
			}
		}
	}
	return all, estimated
}

// run runs all plans. Plans whose MPI libraries differ can't share workers:
// each library gets a start of its own, with the baseline in it.
func (e *experiment) run(ctx context.Context) error {
	groups := map[string][]*planpb.Plan{}
	var order []string
	for _, v := range e.variants {
		name, err := launch.LauncherFor(append(mix.Backends(v), mix.Backends(e.baseline)...))
		if err != nil {
			return err
		}
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], v)
	}
	if len(order) == 0 {
		return e.start(ctx, nil, 1, 1)
	}
	for i, name := range order {
		if err := e.start(ctx, groups[name], i+1, len(order)); err != nil {
			return err
		}
	}
	slices.SortStableFunc(e.report.Variants, func(a, b speedup.Variant) int { return e.position(a.Name) - e.position(b.Name) })
	return e.report.Finish(e.workload.TraceStepNs)
}

// position is the place of a variant on the command line.
func (e *experiment) position(name string) int {
	return slices.IndexFunc(e.variants, func(p *planpb.Plan) bool { return p.Name == name })
}

// start runs the baseline and some variants in one set of workers.
func (e *experiment) start(ctx context.Context, variants []*planpb.Plan, nth, of int) error {
	exp := &planpb.Experiment{
		SchemaVersion: 1,
		Plans:         append([]*planpb.Plan{e.baseline}, variants...),
		Settings: &planpb.Settings{
			Iterations: int32(e.opts.Iterations), Warmup: int32(e.opts.Warmup), Verify: !e.opts.NoVerify,
			SpanMode: planpb.SpanMode_SPAN_MODE_SLEEP, Samples: samples, Seed: e.opts.Seed,
		},
	}
	if e.opts.Spans == "spin" {
		exp.Settings.SpanMode = planpb.SpanMode_SPAN_MODE_SPIN
	}
	progress := e.opts.Streams.NewProgress("replaying")
	defer progress.Done()
	results, err := e.worker.Run(ctx, exp, launch.Options{
		Dir: e.opts.Keep, Timeout: e.opts.Timeout,
		Progress: func(p launch.Progress) {
			detail := p.State.String()
			if of > 1 {
				detail = fmt.Sprintf("%s, start %d of %d", detail, nth, of)
			}
			progress.Set(p.Iteration, p.Last, detail)
		},
	})
	if err != nil {
		return err
	}
	e.collect(results, variants)
	return nil
}

// samples is for how many iterations the times of single tasks are kept.
const samples = 3

// collect adds the results of one start to the report.
func (e *experiment) collect(results *launch.Results, variants []*planpb.Plan) {
	for _, b := range results.Backends {
		if !slices.ContainsFunc(e.report.Backends, func(have speedup.Backend) bool { return have.Name == b.Name }) {
			e.report.Backends = append(e.report.Backends, speedup.Backend{Name: b.Name, Version: b.Version})
		}
	}
	base := &results.Plans[0]
	first := len(e.report.Baseline.Iterations) == 0
	e.report.Baseline.Iterations = append(e.report.Baseline.Iterations, base.Iterations...)
	e.report.Baseline.Verified = base.Verified() && (first || e.report.Baseline.Verified)
	e.errors = append(e.errors, base.Errors...)
	for i, v := range variants {
		r := &results.Plans[i+1]
		e.errors = append(e.errors, r.Errors...)
		e.report.Variants = append(e.report.Variants, speedup.Variant{
			Name: v.Name, Mix: v.Mix, Schedule: v.Schedule,
			Iterations: r.Iterations, BaselineIterations: base.Iterations, Verified: r.Verified(),
		})
	}
}

// wrong is the first difference that the data check found.
func (e *experiment) wrong() string {
	if len(e.errors) == 0 {
		return "not all operations were checked"
	}
	return e.errors[0]
}
