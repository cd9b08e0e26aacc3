package synthetic

import (
	"cmp"
	"slices"

	"mixdown/ingest/comm"
)

// Truth is what the traces of a run do not say. Times are true ns.
type Truth struct {
	Start       int64
	Clocks      []Clock // by rank
	Collectives []Event // in the order the program runs them, then by group
	Transfers   []Event // sends, the sender first
	Stragglers  []Straggler
	Dropped     []Dropped
	StepEnds    [][]int64 // [step][rank], when the rank's program left it
}

// Event is one communication on all its members.
type Event struct {
	Step, Collective int // Collective indexes Options.Collectives, Second: of the second thread
	Op               comm.Op
	Group            string // name, as in traces that name groups
	Ranks            []int
	Arrival, End     []int64 // by member
	Transfer         int64   // ns from the last arrival to the earliest possible end
	Dropped          []bool  // the member's file lacks it
}

// Second is the Collective of what the second threads communicate.
const Second = -1

// Dropped is an event that a file lacks.
type Dropped struct{ Rank, Step, Collective int }

// LastArrival is when the last member arrived.
func (e *Event) LastArrival() int64 { return slices.Max(e.Arrival) }

// Wait is how long member k waited for the last, in ns.
func (e *Event) Wait(k int) int64 { return e.LastArrival() - e.Arrival[k] }

// Order lists the members' ranks by arrival.
func (e *Event) Order() []int {
	order := make([]int, len(e.Ranks))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(e.Arrival[a], e.Arrival[b]) })
	for i, k := range order {
		order[i] = e.Ranks[k]
	}
	return order
}

// Whole says whether the files of all members have the event.
func (e *Event) Whole() bool { return !slices.Contains(e.Dropped, true) }

// Local is what the clock of a rank shows at true time t.
func (t *Truth) Local(rank int, at int64) int64 {
	return t.Clocks[rank].local(t.Start, at)
}

func (c Clock) local(start, at int64) int64 {
	return at + c.Offset + c.DriftPPB*(at-start)/1_000_000_000
}
