// Package simulate is the command "mixdown simulate".
package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/planning"
	"mixdown/cmd/mixdown/searching"
	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
	"mixdown/replay/sim"
	"mixdown/replay/whatif"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Plans   planning.Options
	Format  string

	Orders    searching.Options
	Sharding  string
	Buffers   sharding.Options
	Reduction time.Duration
	SVG       string
	HTML      string
	Width     int
	Picture   bool
	Wide      bool

	WhatIfs   []string
	Ranks     int
	WorldSize int

	Search bool
	Top    int
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "simulate INPUT...",
		Short: "What other pipeline orders and backend mixes would take, predicted without running anything",
		Long: `First plays the run as it was, every rank and step, and shows how close that
comes to the trace: no prediction is better. "mixdown help simulation" says what
is kept of the trace, what is played anew, and how certain an answer is.

Takes from the traces what every task of the pipeline took, what its messages
and the gaps between tasks cost, and plays other orders of the same tasks.
The order that ran is played too, from the same costs: trust a prediction no
further than that comes to the trace.

--mix predicts a mix of backends from a tuning table instead: what an operation
took in the trace, scaled by what the table says of the new backend and the old.

Without any of these it predicts breadth-first with two chunks a rank.
A stage that is cut into chunks keeps its time: between the layers that the trace
shows, else in even parts; the output says which. What a schedule wins in time it
may lose in memory, so both stand in one line.

--what-if supposes something else: operations that are free, links of another
bandwidth, a straggler healed, payloads compressed, stages cut anew, activations
recomputed. "mixdown help what-ifs" lists each with its formula, source and cost.

See "mixdown help schedules" for names and keys.`,
		Example: `  mixdown simulate traces/ --schedule breadth-first:loops=4 --schedule zb-h1
  mixdown simulate traces/ --search --max-memory 1.5
  mixdown simulate traces/ --schedule breadth-first:loops=2 --sharding full --svg orders.svg
  mixdown simulate traces/ --map nccl=gloo --mix auto --table cluster.table
  mixdown simulate traces/ --what-if free=all_reduce --what-if bandwidth=x2,latency=+5us
  mixdown simulate traces/ --schedule zb-h1 --what-if recompute`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Plans.Input.Args = args
			return run(cmd.Context(), opts)
		},
	}
	opts.Plans.AddFlags(cmd)
	opts.Orders.AddFlags(cmd)
	cli.FormatFlag(cmd, &opts.Format)
	f := cmd.Flags()
	f.StringVar(&opts.Sharding, "sharding", "", "what of each stage is sharded over data-parallel ranks: none, partial, full; default as in the trace; with --search several, as none,full")
	f.IntVar(&opts.Buffers.WeightBuffers, "weight-buffers", 1, "with --sharding full: stages whose weights a rank holds gathered at once; 2 gather the next while one runs")
	f.IntVar(&opts.Buffers.GradientBuffers, "gradient-buffers", 1, "with --sharding partial or full: stages whose gradients a rank holds whole at once")
	f.DurationVar(&opts.Reduction, "reduction", 0, "what an all-reduce of a rank's whole gradient over data-parallel ranks takes, such as 40ms; default as in the trace")
	f.BoolVar(&opts.Picture, "picture", false, "draw all orders in text")
	f.BoolVar(&opts.Wide, "wide", false, "show whole names in text, in lines of any length")
	f.IntVar(&opts.Width, "width", 100, "columns of the pictures in text")
	f.StringVar(&opts.SVG, "svg", "", "write all orders as a picture to `FILE`")
	f.StringVar(&opts.HTML, "html", "", "write a page for people to `FILE`: orders, memory against time, and the analysis of the traces; see mixdown help report")
	f.StringArrayVar(&opts.WhatIfs, "what-if", nil, "suppose something else, e.g. free=all_reduce or bandwidth=x2,straggler=heal (both together); repeatable, also with every --mix or --schedule; see mixdown help what-ifs")
	f.IntVar(&opts.Ranks, "ranks", 0, "play all ranks on so many of them at most, with one kept of several that do the same: for jobs of thousands of ranks")
	f.IntVar(&opts.WorldSize, "world-size", 0, "what a step would take on so many ranks, with more data-parallel replicas; the same as --what-if world-size=`RANKS`")
	f.BoolVar(&opts.Search, "search", false, "predict every schedule that fits the job, also with every --mix (by --table) and --sharding, and show the best of time against memory")
	f.IntSliceVar(&opts.Orders.Microbatches, "microbatches", nil, "micro-batches per step that the search tries, of the same batch; default the traced number")
	f.IntVar(&opts.Top, "top", 10, "how many results of the search to show; negative shows all")
	return cmd
}

// defaultSchedule is predicted when nothing is asked for.
const defaultSchedule = "breadth-first:loops=2"

// Run predicts and writes the result.
func Run(ctx context.Context, opts *Options) error {
	specs, shards, err := opts.check()
	if err != nil {
		return err
	}
	if err := opts.checkPage(); err != nil {
		return err
	}
	ofSteps, ofOrders, err := opts.questions()
	if err != nil {
		return err
	}
	job, mixed, err := opts.load(ctx, len(ofSteps) > 0 || opts.Ranks > 0)
	if err != nil {
		return err
	}
	r := &Result{SchemaVersion: report.SchemaVersion, Device: "none", Variants: []Variant{}}
	if err := r.contention(job, mixed); err != nil {
		return err
	}
	if err := r.unchanged(job, opts.Plans.Step); err != nil {
		return err
	}
	if len(specs) > 0 || opts.Search || len(ofOrders) > 0 {
		if err := opts.orders(r, job, mixed, specs, shards, ofOrders); err != nil {
			return err
		}
	}
	if mixed != nil {
		if err := r.mixes(mixed, opts.Ranks); err != nil {
			return err
		}
		if err := r.supposeSteps(mixed, ofSteps, opts.Ranks); err != nil {
			return err
		}
	}
	r.collect(job)
	if err := opts.draw(r); err != nil {
		return err
	}
	if err := opts.page(ctx, job, mixed, r); err != nil {
		return err
	}
	if opts.Format == cli.JSON {
		enc := json.NewEncoder(opts.Streams.Out)
		enc.SetIndent("", " ")
		err = enc.Encode(r)
	} else {
		err = r.writeText(opts)
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return opts.Plans.Input.Refuse(&job.Run.Diagnostics, &job.Match.Diagnostics, &job.Clocks.Diagnostics, &job.Found.Diagnostics, &r.diags)
}

// load reads the input; with mixes, or for what-ifs of all ranks, it makes plans
// too.
func (o *Options) load(ctx context.Context, plans bool) (*input.Job, *planning.Plans, error) {
	if len(o.Plans.Mixes) == 0 && !plans {
		job, err := o.Plans.Input.Load(ctx, o.Streams)
		if err != nil {
			return nil, nil, err
		}
		_, err = o.Plans.Input.Pipelines(ctx, job, o.Streams)
		return job, nil, err
	}
	only := o.Plans
	only.Schedules, only.Simulate = nil, true
	made, err := only.Make(ctx, o.Streams, func(string) error { return nil })
	if err != nil {
		return nil, nil, err
	}
	_, err = o.Plans.Input.Pipelines(ctx, made.Job, o.Streams)
	return made.Job, made, err
}

// check reads the flags, so that mistakes show before anything is read.
func (o *Options) check() ([]schedule.Spec, []sharding.Variant, error) {
	if err := cli.CheckFormat(o.Format); err != nil {
		return nil, nil, err
	}
	schedules := o.Plans.Schedules
	if len(schedules) == 0 && !o.Search && len(o.Plans.Mixes) == 0 && len(o.WhatIfs) == 0 && o.Ranks == 0 && o.WorldSize == 0 {
		schedules = []string{defaultSchedule}
	}
	if len(o.Plans.Compress) > 0 {
		return nil, nil, fmt.Errorf("%w: --compress is measured, not simulated: \"mixdown replay --compress\" runs the codec, --what-if compress=... supposes its ratio and speed", cli.ErrUsage)
	}
	if len(o.Plans.Mixes) > 0 && o.Plans.Table == "" {
		return nil, nil, fmt.Errorf("%w: --mix is predicted from a tuning table: name one with --table (\"mixdown tune\" makes it)", cli.ErrUsage)
	}
	var specs []schedule.Spec
	for _, text := range schedules {
		spec, err := schedule.Parse(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--schedule: %w", err)
		}
		specs = append(specs, spec)
	}
	if err := o.Orders.Check(); err != nil {
		return nil, nil, err
	}
	switch {
	case o.Reduction < 0:
		return nil, nil, fmt.Errorf("%w: --reduction %v: expected a positive time", cli.ErrUsage, o.Reduction)
	case o.Buffers.WeightBuffers < 1 || o.Buffers.GradientBuffers < 1:
		return nil, nil, fmt.Errorf("%w: --weight-buffers and --gradient-buffers: expected at least 1", cli.ErrUsage)
	case o.Reduction > 0 && o.Sharding == "":
		return nil, nil, fmt.Errorf("%w: --reduction needs --sharding: none, partial or full", cli.ErrUsage)
	}
	if o.Ranks < 0 || o.WorldSize < 0 {
		return nil, nil, fmt.Errorf("%w: --ranks and --world-size: expected a number of ranks", cli.ErrUsage)
	}
	if o.WorldSize > 0 {
		o.WhatIfs = append(o.WhatIfs, fmt.Sprintf("world-size=%d", o.WorldSize))
	}
	if o.Orders.MemoryLimit != "" && !o.Search {
		return nil, nil, fmt.Errorf("%w: --memory-limit needs --search", cli.ErrUsage)
	}
	shards, err := o.shards()
	return specs, shards, err
}

// shards reads --sharding: one, of all orders, or several, of a search alone.
func (o *Options) shards() ([]sharding.Variant, error) {
	if o.Sharding == "" {
		return nil, nil
	}
	var list []sharding.Variant
	for name := range strings.SplitSeq(o.Sharding, ",") {
		v, err := sharding.Parse(strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("%w: --sharding: %w", cli.ErrUsage, err)
		}
		list = append(list, v)
	}
	if len(list) > 1 && (!o.Search || len(o.Plans.Schedules) > 0) {
		return nil, fmt.Errorf("%w: --sharding %s: several are for --search, without --schedule", cli.ErrUsage, o.Sharding)
	}
	return list, nil
}

// orders predicts all orders that were asked for.
func (o *Options) orders(r *Result, job *input.Job, mixed *planning.Plans, specs []schedule.Spec, shards []sharding.Variant, questions []whatif.Question) error {
	var shard *sharding.Variant
	if len(shards) == 1 {
		shard = &shards[0]
	}
	p, m, err := o.Orders.Model(job.Found, o.Plans.Step)
	if err != nil {
		return err
	}
	base, fidelity, err := m.Baseline()
	if err != nil {
		return err
	}
	if o.Reduction > 0 {
		m.SetReduction(o.Reduction.Nanoseconds())
		if base, err = m.PredictOrder(schedule.Traced, m.Recorded(), sim.Shape{}, base.Options); err != nil {
			return err
		}
	}
	r.begin(p, m, base, fidelity)
	shape := sim.Shape{WeightShare: o.Orders.WeightShare, Buffers: o.Buffers}
	held := sharding.None
	if shard != nil {
		held = *shard
	}
	if r.size, err = o.Orders.Holding(m, held, o.Buffers); err != nil {
		return err
	}
	if r.Baseline.Ranks, err = r.size.Of(m.Recorded(), m.Stages); err != nil {
		return err
	}
	for _, spec := range specs {
		c, err := m.Candidate(m.Fill(spec), shard, shape)
		if err != nil {
			return err
		}
		c.Schedule = spec.String()
		shaped := shape
		shaped.EarlyReductions, shaped.Sharding = shard != nil, shard
		shaped.Scale = float64(m.Microbatches) / float64(c.Order.Microbatches())
		if spec.IsTraced() { // with the sends that it ran with, as it is compared with that
			if c.Prediction, err = m.PredictOrder(c.Schedule, c.Order, shaped, base.Options); err != nil {
				return err
			}
		}
		if err := r.add(c); err != nil {
			return err
		}
		if err := r.supposeOrder(supposing{m, shaped, len(job.Found.Pipelines)}, c.Schedule, c.Order, c.Options, questions); err != nil {
			return err
		}
	}
	if len(specs) == 0 {
		if err := r.supposeOrder(supposing{m, shape, len(job.Found.Pipelines)}, schedule.Traced, m.Recorded(), base.Options, questions); err != nil {
			return err
		}
	}
	if !o.Search {
		return nil
	}
	space := searching.Space{Job: job, Pipeline: p, Model: m, Plans: mixed, Mixes: len(o.Plans.Mixes), Shardings: shards, Shape: shape, Holding: r.size}
	found, err := o.Orders.Search(space)
	if err != nil {
		return err
	}
	return r.searched(found, o.Top)
}
