// Package schedule is the command "mixdown schedule".
package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/sizing"
	"mixdown/replay/gantt"
	"mixdown/replay/memory"
	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Spec    string
	Against string // another spec, empty for none
	Format  string
	Width   int
	Colour  bool
	SVG     string // file, empty for none
	Comms   string // of a CSV: commsNone, commsPlain or commsWaits

	Sharding        string
	WeightBuffers   int
	GradientBuffers int
	Gather, Reduce  string // time of one gather and reduction, empty if not given

	Sizes sizing.Options
}

// csv is the format that torch.distributed.pipelining loads.
const csv = "torch-csv"

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "schedule SPEC",
		Short: "A pipeline order without a trace: who does what when, bubbles, memory, messages",
		Long: `Makes the order of a pipeline schedule and computes it exactly: makespan, both
bubbles, how many activations each rank holds at most, messages. On request also
what data parallelism adds, what the ranks hold in bytes, and what is won and
lost against another schedule.

SPEC is NAME:KEY=VALUE,...  See "mixdown help schedules" for names and keys, and
for what the flags compute.`,
		Example: `  mixdown schedule 1f1b:ranks=4,microbatches=8
  mixdown schedule breadth-first:ranks=4,microbatches=8,loops=4,forward=1,backward=2
  mixdown schedule breadth-first:ranks=4,microbatches=8,loops=4 --against 1f1b --svg both.svg
  mixdown schedule breadth-first:ranks=4,microbatches=8,loops=4 --sharding full --gather 1 --reduce 2
  mixdown schedule 1f1b:ranks=8,microbatches=32 --params 52e9 --activation-bytes 2GiB --data-parallel 8
  mixdown schedule zb-h1:ranks=4,microbatches=8 --format torch-csv --comms > order.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Spec = args[0]
			return run(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Format, "format", cli.Text, "output `FORMAT`: text, json, or torch-csv as torch.distributed.pipelining loads it")
	flags.IntVar(&opts.Width, "width", 100, "columns of the picture in text")
	flags.BoolVar(&opts.Colour, "colour", false, "colours in the picture in text")
	flags.StringVar(&opts.SVG, "svg", "", "draw the schedule into `FILE`, with --against both on one time axis")
	flags.StringVar(&opts.Against, "against", "", "compare with another `SPEC`; what it leaves open is as in the first, for the same model")
	flags.StringVar(&opts.Comms, "comms", commsNone, "with torch-csv, a `FORM`: name transfers and collectives too; =waits for PyTorch 2.15 and later")
	flags.Lookup("comms").NoOptDefVal = commsPlain
	flags.StringVar(&opts.Sharding, "sharding", "", "data parallelism, a `VARIANT`: none, partial (gradients and optimizer state) or full (weights too)")
	flags.IntVar(&opts.WeightBuffers, "weight-buffers", 1, "buffers of each rank for gathered weights of a stage, with --sharding full")
	flags.IntVar(&opts.GradientBuffers, "gradient-buffers", 1, "buffers of each rank for gradients of a stage, with --sharding partial or full")
	flags.StringVar(&opts.Gather, "gather", "", "`TIME` of one gather of a chunk's weights, in the unit of the schedule, with --sharding partial or full")
	flags.StringVar(&opts.Reduce, "reduce", "", "`TIME` of one reduction of a chunk's gradient, in the unit of the schedule")
	opts.Sizes.AddFlags(cmd)
	complete := func(flag string, values ...string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	complete("format", cli.Text, cli.JSON, csv)
	complete("comms", commsNone, commsPlain, commsWaits)
	complete("sharding", sharding.None.String(), sharding.Partial.String(), sharding.Full.String())
	return cmd
}

// Run makes and writes the schedule.
func Run(_ context.Context, opts *Options) error {
	if opts.Format != csv {
		if err := cli.CheckFormat(opts.Format); err != nil {
			return err
		}
	}
	q, err := opts.question()
	if err != nil {
		return err
	}
	if opts.Format == csv {
		o, err := q.lower(opts.Comms)
		if err != nil {
			return err
		}
		if err := o.Numbered().WriteCSV(opts.Streams.Out); err != nil {
			return err
		}
		if opts.SVG == "" {
			return nil
		}
	}
	a, err := q.answer()
	if err != nil {
		return err
	}
	if opts.SVG != "" {
		if err := export.WriteFile(opts.SVG, func(w io.Writer) error { return a.figure().SVG(w) }); err != nil {
			return err
		}
	}
	switch opts.Format {
	case csv:
		return nil
	case cli.JSON:
		enc := json.NewEncoder(opts.Streams.Out)
		enc.SetEscapeHTML(false)
		return enc.Encode(a.output())
	}
	return a.writeText(opts)
}

// answer is a computed schedule and what was asked for besides.
type answer struct {
	question
	line        *schedule.Timeline
	counts      *sharding.Counts
	collectives []schedule.Collective
	ranks       []memory.Rank // nil if the model isn't described
	against     *answer
}

func (q question) answer() (*answer, error) {
	a := &answer{question: q}
	order, costs := q.order, q.spec.Costs
	if q.variant != nil {
		sharded, counts, err := sharding.Shard(order, *q.variant, q.buffers)
		if err != nil {
			return nil, usage(err)
		}
		order, a.counts = sharded, &counts
		costs.Gather, costs.Reduce = q.time(q.gather), q.time(q.reduce)
	}
	var err error
	if a.line, err = schedule.Evaluate(order, costs); err != nil {
		return nil, err
	}
	if q.variant == nil && q.reduce != nil {
		a.collectives = sharding.Reductions(a.line, *q.reduce)
	} else {
		a.collectives = a.line.Collectives()
	}
	if q.model != nil {
		if a.ranks, err = memory.Of(q.order, *q.model); err != nil {
			return nil, usage(err)
		}
	}
	if q.against != nil {
		if a.against, err = q.against.answer(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// exposed is what collectives add to the step after the last pass.
func (a *answer) exposed() schedule.Rational { return sharding.Exposed(a.line, a.collectives) }

// step is the time until passes and collectives are done.
func (a *answer) step() schedule.Rational { return a.line.Makespan().Add(a.exposed()) }

// outcome is the schedule's time and memory.
func (a *answer) outcome() (memory.Outcome, error) {
	o := memory.Outcome{Time: a.step(), Stages: a.order.Stages(), Ranks: a.ranks}
	if o.Ranks != nil {
		return o, nil
	}
	var err error
	o.Ranks, err = memory.Of(a.order, memory.Model{})
	return o, err
}

// compared is what the schedule wins and loses against the other, in one line.
func (a *answer) compared() (string, error) {
	before, err := a.against.outcome()
	if err != nil {
		return "", err
	}
	after, err := a.outcome()
	if err != nil {
		return "", err
	}
	return memory.Compare(before, after), nil
}

// figure is the picture: the other schedule first, it is the one before.
func (a *answer) figure() gantt.Figure {
	var f gantt.Figure
	if a.against != nil {
		f.Charts = append(f.Charts, a.against.chart())
	}
	f.Charts = append(f.Charts, a.chart())
	return f
}

// chart is the schedule with a row for each rank's collectives, if any.
func (a *answer) chart() gantt.Chart {
	return gantt.FromTimeline(a.spec.String(), a.line).WithCollectives(a.collectives)
}

func usage(err error) error { return fmt.Errorf("%w: %w", cli.ErrUsage, err) }
