// Package tune is the command "mixdown tune".
package tune

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/launching"
	"mixdown/replay/launch"
	"mixdown/replay/tune"
	"mixdown/replay/tune/measure"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Input   input.Options // traces; none: the ranges
	Launch  launching.Options
	Step    string
	Output  string
	Format  string
	Resume  bool

	Backends, Ops, Sizes, Ranks, DTypes, Groups string
	Device                                      string
	Budget                                      time.Duration
	Precision                                   float64
	NoRefine, Alone                             bool
	Seed                                        uint64
	Timeout                                     time.Duration
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "tune -o TABLE [INPUT...]",
		Short: "Measure which communication library is fastest, by operation, size and ranks",
		Long: `Measures the communication libraries of this machine, operation by operation:
coarse sizes first, then those between neighbours where the winner changes, then
more often what is not known well enough. Libraries that can share workers run in
turns, in random order, and the data of every operation is checked.

With traces as INPUT it measures what their step contains and nothing else, and
within that step: it runs as a whole on each library, computation replaced by
waiting, so that operations begin, wait and overlap as they do in the job. That is
what --mix auto predicts best from. With --alone, and with settings of a library,
each operation is measured in a row, as without traces. From traces of GPUs it also
writes how much longer kernels take beside communication of their backend.

The table is written after each start of workers. What is there when the budget is
spent, or when it is interrupted, stays; --resume goes on from there.

Buffers are in host memory, where results say nothing about GPUs, or with --device
gpu on the GPUs of this machine. Tables with measurements of other GPUs come from
"mixdown import".

With --launch the workers run on several hosts, see "mixdown help hosts": rows say
on how many machines the members of the group were.

See "mixdown help tuning" for how times are measured and what the table holds.`,
		Example: `  mixdown tune -o here.tune
  mixdown tune -o here.tune --backends gloo,openmpi,mpich --ops all_reduce,all_to_all --ranks 2,4 --budget 5m
  mixdown tune -o algorithms.tune --backends 'openmpi,openmpi:*' --ops all_reduce --ranks 4
  mixdown tune -o job.tune traces/ --resume
  mixdown tune -o two.tune --launch slurm --ranks 8,16
  mixdown tune show here.tune`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Input.Args = args
			return run(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opts.Output, "output", "o", "", "`TABLE` to write")
	f.BoolVar(&opts.Resume, "resume", false, "go on with the table, if it is there")
	f.StringVar(&opts.Backends, "backends", "", "`LIST` of what to compare, also with settings, as openmpi:ring, or openmpi:* for all; default what can run here")
	f.StringVar(&opts.Ops, "ops", "all_reduce,all_gather,reduce_scatter,all_to_all,broadcast", "`LIST` of operations")
	f.StringVar(&opts.Sizes, "sizes", "8:64MiB", "`LIST` of sizes or FROM:TO:FACTOR: the larger of what a rank contributes and receives")
	f.StringVar(&opts.Ranks, "ranks", "2,4,8", "`LIST` of group sizes")
	f.StringVar(&opts.DTypes, "dtypes", "float32", "`LIST` of element types")
	f.StringVar(&opts.Groups, "concurrent", "1", "`LIST` of how many groups run the same at once")
	f.StringVar(&opts.Device, "device", tune.Host, "where the buffers are: host, or gpu through CUDA or HIP")
	f.DurationVar(&opts.Budget, "budget", 10*time.Minute, "end after so long; 0: when all is known well enough")
	f.Float64Var(&opts.Precision, "precision", measure.DefaultPrecision, "half the 95 % interval over the median at which a time is known well enough")
	f.BoolVar(&opts.NoRefine, "no-refine", false, "only the sizes that are named")
	f.BoolVar(&opts.Alone, "alone", false, "with traces: measure each operation in a row, not within the step")
	f.Uint64Var(&opts.Seed, "seed", 1, "of the order of measurements")
	f.DurationVar(&opts.Timeout, "timeout", launch.DefaultTimeout, "give a measurement up when no rank makes progress for so long")
	f.StringVar(&opts.Step, "step", "", "of the traces: its number, or all; default the step of median length")
	opts.Launch.AddFlags(cmd)
	opts.Input.AddFlags(cmd)
	cli.FormatFlag(cmd, &opts.Format)
	cmd.AddCommand(newShowCmd(streams), newMergeCmd(streams), newContentionCmd(streams))
	return cmd
}

// Run measures and writes the table. In a job of several tasks all but one only take
// part.
func Run(ctx context.Context, opts *Options) (err error) {
	if err := opts.check(); err != nil {
		return err
	}
	job, err := opts.Launch.Begin(ctx, opts.Streams)
	if err != nil || job.Joined {
		return err
	}
	defer func() { job.End(err) }()
	table := &tune.Table{}
	_, err = os.Stat(opts.Output)
	switch {
	case err == nil && !opts.Resume:
		return fmt.Errorf("%w: %s is there already: go on with it with --resume, or name another", cli.ErrUsage, opts.Output)
	case err == nil:
		if table, err = tune.Read(opts.Output); err != nil {
			return err
		}
	}
	m, err := opts.prepare(ctx, table)
	if err != nil {
		return err
	}
	progress := opts.Streams.NewProgress("measuring")
	m.Table, m.Starter = table, job.Starter
	m.Checkpoint = func(t *tune.Table) error { return t.Write(opts.Output) }
	m.Progress = func(p measure.Progress) { progress.Set(p.Done, p.Total, p.Detail) }
	table, summary, err := measure.Run(ctx, m)
	progress.Done()
	opts.tell(summary)
	if err == nil && summary.Interrupted {
		err = fmt.Errorf("interrupted: %s has %d of %d measurements, --resume goes on: %w", opts.Output, summary.Measured, summary.Wanted, context.Canceled)
	}
	if err != nil {
		return err
	}
	if err := table.Write(opts.Output); err != nil {
		return err
	}
	if summary.Measured == 0 && len(summary.Failures) > 0 {
		return fmt.Errorf("%w: %w", measure.ErrNothing, summary.Failures[0].Err)
	}
	if summary.Measured == 0 {
		return fmt.Errorf("%w within --budget %v: give it more, or fewer ranks", measure.ErrNothing, opts.Budget)
	}
	return show(opts.Streams.Out, table, opts.Format, filter{}.of(table))
}

func (o *Options) check() error {
	switch {
	case o.Output == "":
		return fmt.Errorf("%w: -o TABLE is missing: name the file to write", cli.ErrUsage)
	case o.Budget < 0:
		return fmt.Errorf("%w: --budget %v: expected a time", cli.ErrUsage, o.Budget)
	case o.Precision <= 0 || o.Precision >= 1:
		return fmt.Errorf("%w: --precision %v: expected more than 0 and less than 1", cli.ErrUsage, o.Precision)
	case o.Device != tune.Host && o.Device != tune.GPU:
		return fmt.Errorf("%w: --device %q: known are host, gpu", cli.ErrUsage, o.Device)
	case o.Timeout <= 0:
		return fmt.Errorf("%w: --timeout %v: expected a positive time", cli.ErrUsage, o.Timeout)
	}
	if err := export.CheckFile(o.Output); err != nil {
		return fmt.Errorf("-o %s: %w", o.Output, err)
	}
	return cli.CheckFormat(o.Format)
}

// tell says what became of the campaign, on stderr.
func (o *Options) tell(s measure.Summary) {
	if o.Streams.Quiet {
		return
	}
	fmt.Fprintf(o.Streams.Err, "measured %d of %d in %d starts of workers", s.Measured, s.Wanted, s.Starts)
	if s.Loose > 0 {
		fmt.Fprintf(o.Streams.Err, ", %d of them less well than --precision asks", s.Loose)
	}
	if s.Spent {
		fmt.Fprint(o.Streams.Err, "; the budget is spent, --resume goes on")
	}
	fmt.Fprintln(o.Streams.Err)
	for i, f := range s.Failures {
		if i == maxTold {
			fmt.Fprintf(o.Streams.Err, "and %d more that could not be measured\n", len(s.Failures)-i)
			break
		}
		why, _, _ := strings.Cut(f.Err.Error(), "\n")
		fmt.Fprintf(o.Streams.Err, "not measured: %s on %s: %s\n", f.What(), f.Contender, why)
	}
}

// maxTold bounds the failures that are told.
const maxTold = 5

// usage marks mistakes in flags.
func usage(flag string, err error) error {
	return fmt.Errorf("%w: %s: %w", cli.ErrUsage, flag, err)
}

// errNoBackend: none can be measured.
var errNoBackend = errors.New("no communication library can run here")
