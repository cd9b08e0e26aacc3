// Command cluster measures ingest by four tasks and the analysis of its dataset as
// the run grows: 250, 500, 1,000 and 2,000 ranks with small traces in an S3 server
// of this machine. All tasks share this machine's cores, so that their time is that
// of one machine; what it shows is how time and memory grow. A run of which the
// analysis is not complete counts as none.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"mixdown/ingest/remote/remotetest"
	"mixdown/ingest/synthetic"
)

const tasks = 4

func main() {
	mixdown := flag.String("mixdown", "bin/mixdown", "the `program` to measure")
	ranks := flag.String("ranks", "250,500,1000,2000", "how many ranks, a comma list")
	steps := flag.Int("steps", 3, "steps of each trace")
	makeDir := flag.String("make", "", "make the traces of so many ranks in this `folder` and measure nothing")
	flag.Parse()
	if err := run(*mixdown, *ranks, *steps, *makeDir); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(mixdown, ranks string, steps int, makeDir string) error {
	if makeDir != "" {
		n, err := strconv.Atoi(ranks)
		if err == nil {
			_, err = synthetic.WriteFiles(makeDir, synthetic.Options{Ranks: n, Steps: steps, Noise: 0.05, Seed: 7})
		}
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "ranks\ttraces MB\tingest s\tms/rank\tpeak MB/task\tanalyze s\tms/rank\tpeak MB\tKB/rank\t\n")
	for _, word := range strings.Split(ranks, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		f, err := measure(mixdown, n, steps)
		if err != nil {
			return fmt.Errorf("%d ranks: %w", n, err)
		}
		per := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(n) }
		fmt.Fprintf(w, "%d\t%.1f\t%.2f\t%.2f\t%d\t%.2f\t%.2f\t%d\t%d\t\n", n, float64(f.bytes)/1e6, f.ingest.Seconds(), per(f.ingest), f.ingestRSS/1e6,
			f.analyze.Seconds(), per(f.analyze), f.analyzeRSS/1e6, f.analyzeRSS/int64(n)/1e3)
	}
	return w.Flush()
}

// figures are what one size of run costs.
type figures struct {
	bytes                 int64 // of the traces
	ingest, analyze       time.Duration
	ingestRSS, analyzeRSS int64 // bytes; of the largest task
}

func measure(mixdown string, n, steps int) (*figures, error) {
	dir, err := os.MkdirTemp("", "mixdown-cluster")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	traces := filepath.Join(dir, "traces")
	if err := os.Mkdir(traces, 0o755); err != nil {
		return nil, err
	}
	// In a process of its own: the memory of children begins with their parent's.
	if text, err := exec.Command(os.Args[0], "-make", traces, "-ranks", strconv.Itoa(n), "-steps", strconv.Itoa(steps)).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make traces: %w: %s", err, text)
	}
	s, stop, err := remotetest.Start(dir)
	if err != nil {
		return nil, err
	}
	defer stop()
	f := &figures{}
	files, err := filepath.Glob(filepath.Join(traces, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err == nil {
			err = s.Upload(context.Background(), "traces", "run/"+filepath.Base(name), data)
		}
		if err != nil {
			return nil, err
		}
		f.bytes += int64(len(data))
	}
	env := append(os.Environ(), s.Root.Environment(s.Address)...)
	var wg sync.WaitGroup
	var failures [tasks]error
	var rss [tasks]int64
	begin := time.Now()
	for i := range tasks {
		wg.Go(func() {
			_, rss[i], failures[i] = command(env, mixdown, "ingest", "s3://traces/run/", "-o", "s3://traces/set", "--share", fmt.Sprintf("%d/%d", i, tasks), "--quiet")
		})
	}
	wg.Wait()
	f.ingest = time.Since(begin)
	for i, err := range failures {
		if err != nil {
			return nil, err
		}
		f.ingestRSS = max(f.ingestRSS, rss[i])
	}
	begin = time.Now()
	out, peak, err := command(env, mixdown, "analyze", "s3://traces/set", "--format", "json", "--quiet")
	if err != nil {
		return nil, err
	}
	f.analyze, f.analyzeRSS = time.Since(begin), peak
	var a struct {
		Ranks     []json.RawMessage `json:"ranks"`
		Unmatched int               `json:"collectives_unmatched"`
		Critical  json.RawMessage   `json:"critical_path"`
	}
	if err := json.Unmarshal(out, &a); err != nil {
		return nil, err
	}
	if len(a.Ranks) != n || a.Unmatched > 0 || string(a.Critical) == "null" {
		return nil, fmt.Errorf("the analysis has %d ranks, %d collectives unmatched", len(a.Ranks), a.Unmatched)
	}
	return f, nil
}

// command runs a command and returns its output and peak memory.
func command(env []string, args ...string) (out []byte, rss int64, err error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = env
	if out, err = cmd.Output(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		rss = usage.Maxrss << 10
	}
	return out, rss, nil
}
