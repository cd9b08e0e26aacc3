// Package input reads the traces that a command's arguments name, with the
// flags that all verbs share.
package input

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/pipeline"
	"mixdown/cmd/mixdown/cli"
	"mixdown/ingest/chrome"
	"mixdown/ingest/dataset"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/executiontrace"
	"mixdown/ingest/kineto"
	"mixdown/ingest/remote"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// Options are the flags about input.
type Options struct {
	Args            []string
	RanksFrom       string
	ExecutionTraces string
	Strict          bool
	Fix             string

	// Limits; 0 means the readers' defaults.
	MaxFiles, MaxDepth            int
	MaxEvents, MaxBytes, MaxRatio int64
	MaxEventBytes                 int

	// KeepEvents leaves the events of a dataset where they are until they are
	// looked at, rank by rank: for verbs that acquire what they look at.
	KeepEvents bool

	client *remote.Client
}

// Remote is what reads inputs that are not files, until ctx ends.
func (o *Options) Remote(ctx context.Context) *remote.Client {
	if o.client == nil {
		o.client = remote.New(ctx, remote.Options{})
	}
	return o.client
}

// AddFlags declares the flags.
func (o *Options) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.RanksFrom, "ranks-from", "", "take ranks from file names: `REGEX` with a group for the number, e.g. 'node-(\\d+)'")
	f.StringVar(&o.ExecutionTraces, "execution-traces", "", "`DIR` with the PyTorch execution traces of the same run: they hold exact all_to_all splits")
	f.StringVar(&o.Fix, "fix", "none", "what to do with device events that start before their launch: none, drop or clamp")
	f.IntVar(&o.MaxFiles, "max-files", 0, "limit: files to read; 0 means 100,000")
	f.Int64Var(&o.MaxBytes, "max-bytes", 0, "limit: decompressed bytes of one file; 0 means 64 GiB")
	f.Int64Var(&o.MaxRatio, "max-ratio", 0, "limit: decompressed to compressed bytes of one file, beyond the first 256 MiB; 0 means 250")
	f.Int64Var(&o.MaxEvents, "max-events", 0, "limit: events of one file; 0 means none")
	f.IntVar(&o.MaxDepth, "max-depth", 0, "limit: nesting of values; 0 means 128")
	f.IntVar(&o.MaxEventBytes, "max-event-bytes", 0, "limit: bytes of one event; 0 means 64 MiB")
	f.BoolVar(&o.Strict, "strict", false, "fail (exit code 3) when anything had to be repaired, skipped, estimated or left unknown")
}

// Job is a run as the verbs need it: its communication matched across ranks, and
// on one clock where that is possible.
type Job struct {
	Run    *trace.Run
	Match  *collective.Matching
	Clocks *align.Result

	// Found are the pipelines of the run, once Pipelines has looked for them.
	Found *pipeline.Result
}

// Load reads the run, matches its communication and aligns its clocks.
func (o *Options) Load(ctx context.Context, streams *cli.Streams) (*Job, error) {
	dir, err := o.Dataset(ctx)
	if err != nil {
		return nil, err
	}
	var run *trace.Run
	if dir != "" {
		run, err = o.readDataset(ctx, streams, dir)
	} else {
		run, err = o.readTraces(ctx, streams)
	}
	if err != nil {
		return nil, err
	}
	if o.ExecutionTraces != "" {
		if err := o.join(ctx, run); err != nil {
			return nil, err
		}
	}
	job := &Job{Run: run, Match: collective.Match(run)}
	job.Clocks = align.Estimate(run, job.Match)
	align.Apply(run, job.Clocks)
	align.UpdateArrivals(run, job.Match)
	return job, nil
}

// Place is where a dataset of the given name is.
func (o *Options) Place(ctx context.Context, name string) dataset.Place {
	return dataset.At(name, o.Remote(ctx))
}

// isDataset tells whether an argument is a dataset. Addresses and patterns are
// none, which saves asking.
func (o *Options) isDataset(ctx context.Context, arg string) bool {
	if remote.Is(arg) && (!remote.Listable(arg) || strings.ContainsAny(arg, "*?[")) {
		return false
	}
	return dataset.Is(o.Place(ctx, arg))
}

// Dataset returns the name when the input is a dataset, else "".
func (o *Options) Dataset(ctx context.Context) (string, error) {
	for _, arg := range o.Args {
		switch {
		case !o.isDataset(ctx, arg):
			continue
		case len(o.Args) > 1:
			return "", fmt.Errorf("%w: %s is a dataset: name it alone", cli.ErrUsage, arg)
		case o.RanksFrom != "":
			return "", fmt.Errorf("%w: --ranks-from: the ranks of the dataset %s are fixed: give it to mixdown ingest", cli.ErrUsage, arg)
		case o.Fix != "" && o.Fix != "none":
			return "", fmt.Errorf("%w: --fix: the dataset %s is read already: give it to mixdown ingest", cli.ErrUsage, arg)
		}
		return arg, nil
	}
	return "", nil
}

// Traces finds the trace files of the input, and how to read them.
func (o *Options) Traces(ctx context.Context, streams *cli.Streams) ([]source.File, kineto.Options, error) {
	opts := kineto.Options{}
	if len(o.Args) == 0 {
		return nil, opts, fmt.Errorf("%w: no input: name files or folders of traces, one file for each rank", cli.ErrUsage)
	}
	if o.RanksFrom != "" {
		re, err := source.CompileRankRegexp(o.RanksFrom)
		if err != nil {
			return nil, opts, fmt.Errorf("%w: --ranks-from: %w", cli.ErrUsage, err)
		}
		opts.RanksFrom = re
	}
	fix, err := kineto.ParseFix(o.Fix)
	if err != nil {
		return nil, opts, fmt.Errorf("%w: --fix: %w", cli.ErrUsage, err)
	}
	opts.Fix = fix
	opts.Limits = chrome.Options{MaxDepth: o.MaxDepth, MaxEvents: o.MaxEvents, MaxEventBytes: o.MaxEventBytes}
	files, err := source.Find(o.Args, source.Options{Stdin: streams.In, Remote: o.Remote(ctx), MaxFiles: o.MaxFiles, MaxBytes: o.MaxBytes, MaxRatio: o.MaxRatio})
	// The description of a dataset that lies among the traces is none.
	files = slices.DeleteFunc(files, func(f source.File) bool { return filepath.Base(f.Name) == dataset.MetadataFile })
	return files, opts, err
}

func (o *Options) readTraces(ctx context.Context, streams *cli.Streams) (*trace.Run, error) {
	files, opts, err := o.Traces(ctx, streams)
	if err != nil {
		return nil, err
	}
	progress := streams.NewProgress("reading")
	defer progress.Done()
	var read atomic.Int64
	opts.Progress = func(name string) { progress.Set(int(read.Add(1)), len(files), name) }
	return kineto.Load(ctx, files, opts)
}

func (o *Options) readDataset(ctx context.Context, streams *cli.Streams, dir string) (*trace.Run, error) {
	progress := streams.NewProgress("reading")
	defer progress.Done()
	read := dataset.Read
	if o.KeepEvents {
		read = dataset.ReadKept
	}
	return read(ctx, o.Place(ctx, dir), func(done, total int) { progress.Set(done, total, dir) })
}

// join adds what the execution traces know to the run.
func (o *Options) join(ctx context.Context, run *trace.Run) error {
	files, err := o.FindExecutionTraces(ctx)
	if err != nil {
		return err
	}
	return JoinExecutionTraces(ctx, run, files)
}

// FindExecutionTraces lists the files that --execution-traces names.
func (o *Options) FindExecutionTraces(ctx context.Context) ([]source.File, error) {
	files, err := source.Find([]string{o.ExecutionTraces}, source.Options{Remote: o.Remote(ctx)})
	if err != nil {
		return nil, fmt.Errorf("--execution-traces: %w", err)
	}
	return files, nil
}

// JoinExecutionTraces adds what execution traces know to the communication of
// the run. It does not look at the events.
func JoinExecutionTraces(ctx context.Context, run *trace.Run, files []source.File) error {
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
