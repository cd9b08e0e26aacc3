package gate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/analyze/gate"
	"mixdown/analyze/gate/shift"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
)

// SaveOptions are the dependencies and flags of "mixdown gate baseline save".
type SaveOptions struct {
	Streams *cli.Streams
	Input   input.Options
	Output  string
	ByRank  string // auto, always, never
	Format  string // of show
}

// mostRanks is how many ranks are kept one by one with --by-rank auto: a record of
// them and 50 steps has less than 200 KB.
const mostRanks = 64

func newBaselineCmd(streams *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Save and show the records that gates compare with",
		Long: `A record holds the values of every step of a run, which is all that a gate needs:
small enough to be committed where the traces are not.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSaveCmd(streams, nil), newShowCmd(streams))
	return cmd
}

func newSaveCmd(streams *cli.Streams, run func(context.Context, *SaveOptions) error) *cobra.Command {
	opts := &SaveOptions{Streams: streams}
	if run == nil {
		run = RunSave
	}
	cmd := &cobra.Command{
		Use:     "save INPUT... -o FILE",
		Short:   "Save what gates need of a run as JSON to be committed",
		Example: `  mixdown gate baseline save main/ -o base.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Input.Args = args
			return run(cmd.Context(), opts)
		},
	}
	opts.Input.AddFlags(cmd)
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "-", "`FILE` to write; - is stdout")
	cmd.Flags().StringVar(&opts.ByRank, "by-rank", "auto", fmt.Sprintf("keep the times of every rank: always, never, or auto: of up to %d ranks", mostRanks))
	return cmd
}

// RunSave writes the record.
func RunSave(ctx context.Context, opts *SaveOptions) error {
	switch opts.ByRank {
	case "auto", "always", "never":
	default:
		return fmt.Errorf("%w: --by-rank %q: expected auto, always or never", cli.ErrUsage, opts.ByRank)
	}
	if opts.Output != "-" {
		if err := export.CheckFile(opts.Output); err != nil {
			return fmt.Errorf("--output %s: %w", opts.Output, err)
		}
	}
	if len(opts.Input.Args) == 0 {
		return fmt.Errorf("%w: no input: name the run to save", cli.ErrUsage)
	}
	r, refused, err := loadRecord(ctx, opts.Streams, opts.Input, opts.Input.Args)
	if err != nil {
		return err
	}
	if opts.ByRank == "never" || opts.ByRank == "auto" && len(r.Ranks) > mostRanks {
		r.Ranks = nil
	}
	if err := writeTo(opts.Streams, opts.Output, r.Write); err != nil {
		return err
	}
	return refused
}

func newShowCmd(streams *cli.Streams) *cobra.Command {
	opts := &SaveOptions{Streams: streams}
	cmd := &cobra.Command{
		Use:     "show RECORD",
		Short:   "Show what a record holds: where it is from, medians and noise",
		Example: `  mixdown gate baseline show base.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%w: show takes one record, not %d arguments", cli.ErrUsage, len(args))
			}
			opts.Input.Args = args
			return runShow(cmd.Context(), opts)
		},
	}
	opts.Input.AddFlags(cmd)
	cli.FormatFlag(cmd, &opts.Format)
	return cmd
}

func runShow(ctx context.Context, opts *SaveOptions) error {
	if err := cli.CheckFormat(opts.Format); err != nil {
		return err
	}
	r, refused, err := loadRecord(ctx, opts.Streams, opts.Input, opts.Input.Args)
	if err != nil {
		return err
	}
	if opts.Format == cli.JSON {
		return errors.Join(r.Write(opts.Streams.Out), refused)
	}
	p := report.NewPage(false)
	f := r.Facts
	p.Linef("%s: %d of %d ranks, %s, backend %s, %d steps", report.Printable(r.Source), f.RanksRead, f.WorldSize, orUnknown(f.Device), orUnknown(f.Backend), len(r.Steps))
	for _, l := range f.Layout {
		p.Linef("  group %s", l)
	}
	if r.Mean != nil && len(r.Steps) > 0 {
		g := report.NewGrid(report.Column{Head: "metric"}, report.Column{Head: "median"}, report.Column{Head: "noise"}, report.Column{Head: "outliers"})
		for _, m := range []gate.Metric{gate.Step, gate.Compute, gate.Comm, gate.ExposedComm, gate.HiddenComm, gate.Memory, gate.Idle} {
			values := r.Values(m, nil, min(gate.DefaultWarmup, len(r.Steps)-1))
			sd, outliers := shift.Spread(values)
			median := shift.Median(values, 0).Median
			noise := ""
			if median != 0 {
				noise = fmt.Sprintf("%.1f %%", 100*sd/median)
			}
			g.Row(string(m), m.Unit().Format(median), noise, fmt.Sprint(outliers))
		}
		p.Headingf("Times of a step, mean over ranks (step: the slowest rank), the first step left out")
		p.Grid(g)
	}
	if _, err := io.WriteString(opts.Streams.Out, p.String()); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return refused
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return report.Printable(s)
}
