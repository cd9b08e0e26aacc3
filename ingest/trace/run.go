package trace

import (
	"slices"
	"sort"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
)

// Step is one training iteration of one rank.
type Step struct {
	Name       string // for example "ProfilerStep#10"
	Number     int
	Start, End int64 // ns, as the CPU saw it
}

// Wait is a moment at which the program asked for communication to be finished.
type Wait struct {
	TS     int64 // ns, when it asked
	Thread ThreadID
}

// EventWait is a stream, or the host, that waits for what another stream had been
// given when an event was recorded on it.
type EventWait struct {
	Call   int64 // correlation of the call that asked for the wait
	Stream int64 // that waits; NoStream: the host does
	On     int64 // the stream that is waited for
	Record int64 // correlation of the call that recorded the event
}

// Distributed is what a file says about the job it belongs to.
type Distributed struct {
	Backend   string // "nccl", "gloo", "cpu:gloo,cuda:nccl"; "" when not said
	WorldSize int    // 0 when not said
	Groups    []comm.Group
}

// Rank is what was read of one rank.
type Rank struct {
	Rank     int
	RankFrom string // where the rank is from: "distributedInfo", "file name", "flag"
	Source   string // the file, as the user named it
	Host     string // name of its machine, "" when not said
	SMs      int    // of a GPU of its machine, 0 when not said or not the same for all
	GPU      string // names of the GPUs of its machine, each once, "" when not said
	// Versions are those that the file names, such as "cuda runtime": "12080", nil when none.
	Versions map[string]string
	Read     int64 // events in the file, kept in the store or not

	Distributed Distributed
	Names       *Strings
	Threads     []Thread
	Events      Events // see Acquire

	// Operations is the communication of this rank in the order it was issued.
	Operations []comm.Operation
	Groups     []comm.Group
	Waits      []Wait
	// EventWaits are the waits for recorded events that the device's profiler saw.
	EventWaits []EventWait
	Steps      []Step // by Start

	// CPUOnly: the file has no device events, so what the CPU does is the computation.
	CPUOnly   bool
	Truncated bool

	Kept *Kept // nil: Events is whole all the time
}

// Name returns the name of event i.
func (r *Rank) Name(i int) string { return r.Names.Get(r.Events.Name[i]) }

// Run is a set of ranks of one job.
type Run struct {
	Ranks       []*Rank // by rank
	Diagnostics diagnostic.Set
}

// WorldSize is the size of the job: what the files say, or the highest rank
// plus one when that is more.
func (r *Run) WorldSize() int {
	n := 0
	for _, rank := range r.Ranks {
		n = max(n, rank.Distributed.WorldSize, rank.Rank+1)
	}
	return n
}

// Missing lists the ranks of the job that were not read.
func (r *Run) Missing() []int {
	missing := []int{}
	for rank := range r.WorldSize() {
		if r.ByRank(rank) == nil {
			missing = append(missing, rank)
		}
	}
	return missing
}

// ByRank returns the rank, or nil when it was not read.
func (r *Run) ByRank(rank int) *Rank {
	i, ok := slices.BinarySearchFunc(r.Ranks, rank, func(a *Rank, want int) int { return a.Rank - want })
	if !ok {
		return nil
	}
	return r.Ranks[i]
}

// StepsBegun is how many of the rank's steps began by ts, in ns.
func (r *Rank) StepsBegun(ts int64) int {
	return sort.Search(len(r.Steps), func(i int) bool { return r.Steps[i].Start > ts })
}

// StepAt returns the name of the step that ran at ts, in ns: of steps that overlap
// the one that began last; "" when none did.
func (r *Rank) StepAt(ts int64) string {
	if n := r.StepsBegun(ts); n > 0 && ts < r.Steps[n-1].End {
		return r.Steps[n-1].Name
	}
	return ""
}
