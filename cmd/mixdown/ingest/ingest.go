// Package ingest is the command "mixdown ingest": it reads traces into a
// dataset, rank by rank, so that of a run of any size only as many ranks are in
// memory as there are CPUs.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/version"
	"mixdown/ingest/dataset"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/remote"
	"mixdown/ingest/share"
	"mixdown/ingest/source"
)

// toolName is recorded in datasets: another version may read more from traces.
const toolName = "mixdown " + version.Number

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Input   input.Options
	Format  string
	Dir     string
	Force   bool
	Jobs    int

	// Share is which part of the files to read, as package share reads it; Lookup
	// finds the variables for it, nil those of the process.
	Share  string
	Lookup func(name string) (string, bool)
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "ingest INPUT... -o DIR",
		Short: "Traces as a dataset of Parquet tables, which every verb and notebooks read",
		Long: `Reads the profiler traces of a run into a dataset: a folder of Parquet tables,
partitioned by rank. Every verb takes the folder instead of the traces and need
not parse them again; pyarrow, DuckDB, Polars and Spark read its tables, which
"mixdown help datasets" describes.

Ranks are read and written one by one, each as a whole or not at all. A command
that was stopped goes on where it was when it is run again; ranks whose files
have not changed since (size and time of change) are not read again.

Traces and dataset may both be in an object store. Started by srun, mpirun,
torchrun or an indexed Job of Kubernetes, each process reads its share and the
last one says that the dataset is complete: see "mixdown help cluster".`,
		Example: `  mixdown ingest traces/ -o run7.dataset
  mixdown analyze run7.dataset
  mixdown ingest traces/ -o run7.dataset --force
  srun -n 16 mixdown ingest s3://bucket/run7/ -o s3://bucket/run7.dataset`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Input.Args = args
			return run(cmd.Context(), opts)
		},
	}
	opts.Input.AddFlags(cmd)
	cli.FormatFlag(cmd, &opts.Format)
	f := cmd.Flags()
	f.StringVarP(&opts.Dir, "output", "o", "", "`DIR` of the dataset, new or to be continued")
	f.BoolVar(&opts.Force, "force", false, "write all ranks again, and drop those that are not in the input")
	f.StringVar(&opts.Share, "share", "auto", "`PART` of the files to read: all, I/N, or auto, which asks srun, mpirun, torchrun or Kubernetes")
	f.IntVar(&opts.Jobs, "jobs", 0, "`N` files to read at once, each held in memory; 0: one for each CPU")
	_ = cmd.MarkFlagDirname("output")
	return cmd
}

// Run reads the input into the dataset and writes a summary.
func Run(ctx context.Context, opts *Options) (err error) {
	part, err := check(ctx, opts)
	if err != nil {
		return err
	}
	files, how, err := opts.Input.Traces(ctx, opts.Streams)
	if err != nil {
		return err
	}
	// A dataset below the folder of traces is not part of it.
	sources := describe(files, opts.Dir, flagsOf(&opts.Input))
	if len(sources) == 0 {
		return fmt.Errorf("%w: the input holds nothing but a dataset", source.ErrNoTraces)
	}
	var joined *join
	if opts.Input.ExecutionTraces != "" {
		if joined, err = newJoin(ctx, &opts.Input); err != nil {
			return err
		}
	}
	at := opts.Input.Place(ctx, opts.Dir)
	w, err := dataset.Create(at, dataset.CreateOptions{
		Tool: toolName, Fresh: opts.Force,
		Task: dataset.Task{Index: part.Index, Count: part.Count, Listing: fingerprint(sources), Files: part.Of(len(sources))},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	j := &job{opts: opts, at: at, how: how, all: sources, sources: shareOf(sources, part), part: part, writer: w}
	if err := j.plan(joined); err != nil {
		return err
	}
	if err := j.run(ctx); err != nil {
		return err
	}
	if joined != nil && !j.joined {
		if err := joined.apply(ctx, j); err != nil {
			return err
		}
	}
	if err := j.finish(); err != nil {
		return err
	}
	s, faults, err := summarize(j)
	if err != nil {
		return err
	}
	if err := s.write(opts); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return opts.Input.Refuse(faults)
}

// check refuses command lines that make no sense, and finds out which share of
// the files this process has.
func check(ctx context.Context, opts *Options) (share.Share, error) {
	if err := cli.CheckFormat(opts.Format); err != nil {
		return share.Share{}, err
	}
	if opts.Dir == "" {
		return share.Share{}, fmt.Errorf("%w: no output: name the folder of the dataset with -o DIR", cli.ErrUsage)
	}
	if remote.Is(opts.Dir) && !remote.Listable(opts.Dir) {
		return share.Share{}, fmt.Errorf("%w: -o %s: a web server takes no files: name a folder, or s3://, gs:// or azblob://", cli.ErrUsage, remote.Redact(opts.Dir))
	}
	if opts.Jobs < 0 {
		return share.Share{}, fmt.Errorf("%w: --jobs %d: 0 or more", cli.ErrUsage, opts.Jobs)
	}
	lookup := opts.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	part, err := share.Parse(opts.Share, lookup)
	switch {
	case err != nil:
		return part, fmt.Errorf("%w: %w", cli.ErrUsage, err)
	case !part.Alone() && opts.Force:
		return part, fmt.Errorf("%w: --force: %d tasks would each remove what the others wrote: name a new place with -o", cli.ErrUsage, part.Count)
	case !part.Alone() && opts.Input.ExecutionTraces != "":
		return part, fmt.Errorf("%w: --execution-traces: they are joined to all ranks at once: when all tasks are done, run the same ingest with --share all, which reads no trace again", cli.ErrUsage)
	}
	dir, err := opts.Input.Dataset(ctx)
	if err == nil && dir != "" {
		err = fmt.Errorf("%w: %s is a dataset already: name the traces", cli.ErrUsage, dir)
	}
	return part, err
}

// flagsOf are the flags that change what is read from the same bytes.
func flagsOf(in *input.Options) string {
	var flags []string
	add := func(set bool, format string, v any) {
		if set {
			flags = append(flags, fmt.Sprintf(format, v))
		}
	}
	add(in.RanksFrom != "", "--ranks-from %s", in.RanksFrom)
	add(in.Fix != "" && in.Fix != "none", "--fix %s", in.Fix)
	add(in.MaxEvents != 0, "--max-events %d", in.MaxEvents)
	add(in.MaxDepth != 0, "--max-depth %d", in.MaxDepth)
	add(in.MaxEventBytes != 0, "--max-event-bytes %d", in.MaxEventBytes)
	add(in.MaxBytes != 0, "--max-bytes %d", in.MaxBytes)
	add(in.MaxRatio != 0, "--max-ratio %d", in.MaxRatio)
	return strings.Join(flags, " ")
}

// faultsOf adds the diagnostics of ranks of a dataset to those of none.
func faultsOf(d *dataset.Dataset, ranks []dataset.Entry, all diagnostic.Set) (*diagnostic.Set, error) {
	for _, e := range ranks {
		list, err := d.Faults(e.Rank)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			all.Add(f)
		}
	}
	return &all, nil
}
