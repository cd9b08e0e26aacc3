package overlap

import (
	"mixdown/analyze/waiting"
	"mixdown/ingest/trace"
)

// Times is the decomposition of one rank's time, in ns.
//
// Compute, Comm and Memory are lengths of unions; they may overlap each other.
// Exposed is communication not covered by computation, Hidden the rest of it.
// Idle is the span less the union of all three. The span runs from the first to
// the last event of the device (of the CPU, on ranks without a device).
type Times struct {
	Span, Compute, Comm, Exposed, Hidden, Memory, Idle int64
}

// Activity is what a rank did when, as sets of moments.
type Activity struct {
	Compute, Comm, Memory Set
	Waiting               Set // part of no computation: the program stood still for communication
	Start, End            int64
}

// Measure finds the activity of a rank from its whole trace.
func Measure(rank *trace.Rank) Activity { return measure(rank, nil) }

// MeasureStep finds the activity of one step of a rank: the device work that was
// launched within it, wherever it ran; without a launch in the trace, what began
// within it. On a rank without a device, what the CPU did within it.
func MeasureStep(rank *trace.Rank, step trace.Step) Activity {
	launches := func(int64) (int64, bool) { return 0, false }
	if !rank.CPUOnly {
		launches = launchTimes(rank)
	}
	a := measure(rank, func(i int) bool {
		at, ok := launches(rank.Events.Correlation[i])
		if !ok {
			at = rank.Events.TS[i]
		}
		return at >= step.Start && at < step.End
	})
	if rank.CPUOnly {
		a.Start, a.End = step.Start, step.End
	}
	return a
}

// measure takes the events that keep wants, all when it is nil.
func measure(rank *trace.Rank, keep func(event int) bool) Activity {
	var compute, memory, comm []Interval
	ev := &rank.Events
	isComm := make([]bool, ev.Len())
	for i := range rank.Operations {
		for _, e := range rank.Operations[i].Events {
			isComm[e] = true
			if keep == nil || keep(e) {
				comm = append(comm, Interval{ev.TS[e], ev.End(e)})
			}
		}
	}
	var a Activity
	first := true
	for i := range ev.Len() {
		category := ev.Category[i]
		if !category.OnDevice() && !(rank.CPUOnly && category == trace.CPUOp) && !isComm[i] || keep != nil && !keep(i) {
			continue
		}
		if category.OnDevice() || rank.CPUOnly && (category == trace.CPUOp || isComm[i]) {
			if first {
				a.Start, a.End, first = ev.TS[i], ev.End(i), false
			}
			a.Start, a.End = min(a.Start, ev.TS[i]), max(a.End, ev.End(i))
		}
		switch {
		case isComm[i]:
		case category == trace.Kernel, category == trace.CollectiveActivity:
			compute = append(compute, Interval{ev.TS[i], ev.End(i)})
		case category == trace.Memcpy, category == trace.Memset:
			memory = append(memory, Interval{ev.TS[i], ev.End(i)})
		case rank.CPUOnly && category == trace.CPUOp:
			compute = append(compute, Interval{ev.TS[i], ev.End(i)})
		}
	}
	a.Comm, a.Memory = Union(comm), Union(memory)
	a.Compute = Union(compute)
	if rank.CPUOnly {
		var waits []Interval
		for _, w := range waiting.Find(rank) {
			waits = append(waits, Interval{w.Start, w.End})
		}
		a.Waiting = Union(waits)
		a.Compute = a.Compute.Subtract(a.Waiting)
	}
	return a
}

// Times sums the activity up.
func (a Activity) Times() Times {
	t := Times{
		Span:    a.End - a.Start,
		Compute: a.Compute.Length(),
		Comm:    a.Comm.Length(),
		Memory:  a.Memory.Length(),
		Exposed: a.Comm.Subtract(a.Compute).Length(),
	}
	t.Hidden = t.Comm - t.Exposed
	t.Idle = t.Span - a.Compute.Plus(a.Comm).Plus(a.Memory).Length()
	return t
}
