// Command cost measures what a replay adds to the libraries: each library alone, in
// a tight loop of its own API, against the worker running the same operations from a
// plan, a moment apart and again and again (native/bench/loop.h). The worker is
// started as in any replay, and writes the times that it always writes.
//
// It ends with 1 when a limit is exceeded, with 4 when the machine was too noisy to
// say, with 2 when something did not run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mixdown/replay/launch"
)

// The limits.
const (
	limitRatio = 1.03 // of operations of largeBytes and more
	limitUs    = 2.0  // added to each smaller operation
	largeBytes = 64 << 10
	limitLoad  = time.Second // for a plan of loadOps operations on each rank
	loadOps    = 100_000
)

var (
	errExceeded = errors.New("a limit is exceeded")
	errUnclear  = errors.New("the machine is too noisy to say of every case whether the limit is met: run it again when it is quiet")
)

type options struct {
	bin               string
	libraries, ops    []string
	ranks             []int
	rounds, starts    int
	more              int
	largest, smallest int64
	load              bool
	threads           string
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "`folder` of mixdown-worker, built with MIXDOWN_TESTING")
	libraries := flag.String("libraries", "gloo,openmpi,mpich,ucx", "comma list; ucx alone has messages only")
	ops := flag.String("ops", "all_reduce,all_to_all,send_recv", "comma list")
	ranks := flag.String("ranks", "2,4", "comma list of numbers of ranks, even")
	flag.IntVar(&o.rounds, "rounds", 10, "how often each case runs in one start")
	flag.IntVar(&o.starts, "starts", 3, "how often the processes are started anew")
	flag.IntVar(&o.more, "more", 3, "further starts for cases that are not clear yet")
	flag.Int64Var(&o.smallest, "min", 8, "smallest size in `bytes`")
	flag.Int64Var(&o.largest, "max", 64<<20, "largest size in `bytes`")
	flag.StringVar(&o.threads, "threads", "single", "what the MPIs alone are ready for, to see what that costs: single, serialized (as the worker asks for where one stream communicates, and PyTorch always) or multiple")
	flag.BoolVar(&o.load, "load", true, "also measure how long a large plan takes to load")
	realtime := flag.Bool("realtime", false, "run everything at real-time priority, where others use the machine too; needs the right to, and leaves them little")
	flag.Parse()
	if *realtime {
		fmt.Fprintln(os.Stderr, "cost:", again("chrt", "-r", "5"))
		os.Exit(2)
	}
	if !slices.Contains([]string{"single", "serialized", "multiple"}, o.threads) {
		fmt.Fprintf(os.Stderr, "cost: -threads %q: known are single, serialized, multiple\n", o.threads)
		os.Exit(2)
	}
	o.libraries, o.ops = strings.Split(*libraries, ","), strings.Split(*ops, ",")
	for _, s := range strings.Split(*ranks, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 2 || n%2 != 0 {
			fmt.Fprintf(os.Stderr, "cost: -ranks %q: expected even numbers\n", s)
			os.Exit(2)
		}
		o.ranks = append(o.ranks, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, o); {
	case err == nil:
	case errors.Is(err, errExceeded):
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	case errors.Is(err, errUnclear):
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(4)
	default:
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, o options) error {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return err
	}
	worker := launch.Worker{Path: filepath.Join(bin, "mixdown-worker")}
	fmt.Printf("load at the beginning: %s\n", loadAverage())
	exceeded, unclear := false, false
	if o.load {
		for _, n := range o.ranks {
			met, err := measureLoad(ctx, worker, n)
			if err != nil {
				return err
			}
			exceeded = exceeded || !met
		}
	}
	for _, name := range o.libraries {
		program := filepath.Join(bin, "testing", "alone-"+name)
		if _, err := worker.Check(ctx, name); err != nil {
			fmt.Printf("%s is left out: %v\n", name, err)
			continue
		}
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: build with -DMIXDOWN_TESTING=ON", err)
		}
		for _, n := range o.ranks {
			cases := casesOf(name, n, o)
			if err := measureAll(ctx, worker, program, cases, o); err != nil {
				return fmt.Errorf("%s on %d ranks: %w", name, n, err)
			}
			printCases(os.Stdout, cases)
			for _, c := range cases {
				exceeded = exceeded || c.verdict() == over
				unclear = unclear || c.verdict() == notClear
			}
		}
	}
	fmt.Printf("load at the end: %s\n", loadAverage())
	switch {
	case exceeded:
		return errExceeded
	case unclear:
		return errUnclear
	}
	return nil
}

// measureAll runs all cases of one library on one number of ranks, in several
// starts, and those that are not clear then in some more.
func measureAll(ctx context.Context, worker launch.Worker, program string, cases []*benchCase, o options) error {
	for nth := range o.starts + o.more {
		var now []*benchCase
		for _, c := range cases {
			if nth < o.starts || c.verdict() == notClear {
				now = append(now, c)
			}
		}
		if len(now) == 0 {
			return nil
		}
		if err := (&start{worker: worker, program: program, cases: now, rounds: o.rounds, seed: uint64(nth + 1), threads: o.threads}).run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// again replaces this process by itself below another program. It returns only
// when that fails.
func again(program string, args ...string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argv := slices.Concat([]string{path}, args, []string{self}, os.Args[1:], []string{"-realtime=false"})
	return syscall.Exec(path, argv, os.Environ())
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}
