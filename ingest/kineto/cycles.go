package kineto

import (
	"fmt"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// minCycles is how often a sequence of communication must repeat before it is
// taken for the steps of training.
const minCycles = 3

// findCycles makes steps for a rank whose trace marks none: training issues the
// same communication again in every step, so the shortest sequence of operations
// that repeats through the whole trace, incomplete ends aside, is a step.
func findCycles(rank *trace.Rank) {
	ops := rank.Operations
	if len(rank.Steps) > 0 || len(ops) < 2*minCycles {
		return
	}
	type kind struct {
		op      comm.Op
		group   int
		dtype   comm.DType
		in, out int64
	}
	kinds := make([]kind, len(ops))
	for i := range ops {
		o := &ops[i]
		kinds[i] = kind{op: o.Op, group: o.Group, dtype: o.DType, in: o.In, out: o.Out}
		if o.Op == comm.AllToAll || o.Op == comm.AllToAllV || o.Op == comm.Batch {
			kinds[i].in, kinds[i].out = 0, 0 // uneven parts differ from step to step
		}
	}
	period := 0
	for p := 1; p*minCycles <= len(kinds) && period == 0; p++ {
		repeats := true
		for i := p; i < len(kinds) && repeats; i++ {
			repeats = kinds[i] == kinds[i-p]
		}
		if repeats {
			period = p
		}
	}
	if period < 2 { // one operation again and again says nothing about steps
		return
	}
	for n := 0; (n+1)*period <= len(ops); n++ {
		s := trace.Step{Name: fmt.Sprintf("cycle %d", n), Number: n, Start: ops[n*period].Issued}
		if next := (n + 1) * period; next < len(ops) {
			s.End = ops[next].Issued
		} else {
			for _, o := range ops[n*period : next] {
				s.End = max(s.End, o.End)
			}
		}
		rank.Steps = append(rank.Steps, s)
	}
}
