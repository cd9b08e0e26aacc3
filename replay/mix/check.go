package mix

import (
	"errors"

	"mixdown/replay/plan/planpb"
)

// ErrDeadlock: the plan can hang.
var ErrDeadlock = errors.New("the plan can deadlock")

// ErrInvalidPlan: the members of an operation do not agree on it, or a backend
// can't do what it is to do.
var ErrInvalidPlan = errors.New("invalid plan")

// CheckOptions are the options of a check. The zero value is ready.
type CheckOptions struct {
	// Capabilities is what is known of the backends; nil means Known.
	Capabilities *Capabilities
	// MaxChanges is how often the backend may change on a rank in one step
	// without a warning; 0 means DefaultMaxChanges.
	MaxChanges int
}

// Check refuses a plan that is invalid or can deadlock; its error wraps
// ErrInvalidPlan or ErrDeadlock and tells the first error of Inspect.
func Check(p *planpb.Plan) error {
	return Inspect(p, CheckOptions{}).Err()
}

// Inspect looks for everything that Kinds lists. It always returns a report; the
// plan can run when that has no errors.
func Inspect(p *planpb.Plan, opts CheckOptions) *Report {
	known := Known()
	if opts.Capabilities == nil {
		opts.Capabilities = &known
	}
	if opts.MaxChanges <= 0 {
		opts.MaxChanges = DefaultMaxChanges
	}
	r := &Report{SchemaVersion: SchemaVersion, Plan: p.GetName(), Mix: p.GetMix(), Backends: []string{}, NotChecked: []Gap{}}
	found := &collector{}
	defer found.report(r)
	m, err := newModel(p.GetWorkload(), opts.Capabilities)
	if err != nil {
		found.add("E0", "", func() Finding {
			return Finding{Message: err.Error(), Advice: "make the plan anew with \"mixdown plan\""}
		})
		return r
	}
	r.Ranks, r.Backends = len(m.w.Programs), Backends(p)
	for _, comm := range m.commOf {
		r.Operations += int(min(1, comm+1))
	}
	r.NotChecked = m.gaps()
	m.checkMembers(found)
	m.checkSupport(found)
	pairs := m.pairTransfers(found)
	g := newGraph(m, pairs)
	happened := m.checkOrder(found, g)
	m.checkSharing(found, pairs)
	m.checkReady(found)
	m.checkReuse(found)
	m.checkLives(found)
	m.checkSettings(found)
	m.checkChanges(found, opts.MaxChanges)
	m.checkTrace(found)
	m.checkMeasured(found)
	m.checkCritical(found, g, happened)
	return r
}
