// Command job measures "mixdown analyze" on a run of many ranks, 256 with 20,000
// events each by default, against the limits that a user at a desk would set: 20
// seconds and 1 GB. The run is synthetic, with clocks that are up to a second and
// 50 ppm apart and with one late rank, so that every part of the analysis has
// work to do and the answer can be checked: a fast wrong answer counts as none.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"mixdown/bench/measure"
	"mixdown/ingest/comm"
	"mixdown/ingest/synthetic"
)

// The limits.
const (
	limitTime = 20 * time.Second
	limitRSS  = 1_000_000_000 // bytes
)

// late is the rank that others wait for.
const late = 37

type options struct {
	mixdown, cache string
	ranks, rounds  int
	make           bool
}

func main() {
	var o options
	flag.StringVar(&o.mixdown, "mixdown", "bin/mixdown", "the `program` to measure")
	flag.StringVar(&o.cache, "cache", "build/bench", "`folder` for the traces")
	flag.IntVar(&o.ranks, "ranks", 256, "how many ranks, a multiple of 8")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each command runs")
	flag.BoolVar(&o.make, "make", false, "make the traces and measure nothing")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "job:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	dir := filepath.Join(o.cache, fmt.Sprintf("job%d", o.ranks))
	if o.make {
		return makeRun(dir, o.ranks)
	}
	// In a process of its own, for measure.Command.Run.
	child := exec.Command(os.Args[0], "-make", "-cache", o.cache, "-ranks", fmt.Sprint(o.ranks))
	child.Stderr = os.Stderr
	if err := child.Run(); err != nil {
		return fmt.Errorf("make traces: %w", err)
	}
	defer os.RemoveAll(dir)
	size, events, err := count(dir)
	if err != nil {
		return err
	}
	out, err := exec.Command(o.mixdown, "--quiet", "analyze", dir, "--format", "json").Output()
	if err != nil {
		return fmt.Errorf("analyze: %w", err)
	}
	if err := check(out, o.ranks); err != nil {
		return err
	}
	results := filepath.Join(o.cache, "job.results")
	defer os.RemoveAll(results)
	if err := os.MkdirAll(results, 0o755); err != nil {
		return err
	}
	commands := []*measure.Command{
		{Name: "analyze", Args: []string{o.mixdown, "analyze", dir}},
		{Name: "analyze --format json", Args: []string{o.mixdown, "analyze", dir, "--format", "json"}},
		{Name: "with all exports", Args: []string{o.mixdown, "analyze", dir,
			"--pprof", filepath.Join(results, "pb.gz"), "--perfetto", filepath.Join(results, "pftrace"),
			"--chrome", filepath.Join(results, "json"), "--parquet", filepath.Join(results, "tables"),
			"--arrow", filepath.Join(results, "arrow"), "--markdown", filepath.Join(results, "md")}},
	}
	for range o.rounds {
		for _, c := range commands {
			if err := c.Run(); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\n%d ranks, %d events in all, %d MB of JSON; clocks up to 1 s and 50 ppm apart; the late rank is found\n", o.ranks, events, size/1e6)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "command\tmedian s\tcpu s\tpeak MB\t/ %s\t/ %d MB\t\n", limitTime, limitRSS/1_000_000)
	for _, c := range commands {
		wall := measure.Median(c.Walls)
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%d\t%.2f\t%.2f\t\n", c.Name, wall.Seconds(), measure.Median(c.CPUs).Seconds(), c.RSS/1_000_000,
			float64(wall)/float64(limitTime), float64(c.RSS)/limitRSS)
	}
	return w.Flush()
}

// makeRun writes the traces. Four tensor-parallel communications in a step, two of
// data parallelism and one of all ranks; 20 steps.
func makeRun(dir string, ranks int) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	opts := synthetic.Options{
		Ranks: ranks, Steps: 20, TensorParallel: 8, Kernels: 314, KernelNs: 20_000, Noise: 0.05, Seed: 3,
		Generation: synthetic.CommSeq,
		Collectives: []synthetic.Collective{
			{Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 1 << 16},
			{Op: comm.ReduceScatter, Scope: synthetic.Tensor, Elements: 1 << 16},
			{Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 1 << 18, Async: true},
			{Op: comm.AllToAll, Scope: synthetic.Tensor, Elements: 1 << 14},
			{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 20, Async: true},
			{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 22, Async: true},
			{Op: comm.AllReduce, Scope: synthetic.World, Elements: 1},
		},
	}
	for range ranks {
		opts.Clocks = append(opts.Clocks, synthetic.Clock{Offset: rng.Int64N(2e9) - 1e9, DriftPPB: rng.Int64N(100_000) - 50_000})
	}
	opts.Clocks[0] = synthetic.Clock{}
	for step := range opts.Steps {
		opts.Stragglers = append(opts.Stragglers, synthetic.Straggler{Rank: late % ranks, Step: step, Collective: 6, Delay: 3_000_000})
	}
	_, err := synthetic.WriteFiles(dir, opts)
	return err
}

// count returns the size of the traces and how many events they hold.
func count(dir string) (size int64, events int, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return 0, 0, err
	}
	slices.Sort(names)
	for _, name := range names {
		n, bytes, err := countEvents(name)
		if err != nil {
			return 0, 0, err
		}
		size, events = size+bytes, events+n
	}
	return size, events, nil
}
