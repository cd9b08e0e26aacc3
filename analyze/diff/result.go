package diff

import (
	"mixdown/analyze/report"
	"mixdown/ingest/comm"
)

// SchemaVersion is that of the JSON written by this package.
const SchemaVersion = 1

// Diff is the result of comparing two runs, before and after.
type Diff struct {
	SchemaVersion int `json:"schema_version"`
	// Comparable: there is anything to compare. Else Answer says why not and the
	// rest is what is known of either side.
	Comparable bool   `json:"comparable"`
	Answer     string `json:"answer"`

	Before Side `json:"before"`
	After  Side `json:"after"`

	Basis Basis `json:"basis"`
	// Keys are what operations were told apart by: op, and of group, size and
	// phase those that both runs know.
	Keys []string `json:"keys"`
	Time Time     `json:"time"`
	// Operations are all of either run, by the magnitude of the change of exposed
	// time; what cannot be compared comes last.
	Operations []Operation `json:"operations"`
	Notes      []Note      `json:"notes"`
}

// Basis says which values are compared.
type Basis string

// The bases.
const (
	BySum  Basis = "sum"      // over ranks: the same number was read of both runs
	ByRank Basis = "per_rank" // mean over ranks
)

// Side describes one run.
type Side struct {
	Name         string `json:"name"`
	WorldSize    int    `json:"world_size"`
	RanksRead    int    `json:"ranks_read"`
	RanksMissing []int  `json:"ranks_missing"`
	Backend      string `json:"backend"`
	Device       string `json:"device"` // gpu, cpu, or both
	// Steps is how many samples the run gives: steps that all its ranks have,
	// or else that most have.
	// 0: the traces mark none, and the whole trace is the only sample.
	Steps int `json:"steps"`
	// StepRanks is how many ranks have those steps: all, where any step is on all.
	StepRanks  int `json:"step_ranks"`
	Operations int `json:"operations"` // of all ranks, in those steps
	Outside    int `json:"operations_outside_steps"`
	// ClocksComparable: wait and transfer can be known.
	ClocksComparable bool `json:"clocks_comparable"`
	// Blocking is the share of communication after which the program waited for
	// the device at once, as DeepSpeed's comms logger makes it; null where the
	// trace can't tell.
	Blocking    *float64            `json:"blocking_share"`
	Diagnostics []report.Diagnostic `json:"diagnostics"`
}

// Metric is one quantity of both runs, of one step.
type Metric struct {
	// Before and After are medians over the steps of the sum over ranks.
	Before *int64 `json:"before"`
	After  *int64 `json:"after"`
	Change *int64 `json:"change"` // null when the numbers of ranks differ

	// The same of the mean over the ranks that took part.
	PerRankBefore *float64 `json:"per_rank_before"`
	PerRankAfter  *float64 `json:"per_rank_after"`
	PerRankChange *float64 `json:"per_rank_change"`

	// Relative is the change over the value before, of the sum or, when that has
	// no change, of the mean; null when the value before is 0.
	Relative *float64 `json:"relative"`
	// P is the p-value of a Mann-Whitney U test over the steps; null with fewer
	// than MinSteps steps.
	P *float64 `json:"p"`

	x, y []float64 // what was compared, by step; nil where it is not known
}

// Samples are the values by step that were compared: sums over ranks, or means
// where the numbers of ranks differ. They are nil where that is not known.
func (m *Metric) Samples() (before, after []float64) { return m.x, m.y }

// Time is where the time of a step went, ns. Step is the time of the slowest
// rank, and its per-rank values are means over ranks; the others are sums over
// ranks, as package breakdown has them.
type Time struct {
	Step    Metric `json:"step_ns"`
	Compute Metric `json:"compute_ns"`
	Comm    Metric `json:"comm_ns"`
	Exposed Metric `json:"exposed_comm_ns"`
	Hidden  Metric `json:"hidden_comm_ns"`
	Memory  Metric `json:"memory_ns"`
	Idle    Metric `json:"idle_ns"`
}

// Verdict says what became of an operation.
type Verdict string

// The verdicts. Grew and Shrank are of the first quantity in Operation.Changed.
const (
	Appeared  Verdict = "appeared"
	Vanished  Verdict = "vanished"
	Grew      Verdict = "grew"
	Shrank    Verdict = "shrank"
	Unchanged Verdict = "same" // nothing stands out
)

// Operation is the communication of both runs that has one key.
type Operation struct {
	Group    *string `json:"group"` // role; null when not one of the keys
	Op       comm.Op `json:"op"`
	SizeFrom *int64  `json:"size_from"` // bytes; null when unknown or not a key
	SizeTo   *int64  `json:"size_to"`
	Phase    *string `json:"phase"` // null when unknown or not a key

	Verdict Verdict `json:"verdict"`
	// Changed names what stands out: exposed_ns, total_ns, count, bytes.
	Changed []string `json:"changed"`

	RanksBefore int    `json:"ranks_before"` // that took part
	RanksAfter  int    `json:"ranks_after"`
	Count       Metric `json:"count"`
	Bytes       Metric `json:"bytes"`
	Total       Metric `json:"total_ns"`
	Exposed     Metric `json:"exposed_ns"`
	Wait        Metric `json:"wait_ns"`
	Transfer    Metric `json:"transfer_ns"`
}

// Note says what cannot be compared, or what to keep in mind.
type Note struct {
	Code string `json:"code"`
	Text string `json:"text"`
}
