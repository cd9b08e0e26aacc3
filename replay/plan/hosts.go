package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"mixdown/analyze/overlap"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// HostStream is the name of the stream of a rank's host. Where threads of the
// program work at the same time, it is that of the thread which runs the step;
// the others are "host 2" and so on.
const HostStream = "host"

// IsHost says whether a stream of this name is a host's.
func IsHost(stream string) bool {
	return stream == HostStream || strings.HasPrefix(stream, HostStream+" ")
}

// maxHosts is how many host streams a rank may have: the worker runs each as a
// thread. The threads that do least beyond it share the first.
const maxHosts = 8

// maxThreads is how many threads of a rank are compared with each other.
const maxThreads = 64

// sharedWork is the part of a thread's work that may lie within another's while
// the two are taken to hand over to each other: threads wake each other up a
// moment before they have done.
const sharedWork = 0.01

// hosts are the host streams of a rank. Threads share one as long as they only
// hand over to each other: PyTorch's program sleeps in backward() while a thread
// of the autograd engine works. Threads that work, or are blocked, while the
// program works have streams of their own.
type hosts struct {
	names []string // of the streams
	of    map[trace.ThreadID]int
	turns []turn // by end
}

// stream is the index of a thread's stream. Unknown threads are the program's.
func (h *hosts) stream(t trace.ThreadID) int { return h.of[t] }

// ofOperation is the index of the stream that issued an operation.
func (h *hosts) ofOperation(op *comm.Operation) int {
	if op.Thread < 0 {
		return 0
	}
	return h.stream(trace.ThreadID(op.Thread))
}

// oneHost is the host of a rank whose threads are taken for one.
func oneHost() *hosts { return &hosts{names: []string{HostStream}} }

// several says whether threads work at the same time.
func (h *hosts) several() bool { return len(h.names) > 1 }

// findHosts makes the host streams of a rank in a step. Points is how often each
// thread launched something, issued communication, or was blocked: threads without
// any do not matter. Blocked is when they stood still for what no event of the
// trace shows.
func (w *workload) findHosts(r int, win window, points map[trace.ThreadID]int, blocked map[trace.ThreadID][]overlap.Interval) *hosts {
	h := oneHost()
	if len(points) < 2 {
		return h
	}
	rank := w.run.Ranks[r]
	program := stepThread(rank, win)
	threads := slices.SortedFunc(maps.Keys(points), func(a, b trace.ThreadID) int {
		if first := a == program; first != (b == program) {
			if first {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(points[b], points[a]), cmp.Compare(a, b))
	})
	shared := max(len(threads)-maxThreads, 0)
	threads = threads[:len(threads)-shared]
	work := hostWork(rank, win, threads, blocked)
	together := threads[:1:1] // the threads of the first stream
	busy := []overlap.Set{work[threads[0]]}
	for _, t := range threads[1:] {
		switch {
		case !slices.ContainsFunc(together, func(with trace.ThreadID) bool { return workTogether(work[t], work[with]) }):
			together = append(together, t)
			busy[0] = busy[0].Plus(work[t])
		case len(h.names) == maxHosts:
			shared++
			busy[0] = busy[0].Plus(work[t])
		default:
			if h.of == nil {
				h.of = map[trace.ThreadID]int{}
			}
			h.of[t] = len(h.names)
			h.names = append(h.names, HostStream+" "+itoa(len(h.names)+1))
			busy = append(busy, work[t])
		}
	}
	if shared > 0 {
		w.diags.Addf("host-threads-shared", rank.Rank, diagnostic.NoOffset,
			"%d of the %d threads that launch work or communicate are played as one with the program: what one of them waits for may hold up the others", shared, len(points))
	}
	if h.several() {
		w.pb.Dependencies.Rejected += h.findTurns(win, busy)
	}
	return h
}

// noThread is no thread of a trace.
const noThread = ^trace.ThreadID(0)

// stepThread is the thread whose annotation is the step, noThread where none is.
func stepThread(rank *trace.Rank, win window) trace.ThreadID {
	ev := &rank.Events
	near := func(a, b int64) bool { return max(a, b)-min(a, b) <= rounding }
	for i := range ev.Len() {
		if ev.Category[i] == trace.UserAnnotation && near(ev.TS[i], win.start) && near(ev.End(i), win.end) {
			return ev.Thread[i]
		}
	}
	return noThread
}

// hostWork is when threads worked or were blocked within a step: in calls of the
// device's API, in operators, and in what no other event lies within. That a
// program has a label around its steps or around backward() does not say that it
// works: other threads may.
func hostWork(rank *trace.Rank, win window, threads []trace.ThreadID, blocked map[trace.ThreadID][]overlap.Interval) map[trace.ThreadID]overlap.Set {
	ev := &rank.Events
	events := map[trace.ThreadID][]int{}
	for _, t := range threads {
		events[t] = nil
	}
	for i := range ev.Len() {
		if c := ev.Category[i]; c != trace.CPUOp && c != trace.Runtime || ev.TS[i] >= win.end || ev.End(i) <= win.start {
			continue
		}
		if list, ok := events[ev.Thread[i]]; ok {
			events[ev.Thread[i]] = append(list, i)
		}
	}
	work := map[trace.ThreadID]overlap.Set{}
	for t, list := range events {
		slices.SortStableFunc(list, func(a, b int) int {
			return cmp.Or(cmp.Compare(ev.TS[a], ev.TS[b]), cmp.Compare(ev.Dur[b], ev.Dur[a])) // the enclosing one first
		})
		var times []overlap.Interval
		add := func(start, end int64) {
			times = append(times, overlap.Interval{Start: max(start, win.start), End: min(end, win.end)})
		}
		for n, i := range list {
			if ev.Category[i] == trace.CPUOp && isLabel(rank.Name(i), n+1 < len(list) && ev.TS[list[n+1]] < ev.End(i)) {
				continue
			}
			add(ev.TS[i], ev.End(i))
		}
		for _, b := range blocked[t] {
			add(b.Start, b.End)
		}
		work[t] = overlap.Union(times)
	}
	return work
}

// isLabel says whether an event of the CPU is a label of the program's, which does
// not say that its thread works: older profilers write operators and labels alike.
// Operators have a namespace. Encloses: other events lie within it.
func isLabel(name string, encloses bool) bool {
	if strings.Contains(name, "::") {
		return false
	}
	return encloses || name == "backward" || strings.HasSuffix(strings.Trim(name, " #"), "backward")
}

// workTogether says whether two threads work at the same time, other than for a
// moment.
func workTogether(a, b overlap.Set) bool {
	var both int64
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if piece := min(a[i].End, b[j].End) - max(a[i].Start, b[j].Start); piece > rounding {
			both += piece
		}
		if a[i].End < b[j].End {
			i++
		} else {
			j++
		}
	}
	return both > slack && float64(both) > sharedWork*float64(min(a.Length(), b.Length()))
}
