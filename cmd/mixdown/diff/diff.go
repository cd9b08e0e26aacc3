// Package diff is the command "mixdown diff".
package diff

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mixdown/analyze/diff"
	"mixdown/analyze/gate/output"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/comparing"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/page"
	"mixdown/ingest/remote"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	// Input is how both runs are read; its arguments are not used.
	Input         input.Options
	Before, After string
	Output        comparing.Options
	// Getenv tells whether GitHub runs the comparison.
	Getenv func(string) string
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams, Getenv: os.Getenv}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "What changed between two runs: step time, and which communication caused it",
		Long: `Compares two runs of a job: the time of a step and its parts, and every kind of
communication by process group, operation, size class and phase: what appeared,
vanished, grew or shrank, and how sure that is. Steps are the samples; with four
or more in both runs each change has the p-value of a Mann-Whitney U test, which
is not corrected for the number of rows. Runs of different numbers of ranks are
compared per rank. What can't be compared is said.

--format and --output write what "mixdown gate" writes too, for programs: a change
for the worse that stands out is a warning, one for the better an improvement.
"mixdown gate" fails where limits are passed.

BEFORE and AFTER are each a folder, file or quoted glob of traces, or a dataset
of "mixdown ingest". The flags about input apply to both. The exit code is 0 when
the runs could be compared, whatever the difference, and 4 when they have nothing
in common.`,
		Example: `  mixdown diff main/ branch/
  mixdown diff 'old/rank*.json.gz' new.dataset --rows -1
  mixdown diff main/ branch/ --format json
  mixdown diff main/ branch/ --html diff.html --output markdown=diff.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%w: diff takes two runs, BEFORE and AFTER, not %d arguments: name folders, or quote globs", cli.ErrUsage, len(args))
			}
			opts.Before, opts.After = args[0], args[1]
			return run(cmd.Context(), opts)
		},
	}
	opts.Input.AddFlags(cmd)
	opts.Output.AddFlags(cmd)
	cmd.Flags().IntVar(&opts.Output.Rows, "rows", diff.DefaultRows, "rows of the table of operations in text; negative shows all")
	return cmd
}

// Run compares the runs and writes the result. The error is diff.ErrNotComparable
// when they have nothing in common; the result then says what is known of each.
func Run(ctx context.Context, opts *Options) error {
	if err := opts.Output.Check(); err != nil {
		return err
	}
	if opts.Input.ExecutionTraces != "" {
		return fmt.Errorf("%w: --execution-traces: they are of one run: give each run's to mixdown ingest and compare the datasets", cli.ErrUsage)
	}
	before, strictBefore, err := summarize(ctx, opts, opts.Before)
	if err != nil {
		return err
	}
	after, strictAfter, err := summarize(ctx, opts, opts.After)
	if err != nil {
		return err
	}
	d := diff.Compare(before, after)
	if err := opts.Output.Write(opts.Streams, output.OfDiff(d), nil, page.Process([]string{opts.Before, opts.After}), opts.Getenv); err != nil {
		return err
	}
	if strict := errors.Join(strictBefore, strictAfter); strict != nil {
		return strict
	}
	return d.Err()
}

// summarize reads one run and keeps of it what the comparison needs, so that the
// other one finds the memory free. The second result is what --strict refuses.
func summarize(ctx context.Context, opts *Options, arg string) (s *diff.Summary, strict, err error) {
	in := opts.Input
	in.Args = []string{arg}
	job, err := in.Load(ctx, opts.Streams)
	if err != nil {
		return nil, nil, err // names the file or folder
	}
	if strict = in.Refuse(&job.Run.Diagnostics, &job.Match.Diagnostics, &job.Clocks.Diagnostics); strict != nil {
		strict = fmt.Errorf("%s: %w", remote.Redact(arg), strict)
	}
	return diff.Summarize(diff.Input{Name: remote.Redact(arg), Run: job.Run, Match: job.Match, Clocks: job.Clocks}), strict, nil
}
