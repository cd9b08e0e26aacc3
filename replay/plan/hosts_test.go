package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"mixdown/analyze/overlap"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
	"mixdown/replay/plan/planpb"
)

// madeRank is a rank with events on its threads.
type madeRank struct{ *trace.Rank }

func makeRank() madeRank { return madeRank{&trace.Rank{Names: trace.NewStrings()}} }

// add adds an event of a thread, from and to in us.
func (r madeRank) add(thread int, c trace.Category, name string, from, to int64) {
	r.Events.Append(trace.Row{Name: r.Names.InternString(name), Category: c, Thread: trace.ThreadID(thread),
		TS: from * 1000, Dur: (to - from) * 1000, Correlation: trace.NoID, Stream: trace.NoStream, Device: -1})
}

// hostsOf makes the host streams of a rank in a step of so many us, in which each of
// its threads launches as often as points say.
func hostsOf(r madeRank, length int64, points map[trace.ThreadID]int) (*hosts, *workload) {
	w := &workload{run: &trace.Run{Ranks: []*trace.Rank{r.Rank}}, diags: &diagnostic.Set{}, pb: &planpb.Workload{Dependencies: &planpb.Dependencies{}}}
	return w.findHosts(0, window{0, length * 1000}, points, nil), w
}

// Threads that hand over to each other are one stream, whatever labels a program has
// around its work; threads that work at the same time are several.
func TestHostStreams(t *testing.T) {
	const program, engine, second = 1, 2, 3
	// The program works up to 1 ms and from 3 ms on, autograd's thread between.
	handedOver := func() madeRank {
		r := makeRank()
		for at := int64(0); at < 1000; at += 20 {
			r.add(program, trace.CPUOp, "aten::mm", at, at+10)
			r.add(program, trace.CPUOp, "aten::add_", at+3000, at+3010)
		}
		for at := int64(1100); at < 2900; at += 20 {
			r.add(engine, trace.CPUOp, "autograd::engine::evaluate_function: MmBackward0", at, at+15)
			r.add(engine, trace.Runtime, "cudaLaunchKernel", at+2, at+8)
		}
		return r
	}
	both := map[trace.ThreadID]int{program: 100, engine: 90}
	three := map[trace.ThreadID]int{program: 100, engine: 90, second: 5}
	for _, c := range []struct {
		name   string
		make   func() madeRank
		points map[trace.ThreadID]int
		want   map[trace.ThreadID]int // threads of other streams than the first
	}{
		{"hand over", handedOver, both, nil},
		{"a label around the step and around backward", func() madeRank {
			r := handedOver()
			r.add(program, trace.UserAnnotation, "ProfilerStep#1", 0, 4000)
			r.add(program, trace.CPUOp, "train", 0, 4000) // as older profilers write labels
			r.add(program, trace.CPUOp, "## backward ##", 1010, 2990)
			r.add(program, trace.PythonFunction, "torch/_tensor.py(500): backward", 1010, 2990)
			return r
		}, both, nil},
		{"a moment both", func() madeRank {
			r := handedOver()
			r.add(engine, trace.CPUOp, "aten::mm", 2990, 3012)
			return r
		}, both, nil},
		{"the program goes on", func() madeRank {
			r := handedOver()
			for at := int64(1500); at < 2500; at += 100 {
				r.add(program, trace.CPUOp, "aten::copy_", at, at+50)
			}
			return r
		}, both, map[trace.ThreadID]int{engine: 1}},
		{"the program is blocked", func() madeRank {
			r := handedOver()
			r.add(program, trace.Runtime, "cudaEventSynchronize", 1500, 2500)
			return r
		}, both, map[trace.ThreadID]int{engine: 1}},
		{"a second thread is blocked", func() madeRank {
			r := handedOver()
			r.add(second, trace.Runtime, "cudaStreamSynchronize", 500, 2500)
			return r
		}, three, map[trace.ThreadID]int{second: 1}},
		{"the step is the second thread's", func() madeRank {
			r := handedOver()
			r.add(second, trace.Runtime, "cudaStreamSynchronize", 500, 2500)
			r.add(second, trace.UserAnnotation, "ProfilerStep#1", 0, 4000)
			return r
		}, three, map[trace.ThreadID]int{program: 1, engine: 2}},
		{"a thread that does nothing that matters", func() madeRank {
			r := handedOver()
			r.add(second, trace.CPUOp, "aten::stack", 0, 4000)
			return r
		}, both, nil},
	} {
		h, w := hostsOf(c.make(), 4000, c.points)
		if len(h.of) != len(c.want) || len(h.names) != 1+len(c.want) {
			t.Errorf("%s: streams %q, of threads %v; want %v", c.name, h.names, h.of, c.want)
		}
		for thread, stream := range c.want {
			if h.stream(thread) != stream {
				t.Errorf("%s: thread %d on stream %d, want %d", c.name, thread, h.stream(thread), stream)
			}
		}
		if list := w.diags.List(); len(list) > 0 {
			t.Errorf("%s: %v", c.name, list)
		}
	}
}

// A trace with very many threads that all work at once has few streams, and says so.
func TestManyThreads(t *testing.T) {
	const threads = 10_000
	r := makeRank()
	points := map[trace.ThreadID]int{}
	for thread := range threads {
		r.add(thread, trace.Runtime, "cudaStreamSynchronize", 0, 1000)
		points[trace.ThreadID(thread)] = 1 + thread%7
	}
	h, w := hostsOf(r, 1000, points)
	if len(h.names) != maxHosts || len(h.of) != maxHosts-1 {
		t.Errorf("%d streams, %d threads beside the first", len(h.names), len(h.of))
	}
	list := w.diags.List()
	if len(list) != 1 || list[0].Code != "host-threads-shared" || list[0].Rank != 0 {
		t.Errorf("diagnostics %v", list)
	}
	for thread, stream := range h.of {
		if points[thread] != 7 {
			t.Errorf("thread %d, which does less than others, has stream %d", thread, stream)
		}
	}
}

// busySet makes a set of pairs of us.
func busySet(us ...int64) overlap.Set {
	var s overlap.Set
	for i := 0; i < len(us); i += 2 {
		s = append(s, overlap.Interval{Start: us[i] * 1000, End: us[i+1] * 1000})
	}
	return s
}

// every makes a set of n times of a length, so far apart.
func every(n int, first, length, apart int64) overlap.Set {
	var us []int64
	for i := range int64(n) {
		us = append(us, first+i*apart, first+i*apart+length)
	}
	return busySet(us...)
}

func TestTurns(t *testing.T) {
	const window_us = 10_000
	for _, c := range []struct {
		name     string
		busy     []overlap.Set
		turns    []turn // in us
		rejected int64
	}{
		{"called, twice in a step, with pauses of the interpreter", []overlap.Set{
			busySet(0, 2000, 2030, 3000, 6000, 7000, 9500, 10000), busySet(3100, 4500, 4600, 5900, 7400, 9300),
		}, []turn{{0, 1, 3000, 0}, {1, 0, 5900, 3000}, {0, 1, 7000, 5900}, {1, 0, 9300, 7000}}, 0},
		{"waits at the end for one that works all the time", []overlap.Set{
			busySet(0, 7000, 9020, 10000), busySet(0, 9000),
		}, []turn{{1, 0, 9000, 7000}}, 0},
		{"goes on after a while: no turn", []overlap.Set{
			busySet(0, 7000, 9400, 10000), busySet(0, 9000),
		}, nil, 0},
		{"works on: no turn", []overlap.Set{
			busySet(0, 7000, 9020, 10000), busySet(0, 10000),
		}, nil, 0},
		{"a queue: each item wakes the other one up", []overlap.Set{
			every(9, 100, 300, 1000), every(9, 420, 100, 1000),
		}, []turn{
			{0, 1, 400, 0}, {0, 1, 1400, 520}, {0, 1, 2400, 1520}, {0, 1, 3400, 2520}, {0, 1, 4400, 3520},
			{0, 1, 5400, 4520}, {0, 1, 6400, 5520}, {0, 1, 7400, 6520}, {0, 1, 8400, 7520},
		}, 0},
		{"one that stops all the time, and one gap that ends after it by chance", []overlap.Set{
			busySet(0, 5000, 5240, 10000), every(90, 0, 40, 110),
		}, nil, 1},
		{"some starts contradict it", []overlap.Set{
			every(9, 100, 100, 1000), busySet(220, 250, 1900, 2000, 2220, 2250, 3800, 3900, 4650, 4700),
		}, nil, 2},
	} {
		h := &hosts{names: make([]string, len(c.busy))}
		for s := range c.busy {
			h.names[s] = fmt.Sprint(s)
		}
		rejected := h.findTurns(window{0, window_us * 1000}, c.busy)
		var got []turn
		for _, x := range h.turns {
			got = append(got, turn{x.from, x.to, x.end / 1000, x.idle / 1000})
		}
		if !reflect.DeepEqual(got, c.turns) || rejected != c.rejected {
			t.Errorf("%s: %v, %d rejected; want %v, %d", c.name, got, rejected, c.turns, c.rejected)
		}
	}
}

// Threads that launch, block and compute as it comes always make a program: what they
// wait for of each other makes no circle.
func TestAnyThreads(t *testing.T) {
	several, turns := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := makeRank()
		free := make([]int64, 1+rng.IntN(4)) // when each device stream is
		for thread := range 1 + rng.IntN(12) {
			at := rng.Int64N(500)
			for range rng.IntN(40) {
				at += rng.Int64N(400)
				took := rng.Int64N(300)
				switch rng.IntN(4) {
				case 0:
					r.add(thread, trace.Runtime, "cudaStreamSynchronize", at, at+took)
				case 1:
					r.add(thread, trace.CPUOp, "aten::mm", at, at+took)
				default:
					stream := rng.IntN(len(free))
					start := max(at+4, free[stream])
					free[stream] = start + took
					r.add(thread, trace.Runtime, "cudaLaunchKernel", at, at+5)
					r.add(thread, trace.Kernel, "gemm", start, start+took)
					n := r.Events.Len() - 1
					r.Events.Correlation[n-1], r.Events.Correlation[n], r.Events.Stream[n] = int64(n), int64(n), int64(stream)
					took = 5
				}
				at += took
			}
		}
		w := &workload{run: &trace.Run{Ranks: []*trace.Rank{r.Rank}}, diags: &diagnostic.Set{}, pb: &planpb.Workload{Dependencies: &planpb.Dependencies{}}}
		p, err := w.deviceProgram(0, window{0, 8_000_000}).program(0, 0)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		hosts := 0
		for _, s := range p.Streams {
			if IsHost(s.Name) {
				hosts++
			}
		}
		if hosts > maxHosts {
			t.Errorf("seed %d: %d streams of hosts", seed, hosts)
		}
		for _, task := range p.Tasks {
			if task.GetWait() != nil && len(task.Deps) == 1 && IsHost(p.Streams[p.Tasks[task.Deps[0]].Stream].Name) {
				turns++
			}
		}
		if hosts > 1 {
			several++
		}
	}
	if several < 100 || turns < 100 {
		t.Errorf("%d ranks with several host streams, %d turns: nothing was tried", several, turns)
	}
}
