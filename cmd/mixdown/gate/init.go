package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/analyze/gate"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
)

// InitOptions are the dependencies and flags of "mixdown gate init".
type InitOptions struct {
	Streams   *cli.Streams
	Input     input.Options
	Baselines []string
	Output    string
	Suggest   gate.SuggestOptions
}

func newInitCmd(streams *cli.Streams, run func(context.Context, *InitOptions) error) *cobra.Command {
	opts := &InitOptions{Streams: streams, Suggest: gate.DefaultSuggestOptions()}
	if run == nil {
		run = RunInit
	}
	cmd := &cobra.Command{
		Use:   "init --baseline RUN",
		Short: "Write a policy whose limits come from the noise of a baseline",
		Long: `Measures how much the steps of a clean run differ, and writes a commented policy
whose limits such noise hardly ever reaches: step time, computation, exposed
communication, idle time, and the exposed communication of the groups and
operations that cost most.

The steps of one run don't show how runs differ from each other (another node, a
warmer machine). With several clean runs of the same job, --baseline given for
each, limits leave room for that.`,
		Example: `  mixdown gate init --baseline main/ -o gate.yaml
  mixdown gate init --baseline monday/ --baseline tuesday/ --baseline wednesday/ -o gate.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	opts.Input.AddFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&opts.Baselines, "baseline", nil, "clean `RUN` of the job; repeatable")
	f.StringVarP(&opts.Output, "output", "o", "-", "`FILE` to write, which must not exist; - is stdout")
	f.IntVar(&opts.Suggest.Samples.Warmup, "warmup", gate.DefaultWarmup, "first steps of every run to leave out")
	f.IntVar(&opts.Suggest.Samples.Min, "min", gate.DefaultMin, "steps that a run must have after that")
	f.Float64Var(&opts.Suggest.Confidence, "confidence", gate.DefaultConfidence, "that no rule fails by chance")
	return cmd
}

// RunInit writes the policy.
func RunInit(ctx context.Context, opts *InitOptions) error {
	s := opts.Suggest
	switch {
	case len(opts.Baselines) == 0:
		return fmt.Errorf("%w: --baseline is missing: name a clean run of the job", cli.ErrUsage)
	case s.Samples.Warmup < 0 || s.Samples.Min < 3:
		return fmt.Errorf("%w: --warmup must be 0 or more and --min 3 or more", cli.ErrUsage)
	case !(s.Confidence >= 0.5 && s.Confidence < 1):
		return fmt.Errorf("%w: --confidence %v: expected at least 0.5 and less than 1", cli.ErrUsage, s.Confidence)
	}
	if opts.Output != "-" {
		if _, err := os.Lstat(opts.Output); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s exists: policies are edited by hand, so it is not replaced", cli.ErrUsage, opts.Output)
		}
	}
	var runs []*gate.Record
	for _, arg := range opts.Baselines {
		r, refused, err := loadRecord(ctx, opts.Streams, opts.Input, []string{arg})
		if err = errors.Join(err, refused); err != nil {
			return fmt.Errorf("--baseline: %w", err)
		}
		runs = append(runs, r)
	}
	policy, err := gate.Suggest(runs, s)
	if err != nil {
		return err
	}
	return writeTo(opts.Streams, opts.Output, func(w io.Writer) error {
		_, err := w.Write(policy)
		return err
	})
}

// writeTo writes to a file, or to stdout for "-".
func writeTo(streams *cli.Streams, file string, write func(io.Writer) error) error {
	if file == "-" {
		return write(streams.Out)
	}
	if err := export.WriteFile(file, write); err != nil {
		return fmt.Errorf("--output %s: %w", file, err)
	}
	return nil
}
