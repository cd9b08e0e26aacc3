package commslog

import (
	"errors"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
)

var (
	// ErrNotLog: the input holds nothing that DeepSpeed's communication logger
	// writes.
	ErrNotLog = errors.New("no output of DeepSpeed's communication logger")
	// ErrEmpty: the input has no bytes but white space.
	ErrEmpty = errors.New("empty file")
)

// Codes of the diagnostics of a Log.
const (
	CodeBadRow           = "comms-log-bad-row"           // looks like a row of a table and is none; left out
	CodeBadLine          = "comms-log-bad-line"          // looks like a verbose line and is none; left out
	CodeOrphanRow        = "comms-log-orphan-row"        // row without a table or without an operation above it; left out
	CodeUnknownOperation = "comms-log-unknown-operation" // name that is no known operation, kept with comm.Unknown
	CodeLineTooLong      = "comms-log-line-too-long"     // line above MaxLineBytes left out
	CodeLimit            = "comms-log-limit"             // MaxRows reached, the rest was not read
	CodeTruncated        = "truncated-file"              // the input could not be read to its end
	CodeDuplicateKey     = "comms-log-duplicate-key"     // size given twice for one operation in JSON; both kept
	CodeUnmatched        = "comms-log-unmatched-row"     // row of a straggler table that the table before it does not have; kept
)

// Log is what one file holds.
type Log struct {
	Source string // the file, as the user named it

	// Tables lists the summaries in the order they were printed. Each counts
	// from the start of the job (or from the last reset), so they must not be
	// added up.
	Tables []Table
	// Calls lists the verbose lines in file order.
	Calls []Call

	Diagnostics diagnostic.Set
}

// Table is one summary.
type Table struct {
	Rank      int // who made it, valid with RankKnown; text says so only by the launcher's prefix
	RankKnown bool
	WorldSize int    // 0 when not said; only JSON says
	Timestamp string // ISO 8601 without zone; only JSON has it
	Straggler bool   // a straggler table belongs to it
	Rows      []Row
	Offset    int64 // of its header, in bytes
}

// Row is all calls of one operation with one message size.
type Row struct {
	Op     comm.Op // comm.Unknown when Name is no operation known
	Name   string  // "all_gather_into_tensor"
	Caller string  // function that called, in debug mode; else ""

	// SizeLo and SizeHi bound the logged message size in bytes, both included;
	// they are equal when it is exact. What the size covers depends on the
	// operation: for gathers it is the part of one rank.
	SizeLo, SizeHi int64

	Count int64
	// HasTimes: TotalNS and AvgNS are known; a row may come from a straggler
	// table alone.
	HasTimes       bool
	TotalNS, AvgNS int64
	// TputGbps and BusGbps are as printed, in Gbit/s; valid with their Known.
	TputGbps, BusGbps           float64
	TputGbpsKnown, BusGbpsKnown bool

	Straggler *Straggler // nil without a straggler table

	ResolutionNS int64 // what the last digit of its times is worth: 10,000 in text, 1 in JSON
	Offset       int64 // of the row in bytes; in JSON of the value it is in
}

// Straggler splits the time of a row: Comm is the least of all ranks for each
// call, Straggler what this rank took more than that.
type Straggler struct {
	Count                         int64
	TotalCommNS, TotalStragglerNS int64
	AvgCommNS, AvgStragglerNS     int64 // trimmed means, as AvgNS
}

// Call is one verbose line.
type Call struct {
	Op     comm.Op
	Name   string
	Caller string

	Rank      int // valid with RankKnown
	RankKnown bool

	SizeLo, SizeHi int64 // as in Row

	DurNS                      int64 // to 0.01 ms
	AlgGbps, BusGbps           float64
	AlgGbpsKnown, BusGbpsKnown bool

	Stamp  string // time of the log line as it is written, local time without zone; "" when absent
	Offset int64
}

// Options bounds what Read takes. The zero value means the defaults.
type Options struct {
	MaxLineBytes int   // default 64 KiB
	MaxRows      int   // rows and calls together; default 4 Mi
	MaxJSONBytes int64 // size of a JSON input; default 256 MiB
}

func (o Options) withDefaults() Options {
	if o.MaxLineBytes <= 0 {
		o.MaxLineBytes = 64 << 10
	}
	if o.MaxRows <= 0 {
		o.MaxRows = 4 << 20
	}
	if o.MaxJSONBytes <= 0 {
		o.MaxJSONBytes = 256 << 20
	}
	return o
}
