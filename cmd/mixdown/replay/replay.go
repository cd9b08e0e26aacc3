// Package replay is the command "mixdown replay".
package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/launching"
	"mixdown/cmd/mixdown/planning"
	"mixdown/cmd/mixdown/searching"
	"mixdown/replay/launch"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Plans   planning.Options
	Launch  launching.Options
	Format  string
	HTML    string // a file, "" for none

	Iterations int
	Warmup     int
	Spans      string
	Timeout    time.Duration
	Keep       string
	Resume     string
	CommsLog   string // a folder, "" for none
	Seed       uint64
	NoVerify   bool
	Device     string
	SMShare    float64
	Ranks      int // at most so many are run, 0: all
	// Capabilities is a file that says what backends can do, "" for none.
	Capabilities string

	// The best Top of a search are measured: of that in the file SearchResult, "" for
	// none, or with Search of one that is made first.
	SearchResult string
	Search       bool
	Top          int
	Orders       searching.Options
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "replay INPUT...",
		Short: "Run the traced communication again, with other backend mixes, and measure the speedups",
		Long: `Rebuilds one training step from the traces (what each rank computed, when it
issued which communication, what waited for it) and runs it on real
communication libraries: once as traced, the baseline, once for each --mix, and
once for each --schedule, the same tasks of a pipeline in another order. All run
in turns, iteration by iteration, and the data of every operation is
checked. A speedup is measured against the baseline of the same run.

--top N searches first, as "mixdown simulate --search" does, and measures the best
N orders beside what was predicted of them; with a --table also every --mix in
every order. Limits of memory are those of simulate, too.

With --device host, buffers are in host memory and computation is replaced by
waiting, so that many ranks fit on few cores. Results say which library is faster
for this job's communication on this machine's host memory; they say nothing
about GPUs. With --device cuda, buffers are on GPUs, computation is replaced by
kernels that keep SMs busy for as long, and libraries for host memory work
through pinned memory. auto takes GPUs when the trace is of GPUs and there is one
for each rank.

A backend of the trace that can't run here (NCCL without a GPU) needs a
substitute: --map nccl=gloo. See "mixdown help mix" for the mix language.`,
		Example: `  mixdown replay traces/ --map nccl=gloo --mix '*=openmpi'
  mixdown replay traces/ --mix 'all_to_all=openmpi,all_to_allv=openmpi,*=gloo' --iters 20
  mixdown replay traces/ --schedule breadth-first:loops=2 --mix '*=openmpi'
  mixdown replay traces/ --mix 'all_reduce@>=1MiB=openmpi,*=gloo' --format json
  mixdown replay traces/ --top 3 --max-memory 1.5
  mixdown simulate traces/ --search --format json > found.json
  mixdown replay traces/ --search-result found.json --top 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Plans.Input.Args = args
			if err := opts.whichSearch(cmd); err != nil {
				return err
			}
			return run(cmd.Context(), opts)
		},
	}
	opts.Plans.AddFlags(cmd)
	opts.Orders.AddFlags(cmd)
	opts.Launch.AddFlags(cmd)
	planning.CapabilitiesFlag(cmd, &opts.Capabilities)
	cli.FormatFlag(cmd, &opts.Format)
	f := cmd.Flags()
	f.StringVar(&opts.HTML, "html", "", "write a page for people to `FILE`: the speedups beside the analysis of the traces; see mixdown help report")
	f.IntVar(&opts.Iterations, "iters", 10, "timed iterations of every plan")
	f.IntVar(&opts.Warmup, "warmup", 2, "untimed iterations of every plan before them")
	f.StringVar(&opts.Spans, "spans", "sleep", "how computation is replaced: sleep, or spin on a core")
	f.DurationVar(&opts.Timeout, "timeout", launch.DefaultTimeout, "give up when no rank makes progress for so long")
	f.StringVar(&opts.Keep, "keep", "", "`DIR` to keep the run's files in: plan, per-rank results, output of the workers")
	f.StringVar(&opts.Device, "device", Auto, "where buffers are and computation runs: host, cuda, hip or auto")
	f.Float64Var(&opts.SMShare, "sm-share", 1, "on GPUs: share of the SMs, or CUs, that computation keeps busy")
	f.StringVar(&opts.Resume, "resume", "", "`DIR` of a run that was kept and did not finish: its complete iterations count, if plans, settings and libraries are the same")
	f.StringVar(&opts.CommsLog, "comms-log", "", "`DIR` to write what every plan's operations took to, a table and JSON for each rank, as DeepSpeed's communication logger has them")
	f.Uint64Var(&opts.Seed, "seed", 1, "of the order in which plans take turns")
	f.StringVar(&opts.SearchResult, "search-result", "", "measure the best of a search: `FILE` is what mixdown simulate --search --format json wrote for the same traces")
	f.IntVar(&opts.Top, "top", 0, "measure the best `N` of a search over pipeline orders, made first, or of that of --search-result (then 3 where not given)")
	f.IntVar(&opts.Ranks, "ranks", 0, "run at most so many ranks, one kept of several that do the same: groups are smaller then, and results say so; see mixdown help metrics")
	f.BoolVar(&opts.NoVerify, "no-verify", false, "skip the data check; results then say that they are not verified")
	return cmd
}

// Run replays the input and writes the result. In a job of several tasks all but one
// only take part.
func Run(ctx context.Context, opts *Options) (err error) {
	if err := opts.check(); err != nil {
		return err
	}
	job, err := opts.Launch.Begin(ctx, opts.Streams)
	if err != nil || job.Joined {
		return err
	}
	defer func() { job.End(err) }()
	e, err := opts.prepare(ctx)
	if err != nil {
		return err
	}
	e.starter = job.Starter
	if err := e.run(ctx); err != nil {
		e.tellDoubts()
		return err
	}
	if err := e.writeLogs(); err != nil {
		return fmt.Errorf("--comms-log: %w", err)
	}
	if opts.Format == cli.JSON {
		enc := json.NewEncoder(opts.Streams.Out)
		enc.SetIndent("", " ")
		err = enc.Encode(e.report)
	} else {
		err = e.report.WriteText(opts.Streams.Out, opts.Streams.Look)
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if opts.HTML != "" {
		if err := e.page(ctx); err != nil {
			return fmt.Errorf("--html %s: %w", opts.HTML, err)
		}
	}
	if !opts.NoVerify && !e.report.Verified() {
		return fmt.Errorf("%w: data differ: %s", launch.ErrFailed, e.wrong())
	}
	return nil
}

func (o *Options) check() error {
	switch {
	case o.Iterations < 1:
		return fmt.Errorf("%w: --iters %d: expected at least 1", cli.ErrUsage, o.Iterations)
	case o.Warmup < 0:
		return fmt.Errorf("%w: --warmup %d: expected 0 or more", cli.ErrUsage, o.Warmup)
	case o.Spans != "sleep" && o.Spans != "spin":
		return fmt.Errorf("%w: --spans %q: known are sleep, spin", cli.ErrUsage, o.Spans)
	case o.Device != Auto && o.Device != launch.OnHost && !slices.Contains(kinds, o.Device):
		return fmt.Errorf("%w: --device %q: known are host, cuda, hip, auto", cli.ErrUsage, o.Device)
	case !(o.SMShare > 0 && o.SMShare <= 1):
		return fmt.Errorf("%w: --sm-share %v: expected more than 0, up to 1", cli.ErrUsage, o.SMShare)
	case o.Ranks < 0:
		return fmt.Errorf("%w: --ranks %d: expected a number of ranks", cli.ErrUsage, o.Ranks)
	case o.Timeout <= 0:
		return fmt.Errorf("%w: --timeout %v: expected a positive time", cli.ErrUsage, o.Timeout)
	}
	if o.CommsLog != "" && o.Resume != "" {
		return fmt.Errorf("%w: --comms-log needs the times of all iterations, and --resume keeps none of single operations: leave one out", cli.ErrUsage)
	}
	if o.CommsLog != "" {
		if err := os.MkdirAll(o.CommsLog, 0o755); err != nil {
			return fmt.Errorf("%w: --comms-log: %w", cli.ErrUsage, err)
		}
	}
	if o.HTML != "" {
		if err := export.CheckFile(o.HTML); err != nil {
			return fmt.Errorf("%w: --html %s: %w", cli.ErrUsage, o.HTML, err)
		}
	}
	return cli.CheckFormat(o.Format)
}
