// Command graph measures how long simulating a workload takes: making its graph and
// playing it, of a quarter, a half and a whole million nodes by default, against two
// seconds for the largest and growth that is no more than linear. The workload has what
// traces have: hosts that launch and wait, device streams, collectives of overlapping
// groups and messages, each with the times of a trace. The answer must be that of the
// trace, since a fast wrong answer counts as none.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// The limits: of the largest graph, and of the time of a node in it over that in the
// smallest.
const (
	limitTime   = 2 * time.Second
	limitGrowth = 1.5
)

func main() {
	nodes := flag.Int("nodes", 1_000_000, "of the largest graph")
	ranks := flag.Int("ranks", 64, "of the job, a multiple of 8")
	times := flag.Int("times", 5, "how often each is measured; the quickest counts")
	flag.Parse()
	if err := run(*nodes, *ranks, *times); err != nil {
		fmt.Fprintln(os.Stderr, "graph:", err)
		os.Exit(1)
	}
}

func run(nodes, ranks, times int) error {
	var each []float64 // ns of a node
	var largest time.Duration
	for _, part := range []int{4, 2, 1} {
		w := workload(ranks, nodes/part/ranks/len(round(0, 0)))
		n := 0
		for _, p := range w.Programs {
			n += len(p.Tasks)
		}
		var wall, cpu time.Duration
		for range times {
			runtime.GC()
			before, begin := processTime(), time.Now()
			f, err := sim.NewGraph(w).Fidelity()
			if err != nil {
				return err
			}
			took, used := time.Since(begin), processTime()-before
			if f.Simulated != w.TraceStepNs {
				return fmt.Errorf("the step takes %d ns, in the trace %d", f.Simulated, w.TraceStepNs)
			}
			if wall == 0 || took < wall {
				wall = took
			}
			if cpu == 0 || used < cpu {
				cpu = used
			}
		}
		each, largest = append(each, float64(cpu.Nanoseconds())/float64(n)), wall
		fmt.Printf("%9d nodes: %.3f s, %.3f s of processors, %.0f ns of them a node\n", n, wall.Seconds(), cpu.Seconds(), each[len(each)-1])
	}
	growth := each[len(each)-1] / each[0]
	fmt.Printf("largest %.2f s (limit %v), a node %.2f times as long as in the smallest (limit %.1f); go %s\n", largest.Seconds(), limitTime, growth, limitGrowth, runtime.Version())
	if largest > limitTime || growth > limitGrowth {
		return fmt.Errorf("beyond the limits")
	}
	return nil
}

// processTime is the processor time that this process has used.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// What things take, ns.
const (
	launch   = 3_000
	compute  = 10_000
	transfer = 7_000
	groupOf  = 8 // ranks of the smaller groups
)

// round is the tasks of one rank in one round, which begins at the given time: the
// host launches a kernel, a collective of the rank's group and one of all ranks follow
// on a stream of their own, a neighbour is sent to and received from, and the host
// waits.
func round(rank int32, at int64) []*planpb.Task {
	span := func(stream int32, ns int64, deps ...int32) *planpb.Task {
		kind := planpb.Span_HOST
		if stream > 0 {
			kind = planpb.Span_DEVICE
		}
		return &planpb.Task{Stream: stream, Deps: deps, Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: kind, DurationNs: ns}}}
	}
	operation := func(c *planpb.Communication, from int64, deps ...int32) *planpb.Task {
		return &planpb.Task{Stream: 2, Deps: deps, Kind: &planpb.Task_Communication{Communication: c}, Origin: &planpb.Origin{Rank: rank, Ts: from, Dur: transfer}}
	}
	done := at + launch + compute
	neighbour := rank ^ 1
	return []*planpb.Task{
		span(0, launch),
		span(1, compute, 0),
		operation(&planpb.Communication{Group: 1 + rank/groupOf, Op: planpb.Op_OP_ALL_REDUCE}, done, 1),
		operation(&planpb.Communication{Op: planpb.Op_OP_ALL_REDUCE}, done+transfer, 2),
		operation(&planpb.Communication{Op: planpb.Op_OP_BATCH, Transfers: []*planpb.Transfer{
			{Send: true, Peer: neighbour, Count: 1}, {Peer: neighbour, Count: 1},
		}}, done+2*transfer, 3),
		{Stream: 0, Deps: []int32{4}, Kind: &planpb.Task_Wait{Wait: &planpb.Wait{}}},
	}
}

func workload(ranks, rounds int) *planpb.Workload {
	w := &planpb.Workload{WorldSize: int32(ranks), Groups: []*planpb.Group{{}}}
	for r := range int32(ranks) {
		w.Groups[0].Ranks = append(w.Groups[0].Ranks, r)
		if r%groupOf == 0 {
			w.Groups = append(w.Groups, &planpb.Group{})
		}
		last := w.Groups[len(w.Groups)-1]
		last.Ranks = append(last.Ranks, r)
		p := &planpb.Program{Rank: r, Streams: []*planpb.Stream{{Name: "host"}, {Name: "device stream 7"}, {Name: "communication stream 20"}}}
		at := int64(0)
		for i := range int64(rounds) {
			first := int32(len(p.Tasks))
			for _, t := range round(r, at) {
				t.Id = int32(len(p.Tasks))
				for k := range t.Deps {
					t.Deps[k] += first
				}
				if c := t.GetCommunication(); c != nil {
					c.Seq = i
					for _, tr := range c.Transfers {
						tr.Match = i
					}
				}
				p.Tasks = append(p.Tasks, t)
			}
			at += launch + compute + 3*transfer
		}
		p.TraceNs = at
		w.TraceStepNs = at
		w.Programs = append(w.Programs, p)
	}
	return w
}
