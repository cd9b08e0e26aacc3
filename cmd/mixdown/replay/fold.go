package replay

import (
	"fmt"

	"mixdown/replay/fold"
	"mixdown/replay/sim"
	"mixdown/replay/speedup"
)

// fold leaves out ranks that do what others do, the same of every plan.
func (e *experiment) fold(ranks int) (*speedup.Folded, error) {
	if ranks == 0 {
		return nil, nil
	}
	f, err := fold.Fold(e.baseline.Workload, ranks)
	if err != nil {
		return nil, fmt.Errorf("--ranks: %w", err)
	}
	small, count := f.Shrink(sim.TracedCosts(e.baseline.Workload))
	out := &speedup.Folded{From: f.From, Kept: f.Kept(), Resized: count.Resized, Alone: count.Alone}
	e.baseline.Workload, e.workload = small, small
	for _, v := range e.variants {
		f, err := fold.Keep(v.Workload, out.Kept)
		if err != nil {
			return nil, fmt.Errorf("%s: --ranks: %w", v.Name, err)
		}
		v.Workload, _ = f.Shrink(sim.TracedCosts(v.Workload))
	}
	return out, nil
}
