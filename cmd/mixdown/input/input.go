// Package input reads the traces that a command's arguments name, with the
// flags that all verbs share.
package input

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"mixdown/analyze/collective"
	"mixdown/cmd/mixdown/cli"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/executiontrace"
	"mixdown/ingest/kineto"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// Options are the flags about input.
type Options struct {
	Args            []string
	RanksFrom       string
	ExecutionTraces string
	Strict          bool
}

// AddFlags declares the flags.
func (o *Options) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.RanksFrom, "ranks-from", "", "take ranks from file names: `REGEX` with a group for the number, e.g. 'node-(\\d+)'")
	f.StringVar(&o.ExecutionTraces, "execution-traces", "", "`DIR` with the PyTorch execution traces of the same run: they hold exact all_to_all splits")
	f.BoolVar(&o.Strict, "strict", false, "fail (exit code 3) when anything had to be repaired, skipped, estimated or left unknown")
}

// Load reads the run and matches its communication across ranks.
func (o *Options) Load(ctx context.Context, streams *cli.Streams) (*trace.Run, *collective.Matching, error) {
	if len(o.Args) == 0 {
		return nil, nil, fmt.Errorf("%w: no input: name files or folders of traces, one file for each rank", cli.ErrUsage)
	}
	opts := kineto.Options{}
	if o.RanksFrom != "" {
		re, err := source.CompileRankRegexp(o.RanksFrom)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: --ranks-from: %w", cli.ErrUsage, err)
		}
		opts.RanksFrom = re
	}
	files, err := source.Find(o.Args, source.Options{Stdin: streams.In})
	if err != nil {
		return nil, nil, err
	}
	progress := streams.NewProgress("reading")
	var read atomic.Int64
	opts.Progress = func(name string) { progress.Set(int(read.Add(1)), len(files), name) }
	run, err := kineto.Load(ctx, files, opts)
	progress.Done()
	if err != nil {
		return nil, nil, err
	}
	if o.ExecutionTraces != "" {
		if err := o.join(ctx, run); err != nil {
			return nil, nil, err
		}
	}
	return run, collective.Match(run), nil
}

// join adds what the execution traces know to the run.
func (o *Options) join(ctx context.Context, run *trace.Run) error {
	files, err := source.Find([]string{o.ExecutionTraces}, source.Options{})
	if err != nil {
		return fmt.Errorf("--execution-traces: %w", err)
	}
	traces, diags, err := executiontrace.Load(ctx, files)
	if err != nil {
		return fmt.Errorf("--execution-traces: %w", err)
	}
	run.Diagnostics.Merge(&diags)
	applied := executiontrace.Apply(run, traces)
	run.Diagnostics.Merge(&applied)
	return nil
}

// Refuse returns an error when --strict was given and there are diagnostics.
func (o *Options) Refuse(sets ...*diagnostic.Set) error {
	if !o.Strict {
		return nil
	}
	var all diagnostic.Set
	for _, s := range sets {
		all.Merge(s)
	}
	list := all.List()
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d kinds of faults, the first: %s", cli.ErrStrict, len(list), list[0])
}
