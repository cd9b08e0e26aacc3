// Package check is the command "mixdown check".
package check

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/planning"
	"mixdown/replay/mix"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams      *cli.Streams
	Files        []string
	Capabilities string
	Format       string
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "check PLAN...",
		Short: "Can a plan hang? Deadlocks, contradictions and impossible backends, before anything runs",
		Long: `Looks in plan files ("mixdown plan" writes them) for what would make a run hang
or fail: operations that wait for each other in a circle, members of a group that
disagree, sends without receives, libraries that can't do what they are to do.
A circle is shown with its ranks, operations and times in the trace, and there is
none with fewer operations. "mixdown replay" makes the same checks first.

Exit code 5 when a plan must not run. See "mixdown help deadlocks" for all checks
and what they assume.`,
		Example: `  mixdown check mixed.plan
  mixdown check mixed.plan --format json
  mixdown check mixed.plan --capabilities cluster.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Files = args
			return run(cmd.Context(), opts)
		},
	}
	cli.FormatFlag(cmd, &opts.Format)
	planning.CapabilitiesFlag(cmd, &opts.Capabilities)
	return cmd
}

// plan is the report on one plan of a file.
type plan struct {
	File string `json:"file"`
	*mix.Report
}

// Run checks all plans and writes the reports; it fails when one must not run.
func Run(ctx context.Context, opts *Options) error {
	if err := cli.CheckFormat(opts.Format); err != nil {
		return err
	}
	if len(opts.Files) == 0 {
		return fmt.Errorf("%w: no plan: name plan files, as \"mixdown plan\" writes them", cli.ErrUsage)
	}
	capabilities, err := planning.ReadCapabilities(opts.Capabilities)
	if err != nil {
		return err
	}
	plans := []plan{}
	var refused error
	for _, file := range opts.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read plan: %w", err)
		}
		exp, err := mix.Decode(data)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, p := range exp.Plans {
			r := mix.Inspect(p, mix.CheckOptions{Capabilities: capabilities})
			plans = append(plans, plan{file, r})
			if err := r.Err(); err != nil && refused == nil {
				refused = fmt.Errorf("%s: plan %q: %w", file, p.Name, err)
			}
		}
	}
	if err := write(opts, plans); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return refused
}

func write(opts *Options, plans []plan) error {
	if opts.Format == cli.JSON {
		enc := json.NewEncoder(opts.Streams.Out)
		enc.SetIndent("", " ")
		return enc.Encode(struct {
			SchemaVersion int    `json:"schema_version"`
			Plans         []plan `json:"plans"`
		}{mix.SchemaVersion, plans})
	}
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(opts.Streams.Out)
		}
		if err := p.WriteText(opts.Streams.Out); err != nil {
			return err
		}
	}
	return nil
}
