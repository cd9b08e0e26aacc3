package breakdown

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/bits"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// SizeClass is a range of sizes, From <= bytes < To: a power of two and the next,
// or 0 and 1. The zero value is the class of unknown sizes.
type SizeClass struct{ From, To int64 }

// Class is the class of an operation whose larger side (in or out) has n bytes.
func Class(n int64) SizeClass {
	if n <= 0 {
		return SizeClass{0, 1}
	}
	from := int64(1) << (bits.Len64(uint64(n)) - 1)
	if from > 1<<61 { // the next power has no int64
		return SizeClass{from, 1<<63 - 1}
	}
	return SizeClass{from, from * 2}
}

// Known says whether the sizes are.
func (c SizeClass) Known() bool { return c.To > 0 }

// String is the class for tables: "64..128 KiB", "?" when unknown.
func (c SizeClass) String() string {
	if !c.Known() {
		return "?"
	}
	if c.From == 0 {
		return "0 B"
	}
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	unit := (bits.Len64(uint64(c.From)) - 1) / 10
	from := c.From >> (10 * unit)
	return fmt.Sprintf("%d..%d %s", from, from*2, units[unit])
}

// Key is what the operations of one row have in common. Of a row that By made,
// the keys that it left out are their zero values, and Group and Step are None.
type Key struct {
	Group int // index into Breakdown.Groups
	Op    comm.Op
	Size  SizeClass
	Phase trace.Phase
	Step  int // index into Breakdown.Steps, or Outside
}

// None stands for a group or step that was left out.
const None = -2

// Sums adds up operations of all ranks.
type Sums struct {
	Ranks   int // that took part
	Count   int // operations, each on each rank
	Total   int64
	Exposed int64
	Hidden  int64

	// Wait and Transfer mean something with TimesKnown, Bytes with BytesKnown:
	// when they are known of all the operations.
	Wait, Transfer int64
	Bytes          int64 // the larger of in and out bytes, of every operation
	TimesKnown     bool
	BytesKnown     bool

	members []uint64 // bit i: rank index i took part
}

// newSums is the sum of nothing.
func newSums() Sums { return Sums{TimesKnown: true, BytesKnown: true} }

// add adds other.
func (s *Sums) add(other *Sums) {
	s.Count += other.Count
	s.Total += other.Total
	s.Exposed += other.Exposed
	s.Hidden += other.Hidden
	s.Wait += other.Wait
	s.Transfer += other.Transfer
	s.Bytes += other.Bytes
	s.TimesKnown = s.TimesKnown && other.TimesKnown
	s.BytesKnown = s.BytesKnown && other.BytesKnown
	for i, word := range other.members {
		s.join(i, word)
	}
}

// join adds members, 64 rank indices from 64 x i.
func (s *Sums) join(i int, word uint64) {
	for len(s.members) <= i {
		s.members = append(s.members, 0)
	}
	fresh := word &^ s.members[i]
	s.members[i] |= fresh
	s.Ranks += bits.OnesCount64(fresh)
}

// Row is the sum of the operations of one key.
type Row struct {
	Key
	Sums
	// label and step are the names of Group and Step, for the JSON.
	label, step string
}

// rowJSON is a row with what is unknown as null.
type rowJSON struct {
	Group    *string  `json:"group"`
	Op       *comm.Op `json:"op"`
	From     *int64   `json:"size_from"` // bytes
	To       *int64   `json:"size_to"`
	Phase    *string  `json:"phase"`
	Step     *string  `json:"step"` // null: outside all steps, or not one of the keys
	Ranks    int      `json:"ranks"`
	Count    int      `json:"count"`
	Total    int64    `json:"total_ns"`
	Exposed  int64    `json:"exposed_ns"`
	Hidden   int64    `json:"hidden_ns"`
	Wait     *int64   `json:"wait_ns"`
	Transfer *int64   `json:"transfer_ns"`
	Bytes    *int64   `json:"bytes"`
}

// GroupLabel is the name of the row's group, "" when the group is not one of its
// keys.
func (r Row) GroupLabel() string { return r.label }

// MarshalJSON writes what is not known, or not one of the row's keys, as null.
func (r Row) MarshalJSON() ([]byte, error) {
	j := rowJSON{Ranks: r.Ranks, Count: r.Count, Total: r.Total, Exposed: r.Exposed, Hidden: r.Hidden}
	if r.Group != None {
		j.Group = &r.label
	}
	if r.Op != "" {
		j.Op = &r.Op
	}
	if r.Size.Known() {
		j.From, j.To = &r.Size.From, &r.Size.To
	}
	if r.Phase != trace.UnknownPhase {
		phase := r.Phase.String()
		j.Phase = &phase
	}
	if r.Key.Step >= 0 {
		j.Step = &r.step
	}
	if r.TimesKnown {
		j.Wait, j.Transfer = &r.Wait, &r.Transfer
	}
	if r.BytesKnown {
		j.Bytes = &r.Bytes
	}
	return json.Marshal(j)
}

// compareRows orders rows by exposed time, the most first, then by total and key.
func compareRows(a, b Row) int {
	return cmp.Or(
		cmp.Compare(b.Exposed, a.Exposed), cmp.Compare(b.Total, a.Total),
		cmp.Compare(a.Key.Step, b.Key.Step), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Op, b.Op),
		cmp.Compare(a.Size.From, b.Size.From), cmp.Compare(a.Size.To, b.Size.To), cmp.Compare(a.Phase, b.Phase),
	)
}
