package mix

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// ErrNoRule: a mix says nothing about an operation of the workload.
var ErrNoRule = errors.New("no rule matches")

// Decide makes a plan: the workload with a backend for every communication.
// The decision is the same on all members, because it is made from values that
// all of them know. traced gives the backend of the trace, already mapped to
// one that can run here; operations of unknown size, which are in workloads to be
// simulated alone, keep it.
func Decide(w *planpb.Workload, m Mix, name, traced string) (*planpb.Plan, error) {
	p := &planpb.Plan{Name: name, Mix: m.Text, Schedule: "traced", Workload: proto.CloneOf(w)}
	sizes := measure(p.Workload)
	for _, program := range p.Workload.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil {
				continue
			}
			if m.IsTraced() || !plan.Sized(c) {
				c.Backend = traced
				keepChannels(c)
				continue
			}
			g := p.Workload.Groups[c.Group]
			size := sizes.of(program.Rank, c)
			backend, ok := m.Backend(opName(c), size, g.Name, g.Description)
			if !ok {
				return nil, fmt.Errorf("mix %q: %w %s of %d bytes: add a last rule such as *=gloo", m.Text, ErrNoRule, opName(c), size)
			}
			c.Backend = backend
			keepChannels(c)
		}
	}
	return p, nil
}

// keepChannels drops the channels of the trace where another library than NCCL or
// RCCL runs the operation, whose channels they were, or settings say how many.
func keepChannels(c *planpb.Communication) {
	if c.Backend != "nccl" && c.Backend != "rccl" {
		c.Channels = 0
	}
}

// Backends lists the backends that a plan uses, sorted.
func Backends(p *planpb.Plan) []string {
	var names []string
	for _, program := range p.Workload.Programs {
		for _, t := range program.Tasks {
			if c := t.GetCommunication(); c != nil && !slices.Contains(names, c.Backend) {
				names = append(names, c.Backend)
			}
		}
	}
	slices.Sort(names)
	return names
}
