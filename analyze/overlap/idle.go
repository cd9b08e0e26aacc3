package overlap

import (
	"cmp"
	"slices"
	"strings"

	"mixdown/ingest/trace"
)

// Idle says why a rank's device did nothing, ns. The parts add up to the idle
// time.
type Idle struct {
	// Launch: the host had not launched the next work yet.
	Launch int64
	// Sync: it had not, because it was blocked in a call that waits for the
	// device, or had just come back from one.
	Sync int64
	// Other: the next work was launched and waited for something else, or
	// nothing in the trace says when it was launched.
	Other int64
}

// Blocks says whether an API call returns only when device work has ended:
// cudaStreamSynchronize, hipDeviceSynchronize, cuEventSynchronize, cudaMemcpy.
func Blocks(name string) bool {
	return strings.HasSuffix(name, "Synchronize") || name == "cudaMemcpy" || name == "hipMemcpy" || name == "hipMemcpyWithStream"
}

// Explain measures a rank and says why its device was idle. It is Measure and
// Idle, with what does not depend on each other done at the same time.
func Explain(rank *trace.Rank) (Activity, Idle) {
	if rank.CPUOnly {
		a := Measure(rank)
		return a, a.Idle(rank)
	}
	host := make(chan hostSide, 1)
	go func() { host <- newHostSide(rank) }()
	a := Measure(rank)
	return a, a.idle(rank, <-host)
}

// hostSide is what the host did that bears on idle time.
type hostSide struct {
	launchedAt func(correlation int64) (int64, bool)
	blocking   []Interval
}

func newHostSide(rank *trace.Rank) hostSide {
	return hostSide{launchedAt: launchTimes(rank), blocking: blockingCalls(rank)}
}

// Idle splits the idle time of a rank with a device. A rank without one has
// only Other.
func (a Activity) Idle(rank *trace.Rank) Idle {
	if rank.CPUOnly {
		return Idle{Other: a.Times().Idle}
	}
	return a.idle(rank, newHostSide(rank))
}

func (a Activity) idle(rank *trace.Rank, host hostSide) Idle {
	busy := a.Compute.Plus(a.Comm).Plus(a.Memory)
	gaps := Set{{a.Start, a.End}}.Subtract(busy)
	next := launchesAfter(rank, gaps, host.launchedAt)
	blocking := host.blocking
	var idle Idle
	for i, gap := range gaps {
		if !next[i].launched || next[i].launch <= gap.Start {
			idle.Other += gap.End - gap.Start
			continue
		}
		// The host reached the launch within the gap. Up to the end of the last
		// blocking call before it, the call is to blame.
		launch := min(next[i].launch, gap.End)
		k, _ := slices.BinarySearchFunc(blocking, launch+1, func(iv Interval, t int64) int { return cmp.Compare(iv.End, t) })
		synced := int64(0)
		if k > 0 && blocking[k-1].End > gap.Start {
			synced = min(blocking[k-1].End, gap.End) - gap.Start
		}
		idle.Sync += synced
		idle.Launch += gap.End - gap.Start - synced
	}
	return idle
}

// started is when device work was launched.
type started struct {
	launch   int64
	launched bool
}

// launchesAfter finds the launch of what ended each gap; of the events that
// start together the one that was launched last decides.
func launchesAfter(rank *trace.Rank, gaps Set, launches func(correlation int64) (int64, bool)) []started {
	ev := &rank.Events
	next := make([]started, len(gaps))
	k := 0 // most events follow the one before
	for i := range ev.Len() {
		if !ev.Category[i].OnDevice() {
			continue
		}
		ts := ev.TS[i]
		if k >= len(gaps) || gaps[k].End != ts {
			k, _ = slices.BinarySearchFunc(gaps, ts, func(gap Interval, t int64) int { return cmp.Compare(gap.End, t) })
		}
		if k == len(gaps) || gaps[k].End != ts {
			continue
		}
		if at, ok := launches(ev.Correlation[i]); ok && (!next[k].launched || at > next[k].launch) {
			next[k] = started{at, true}
		}
		k++
	}
	return next
}

// launchTimes tells when the host launched the work with a correlation, ns.
func launchTimes(rank *trace.Rank) func(correlation int64) (int64, bool) {
	calls, _ := trace.JoinLaunches(rank)
	return func(correlation int64) (int64, bool) {
		if i, ok := calls.Of(correlation); ok {
			return rank.Events.TS[i], true
		}
		return 0, false
	}
}

// blockingCalls lists the calls that waited for the device, by end.
func blockingCalls(rank *trace.Rank) []Interval {
	ev := &rank.Events
	const unknown, no, yes = 0, 1, 2
	blocks := make([]uint8, rank.Names.Len()) // by name: they repeat
	var list []Interval
	for i := range ev.Len() {
		if ev.Category[i] != trace.Runtime {
			continue
		}
		b := &blocks[ev.Name[i]]
		if *b == unknown {
			*b = no
			if Blocks(rank.Name(i)) {
				*b = yes
			}
		}
		if *b == yes {
			list = append(list, Interval{ev.TS[i], ev.End(i)})
		}
	}
	slices.SortFunc(list, func(a, b Interval) int { return cmp.Compare(a.End, b.End) })
	return list
}
