// Package planning makes plans from traces, for every verb that needs some: it
// reads the input, rebuilds one step, and lets each mix decide.
package planning

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/ingest/diagnostic"
	"mixdown/replay/auto"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
	"mixdown/replay/tune"
)

// Options are the flags about plans.
type Options struct {
	Input input.Options
	Mixes []string
	Map   []string
	Step  string

	Table           string
	Nodes           int
	Fuse            string
	Compress        []string
	Schedules       []string
	EarlyReductions bool
	Candidates      []Candidate // of a search, besides
	// Search finds candidates when the traces are read and the plans of all mixes are
	// made, nil for those of Candidates.
	Search func(*Plans) ([]Candidate, error)
	// WeightShare is the part of a backward that makes the weights' gradient, of other
	// orders; 0 for what the trace tells.
	WeightShare float64
	// Simulate makes plans that are played, not run; see plan.Options.
	Simulate bool
}

// AddFlags declares the flags, those of the input too.
func (o *Options) AddFlags(cmd *cobra.Command) {
	o.Input.AddFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.Mixes, "mix", nil, "which backend runs what, e.g. 'all_to_all=openmpi,*=gloo', or auto with --table; repeatable")
	f.StringVar(&o.Table, "table", "", "tuning `TABLE` of mixdown tune, from which --mix auto chooses")
	f.IntVar(&o.Nodes, "nodes", 0, "machines that the job runs on, ranks filling one after the other, for look-ups in the table; default whatever was measured")
	f.StringArrayVar(&o.Map, "map", nil, "`TRACED=BACKEND` that stands in for a traced backend, e.g. nccl=gloo; repeatable")
	f.StringVar(&o.Fuse, "fuse", "", "also with neighbouring all_reduces of at most `SIZE`, such as 1MiB, made one")
	f.StringArrayVar(&o.Compress, "compress", nil, "also with payloads compressed, e.g. 'all_reduce@>=16MiB=zfp:rate=8' (also bf16, fp8); repeatable, also with every --mix; see mixdown help mix")
	f.StringArrayVar(&o.Schedules, "schedule", nil, "another order of the pipeline, e.g. breadth-first:loops=4; repeatable, also with every --mix")
	f.BoolVar(&o.EarlyReductions, "early-reductions", false, "with --schedule: reduce the gradient of a stage over data-parallel ranks as soon as it is complete, not when the trace did")
	f.StringVar(&o.Step, "step", "", "step to take: its number, or all; default the step of median length")
}

// Plans are the plans of one step.
type Plans struct {
	Job         *input.Job
	Diagnostics diagnostic.Set // of reading, matching, aligning and building
	Traced      string         // the backend of the trace
	Stand       string         // what stands in for it; Traced when it can run
	Workload    *planpb.Workload
	Baseline    *planpb.Plan // as traced
	// Variants are one for each mix, then for each schedule one alone and one with
	// each mix, in their order.
	Variants []*planpb.Plan
	// Predicted is the speedup that the simulation gives a schedule or the chosen
	// mix, by the name of the variant.
	Predicted map[string]float64
	// Memory is the activations that the fullest rank holds with a schedule, in
	// multiples of the traced order's, by the name of the variant.
	Memory map[string]float64
	// Fused are the variants with all_reduces made one, by name.
	Fused map[string]bool
	// Chosen is the mix that --mix auto stands for, nil where it was not asked for.
	Chosen *auto.Choice

	// Contention is what communication makes of kernels beside it, which the workload
	// knows then; nil where nothing is simulated, or no rank has a device.
	Contention *Contention

	// Costs are those of the tuning table, nil without one; SizeOf is the size by
	// which they and mixes go, Nodes the machines of the job, 0 when not known.
	Costs *tune.Costs
	// Table is that table, nil without one.
	Table  *tune.Table
	SizeOf func(rank int32, c *planpb.Communication) int64
	Nodes  int
}

// Make reads the traces and makes all plans. canRun says whether a backend can
// be planned for, and why not; mistakes in flags show before anything is read.
func (o *Options) Make(ctx context.Context, streams *cli.Streams, canRun func(name string) error) (*Plans, error) {
	var mixes []mix.Mix
	table, err := o.readTable()
	if err != nil {
		return nil, err
	}
	for _, text := range o.Mixes {
		if text == mix.Auto {
			mixes = append(mixes, mix.Mix{Text: mix.Auto})
			continue
		}
		m, err := mix.Parse(text)
		if err != nil {
			return nil, err
		}
		for _, name := range m.Backends() {
			if err := canRun(name); err != nil {
				return nil, fmt.Errorf("--mix %q: %w", m.Text, err)
			}
		}
		mixes = append(mixes, m)
	}
	specs, err := o.parseSchedules()
	if err != nil {
		return nil, err
	}
	if err := o.checkCandidates(canRun); err != nil {
		return nil, err
	}
	compressions, err := o.parseCompressions()
	if err != nil {
		return nil, err
	}
	most, err := o.fuseLimit()
	if err != nil {
		return nil, err
	}
	substitutes, err := mix.ParseMap(o.Map)
	if err != nil {
		return nil, err
	}
	for _, name := range substitutes {
		if err := canRun(name); err != nil {
			return nil, fmt.Errorf("--map: %w", err)
		}
	}
	p := &Plans{Predicted: map[string]float64{}, Memory: map[string]float64{}, Fused: map[string]bool{}}
	if p.Job, err = o.Input.Load(ctx, streams); err != nil {
		return nil, err
	}
	run, match := p.Job.Run, p.Job.Match
	p.Diagnostics.Merge(&run.Diagnostics)
	p.Diagnostics.Merge(&match.Diagnostics)
	p.Diagnostics.Merge(&p.Job.Clocks.Diagnostics)
	workload, diags, err := plan.Build(run, match, plan.Options{Step: o.Step, Clocks: p.Job.Clocks, Simulate: o.Simulate})
	p.Diagnostics.Merge(diags)
	if errors.Is(err, plan.ErrNothingToReplay) && o.Simulate {
		return nil, fmt.Errorf("%w: the run as a whole can't be simulated: %s", err, sim.WhyNot(run, match))
	}
	if err != nil {
		return nil, err
	}
	if err := o.Input.Refuse(&p.Diagnostics); err != nil {
		return nil, err
	}
	p.Workload, p.SizeOf, p.Nodes = workload, mix.SizeOf(workload), o.Nodes
	if used := plan.MachinesUsed(workload.WorldSize, o.Nodes); o.Nodes < 0 || used != o.Nodes {
		return nil, fmt.Errorf("%w: --nodes %d: %d ranks that fill machines one after the other, as many on each, do not lie on so many", cli.ErrUsage, o.Nodes, workload.WorldSize)
	}
	if table != nil {
		p.Costs, p.Table = table.Costs(), table
	}
	p.Traced = mix.TracedBackend(run.Ranks[0].Distributed.Backend, run.Ranks[0].CPUOnly)
	var available []string
	if canRun(p.Traced) == nil {
		available = append(available, p.Traced)
	}
	if p.Stand, err = substitutes.Substitute(p.Traced, available); err != nil {
		return nil, err
	}
	if o.Simulate {
		var named []string
		for _, m := range mixes {
			named = append(named, m.Backends()...)
		}
		if p.Contention, err = FindContention(run, table, p.Traced, p.Stand, named); err != nil {
			return nil, err
		}
		p.Contention.Apply(workload)
	}
	if p.Baseline, err = mix.Decide(workload, mix.Mix{Text: mix.Traced}, mix.Traced, p.Stand); err != nil {
		return nil, err
	}
	for i, m := range mixes {
		name := m.Text
		if m.Text == mix.Auto {
			if m, err = o.choose(p, table, canRun); err != nil {
				return nil, fmt.Errorf("--mix auto: %w", err)
			}
			mixes[i] = m
		}
		v, err := mix.Decide(workload, m, name, p.Stand)
		if err != nil {
			return nil, err
		}
		p.Variants = append(p.Variants, v)
	}
	if err := o.addFused(p, most, mixes); err != nil {
		return nil, err
	}
	if err := o.predict(p); err != nil {
		return nil, err
	}
	if err := o.addCompressed(p, compressions, mixes); err != nil {
		return nil, err
	}
	if err := o.addOrders(ctx, p, specs, mixes, streams); err != nil {
		return nil, err
	}
	if err := o.addCandidates(ctx, p, streams); err != nil {
		return nil, err
	}
	return p, nil
}
