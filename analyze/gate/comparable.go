package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"mixdown/analyze/gate/shift"
	"mixdown/analyze/report"
)

// Item is something in which two runs must agree for their figures to be compared.
type Item string

// The items, in the order in which they are looked at.
const (
	SameInput      Item = "input"      // both traces, or both replays
	SameWorld      Item = "world_size" // and the ranks read
	SameDevice     Item = "device"     // gpu, cpu, host
	SameGPU        Item = "gpu"        // its name
	SameBackend    Item = "backend"
	SameVersions   Item = "versions"   // of what both traces name
	SameLayout     Item = "layout"     // process groups by role and size
	SameOperations Item = "operations" // of a step, by operation
	SameBytes      Item = "bytes"      // of a step, by operation
)

// Items lists all items.
func Items() []Item {
	return []Item{SameInput, SameWorld, SameDevice, SameGPU, SameBackend, SameVersions, SameLayout, SameOperations, SameBytes}
}

func joinItems(items []Item) string {
	var names []string
	for _, i := range items {
		names = append(names, string(i))
	}
	return strings.Join(names, ", ")
}

// Comparison is one item of two runs.
type Comparison struct {
	Item      Item   `json:"item"`
	Baseline  string `json:"baseline"` // "" when not known
	Candidate string `json:"candidate"`
	Status    Status `json:"status"`
}

// Status of an item.
type Status string

// The statuses.
const (
	Alike   Status = "same"
	Unknown Status = "unknown" // of one run or both: the gate goes on
	Differs Status = "differs" // the runs are not comparable
	Ignored Status = "ignored" // differs, and the policy accepts that
	ByRule  Status = "by_rule" // differs, and rules of the policy judge it
)

// comparisons holds the runs against each other.
func comparisons(a, b *Record, p *Policy) []Comparison {
	var list []Comparison
	add := func(item Item, x, y string) {
		c := Comparison{Item: item, Baseline: x, Candidate: y, Status: Alike}
		switch {
		case x == "" && y == "":
			return
		case x == "" || y == "":
			c.Status = Unknown
		case x == y:
		case slices.Contains(p.Comparable.Ignore, item):
			c.Status = Ignored
		case p.judges(item):
			c.Status = ByRule
		default:
			c.Status = Differs
		}
		list = append(list, c)
	}
	add(SameInput, a.what(), b.what())
	add(SameWorld, a.Facts.world(), b.Facts.world())
	add(SameDevice, a.Facts.Device, b.Facts.Device)
	add(SameGPU, a.Facts.GPU, b.Facts.GPU)
	add(SameBackend, a.Facts.Backend, b.Facts.Backend)
	x, y := versions(a.Facts.Versions, b.Facts.Versions)
	add(SameVersions, x, y)
	if a.what() != b.what() {
		return list // the rest has no counterpart
	}
	add(SameLayout, a.Facts.layout(), b.Facts.layout())
	x, y = amounts(a, b, p, Count)
	add(SameOperations, x, y)
	x, y = amounts(a, b, p, Bytes)
	add(SameBytes, x, y)
	return list
}

// judges says whether a rule of the policy decides about an item.
func (p *Policy) judges(item Item) bool {
	m := map[Item]Metric{SameOperations: Count, SameBytes: Bytes}[item]
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Metric == m && r.Changes() && !r.Warn })
}

func (r *Record) what() string {
	if r.Replay != nil {
		return "replay"
	}
	return "traces"
}

func (f *Facts) world() string {
	if f.RanksRead == f.WorldSize {
		return fmt.Sprintf("%d ranks", f.WorldSize)
	}
	return fmt.Sprintf("%d of %d ranks", f.RanksRead, f.WorldSize)
}

func (f *Facts) layout() string {
	var parts []string
	for _, l := range f.Layout {
		parts = append(parts, l.String())
	}
	return strings.Join(parts, ", ")
}

// versions are those of what both runs name.
func versions(a, b map[string]string) (x, y string) {
	var mine, theirs []string
	for _, name := range sortedKeys(a) {
		if v, ok := b[name]; ok {
			mine, theirs = append(mine, name+" "+a[name]), append(theirs, name+" "+v)
		}
	}
	return strings.Join(mine, ", "), strings.Join(theirs, ", ")
}

// amounts are the operations or bytes of a step by operation, of those that differ
// between the runs; of all when none do.
func amounts(a, b *Record, p *Policy, m Metric) (x, y string) {
	ops := map[string]bool{}
	for _, r := range []*Record{a, b} {
		for i := range r.Operations {
			ops[r.Operations[i].Op] = true
		}
	}
	var same, mine, theirs []string
	for _, op := range sortedKeys(ops) {
		v, w := a.values(m, Labels{ByOp: op}, p.Samples.Warmup), b.values(m, Labels{ByOp: op}, p.Samples.Warmup)
		if v.unknown != "" || w.unknown != "" || len(v.list) == 0 || len(w.list) == 0 {
			continue
		}
		before, after := shift.Median(v.list, 0).Median, shift.Median(w.list, 0).Median
		text := func(f float64) string {
			if m == Bytes {
				return report.Size(int64(math.Round(f))) + " of " + report.Printable(op)
			}
			return m.Unit().Format(f) + " " + report.Printable(op)
		}
		if math.Abs(after-before) <= p.Comparable.Tolerance*math.Abs(before) || overlap(v.list, w.list) && shift.Varies(v.list) {
			same = append(same, text(before))
			continue
		}
		mine, theirs = append(mine, text(before)), append(theirs, text(after))
	}
	if mine == nil {
		all := strings.Join(same, ", ")
		return all, all
	}
	return strings.Join(mine, ", "), strings.Join(theirs, ", ")
}

// overlap says whether the ranges of values do: amounts that vary from step to
// step (tokens to experts) need not be the same in two runs.
func overlap(a, b []float64) bool {
	return slices.Min(a) <= slices.Max(b) && slices.Min(b) <= slices.Max(a)
}
