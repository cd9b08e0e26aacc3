package mix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// SchemaVersion is that of a report in JSON.
const SchemaVersion = 1

// Report is what the check found in one plan.
type Report struct {
	SchemaVersion int      `json:"schema_version"`
	Plan          string   `json:"plan"`
	Mix           string   `json:"mix"`
	Ranks         int      `json:"ranks"`      // with a program
	Operations    int      `json:"operations"` // communications of all ranks
	Backends      []string `json:"backends"`

	Errors   []Finding `json:"errors"`
	Warnings []Finding `json:"warnings"`
	// NotChecked is what the plan does not say, so that nothing can be concluded.
	NotChecked []Gap `json:"not_checked"`
}

// Finding is one fault of a plan, or several of one kind.
type Finding struct {
	Code    string `json:"code"` // "E1" to "E9", "W1" to "W7", as Kinds lists them; "E0" for a plan that is malformed
	Name    string `json:"name"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
	Count   int    `json:"count"` // faults of this kind; the rest describes the first

	Ranks      []int32     `json:"ranks"`
	Groups     []string    `json:"groups"`
	Operations []Operation `json:"operations"`
	// Cycle is the circle of a deadlock: each step's second operation is the
	// next step's first, or its other side.
	Cycle []Step `json:"cycle,omitempty"`
	// Shortest: no circle of the plan has fewer steps. Searched in full unless
	// the plan is huge.
	Shortest bool `json:"shortest,omitempty"`

	hangs bool // a way to hang, where the code does not say it
}

// Operation is a communication as one rank takes part in it.
type Operation struct {
	Rank    int32  `json:"rank"`
	Task    int32  `json:"task"`
	Op      string `json:"op"`
	Group   string `json:"group"`
	Seq     *int64 `json:"seq"` // null for point-to-point
	Peers   string `json:"peers,omitempty"`
	Backend string `json:"backend"`
	Bytes   int64  `json:"bytes"`
	TraceNs *int64 `json:"trace_ts_ns"` // start in the trace, null if not from a trace
	DurNs   *int64 `json:"trace_dur_ns"`

	of     string // the group as messages name it
	offset *int64 // of TraceNs from the first operation of the plan
}

// Step says that on one rank an operation can only begin after another ended.
type Step struct {
	Rank  int32     `json:"rank"`
	First Operation `json:"first"`
	Then  Operation `json:"then"`
	Why   string    `json:"why"`
}

// Gap is a check that could not be made.
type Gap struct {
	Code string `json:"code"`
	Why  string `json:"why"`
	// Open: nor does it follow from how the worker runs a plan.
	Open bool `json:"-"`
}

// Kind is one thing that is checked.
type Kind struct {
	Code, Name, Summary string
}

// Kinds lists all checks, errors first.
func Kinds() []Kind {
	return []Kind{
		{"E0", "malformed", "the plan contradicts itself; the worker would refuse it"},
		{"E1", "members-disagree", "every member of a group runs the same operations in the same order: operation, element type, reduction, root, counts, parts"},
		{"E2", "unpaired-transfer", "every send has one receive of the same size and type; where messages have no tags, in the same order on both sides"},
		{"E3", "deadlock", "no circle of operations that wait for each other, over all ranks"},
		{"E4", "unsafe-concurrency", "operations on a GPU that belong to different libraries or groups are ordered by a dependency wherever their order could differ between ranks"},
		{"E5", "backend-impossible", "one backend for an operation on all members, which can do it"},
		{"E6", "buffer-not-ready", "a library that is not ordered by GPU streams gets a buffer only when the host knows that what fills it has ended; nothing writes a buffer that another operation may still use"},
		{"E7", "member-absent", "every member of a group that is used runs, and all make and destroy its communicator, in orders that do not wait for each other"},
		{"E8", "threads", "a library is called from no more threads at once than it allows"},
		{"E9", "settings-differ", "tuning files and environment are the same on all ranks"},
		{"W1", "kernels-compete", "kernels of several groups may wait on one GPU at once and need more SMs than there are, or nobody knows"},
		{"W2", "allocation", "a library may allocate or connect while a GPU operation waits for other ranks"},
		{"W3", "many-changes", "the backend changes very often in one step"},
		{"W4", "trace-incomplete", "ranks are missing, group names are hashes, or the parts of an all_to_all are estimated"},
		{"W5", "not-measured", "a backend was chosen for sizes or group sizes for which it was not measured"},
		{"W6", "overlap-lost", "communication that overlapped with computation runs on a library that blocks the host"},
		{"W7", "slow-on-critical-path", "a library that spares SMs but is slower runs what bounds the step"},
	}
}

// nameOf is the name of a check.
func nameOf(code string) string {
	for _, k := range Kinds() {
		if k.Code == code {
			return k.Name
		}
	}
	return ""
}

// Has says whether the report has a finding of that code.
func (r *Report) Has(code string) bool {
	for _, list := range [][]Finding{r.Errors, r.Warnings} {
		for _, f := range list {
			if f.Code == code {
				return true
			}
		}
	}
	return false
}

// maxStepsInError bounds the steps of a circle that an error tells.
const maxStepsInError = 4

// Err is nil for a plan without errors. It wraps ErrDeadlock where the first one
// is a way to hang, ErrInvalidPlan otherwise.
func (r *Report) Err() error {
	if len(r.Errors) == 0 {
		return nil
	}
	f := r.Errors[0]
	kind := ErrInvalidPlan
	if f.Code == "E3" || f.Code == "E4" || f.Code == "E1" && f.Cycle != nil || f.hangs {
		kind = ErrDeadlock
	}
	text := f.Message
	if len(f.Cycle) > 0 {
		var steps []string
		for i, s := range f.Cycle {
			if i == maxStepsInError {
				steps = append(steps, fmt.Sprintf("and %d more steps", len(f.Cycle)-i))
				break
			}
			steps = append(steps, s.String())
		}
		text += ": " + strings.Join(steps, "; ")
	}
	if more := len(r.Errors) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s of errors: mixdown check shows them)", countOf(more, "more kind"))
	}
	return fmt.Errorf("%w: %s: %s", kind, f.Code, text)
}

// collector gathers findings, one for each kind.
type collector struct {
	index map[string]*Finding
	order []*Finding
}

// add counts a finding of the kind; make describes the first.
func (c *collector) add(code, kind string, make func() Finding) {
	if c.index == nil {
		c.index = map[string]*Finding{}
	}
	key := code + "/" + kind
	if f, ok := c.index[key]; ok {
		f.Count++
		return
	}
	if len(c.order) >= maxFindings {
		return
	}
	f := make()
	f.Code, f.Name, f.Count = code, nameOf(code), 1
	c.index[key] = &f
	c.order = append(c.order, &f)
}

// maxFindings bounds a report: a plan with that many kinds of faults is wrong
// altogether.
const maxFindings = 100

// report puts the findings into a report, in the order of their codes.
func (c *collector) report(r *Report) {
	r.Errors, r.Warnings = []Finding{}, []Finding{}
	for _, f := range c.order {
		if f.Code[0] == 'E' {
			r.Errors = append(r.Errors, *f)
		} else {
			r.Warnings = append(r.Warnings, *f)
		}
	}
	slices.SortStableFunc(r.Errors, func(a, b Finding) int { return cmp.Compare(a.Code, b.Code) })
	slices.SortStableFunc(r.Warnings, func(a, b Finding) int { return cmp.Compare(a.Code, b.Code) })
}
