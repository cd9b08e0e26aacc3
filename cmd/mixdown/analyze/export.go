package analyze

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/page"
	"mixdown/cmd/mixdown/version"
	"mixdown/ingest/remote"
)

// ExportOptions are the files and folders that the analysis is written to, beside
// standard output; "" is none.
type ExportOptions struct {
	HTML, Markdown, Pprof, Perfetto, Chrome string // files
	Parquet, Arrow                          string // folders

	args []string // the input, for the page to name
}

// AddFlags declares the flags.
func (o *ExportOptions) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.HTML, "html", "", "write a page for people to `FILE`: answers, tables, charts and the time line, in one file that loads nothing; see mixdown help report")
	f.StringVar(&o.Markdown, "markdown", "", "write the report as Markdown to `FILE`")
	f.StringVar(&o.Pprof, "pprof", "", "write the cost of communication to `FILE` for go tool pprof (its usual ending: .pb.gz)")
	f.StringVar(&o.Perfetto, "perfetto", "", "write the time line of all ranks on one clock to `FILE` for ui.perfetto.dev (.pftrace)")
	f.StringVar(&o.Chrome, "chrome", "", "write the same time line to `FILE` as Chrome trace JSON")
	f.StringVar(&o.Parquet, "parquet", "", "write tables as Parquet into the folder `DIR`, for DuckDB, Polars and pandas; see mixdown help exports")
	f.StringVar(&o.Arrow, "arrow", "", "write the same tables as Arrow IPC files into the folder `DIR`")
	for _, name := range []string{"parquet", "arrow"} {
		_ = cmd.MarkFlagDirname(name)
	}
}

// target is one thing to write.
type target struct {
	flag, path string
	check      func(path string) error
	write      func(ctx context.Context) error
}

// targets lists what the flags ask for.
func (o *ExportOptions) targets(in *export.Input, rows int) []target {
	file := func(write func(context.Context, io.Writer, *export.Input) error, path string) func(context.Context) error {
		return func(ctx context.Context) error {
			return export.WriteFile(path, func(w io.Writer) error { return write(ctx, w, in) })
		}
	}
	markdown := func(_ context.Context, w io.Writer, in *export.Input) error {
		return in.Analysis.WriteMarkdown(w, report.TextOptions{Rows: rows})
	}
	web := func(_ context.Context, w io.Writer, in *export.Input) error {
		p, err := page.Analysis(in, page.Process(o.args))
		if err != nil {
			return err
		}
		return p.Write(w)
	}
	var list []target
	for _, t := range []target{
		{"--html", o.HTML, export.CheckFile, file(web, o.HTML)},
		{"--markdown", o.Markdown, export.CheckFile, file(markdown, o.Markdown)},
		{"--pprof", o.Pprof, export.CheckFile, file(export.WritePprof, o.Pprof)},
		{"--perfetto", o.Perfetto, export.CheckFile, file(export.WritePerfetto, o.Perfetto)},
		{"--chrome", o.Chrome, export.CheckFile, file(export.WriteChrome, o.Chrome)},
		{"--parquet", o.Parquet, export.CheckFolder, func(ctx context.Context) error { return export.WriteParquet(ctx, o.Parquet, in) }},
		{"--arrow", o.Arrow, export.CheckFolder, func(ctx context.Context) error { return export.WriteArrow(ctx, o.Arrow, in) }},
	} {
		if t.path != "" {
			list = append(list, t)
		}
	}
	return list
}

// any tells whether anything is to be written.
func (o *ExportOptions) any() bool { return len(o.targets(nil, 0)) > 0 }

// Check refuses targets that can't be written, before anything is read.
func (o *ExportOptions) Check() error {
	seen := map[string]string{}
	for _, t := range o.targets(nil, 0) {
		path, err := filepath.Abs(t.path)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", cli.ErrUsage, t.flag, err)
		}
		if other, twice := seen[path]; twice {
			return fmt.Errorf("%w: %s and %s both write %s", cli.ErrUsage, other, t.flag, remote.Redact(t.path))
		}
		seen[path] = t.flag
		if err := t.check(t.path); errors.Is(err, export.ErrTarget) || err != nil && !remote.Is(t.path) {
			return fmt.Errorf("%w: %s %s: %w", cli.ErrUsage, t.flag, remote.Redact(t.path), err)
		} else if err != nil {
			return fmt.Errorf("%s %s: %w", t.flag, remote.Redact(t.path), err) // the store, not the command line
		}
	}
	return nil
}

// Write writes everything that the flags ask for of the job that was read from
// the input.
func (o *ExportOptions) Write(ctx context.Context, from *input.Options, job *input.Job, a *report.Analysis, rows int, streams *cli.Streams) error {
	in := &export.Input{Run: job.Run, Match: job.Match, Clocks: job.Clocks, Analysis: a, Tool: "mixdown " + version.String()}
	if job.Found != nil {
		in.Pipelines = job.Found.Pipelines
	}
	o.args = from.Args
	if o.HTML != "" || o.Parquet != "" || o.Arrow != "" {
		var err error
		if in.Checksums, err = from.Checksums(ctx, job.Run); err != nil {
			return err
		}
	}
	list := o.targets(in, rows)
	progress := streams.NewProgress("writing")
	defer progress.Done()
	for i, t := range list {
		progress.Set(i, len(list), remote.Redact(t.path))
		if err := t.write(ctx); err != nil {
			return fmt.Errorf("%s %s: %w", t.flag, remote.Redact(t.path), err)
		}
	}
	return nil
}

// RefuseLog is the error when anything is to be written of a log of
// communication, which says neither when nor on which rank.
func (o *ExportOptions) RefuseLog() error {
	if list := o.targets(nil, 0); len(list) > 0 {
		return fmt.Errorf("%w: %s: the input is a log of communication without times, of which nothing is exported: name traces", cli.ErrUsage, list[0].flag)
	}
	return nil
}
