// Package analyze is the command "mixdown analyze".
package analyze

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Input   input.Options
	Format  string
	Rows    int
	Wide    bool
	Step    string

	NoCritical bool
	Breakdown  bool
	Export     ExportOptions
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "analyze INPUT...",
		Short: "Where the time of every rank went, and which communication cost it",
		Long: `Reads the profiler traces of a run, one file for each rank, and shows the time
of every rank (computation, communication, how much of it is exposed, idle)
and a table of all communication by group, operation, type and size.

INPUT is files, folders, globs, archives or addresses (https://, s3://, gs://,
azblob://: see "mixdown help sources") of Kineto traces as torch.profiler
writes them, Perfetto traces, dumps of PyTorch's flight recorder (JSON or
pickle), a dataset that "mixdown ingest" made, or a log of DeepSpeed's comms
logger. Faults in the traces are repaired or left out, counted,
and listed at the end; see "mixdown help diagnostics".`,
		Example: `  mixdown analyze traces/
  mixdown analyze 'run7/rank*.pt.trace.json.gz' --format json
  mixdown analyze traces/ --execution-traces et/ --rows -1
  mixdown analyze traces/ --perfetto run7.pftrace --pprof run7.pb.gz --parquet run7.tables`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Input.Args = args
			return run(cmd.Context(), opts)
		},
	}
	opts.Input.AddFlags(cmd)
	cli.FormatFlag(cmd, &opts.Format)
	cmd.Flags().IntVar(&opts.Rows, "rows", report.DefaultRows, "rows of every table in text; negative shows all")
	cmd.Flags().BoolVar(&opts.Wide, "wide", false, "show all columns and whole names in text, in lines of any length")
	cmd.Flags().StringVar(&opts.Step, "step", "", "step of the critical path: its number, or all; default the step of median length")
	cmd.Flags().BoolVar(&opts.Breakdown, "breakdown", false, "show communication by group, operation and phase, and the times of each step (always in JSON)")
	cmd.Flags().BoolVar(&opts.NoCritical, "no-critical", false, "leave out the critical path, which takes time on large runs; a single rank never has it")
	opts.Export.AddFlags(cmd)
	return cmd
}

// Run analyses the input and writes the result.
func Run(ctx context.Context, opts *Options) error {
	if err := cli.CheckFormat(opts.Format); err != nil {
		return err
	}
	if err := opts.Export.Check(); err != nil {
		return err
	}
	// What is written elsewhere looks at the events of all ranks at once.
	opts.Input.KeepEvents = !opts.Export.any()
	job, err := opts.Input.Load(ctx, opts.Streams)
	if err != nil {
		if done, logErr := analyzeLog(ctx, opts, err); done {
			return cmp.Or(logErr, opts.Export.RefuseLog())
		}
		return err
	}
	pipelines, err := opts.Input.Pipelines(ctx, job, opts.Streams)
	if err != nil {
		return err
	}
	a, err := report.Analyze(job.Run, job.Match, report.Options{
		Pipelines: pipelines, NameSchedule: input.NameSchedule,
		Clocks: job.Clocks, Critical: len(job.Run.Ranks) > 1 && !opts.NoCritical, Step: opts.Step,
		Breakdown: opts.Breakdown || opts.Format == cli.JSON,
	})
	if err != nil {
		return err
	}
	if opts.Format == cli.JSON {
		enc := json.NewEncoder(opts.Streams.Out)
		enc.SetIndent("", " ")
		err = enc.Encode(a)
	} else {
		err = a.WriteText(opts.Streams.Out, report.TextOptions{Rows: opts.Rows, Wide: opts.Wide, Look: opts.Streams.Look})
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if err := opts.Export.Write(ctx, &opts.Input, job, a, opts.Rows, opts.Streams); err != nil {
		return err
	}
	return opts.Input.Refuse(&job.Run.Diagnostics, &job.Match.Diagnostics, &job.Clocks.Diagnostics, &pipelines.Diagnostics)
}
