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

// Idle splits the idle time of a rank with a device. A rank without one has
// only Other.
func (a Activity) Idle(rank *trace.Rank) Idle {
	busy := a.Compute.Plus(a.Comm).Plus(a.Memory)
	gaps := Set{{a.Start, a.End}}.Subtract(busy)
	if rank.CPUOnly {
		return Idle{Other: gaps.Length()}
	}
	next := launchesByStart(rank)
	blocking := blockingCalls(rank)
	var idle Idle
	for _, gap := range gaps {
		i, ok := slices.BinarySearchFunc(next, gap.End, func(s started, t int64) int { return cmp.Compare(s.at, t) })
		if !ok || !next[i].launched || next[i].launch <= gap.Start {
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

// started is when device work began and when it was launched.
type started struct {
	at, launch int64
	launched   bool
}

// launchesByStart lists the device events by start; of those that start together
// the one that was launched last decides.
func launchesByStart(rank *trace.Rank) []started {
	ev := &rank.Events
	launches := launchTimes(rank)
	var list []started
	for i := range ev.Len() {
		if ev.Category[i].OnDevice() {
			s := started{at: ev.TS[i]}
			s.launch, s.launched = launches[ev.Correlation[i]]
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b started) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.launch, a.launch))
	})
	return slices.CompactFunc(list, func(a, b started) bool { return a.at == b.at })
}

// launchTimes maps correlations to when the host launched the work, ns.
func launchTimes(rank *trace.Rank) map[int64]int64 {
	ev := &rank.Events
	launches := map[int64]int64{}
	for i := range ev.Len() {
		if ev.Category[i] == trace.Runtime && ev.Correlation[i] != trace.NoID {
			if _, dup := launches[ev.Correlation[i]]; !dup {
				launches[ev.Correlation[i]] = ev.TS[i]
			}
		}
	}
	return launches
}

// blockingCalls lists the calls that waited for the device, by end.
func blockingCalls(rank *trace.Rank) []Interval {
	ev := &rank.Events
	isBlocking := map[trace.NameID]bool{}
	var list []Interval
	for i := range ev.Len() {
		if ev.Category[i] != trace.Runtime {
			continue
		}
		b, known := isBlocking[ev.Name[i]]
		if !known {
			b = Blocks(rank.Name(i))
			isBlocking[ev.Name[i]] = b
		}
		if b {
			list = append(list, Interval{ev.TS[i], ev.End(i)})
		}
	}
	slices.SortFunc(list, func(a, b Interval) int { return cmp.Compare(a.End, b.End) })
	return list
}
