// Command planning measures how long choosing a mix takes for a large job, 1,000
// ranks with 10,000 operations each by default, against the limits that a user at
// a desk would set: 10 seconds and 6 GB, the job itself included. The job has
// tensor parallelism within eight ranks, data parallelism across them, exchanges
// of experts and messages between neighbours, on two streams; the costs are lines.
// The answer is checked: the operations that one backend is best at must be on it.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"time"

	"mixdown/ingest/comm"
	"mixdown/replay/auto"
	"mixdown/replay/mix"
	"mixdown/replay/tune"
)

// The limits.
const (
	limitTime = 10 * time.Second
	limitRSS  = 6_000_000_000 // bytes
)

func main() {
	ranks := flag.Int("ranks", 1000, "how many ranks, a multiple of 8")
	operations := flag.Int("operations", 10_000, "of each rank")
	profile := flag.String("cpuprofile", "", "write a profile of the choice to `FILE`")
	flag.Parse()
	if err := run(*ranks, *operations, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "planning:", err)
		os.Exit(1)
	}
}

func run(ranks, operations int, profile string) error {
	debug.SetGCPercent(20) // the job is most of the memory and does not change
	started := time.Now()
	w := job(ranks, operations)
	made := time.Since(started)
	before := rss()
	table, err := costs(ranks)
	if err != nil {
		return err
	}
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	debug.SetGCPercent(100)
	busy := cpu()
	started = time.Now()
	c, err := auto.Choose(w, table.Costs(), auto.Options{Backends: []string{"gloo", "mpich", "openmpi"}, Exclusive: []string{"mpich", "openmpi"}, Traced: "gloo"})
	if err != nil {
		return err
	}
	took := time.Since(started)
	busy = cpu() - busy
	if err := check(c.Mix); err != nil {
		return err
	}
	peak := rss()
	fmt.Printf("\n%d ranks with %d operations each, made in %.1f s: %s\n", ranks, operations, made.Seconds(), c.Mix.Text)
	how := "added up"
	if c.Played {
		how = "played"
	}
	fmt.Printf("the step was %s: %.2f times as fast\n", how, c.Speedup)
	fmt.Printf("choosing took %.2f s (%.2f s of all cores), %.2f of %s; %d MB at most, %.2f of %d MB, of which the job itself %d MB\n",
		took.Seconds(), busy.Seconds(), float64(took)/float64(limitTime), limitTime, peak/1e6, float64(peak)/limitRSS, limitRSS/1_000_000, before/1e6)
	// On a machine that is busy with something else the time of the cores says more
	// than the clock.
	if min(took, busy) > limitTime || peak > limitRSS {
		return fmt.Errorf("over the limits of %s and %d MB", limitTime, limitRSS/1_000_000)
	}
	return nil
}

// check sees to it that the mix has what the costs call for.
func check(m mix.Mix) error {
	for _, want := range []struct {
		op      comm.Op
		bytes   int64
		backend string
	}{{comm.AllReduce, 64 << 10, "gloo"}, {comm.AllReduce, 8 << 20, "openmpi"}, {comm.AllToAll, 4 << 20, "gloo"}, {comm.AllGather, 8 << 20, "openmpi"}} {
		if got, _ := m.Backend(want.op, want.bytes, "", ""); got != want.backend {
			return fmt.Errorf("%s of %d bytes is on %s in %s, expected %s", want.op, want.bytes, got, m.Text, want.backend)
		}
	}
	return nil
}

// rss is the most memory that the process had so far, in bytes.
func rss() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss * 1024
}

// cpu is what all cores spent on the process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// costs is a table of three libraries: gloo starts sooner, openmpi moves faster
// but for exchanges, mpich is between.
func costs(ranks int) (*tune.Table, error) {
	table := &tune.Table{}
	var rows []tune.Row
	for _, op := range []comm.Op{comm.AllReduce, comm.AllGather, comm.ReduceScatter, comm.AllToAll, comm.Send} {
		for _, members := range []int{2, 8, ranks / 8, ranks} {
			for bytes := int64(8); bytes <= 64<<20; bytes *= 8 {
				for name, line := range map[string][2]float64{"gloo": {20e3, 1}, "openmpi": {500e3, 0.1}, "mpich": {300e3, 0.7}} {
					if op == comm.AllToAll && name != "gloo" {
						line[1] = 3
					}
					rows = append(rows, tune.Row{
						Contender: tune.Contender{Backend: name}, Op: op, DType: comm.BFloat16, Device: tune.Host, Ranks: members, Nodes: 1,
						In: bytes, Out: bytes, Streams: 1, Time: int64(line[0] + line[1]*float64(bytes)), Statistic: tune.Median, N: 50, Source: "made",
					})
				}
			}
		}
	}
	return table, table.Add(rows...)
}
