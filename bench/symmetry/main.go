// Command symmetry measures the simulation of a job of many ranks that mostly do
// the same, 16,384 with 1,000 operations each by default, against a minute and 4 GB:
// the workload is folded to one rank of each kind and played. A part of the ranks is
// slower than the others; the answer must be the one worked out by hand, since a fast
// wrong answer counts as none.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"mixdown/replay/fold"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// The limits.
const (
	limitTime = time.Minute
	limitRSS  = 4_000_000_000 // bytes
)

// What things take, ns.
const (
	work  = 1000 // of each span
	extra = 500  // more of it on slow ranks
	each  = 200  // of an operation
)

const (
	tensor = 8  // ranks of a tensor-parallel group
	kinds  = 16 // of ranks: so many differ in the size of one operation
)

func main() {
	ranks := flag.Int("ranks", 16384, "how many ranks, a multiple of 128")
	operations := flag.Int("operations", 1000, "of each rank")
	keep := flag.Int("keep", 256, "how many ranks to play at most")
	flag.Parse()
	if err := run(*ranks, *operations, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "symmetry:", err)
		os.Exit(1)
	}
}

func run(ranks, operations, keep int) error {
	begin := time.Now()
	w := workload(ranks, operations)
	made := time.Since(begin)
	begin = time.Now()
	f, err := fold.Fold(w, keep)
	if err != nil {
		return err
	}
	folded := time.Since(begin)
	asked := 0
	run, err := sim.PlayWorkload(f.Workload, f.Cost(func(m sim.Meeting) int64 {
		if m.Ranks == ranks {
			asked++
		}
		return each
	}))
	if err != nil {
		return err
	}
	took := time.Since(begin)
	// In every round some rank is slow, and all wait for it at the end of the round.
	if want := int64(operations) * (work + extra + each); run.Step != want {
		return fmt.Errorf("the step takes %d ns, by hand %d", run.Step, want)
	}
	if asked == 0 {
		return fmt.Errorf("no operation was asked for with all %d ranks of its group", ranks)
	}
	rss, err := peak()
	if err != nil {
		return err
	}
	fmt.Printf("simulated %d ranks x %d operations on %d ranks, %d classes: %.2f s (%.2f s of it folding; limit %v), %.2f GB at most (limit %.0f GB); making the workload %.2f s; go %s\n",
		ranks, operations, len(f.Workload.Programs), len(f.Classes), took.Seconds(), folded.Seconds(), limitTime, float64(rss)/1e9, limitRSS/1e9, made.Seconds(), runtime.Version())
	if took > limitTime || rss > limitRSS {
		return fmt.Errorf("beyond the limits")
	}
	return nil
}

// workload is a job whose ranks of a kind share one list of tasks: on odd operations
// all ranks take part, on even ones the tensor-parallel group. The groups differ
// from rank to rank, so tasks are shared by group: those of a tensor-parallel group.
func workload(ranks, operations int) *planpb.Workload {
	w := &planpb.Workload{WorldSize: int32(ranks), Groups: []*planpb.Group{{}}}
	for r := range ranks {
		w.Groups[0].Ranks = append(w.Groups[0].Ranks, int32(r))
	}
	for first := 0; first < ranks; first += tensor {
		g := int32(len(w.Groups))
		group := &planpb.Group{}
		for r := range tensor {
			group.Ranks = append(group.Ranks, int32(first+r))
		}
		w.Groups = append(w.Groups, group)
		tasks := tasksOf(g, int64(first/tensor%kinds), operations, first/tensor%(2*kinds) < kinds)
		for _, r := range group.Ranks {
			w.Programs = append(w.Programs, &planpb.Program{Rank: r, Streams: []*planpb.Stream{{}}, Tasks: tasks})
		}
	}
	return w
}

func tasksOf(group int32, kind int64, operations int, slow bool) []*planpb.Task {
	ns := int64(work)
	if slow {
		ns += extra
	}
	span := &planpb.Task_Span{Span: &planpb.Span{Kind: planpb.Span_DEVICE, DurationNs: ns}}
	var tasks []*planpb.Task
	for i := range operations {
		c := &planpb.Communication{Seq: int64(i / 2), Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_BFLOAT16, InCount: 1 << 20, OutCount: 1 << 20}
		if i%2 == 0 {
			c.Group, c.InCount, c.OutCount = group, 1<<20+kind, 1<<20+kind
		}
		tasks = append(tasks, &planpb.Task{Id: int32(2 * i), Kind: span}, &planpb.Task{Id: int32(2*i + 1), Kind: &planpb.Task_Communication{Communication: c}})
	}
	return tasks
}

// peak is the most memory that the process had, in bytes.
func peak() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb * 1024, err
		}
	}
	return 0, fmt.Errorf("no VmHWM in /proc/self/status")
}
