// Package importing is the command "mixdown import".
package importing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/source"
	"mixdown/replay/tune"
	"mixdown/replay/tune/imports"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Logs    []string
	As      string
	Output  string
	Format  string
	Strict  bool

	Backend         string // with settings after a colon
	Op, DType       string
	Ranks, Nodes    int
	Device          string
	Hardware        string
	LibraryVersions string
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	var formats strings.Builder
	var names []string
	for _, f := range imports.Formats() {
		fmt.Fprintf(&formats, "  %-14s  %s\n", f.Name, f.About)
		names = append(names, f.Name)
	}
	cmd := &cobra.Command{
		Use:   "import --as FORMAT LOG... -o TABLE",
		Short: "Make a table of measurements from another tool's output",
		Long: `Reads what another tool measured and writes it as a table, or adds it to the
table that is there. Every tool has its own idea of an operation's size: all are
turned into what one rank contributes and receives ("mixdown help tuning").

What a log does not hold is asked for by a flag; a flag that contradicts the log is
refused. Rows that can't be believed are left out and counted.

FORMAT is one of
` + formats.String(),
		Example: `  mixdown import --as nccl-tests all_reduce.log -o h100.tune --hardware '8 x H100'
  mixdown import --as osu allreduce.log -o h100.tune --backend openmpi --ranks 8 --nodes 1 --device gpu
  mixdown import --as nccl-inspector dumps/*.log -o job.tune
  mixdown import --as nccl-tests ring_ll.log -o h100.tune --backend nccl:ring/ll/ch=8`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Logs = args
			return run(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.As, "as", "", "`FORMAT` of the logs")
	f.StringVarP(&opts.Output, "output", "o", "", "`TABLE` to write, or to add to")
	f.StringVar(&opts.Backend, "backend", "", "library that was measured, with its settings after a colon")
	f.StringVar(&opts.Op, "op", "", "operation, where the log does not say")
	f.StringVar(&opts.DType, "dtype", "", "element type, where the log does not say")
	f.IntVar(&opts.Ranks, "ranks", 0, "ranks, where the log does not say")
	f.IntVar(&opts.Nodes, "nodes", 0, "machines, where the log does not say")
	f.StringVar(&opts.Device, "device", "", "where the buffers were: host or gpu")
	f.StringVar(&opts.Hardware, "hardware", "", "of the machine, in words")
	f.StringVar(&opts.LibraryVersions, "library-version", "", "of the library, where the log does not say")
	f.BoolVar(&opts.Strict, "strict", false, "fail (exit code 3) when a row was left out or is not exact")
	cli.FormatFlag(cmd, &opts.Format)
	_ = cmd.RegisterFlagCompletionFunc("as", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Run reads the logs and writes the table.
func Run(_ context.Context, opts *Options) error {
	o, err := opts.check()
	if err != nil {
		return err
	}
	table := &tune.Table{}
	if have, err := tune.Read(opts.Output); err == nil {
		table = have
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var diags diagnostic.Set
	rows := 0
	for _, name := range opts.Logs {
		result, err := opts.read(name, o)
		if err != nil {
			return err
		}
		fresh, err := result.Table()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := table.Merge(fresh); err != nil {
			return err
		}
		diags.Merge(&result.Diagnostics)
		rows += len(result.Rows)
	}
	if opts.Strict && len(diags.List()) > 0 {
		return fmt.Errorf("%w: %d kinds of faults, the first: %s", cli.ErrStrict, len(diags.List()), diags.List()[0])
	}
	if err := table.Write(opts.Output); err != nil {
		return err
	}
	return opts.tell(rows, table, &diags)
}

// check reads the flags.
func (o *Options) check() (imports.Options, error) {
	c := tune.ParseContender(o.Backend)
	out := imports.Options{
		Backend: c.Backend, Variant: c.Variant, Ranks: o.Ranks, Nodes: o.Nodes, Device: o.Device, Hardware: o.Hardware, Version: o.LibraryVersions,
	}
	switch {
	case o.As == "":
		return out, fmt.Errorf("%w: --as FORMAT is missing: see mixdown import --help for the formats", cli.ErrUsage)
	case len(o.Logs) == 0:
		return out, fmt.Errorf("%w: no input: name the logs to read", cli.ErrUsage)
	case o.Output == "":
		return out, fmt.Errorf("%w: -o TABLE is missing: name the file to write", cli.ErrUsage)
	case o.Ranks < 0 || o.Nodes < 0:
		return out, fmt.Errorf("%w: --ranks and --nodes can't be negative", cli.ErrUsage)
	case o.Device != "" && o.Device != tune.Host && o.Device != tune.GPU:
		return out, fmt.Errorf("%w: --device %q: known are host, gpu", cli.ErrUsage, o.Device)
	}
	if o.Op != "" {
		op, ok := comm.ParseOp(o.Op)
		if !ok {
			return out, fmt.Errorf("%w: --op %q: known are %v", cli.ErrUsage, o.Op, comm.Ops())
		}
		out.Op = op
	}
	if o.DType != "" {
		d, ok := comm.ParseDType(o.DType)
		if !ok {
			return out, fmt.Errorf("%w: --dtype %q: for example float32 or bfloat16", cli.ErrUsage, o.DType)
		}
		out.DType = d
	}
	if err := export.CheckFile(o.Output); err != nil {
		return out, fmt.Errorf("-o %s: %w", o.Output, err)
	}
	return out, cli.CheckFormat(o.Format)
}

// read reads one log, compressed or not.
func (o *Options) read(name string, opts imports.Options) (*imports.Result, error) {
	if _, err := os.Stat(name); err != nil {
		return nil, err
	}
	files, err := source.Find([]string{name}, source.Options{Stdin: o.Streams.In})
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("%w: %s holds %d files: name them", cli.ErrUsage, name, len(files))
	}
	f, err := files[0].Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return imports.Read(o.As, f, name, opts)
}

// output is what --format json prints.
type output struct {
	SchemaVersion int                 `json:"schema_version"`
	Table         string              `json:"table"`
	Imported      int                 `json:"imported"`
	Measurements  int                 `json:"measurements"` // in the table
	Diagnostics   []report.Diagnostic `json:"diagnostics"`
}

func (o *Options) tell(rows int, table *tune.Table, diags *diagnostic.Set) error {
	out := output{tune.SchemaVersion, o.Output, rows, len(table.Rows), report.Diagnostics(diags)}
	if o.Format == cli.JSON {
		enc := json.NewEncoder(o.Streams.Out)
		enc.SetIndent("", " ")
		return enc.Encode(out)
	}
	for _, d := range diags.List() {
		fmt.Fprintln(o.Streams.Err, d)
	}
	_, err := fmt.Fprintf(o.Streams.Out, "%s: %d measurements imported, %d in it\n", o.Output, rows, len(table.Rows))
	return err
}
