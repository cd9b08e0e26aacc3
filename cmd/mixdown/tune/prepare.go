package tune

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/launching"
	"mixdown/ingest/comm"
	"mixdown/replay/cluster"
	"mixdown/replay/environment"
	"mixdown/replay/launch"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
	"mixdown/replay/tune/measure"
)

// prepare reads the flags and the traces, so that every mistake shows before
// anything runs. What traces show besides goes into the table.
func (o *Options) prepare(ctx context.Context, table *tune.Table) (measure.Options, error) {
	m := measure.Options{Budget: o.Budget, Precision: o.Precision, NoRefine: o.NoRefine, Seed: o.Seed, Timeout: o.Timeout, Device: o.Device}
	grid, err := o.grid()
	if err != nil {
		return m, err
	}
	if m.Worker, err = launch.FindWorker(); err != nil {
		return m, err
	}
	list, libraries, err := o.backends(ctx, m.Worker)
	if err != nil {
		return m, err
	}
	if o.Device == tune.GPU {
		gpu, err := m.Worker.AnyGPU(ctx)
		if err != nil {
			return m, fmt.Errorf("--device gpu: %w", err)
		}
		m.GPU = gpu.Kind
	}
	m.Points = grid.Points()
	if len(o.Input.Args) > 0 {
		m.NoRefine = true
		workload, err := o.traced(ctx, table)
		if err != nil {
			return m, err
		}
		if m.Points = measure.FromWorkload(workload); len(m.Points) == 0 {
			return m, fmt.Errorf("%w: the step has no communication that can be measured", plan.ErrNothingToReplay)
		}
		switch n := len(workload.Programs); {
		case o.Alone:
		case n > maxStepRanks:
			fmt.Fprintf(o.Streams.Err, "the step has %d ranks, too many to run as a whole here: its operations are measured one by one\n", n)
		default:
			m.Step = workload
		}
	}
	if len(m.Points) == 0 {
		return m, usage("the ranges", fmt.Errorf("nothing in them can be measured"))
	}
	if slices.ContainsFunc(list, func(c tune.Contender) bool { return c.Variant != "" }) {
		m.Variants = measure.FindVariants(ctx, m.Worker)
		if list, err = m.Variants.Expand(list, opsOf(m.Points)); err != nil {
			return m, usage("--backends", err)
		}
	}
	m.Contenders = list
	if err := o.onSeveral(&m); err != nil {
		return m, err
	}
	m.Environment = tune.Environment{Hardware: o.hardware(), Libraries: libraries, Variables: environment.Steering(os.Environ())}
	return m, nil
}

// hardware describes this machine, and how others were come by: measurements of
// other hosts are measurements of another environment.
func (o *Options) hardware() string {
	text := measure.Hardware()
	if o.Launch.Launch == launching.Local {
		return text
	}
	text += "; workers by " + o.Launch.Launch
	if len(o.Launch.Hosts) > 0 {
		text += " on " + strings.Join(o.Launch.Hosts, ", ")
	}
	return text
}

// onSeveral leaves what can be measured by the tasks of a job.
func (o *Options) onSeveral(m *measure.Options) error {
	if o.Launch.Launch != launching.Env {
		return nil
	}
	// The tasks are there already, and all of them are ranks.
	task, err := cluster.FromEnvironment(o.Launch.Getenv)
	if err != nil {
		return fmt.Errorf("--launch env: %w", err)
	}
	m.Points = slices.DeleteFunc(m.Points, func(p measure.Point) bool { return p.Ranks != task.Size })
	if len(m.Points) == 0 && m.Step == nil {
		return fmt.Errorf("%w: --ranks: with --launch env groups have all %d tasks that %s started", cli.ErrUsage, task.Size, task.Engine)
	}
	return nil
}

// grid reads the ranges.
func (o *Options) grid() (measure.Grid, error) {
	var g measure.Grid
	var err error
	if g.Ops, err = measure.ParseOps(o.Ops); err != nil {
		return g, usage("--ops", err)
	}
	if g.Sizes, err = measure.ParseSizes(o.Sizes); err != nil {
		return g, usage("--sizes", err)
	}
	if g.Ranks, err = measure.ParseInts(o.Ranks, 1); err != nil {
		return g, usage("--ranks", err)
	}
	if g.Streams, err = measure.ParseInts(o.Groups, 1); err != nil {
		return g, usage("--concurrent", err)
	}
	if g.DTypes, err = measure.ParseDTypes(o.DTypes); err != nil {
		return g, usage("--dtypes", err)
	}
	return g, nil
}

// backends finds what to compare and its versions.
func (o *Options) backends(ctx context.Context, worker launch.Worker) ([]tune.Contender, []tune.Library, error) {
	var list []tune.Contender
	var libraries []tune.Library
	if o.Backends == "" {
		for _, b := range worker.List(ctx) {
			if b.Available && (b.Device == launch.OnHost || o.Device == tune.GPU) && slices.Contains(launch.KnownBackends(), b.Name) {
				list = append(list, tune.Contender{Backend: b.Name})
				libraries = append(libraries, tune.Library{Name: b.Name, Version: b.Version})
			}
		}
		if len(list) == 0 {
			return nil, nil, fmt.Errorf("%w: %w", launch.ErrUnavailable, errNoBackend)
		}
		return list, libraries, nil
	}
	for text := range strings.SplitSeq(o.Backends, ",") {
		c := tune.ParseContender(strings.TrimSpace(text))
		if slices.Contains(list, c) {
			continue
		}
		list = append(list, c)
		if slices.ContainsFunc(libraries, func(l tune.Library) bool { return l.Name == c.Backend }) {
			continue
		}
		b, err := worker.Check(ctx, c.Backend)
		if err != nil {
			return nil, nil, fmt.Errorf("--backends: %w", err)
		}
		if b.Device != launch.OnHost && o.Device == tune.Host {
			return nil, nil, fmt.Errorf("%w: --backends: %s needs --device gpu", cli.ErrUsage, c.Backend)
		}
		libraries = append(libraries, tune.Library{Name: b.Name, Version: b.Version})
	}
	return list, libraries, nil
}

// maxStepRanks is up to how many ranks a step runs as a whole: more on one
// machine wait for its cores rather than for each other.
const maxStepRanks = 64

// traced is the traces' step. What they show of contention goes into the table.
func (o *Options) traced(ctx context.Context, table *tune.Table) (*planpb.Workload, error) {
	job, err := o.Input.Load(ctx, o.Streams)
	if err != nil {
		return nil, err
	}
	workload, diags, err := plan.Build(job.Run, job.Match, plan.Options{Step: o.Step, Clocks: job.Clocks})
	if err != nil {
		return nil, err
	}
	if err := o.Input.Refuse(&job.Run.Diagnostics, &job.Match.Diagnostics, &job.Clocks.Diagnostics, diags); err != nil {
		return nil, err
	}
	if err := o.contend(table, job.Run); err != nil {
		return nil, err
	}
	for _, d := range diags.List() {
		fmt.Fprintln(o.Streams.Err, d)
	}
	return workload, nil
}

func opsOf(points []measure.Point) []comm.Op {
	var ops []comm.Op
	for _, p := range points {
		if !slices.Contains(ops, p.Op) {
			ops = append(ops, p.Op)
		}
	}
	return ops
}
