// Package schedule is the command "mixdown schedule".
package schedule

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/schedule"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Spec    string
	Format  string
	Width   int
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
bubbles, how many activations each rank holds at most, messages.

SPEC is NAME:KEY=VALUE,...  See "mixdown help schedules" for names and keys.`,
		Example: `  mixdown schedule 1f1b:ranks=4,microbatches=8
  mixdown schedule breadth-first:ranks=4,microbatches=8,loops=4,forward=1,backward=2
  mixdown schedule zb-h1:ranks=4,microbatches=8 --format json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Spec = args[0]
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Format, "format", cli.Text, "output `FORMAT`: text, json, or torch-csv as torch.distributed.pipelining loads it")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{cli.Text, cli.JSON, csv}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().IntVar(&opts.Width, "width", 100, "columns of the picture in text")
	return cmd
}

// Run makes and writes the schedule.
func Run(_ context.Context, opts *Options) error {
	if opts.Format != csv {
		if err := cli.CheckFormat(opts.Format); err != nil {
			return err
		}
	}
	spec, err := schedule.Parse(opts.Spec)
	if err != nil {
		return err
	}
	order, err := spec.Order()
	if err != nil {
		return err
	}
	if opts.Format == csv {
		return order.WriteCSV(opts.Streams.Out)
	}
	line, err := schedule.Evaluate(order, spec.Costs)
	if err != nil {
		return err
	}
	result := schedule.NewResult(spec.Name, line)
	if opts.Format == cli.JSON {
		enc := json.NewEncoder(opts.Streams.Out)
		return enc.Encode(result)
	}
	return writeText(opts, result, line)
}

func writeText(opts *Options, r schedule.Result, line *schedule.Timeline) error {
	out := opts.Streams.Out
	if _, err := fmt.Fprintf(out, "%s: %d ranks, %d micro-batches, %d chunks a rank\nmakespan %v, bubble %v (%v of the longest rank's span), %d messages\nchunks held at most, by rank: %v\n\n",
		r.Schedule, r.Ranks, r.Microbatches, r.Loops, r.Makespan, r.Bubble, r.BubbleLongestSpan, r.Messages, r.PeakChunks); err != nil {
		return err
	}
	if err := line.Gantt(out, opts.Width); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, schedule.GanttLegend)
	return err
}
