package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mixdown/analyze/collective"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/page"
	"mixdown/cmd/mixdown/planning"
	"mixdown/ingest/trace"
	"mixdown/replay/auto"
	"mixdown/replay/launch"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/speedup"
	"mixdown/replay/tune"
)

// experiment is a baseline and its variants, ready to run.
type experiment struct {
	opts     *Options
	job      *input.Job // the traces, for the page
	worker   launch.Worker
	starter  launch.Starter    // nil for workers of this host
	known    *mix.Capabilities // of backends, for the check
	device   planpb.Device
	workload *planpb.Workload
	baseline *planpb.Plan
	variants []*planpb.Plan
	// predicted is the simulated speedup of some variants, by name.
	predicted map[string]float64
	memory    map[string]float64 // activations held, of schedules, by name
	chosen    *auto.Choice       // of --mix auto, nil without it
	table     *tune.Table        // of --table, nil without it
	report    *speedup.Report
	errors    []string // of the data check
	doubts    []string // codes of diagnostics that the check of the plans made
	logs      []planLog
}

// prepare reads the traces and makes all plans, so that every mistake shows
// before anything runs.
func (o *Options) prepare(ctx context.Context) (*experiment, error) {
	e := &experiment{opts: o}
	var err error
	if e.known, err = planning.ReadCapabilities(o.Capabilities); err != nil {
		return nil, err
	}
	if e.worker, err = launch.FindWorker(); err != nil {
		return nil, err
	}
	devices, err := findDevices(ctx, e.worker, o.Device)
	if err != nil {
		return nil, err
	}
	var left []string
	if o.SearchResult != "" {
		if o.Plans.Candidates, left, err = planning.ReadCandidates(o.SearchResult, o.Top); err != nil {
			return nil, err
		}
	}
	searched := 0
	if o.Search {
		o.Plans.Search = func(p *planning.Plans) ([]planning.Candidate, error) { return o.search(p, &searched) }
	}
	o.Plans.WeightShare = o.Orders.WeightShare
	checked := map[string]error{}
	plans, err := o.Plans.Make(ctx, o.Streams, func(name string) error {
		err, ok := checked[name]
		if !ok {
			var b launch.Backend
			if b, err = e.worker.Check(ctx, name); err == nil {
				err = devices.usable(b)
			}
			checked[name] = err
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, v := range plans.Variants {
		for _, codec := range mix.Codecs(v) {
			if err := e.worker.CheckCodec(ctx, codec); err != nil {
				return nil, fmt.Errorf("--compress: %w", err)
			}
		}
	}
	e.job = plans.Job
	e.workload, e.baseline, e.variants, e.predicted, e.memory = plans.Workload, plans.Baseline, plans.Variants, plans.Predicted, plans.Memory
	e.chosen, e.table = plans.Chosen, plans.Table
	kept, err := e.fold(o.Ranks)
	if err != nil {
		return nil, err
	}
	traced := !plans.Job.Run.Ranks[0].CPUOnly
	if e.device, err = devices.choose(traced, append([]*planpb.Plan{e.baseline}, e.variants...)); err != nil {
		return nil, err
	}
	e.report = &speedup.Report{
		SchemaVersion: speedup.SchemaVersion, Device: launch.OnHost,
		WorldSize: int(e.workload.WorldSize), Workers: len(e.workload.Programs), Step: e.workload.Step,
		Folded:   kept,
		Searched: searched,
		Backends: []speedup.Backend{}, Substitutions: []speedup.Substitution{}, Variants: []speedup.Variant{},
		Baseline:    speedup.Baseline{Name: mix.Traced, Mix: "*=" + plans.Stand},
		Diagnostics: report.Diagnostics(&plans.Diagnostics),
	}
	for _, text := range left {
		e.report.Warn("search-result-left-out", text)
	}
	e.report.Operations, e.report.Estimated = count(e.workload)
	e.report.Traced = bound(plans.Job.Run, plans.Job.Match, e.workload.Step)
	if plans.Stand != plans.Traced {
		e.report.Substitutions = append(e.report.Substitutions, speedup.Substitution{Traced: plans.Traced, Replayed: plans.Stand})
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
		if err := e.start(ctx, nil, 1, 1); err != nil {
			return err
		}
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
			Device: e.device, SmShare: e.opts.SMShare,
		},
	}
	if e.opts.Spans == "spin" {
		exp.Settings.SpanMode = planpb.SpanMode_SPAN_MODE_SPIN
	}
	logs := e.newLogs(exp, nth)
	if e.opts.CommsLog != "" {
		exp.Settings.Samples = int64(e.opts.Iterations)
	}
	progress := e.opts.Streams.NewProgress("replaying")
	defer progress.Done()
	options := launch.Options{
		Dir: e.opts.Keep, Timeout: e.opts.Timeout, Resume: e.opts.Resume, Starter: e.starter, Capabilities: e.known,
		Checked: func(plan int, r *mix.Report) {
			if plan > 0 || nth == 1 { // the baseline is part of every start
				e.checked(r)
			}
		},
		Progress: func(p launch.Progress) {
			detail := p.State.String()
			if of > 1 {
				detail = fmt.Sprintf("%s, start %d of %d", detail, nth, of)
			}
			progress.Set(p.Iteration, p.Last, detail)
		},
		Iteration: func(worker int, it *planpb.Iteration) error {
			if logs == nil || logs[it.Plan].Log == nil {
				return nil
			}
			return logs[it.Plan].Add(worker, it)
		},
	}
	results, err := e.worker.Run(ctx, exp, options)
	if of > 1 && options.Resume != "" && errors.Is(err, launch.ErrCannotResume) {
		// What was kept ended before this start.
		options.Resume = ""
		results, err = e.worker.Run(ctx, exp, options)
	}
	if err != nil {
		return err
	}
	e.logs = append(e.logs, logs...)
	e.collect(results, variants)
	return nil
}

const notChecked = "not-checked"

// checked adds what the check of a plan warns of, and what neither it nor the way in
// which plans run can tell.
func (e *experiment) checked(r *mix.Report) {
	for _, f := range r.Warnings {
		e.doubts = append(e.doubts, f.Name)
		e.report.WarnTimes(f.Name, int64(f.Count), fmt.Sprintf("plan %q: %s %s", r.Plan, f.Code, f.Message))
	}
	for _, g := range r.NotChecked {
		if g.Open {
			e.doubts = append(e.doubts, notChecked)
			e.report.Warn(notChecked, fmt.Sprintf("plan %q: %s %s", r.Plan, g.Code, g.Why))
		}
	}
}

// tellDoubts says what the check warned of where no report will.
func (e *experiment) tellDoubts() {
	for _, d := range e.report.Diagnostics {
		if slices.Contains(e.doubts, d.Code) {
			fmt.Fprintln(e.opts.Streams.Err, d)
		}
	}
}

// samples is for how many iterations the times of single tasks are kept.
const samples = 3

// collect adds the results of one start to the report.
func (e *experiment) collect(results *launch.Results, variants []*planpb.Plan) {
	e.report.Device, e.report.DeviceName = results.Device, results.DeviceName
	if results.Sharing > 1 && len(e.report.Baseline.Iterations) == 0 {
		e.report.Warn("shared-gpu", fmt.Sprintf("%d ranks share one GPU: they wait for each other's computation", results.Sharing))
	}
	if e.report.Hosts == nil {
		e.report.Hosts = hosts(results.Hosts, e.workload)
	}
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
		variant := speedup.Variant{
			Name: v.Name, Mix: v.Mix, Schedule: v.Schedule,
			Iterations: r.Iterations, BaselineIterations: base.Iterations, Verified: r.Verified(),
		}
		if v.Name == mix.Auto && e.chosen != nil {
			for _, r := range e.chosen.Reasons {
				variant.Reasons = append(variant.Reasons, speedup.Reason{Rule: r.Rule, Text: r.Text})
			}
		}
		variant.Codecs = codecs(r)
		if predicted, ok := e.predicted[v.Name]; ok {
			variant.Predicted = &predicted
		}
		if held, ok := e.memory[v.Name]; ok {
			variant.Memory = &held
		}
		e.report.Variants = append(e.report.Variants, variant)
	}
}

// hosts are those of a run on several, with their ranks.
func hosts(list []launch.Host, w *planpb.Workload) []speedup.Host {
	var all []speedup.Host
	for _, h := range list {
		host := speedup.Host{Name: h.Name, Interface: h.Interface, CPUs: h.CPUs, NUMA: h.NUMA, ClockBound: h.ClockBound.Nanoseconds(), RoundTrip: h.RoundTrip.Nanoseconds()}
		for _, worker := range h.Workers {
			host.Ranks = append(host.Ranks, int(w.Programs[worker].Rank))
		}
		all = append(all, host)
	}
	return all
}

// codecs are those of a plan as the report has them.
func codecs(r *launch.PlanResult) []speedup.Codec {
	var list []speedup.Codec
	for i := range r.Codecs {
		c := &r.Codecs[i]
		codec := speedup.Codec{
			Name: mix.CodecName(c.Compression), Operations: c.Operations, Bytes: c.Bytes, CompressedBytes: c.CompressedBytes,
			Ratio: float64(c.Bytes) / float64(max(c.CompressedBytes, 1)), Time: speedup.Median(c.NS),
		}
		if relative, ok := c.Relative(); ok {
			codec.MaxAbs, codec.Relative = &c.MaxAbs, &relative
		}
		list = append(list, codec)
	}
	return list
}

// wrong is the first difference that the data check found.
func (e *experiment) wrong() string {
	if len(e.errors) == 0 {
		return "not all operations were checked"
	}
	return e.errors[0]
}

// page writes the result for people, beside the analysis of the traces.
func (e *experiment) page(ctx context.Context) error {
	in := &e.opts.Plans.Input
	if _, err := in.Pipelines(ctx, e.job, e.opts.Streams); err != nil {
		return err
	}
	sums, err := in.Checksums(ctx, e.job.Run)
	if err != nil {
		return err
	}
	return page.WriteResult(e.opts.HTML, page.Result{Verb: "replay", Value: e.report, Job: e.job, Checksums: sums, Table: e.table, TableFile: e.opts.Plans.Table}, page.Process(in.Args))
}
