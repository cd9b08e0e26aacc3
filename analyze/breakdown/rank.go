package breakdown

import (
	"mixdown/analyze/overlap"
	"mixdown/analyze/waiting"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// Times is where the time of one rank went, ns; see package overlap. Added over
// a rank's steps and Outside they are the times of its whole trace.
type Times struct {
	Span    int64 `json:"span_ns"`
	Compute int64 `json:"compute_ns"`
	Comm    int64 `json:"comm_ns"`
	Exposed int64 `json:"exposed_comm_ns"`
	Hidden  int64 `json:"hidden_comm_ns"`
	Memory  int64 `json:"memory_ns"`
	Idle    int64 `json:"idle_ns"`
}

// Add adds other.
func (t *Times) Add(other Times) {
	t.Span += other.Span
	t.Compute += other.Compute
	t.Comm += other.Comm
	t.Exposed += other.Exposed
	t.Hidden += other.Hidden
	t.Memory += other.Memory
	t.Idle += other.Idle
}

// Rank is the time of one rank by step.
type Rank struct {
	Rank  int        `json:"rank"`
	Steps []RankStep `json:"steps"`
	// Outside is what belongs to no step.
	Outside Times `json:"outside"`
}

// RankStep is one step of one rank.
type RankStep struct {
	Step int   `json:"step"`   // index into Breakdown.Steps
	Dur  int64 `json:"dur_ns"` // as the CPU saw it
	Times
}

// Total is the time of the rank's whole trace.
func (r *Rank) Total() Times {
	t := r.Outside
	for _, s := range r.Steps {
		t.Add(s.Times)
	}
	return t
}

// activity is what a rank did when, by segment.
type activity struct {
	rank     *trace.Rank
	segments []segment

	compute, comm, memory []piece // those of one kind do not overlap
	computeSet            overlap.Set
	start, end            int64   // of everything on the device
	first                 []int64 // when the first work of each segment began
}

// segmentOf is the segment of an operation: in which it was issued.
func (a *activity) segmentOf(op *comm.Operation) int {
	at := op.Issued
	if at == 0 {
		at = op.Start
	}
	return segmentAt(a.segments, at)
}

// never is a time after all others.
const never = int64(1<<63 - 1)

// measure goes through the events of a rank.
func measure(rank *trace.Rank, of []int) *activity {
	a := &activity{rank: rank, segments: segments(rank, of)}
	a.first = make([]int64, len(a.segments))
	for i := range a.first {
		a.first[i] = never
	}
	a.start, a.end = never, -never
	ev := &rank.Events
	isComm := make([]bool, ev.Len())
	for i := range rank.Operations {
		s := a.segmentOf(&rank.Operations[i])
		for _, e := range rank.Operations[i].Events {
			isComm[e] = true
			p := piece{ev.TS[e], ev.End(e), s}
			a.comm = append(a.comm, p)
			if ev.Category[e].OnDevice() || rank.CPUOnly {
				a.note(p)
			}
		}
	}
	var launches *trace.Launches
	if !rank.CPUOnly {
		launches, _ = trace.JoinLaunches(rank)
	}
	for i := range ev.Len() {
		c := ev.Category[i]
		onCPU := rank.CPUOnly && c == trace.CPUOp
		if isComm[i] || !c.OnDevice() && !onCPU {
			continue
		}
		at := ev.TS[i]
		if !onCPU && launches != nil {
			if l, ok := launches.Of(ev.Correlation[i]); ok {
				at = ev.TS[l]
			}
		}
		p := piece{ev.TS[i], ev.End(i), segmentAt(a.segments, at)}
		a.note(p)
		if c == trace.Memcpy || c == trace.Memset {
			a.memory = append(a.memory, p)
		} else {
			a.compute = append(a.compute, p)
		}
	}
	a.compute, a.comm, a.memory = settle(a.compute), settle(a.comm), settle(a.memory)
	if rank.CPUOnly {
		var waits []overlap.Interval
		for _, w := range waiting.Find(rank) {
			waits = append(waits, overlap.Interval{Start: w.Start, End: w.End})
		}
		a.compute = without(a.compute, overlap.Union(waits))
	}
	a.computeSet = set(a.compute)
	return a
}

// note extends the span of the rank by work of a segment.
func (a *activity) note(p piece) {
	a.start, a.end = min(a.start, p.start), max(a.end, p.end)
	a.first[p.segment] = min(a.first[p.segment], p.start)
}

// windows cuts the rank's span where the work of the next segment begins, or,
// without a device, where the segment itself does.
func (a *activity) windows() []piece {
	var list []piece
	at := a.start
	for s := range a.segments {
		begin := a.first[s]
		if a.rank.CPUOnly {
			begin = a.segments[s].start
		}
		if begin == never || begin >= a.end && len(list) > 0 {
			continue
		}
		begin = max(begin, at)
		if n := len(list); n > 0 {
			list[n-1].end = begin
		}
		list = append(list, piece{begin, a.end, s})
		at = begin
	}
	return list
}

// times adds the activity up: of each step, and of what is outside all of them.
func (a *activity) times() (byStep map[int]Times, outside Times) {
	byStep = map[int]Times{}
	if a.start > a.end { // nothing ran
		return byStep, outside
	}
	n := len(a.segments)
	windows := a.windows()
	busy := a.computeSet.Plus(set(a.comm)).Plus(set(a.memory))
	span := overlap.Set{{Start: a.start, End: a.end}}
	spans := lengths(windows, n)
	compute, communication, memory := lengths(a.compute, n), lengths(a.comm, n), lengths(a.memory, n)
	exposed := lengths(without(a.comm, a.computeSet), n)
	idle := lengths(cutAt(span.Subtract(busy), windows), n)
	for s, seg := range a.segments {
		t := Times{
			Span: spans[s], Compute: compute[s], Comm: communication[s], Exposed: exposed[s],
			Hidden: communication[s] - exposed[s], Memory: memory[s], Idle: idle[s],
		}
		if seg.step == Outside {
			outside.Add(t)
			continue
		}
		sum := byStep[seg.step]
		sum.Add(t)
		byStep[seg.step] = sum
	}
	return byStep, outside
}
