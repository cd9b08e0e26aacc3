// Command changed holds predictions of changed runs against measurements: for each
// workload it measures a table ("mixdown tune"), and replays mixes and orders with it,
// which says of each what it predicts from the traces and the table before it runs. It
// compares the speedups: by how much each prediction is off, and whether two variants are in the right
// order wherever the measured difference exceeds the noise.
//
// Each replay is run several times: the measured speedup is the geometric mean, and the
// interval reaches over those of all runs, as starts differ by more than iterations do.
//
// It ends with 1 when the mean error is above -limit or an order is wrong, with 2 when
// something did not run.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// workload is a set of traces, and what is tried on it.
type workload struct {
	name      string // below testdata, or of the corpus when it begins with "corpus/"
	flags     []string
	mixes     []string
	schedules []string
	both      []string // of the mixes, those that are tried with each of the schedules
}

var mixes = []string{"*=openmpi", "*=mpich", "*=ucx"}

var workloads = []workload{
	{name: "dp_moe_4rank", mixes: append([]string{"all_reduce=openmpi,*=gloo", "all_to_allv=ucx,*=gloo", "all_reduce=gloo,*=mpich"}, mixes...)},
	{name: "fsdp1_4rank", mixes: append([]string{"all_gather=openmpi,*=gloo"}, mixes...)},
	{name: "fsdp2_4rank", mixes: append([]string{"all_gather=openmpi,*=gloo"}, mixes...)},
	{name: "deepspeed_zero2_2rank", mixes: mixes},
	{name: "deepspeed_zero3_2rank", mixes: mixes},
	{name: "coalesced_4rank", mixes: mixes},
	{name: "pipeline_1f1b_4rank", mixes: mixes, schedules: []string{"gpipe", "breadth-first:loops=2", "zb-h1"}, both: []string{"*=ucx"}},
	{name: "pipeline_sched_p4_1f1b", mixes: mixes[:1], schedules: []string{"gpipe", "breadth-first:loops=2", "interleaved:loops=2", "zb-h1", "zbv"}, both: []string{"*=openmpi"}},
	{name: "pipeline_sched_p2_1f1b", mixes: mixes[:1], schedules: []string{"gpipe", "breadth-first:loops=2"}},
	{name: "corpus/param/dlrm_8rank", flags: []string{"--map", "nccl=gloo"}, mixes: append([]string{"all_to_allv=openmpi,*=gloo"}, mixes...)},
}

// row is one variant of one workload.
type row struct {
	workload, variant   string
	predicted, measured float64
	low, high           float64 // of the measured, 95 %
}

func (r row) err() float64 { return r.predicted/r.measured - 1 }

type options struct {
	mixdown    string
	budget     time.Duration
	iterations int
	repeats    int
	limit      float64
	markdown   bool
	only       string
}

func main() {
	var o options
	flag.StringVar(&o.mixdown, "mixdown", "bin/mixdown", "the `program` to run")
	flag.DurationVar(&o.budget, "budget", 40*time.Second, "of the table of each workload")
	flag.IntVar(&o.iterations, "iters", 30, "of each plan")
	flag.IntVar(&o.repeats, "repeats", 2, "runs of each replay")
	flag.BoolVar(&o.markdown, "markdown", false, "write the table as testdata/README.md has it")
	flag.Float64Var(&o.limit, "limit", 0.08, "mean error that is allowed")
	flag.StringVar(&o.only, "only", "", "workloads whose `name` holds this")
	flag.Parse()
	var rows []row
	for _, w := range workloads {
		if !strings.Contains(w.name, o.only) {
			continue
		}
		list, err := run(w, o)
		if errors.Is(err, errNoCorpus) {
			fmt.Fprintf(os.Stderr, "changed: %s is left out: %v\n", w.name, err)
			continue
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "changed:", err)
			os.Exit(2)
		}
		rows = append(rows, list...)
	}
	if !report(rows, o) {
		os.Exit(1)
	}
}

var errNoCorpus = errors.New("MIXDOWN_CORPUS is not set")

func run(w workload, o options) ([]row, error) {
	traces := filepath.Join("testdata", w.name)
	if rest, ok := strings.CutPrefix(w.name, "corpus/"); ok {
		corpus := os.Getenv("MIXDOWN_CORPUS")
		if corpus == "" {
			return nil, errNoCorpus
		}
		traces = filepath.Join(corpus, rest)
	}
	dir, err := os.MkdirTemp("", "changed-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	table := filepath.Join(dir, "t.tune")
	if err := call(o.mixdown, nil, "tune", "-o", table, traces, "--backends", "gloo,openmpi,mpich,ucx", "--budget", o.budget.String(), "--quiet"); err != nil {
		return nil, err
	}
	// Mixes and orders are variants of their own, and so are some of their pairs.
	var rows []row
	for _, of := range []struct{ mixes, schedules []string }{{w.mixes, nil}, {w.both, w.schedules}} {
		if len(of.mixes)+len(of.schedules) == 0 {
			continue
		}
		args := append([]string{"replay", "--iters", fmt.Sprint(o.iterations)}, w.flags...)
		args = append(args, traces, "--table", table, "--format", "json", "--quiet")
		for _, m := range of.mixes {
			args = append(args, "--mix", m)
		}
		for _, s := range of.schedules {
			args = append(args, "--schedule", s)
		}
		list, err := measure(w.name, args, o)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if len(of.schedules) == 0 || !slices.Contains(of.mixes, r.variant) { // else it has a row already
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

// measure runs a replay as often as is asked.
func measure(workload string, args []string, o options) ([]row, error) {
	var rows []row
	for n := range max(1, o.repeats) {
		var result struct {
			Variants []struct {
				Name      string      `json:"name"`
				Predicted *float64    `json:"predicted_speedup"`
				Speedup   float64     `json:"speedup"`
				CI95      *[2]float64 `json:"ci95"`
				Verified  bool        `json:"data_verified"`
			} `json:"variants"`
		}
		if err := call(o.mixdown, &result, args...); err != nil {
			return nil, err
		}
		for i, v := range result.Variants {
			if !v.Verified || v.CI95 == nil || v.Predicted == nil {
				return nil, fmt.Errorf("%s, %s: not verified, or not predicted", workload, v.Name)
			}
			if n == 0 {
				rows = append(rows, row{workload, v.Name, *v.Predicted, 1, v.CI95[0], v.CI95[1]})
			}
			r := &rows[i]
			r.measured *= math.Pow(v.Speedup, 1/float64(max(1, o.repeats)))
			r.low, r.high = min(r.low, v.CI95[0]), max(r.high, v.CI95[1])
		}
	}
	return rows, nil
}

// call runs mixdown, and reads its JSON into out unless that is nil.
func call(mixdown string, out any, args ...string) error {
	c := exec.Command(mixdown, args...)
	c.Stderr = os.Stderr
	data, err := c.Output()
	if err != nil {
		return fmt.Errorf("mixdown %s: %w", strings.Join(args, " "), err)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// report prints all rows, none left out, and says whether the limits hold.
func report(rows []row, o options) bool {
	sum := 0.0
	for _, r := range rows {
		sum += math.Abs(r.err())
	}
	if o.markdown {
		printMarkdown(rows)
	} else {
		printTable(rows)
	}
	pairs, wrong := 0, 0
	for i, a := range rows {
		for _, b := range rows[i+1:] {
			if a.workload != b.workload || !(a.low > b.high || b.low > a.high) {
				continue // not known which is faster
			}
			pairs++
			if (a.predicted > b.predicted) != (a.measured > b.measured) {
				wrong++
				fmt.Printf("wrong order: %s: %s (%.3f, measured %.3f) and %s (%.3f, measured %.3f)\n", a.workload, a.variant, a.predicted, a.measured, b.variant, b.predicted, b.measured)
			}
		}
	}
	mean := sum / float64(max(1, len(rows)))
	fmt.Printf("\n%d cases, %.1f %% off in the mean (limit %.0f %%); of %d pairs that differ by more than the noise %d are predicted in the wrong order\n", len(rows), 100*mean, 100*o.limit, pairs, wrong)
	return mean <= o.limit && wrong == 0
}

func printTable(rows []row) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer t.Flush()
	fmt.Fprintln(t, "workload\tvariant\tpredicted\tmeasured\t95 %\toff by\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.3f\t%.3f .. %.3f\t%+.1f %%\t\n", r.workload, r.variant, r.predicted, r.measured, r.low, r.high, 100*r.err())
	}
}

func printMarkdown(rows []row) {
	fmt.Println("| workload | variant | predicted | measured | 95 % | off by |\n|---|---|---|---|---|---|")
	for _, r := range rows {
		fmt.Printf("| `%s` | `%s` | %.3f | %.3f | %.3f .. %.3f | %+.1f %% |\n", r.workload, r.variant, r.predicted, r.measured, r.low, r.high, 100*r.err())
	}
}
