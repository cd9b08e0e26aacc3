package flightrecorder

import (
	"errors"
	"regexp"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
)

var (
	// ErrNotDump: the input is no dump of the flight recorder.
	ErrNotDump = errors.New("not a flight recorder dump")
	// ErrEmpty: the input has no bytes.
	ErrEmpty = errors.New("empty file")
	// ErrLimit: one of the limits in Options was reached.
	ErrLimit = errors.New("limit reached")
)

// Codes of the diagnostics of a Dump.
const (
	CodeTruncated      = "truncated-file"      // the dump ends early; what was complete is kept
	CodeNoEntries      = "no-entries"          // the dump has no "entries": it was written without collectives
	CodeBadEntry       = "bad-entry"           // entry that is no dictionary or has no profiling_name left out
	CodeBadField       = "bad-field"           // value of a known key that cannot be used taken as unknown
	CodeUnknownState   = "unknown-state"       // state that is none of the three known, kept
	CodeUnknownOp      = "unknown-operation"   // profiling_name that names no operation, kept with comm.Unknown
	CodeUnnamedGroup   = "unnamed-group"       // group configuration without a name: belongs to no group, left out
	CodeBadRanks       = "bad-ranks"           // members of a group that cannot be read, or are cut; taken as unknown
	CodeMissingGroup   = "group-not-described" // entries of a group that pg_config does not have: members unknown
	CodePeerUnknown    = "peer-unknown"        // TraceRank: peer of a send or receive is no known global rank
	CodeMixedCoalesced = "mixed-coalesced"     // TraceRank: coalesced group of different collectives, kept as single ones without times
	CodeUntimed        = "untimed-operation"   // TraceRank: operation whose start and end are not known
	CodeCreatedUnknown = "untimed-entry"       // TraceRank: entry without time_created_ns
)

// Int is an integer that a dump may leave out.
type Int struct {
	V     int64
	Known bool
}

func known(v int64) Int { return Int{v, true} }

// State is how far an entry had come.
type State string

// The states. Gloo leaves its entries Scheduled for ever and only retires them.
const (
	Scheduled State = "scheduled"
	Started   State = "started"
	Completed State = "completed"
)

// Dump is what one file holds.
type Dump struct {
	Source   string // the file, as the user named it
	Rank     int    // global rank, -1 when neither name nor pattern tells
	RankFrom string // where the rank is from: "file name", "--ranks-from"; "" when unknown

	Version     string // of the format, "2.10"; "" when absent
	CommVersion string // of the communication library, "" when absent

	// Groups are the process groups that have a name: those of the entries
	// first, in order of their first entry, then those that are only described.
	Groups []Group
	// Entries are in the order they were recorded.
	Entries []Entry

	Truncated   bool
	Diagnostics diagnostic.Set
}

// Group is a process group with what the recorder knows of its progress.
type Group struct {
	comm.Group
	ID Int // pg_id: this process's number of it; unknown without entries

	// The sequence numbers of the collectives that were last enqueued, started
	// and completed; unknown when there was none yet.
	LastEnqueued, LastStarted, LastCompleted Int
}

// Entry is one operation that was enqueued.
type Entry struct {
	RecordID Int // position since the start of the recorder
	Group    int // index in Dump.Groups, -1 when the entry names none
	PGID     Int

	// CollectiveSeq and P2PSeq count the launches of the group, a coalesced
	// group once; only the one that fits IsP2P counts this entry. OpID counts
	// operations.
	CollectiveSeq, P2PSeq, OpID Int

	Name    string  // profiling_name: "nccl:send 1->2"
	Backend string  // "nccl"; "" when the name has none
	Op      comm.Op // comm.Batch for "nccl:coalesced", comm.Unknown for what is no operation
	IsP2P   bool

	// Src and Dst are the ranks inside the group that a send or receive names.
	Src, Dst Int

	Inputs, Outputs []Tensor
	SizesKnown      bool // the entry has both lists of sizes

	State   State
	Retired bool // no longer watched: completed or, with another state, given up

	// Created, Started and Completed are Unix ns. The first is close to the
	// moment of enqueueing. The others are when a watchdog noticed, late by up
	// to the period of its poll.
	Created, Started, Completed Int
	Duration                    Int // ns, measured on the device; only with timing switched on
	Timeout                     Int // ns

	ThreadName, ThreadID string
	Frames               []Frame // innermost first; only in pickles written with stacks
}

// Tensor is the shape of one argument.
type Tensor struct {
	Sizes    []int64
	DType    comm.DType // "" when not known here
	TypeName string     // as the dump has it: "BFloat16"
}

// Frame is one line of a stack.
type Frame struct {
	Name, File string
	Line       int64
}

// Options bounds what Read takes and says where the rank is from. The zero
// value means the defaults.
type Options struct {
	// RanksFrom, when set, takes the rank from the file name: its group named
	// "rank", else its first group. Names such as
	// nccl_trace_rank_container-node02_5 need it.
	RanksFrom *regexp.Regexp

	MaxBytes   int64 // size of a dump; default 256 MiB
	MaxObjects int   // values in it, referred to again or not; default 16 Mi
	MaxStack   int   // values of a pickle that are not in a container yet; default 4 Mi
	MaxMemo    int   // values that a pickle may refer to again; default 4 Mi
	MaxDepth   int   // containers inside each other; default 64
	MaxEntries int   // default 1 Mi
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 256 << 20
	}
	if o.MaxObjects <= 0 {
		o.MaxObjects = 16 << 20
	}
	if o.MaxStack <= 0 {
		o.MaxStack = 4 << 20
	}
	if o.MaxMemo <= 0 {
		o.MaxMemo = 4 << 20
	}
	if o.MaxDepth <= 0 {
		o.MaxDepth = 64
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = 1 << 20
	}
	return o
}
