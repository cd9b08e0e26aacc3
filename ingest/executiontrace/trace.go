package executiontrace

import (
	"errors"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
)

var (
	// ErrNotExecutionTrace: the input is no PyTorch execution trace in JSON.
	ErrNotExecutionTrace = errors.New("not a PyTorch execution trace")
	// ErrDuplicateRank: two execution traces claim to be the same rank.
	ErrDuplicateRank = errors.New("two execution traces claim the same rank")
	// ErrNoRank: no execution trace says which rank it is.
	ErrNoRank = errors.New("rank of the execution trace unknown")
)

// Trace is the communication in the execution trace of one rank.
type Trace struct {
	Source string // the file, as the user named it
	Schema string // for example "1.1.1-chakra.0.0.4"
	Rank   int    // -1 when the name of the file does not tell

	// Calls is the communication in the order it was issued.
	Calls []Call
	// Groups lists the process groups that the trace describes or names.
	Groups []comm.Group

	Nodes int64 // read, whatever they are
	Lost  int64 // that could not be read

	Diagnostics diagnostic.Set
}

// Call is one communication of the rank. Sizes and splits count elements, as
// those of comm.Operation do.
type Call struct {
	Op    comm.Op
	Name  string // as the trace has it: "all_to_allv", "c10d::allreduce_"
	DType comm.DType

	SizeKnown bool
	In, Out   int64

	// InSplits and OutSplits are nil when the parts are even or unknown;
	// SplitsKnown tells which.
	SplitsKnown         bool
	InSplits, OutSplits []int64

	// RecordFn is the record function id of its record_param_comms, else of
	// its operator; RecordFns are those of all its nodes. Which of them is the
	// "Record function id" of the operation depends on the backend.
	RecordFn  int64
	RecordFns []int64

	// Group is what is known of the process group; its name is "" when the
	// trace names none.
	Group comm.Group

	Seq      int64 // as recorded, valid with SeqKnown
	SeqKnown bool

	Offset int64 // byte offset of its first node in the decompressed file
}

// limits bounds what one file may take. Execution traces are uploaded, too.
type limits struct {
	node    int // bytes of one node
	depth   int // brackets inside each other
	records int // communication nodes kept
	splits  int // entries of all lists kept
}

// A node holds the arguments of one operator. Real ones stay below a megabyte;
// a group of 10,000 ranks with two lists of splits has 200 kB.
var defaultLimits = limits{node: 16 << 20, depth: 64, records: 4 << 20, splits: 64 << 20}
