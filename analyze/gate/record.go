package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// RecordVersion is that of the JSON of records.
const RecordVersion = 1

// recordKind tells a record from other JSON.
const recordKind = "mixdown gate record"

// ErrNotRecord: JSON that is neither a record nor the result of a replay.
var ErrNotRecord = errors.New("neither a record of a gate nor the result of a replay")

// Record is what a gate needs of a run: the values of every step. It is small
// enough to be committed as a baseline.
type Record struct {
	SchemaVersion int    `json:"schema_version"`
	Kind          string `json:"kind"`
	// Source is where the run was read from, for people and commands.
	Source string `json:"source"`
	// File is the record's own, "" when it was not read from one: Source need not
	// be on this machine then.
	File  string `json:"-"`
	Facts Facts  `json:"run"`
	// Steps are the names of the samples, in order: the steps that all ranks have,
	// or else those that most have. Empty where the traces mark none.
	Steps []string `json:"steps"`
	// Mean and Max are over ranks, but Mean.Step is that of the slowest rank.
	Mean *Times `json:"mean"` // null for a replay
	Max  *Times `json:"max"`
	// Ranks are the times of each rank that has all the steps; null when they were
	// left out of the record.
	Ranks      []Times     `json:"ranks"`
	Operations []Operation `json:"operations"`
	// Replay holds the results of a replay, null for traces.
	Replay *Replay `json:"replay"`
}

// Facts say what ran where, as far as it is known; runs are comparable when they
// are alike.
type Facts struct {
	WorldSize int    `json:"world_size"`
	RanksRead int    `json:"ranks_read"`
	Device    string `json:"device"`  // gpu, cpu, both, or host for a replay in host memory
	Backend   string `json:"backend"` // "" when not said
	// GPU names the devices, "" when not known; Versions are of what the trace
	// names: "cuda runtime", "nccl".
	GPU      string            `json:"gpu"`
	Versions map[string]string `json:"versions"`
	// Layout is the process groups: how many of each role and size there are.
	Layout []Layout `json:"layout"`
}

// Layout counts the groups of one role.
type Layout struct {
	Role   string `json:"role"`
	Size   int    `json:"size"` // members, 0 when not known
	Groups int    `json:"groups"`
}

// Times are the times of one rank, or of several as one, in every step, ns.
type Times struct {
	Rank    int     `json:"rank"` // -1 for several
	Step    []int64 `json:"step_ns"`
	Compute []int64 `json:"compute_ns"`
	Comm    []int64 `json:"comm_ns"`
	Exposed []int64 `json:"exposed_comm_ns"`
	Hidden  []int64 `json:"hidden_comm_ns"`
	Memory  []int64 `json:"memory_ns"`
	Idle    []int64 `json:"idle_ns"`
}

// of is the values of a metric, nil when it has none of ranks.
func (t *Times) of(m Metric) []int64 {
	switch m {
	case Step:
		return t.Step
	case Compute:
		return t.Compute
	case Comm:
		return t.Comm
	case ExposedComm:
		return t.Exposed
	case HiddenComm:
		return t.Hidden
	case Memory:
		return t.Memory
	case Idle:
		return t.Idle
	}
	return nil
}

// Operation is the communication of one group role, operation, size class and
// phase in every step, added up over all ranks.
type Operation struct {
	Group string `json:"group"`
	Op    string `json:"op"`
	Size  string `json:"size"`  // class, "?" when unknown
	Phase string `json:"phase"` // "" when unknown
	Ranks int    `json:"ranks"` // that took part

	Count   []int64 `json:"count"`
	Comm    []int64 `json:"comm_ns"`
	Exposed []int64 `json:"exposed_comm_ns"`
	Hidden  []int64 `json:"hidden_comm_ns"`
	// What follows is null where it is not known of all the operations. BusBytes
	// are the bytes times the factor that makes bus bandwidth of them.
	Bytes    []int64 `json:"bytes"`
	BusBytes []int64 `json:"bus_bytes"`
	Wait     []int64 `json:"wait_ns"`
	Transfer []int64 `json:"transfer_ns"`
}

// Name is what messages call the run: the file of its record, or its source.
func (r *Record) Name() string { return cmp.Or(r.File, r.Source) }

// labels are those of the operation.
func (o *Operation) labels() Labels {
	return Labels{ByGroup: o.Group, ByOp: o.Op, BySize: o.Size, ByPhase: o.Phase}
}

// matches is l.matches(o.labels()) for labels without patterns, which is asked
// often.
func (o *Operation) matches(l Labels) bool {
	for label, want := range l {
		var own string
		switch label {
		case ByGroup:
			own = o.Group
		case ByOp:
			own = o.Op
		case BySize:
			own = o.Size
		case ByPhase:
			own = o.Phase
		}
		if own != want {
			return false
		}
	}
	return true
}

// Replay is what a replay measured.
type Replay struct {
	// Fidelity is the replayed step of the unchanged plan over the traced one, by
	// iteration.
	Fidelity []float64 `json:"fidelity"`
	Variants []Variant `json:"variants"`
}

// Variant is a plan of a replay. The unchanged one has no Speedup.
type Variant struct {
	Name     string    `json:"name"`
	Mix      string    `json:"mix"`
	Schedule string    `json:"schedule"`
	Step     []int64   `json:"step_ns"` // by iteration
	Speedup  []float64 `json:"speedup"` // by pair of iterations
	// Unverified: the data that it communicated were not compared, or were wrong.
	Unverified bool `json:"unverified"`
}

// maxRatio bounds speedups and fidelities; larger ones are no measurements.
const maxRatio = 1e12

func (r *Replay) check() error {
	if r == nil {
		return nil
	}
	if len(r.Variants) == 0 {
		return errors.New("it is of a replay without plans")
	}
	ratios := slices.Clone(r.Fidelity)
	for i := range r.Variants {
		ratios = append(ratios, r.Variants[i].Speedup...)
	}
	for _, v := range ratios {
		if !(v > 0 && v < maxRatio) {
			return fmt.Errorf("a ratio of %v", v)
		}
	}
	return nil
}

// Write writes the record as JSON, a line for each list of values.
func (r *Record) Write(w io.Writer) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	if _, err := w.Write(append(lines(data), '\n')); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// lines breaks JSON before every key, so that a change of a committed record
// shows as changed lines, and lists stay short.
func lines(data []byte) []byte {
	var out []byte
	quoted, depth := false, 0
	for i := 0; i < len(data); i++ {
		c := data[i]
		out = append(out, c)
		switch {
		case quoted && c == '\\':
			i++
			out = append(out, data[i])
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth--
		case c == ',' && (data[i+1] == '"' || data[i+1] == '{') && !inList(data, i):
			out = append(out, '\n')
			for range depth {
				out = append(out, ' ')
			}
		}
	}
	return out
}

// inList says whether the comma at i is between texts of a list, which stay on
// one line.
func inList(data []byte, i int) bool {
	if data[i+1] != '"' {
		return false
	}
	for j := i + 2; j < len(data); j++ {
		switch data[j] {
		case '\\':
			j++
		case '"':
			return j+1 < len(data) && data[j+1] != ':'
		}
	}
	return false
}

// ReadRecord reads a record, or the result of a replay. Source is what messages
// call it.
func ReadRecord(r io.Reader, source string) (*Record, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxRecord+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", source, err)
	}
	if len(data) > maxRecord {
		return nil, fmt.Errorf("%s: %w: more than %d MiB", source, ErrNotRecord, maxRecord>>20)
	}
	var head struct {
		SchemaVersion int             `json:"schema_version"`
		Kind          string          `json:"kind"`
		Baseline      json.RawMessage `json:"baseline"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", source, ErrNotRecord, err)
	}
	switch {
	case head.Kind == "" && head.Baseline != nil:
		return readReplay(data, source)
	case head.Kind != recordKind:
		return nil, fmt.Errorf("%s: %w", source, ErrNotRecord)
	case head.SchemaVersion > RecordVersion:
		return nil, fmt.Errorf("%s: %w: its version is %d, this program knows up to %d", source, ErrNotRecord, head.SchemaVersion, RecordVersion)
	}
	rec := &Record{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", source, ErrNotRecord, err)
	}
	if err := rec.check(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", source, ErrNotRecord, err)
	}
	rec.File = source
	return rec, nil
}

// maxRecord bounds what is read of a record: it is not trusted.
const maxRecord = 256 << 20

// check refuses records whose lists don't belong together.
func (r *Record) check() error {
	n := len(r.Steps)
	same := func(what string, lists ...[]int64) error {
		for _, l := range lists {
			if len(l) != n {
				return fmt.Errorf("%s has %d values for %d steps", what, len(l), n)
			}
		}
		return nil
	}
	if r.Mean == nil != (r.Max == nil) || r.Mean == nil && r.Replay == nil {
		return errors.New("it has no times")
	}
	times := append([]Times{}, r.Ranks...)
	if r.Mean != nil {
		times = append(times, *r.Mean, *r.Max)
	}
	for _, t := range times {
		if err := same("a rank", t.Step, t.Compute, t.Comm, t.Exposed, t.Hidden, t.Memory, t.Idle); err != nil {
			return err
		}
	}
	for i := range r.Operations {
		o := &r.Operations[i]
		if err := same("an operation", o.Count, o.Comm, o.Exposed, o.Hidden); err != nil {
			return err
		}
		for _, l := range [][]int64{o.Bytes, o.BusBytes, o.Wait, o.Transfer} {
			if l != nil && len(l) != n {
				return fmt.Errorf("an operation has %d values for %d steps", len(l), n)
			}
		}
	}
	if r.Facts.RanksRead < 1 {
		return errors.New("no ranks were read")
	}
	return r.Replay.check()
}
