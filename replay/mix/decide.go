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
// one that can run here.
func Decide(w *planpb.Workload, m Mix, name, traced string) (*planpb.Plan, error) {
	p := &planpb.Plan{Name: name, Mix: m.Text, Schedule: "traced", Workload: proto.CloneOf(w)}
	sizes := largest(p.Workload)
	for _, program := range p.Workload.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil {
				continue
			}
			if m.IsTraced() {
				c.Backend = traced
				continue
			}
			g := p.Workload.Groups[c.Group]
			size := sizeOf(c, sizes)
			backend, ok := m.Backend(plan.Op(c), size, g.Name, g.Description)
			if !ok {
				return nil, fmt.Errorf("mix %q: %w %s of %d bytes: add a last rule such as *=gloo", m.Text, ErrNoRule, plan.Op(c), size)
			}
			c.Backend = backend
		}
	}
	return p, nil
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

// opKey identifies one collective on all its members.
type opKey struct {
	group int32
	seq   int64
}

// keyOf is the key of a collective; point-to-point has none, both ends of a
// transfer have its size.
func keyOf(c *planpb.Communication) (opKey, bool) {
	return opKey{c.Group, c.Seq}, !plan.Op(c).IsP2P()
}

// sizeOf is the size that all members of an operation agree on: of a
// collective the largest part, of point-to-point the largest transfer.
func sizeOf(c *planpb.Communication, collectives map[opKey]int64) int64 {
	if k, ok := keyOf(c); ok {
		return collectives[k]
	}
	var count int64
	for _, t := range c.Transfers {
		count = max(count, t.Count)
	}
	return count * plan.DType(c).Size()
}

// largest is the size of each collective: the most bytes any member
// contributes or receives.
func largest(w *planpb.Workload) map[opKey]int64 {
	sizes := map[opKey]int64{}
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			if c := t.GetCommunication(); c != nil {
				if k, ok := keyOf(c); ok {
					sizes[k] = max(sizes[k], plan.Bytes(c))
				}
			}
		}
	}
	return sizes
}
