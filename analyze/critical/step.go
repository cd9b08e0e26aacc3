package critical

import (
	"errors"

	"mixdown/analyze/collective"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// ErrEmpty: nothing in the traces takes time.
var ErrEmpty = errors.New("the traces hold no work")

// Options of building a graph. The zero value is ready.
type Options struct {
	// Step is the name or number of the step, "all" for the whole trace; ""
	// takes the step of median length, by its slowest rank, among those that
	// every rank has, and the whole trace where there is none.
	Step string
	// Offsets, when given, is how far the clock of each rank (by its index in
	// the run) is ahead, in ns: it is taken off that rank's times.
	Offsets []int64
}

// Window is the time of the step on one rank, ns on its own clock.
type Window struct{ Start, End int64 }

// Build makes the graph of a step. What the traces contradict is in the
// diagnostics.
func Build(run *trace.Run, match *collective.Matching, opts Options) (*Graph, *diagnostic.Set, error) {
	g := &Graph{run: run, match: match, diags: &diagnostic.Set{}, classOf: map[classKey]int32{}}
	if err := g.chooseStep(opts.Step); err != nil {
		return nil, g.diags, err
	}
	g.setClocks(opts.Offsets)
	g.add(NodeOrigin, -1, 0, 0)
	parts := make([]*part, len(run.Ranks))
	for r := range run.Ranks {
		if err := run.Ranks[r].Acquire(); err != nil {
			return nil, g.diags, err
		}
		parts[r] = g.addRank(r)
		run.Ranks[r].Release()
	}
	g.join(parts)
	g.finish()
	if len(g.end) == 0 || g.end[last(g.end)] == 0 {
		return nil, g.diags, ErrEmpty
	}
	return g, g.diags, nil
}

// chooseStep sets the step's name and every rank's window.
func (g *Graph) chooseStep(want string) error {
	step, err := g.run.ChooseStep(want)
	if err != nil {
		return err
	}
	if step == nil {
		for _, rank := range g.run.Ranks {
			if err := rank.Acquire(); err != nil {
				return err
			}
			start, end := rank.Extent()
			g.windows = append(g.windows, Window{start, end})
			rank.Release()
		}
		return nil
	}
	g.step = step.Name
	for _, s := range step.Ranks {
		g.windows = append(g.windows, Window{s.Start, s.End})
	}
	return nil
}
