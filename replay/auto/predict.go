package auto

import (
	"fmt"

	"mixdown/replay/plan/planpb"
)

// Predict is how long a step of a plan takes when it is replayed, in ns: what its tasks
// wait for as in the workload, what its operations take from the table. The traced backend
// is treated like any other, so that the quotient of two predictions is what a replay of
// both measures. ErrNoCosts where the table can't say what one of the operations takes, or
// the plan has more tasks than Options.MaxPlayed.
func Predict(p *planpb.Plan, costs Costs, opts Options) (int64, error) {
	c := newChooser(p.Workload, costs, opts)
	if !c.played {
		return 0, fmt.Errorf("%w: it has too many tasks to be played", ErrNoCosts)
	}
	for _, program := range p.Workload.Programs {
		for _, t := range program.Tasks {
			pb := t.GetCommunication()
			if pb == nil {
				continue
			}
			k := c.keys[pb]
			if pb.Compression != nil {
				return 0, fmt.Errorf("%w: nor what compressing %s takes", ErrNoCosts, k.op)
			}
			if !c.cost(k, pb.Backend, c.ranks(pb), c.nodesOf(program.Rank, pb)).ok {
				return 0, fmt.Errorf("%w: none of %s of %d bytes on %s", ErrNoCosts, k.op, k.size, pb.Backend)
			}
		}
	}
	return c.play(func(pb *planpb.Communication) string { return pb.Backend })
}
