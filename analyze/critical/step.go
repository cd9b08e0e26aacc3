package critical

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mixdown/analyze/collective"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

var (
	// ErrNoStep: the step asked for is not in the traces of all ranks.
	ErrNoStep = errors.New("no such step")
	// ErrEmpty: nothing in the traces takes time.
	ErrEmpty = errors.New("the traces hold no work")
)

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
	steps := g.run.CommonSteps()
	if want == "all" || want == "" && len(steps) == 0 {
		for _, rank := range g.run.Ranks {
			if err := rank.Acquire(); err != nil {
				return err
			}
			g.windows = append(g.windows, extent(rank))
			rank.Release()
		}
		return nil
	}
	pick := -1
	if want == "" {
		slices.SortStableFunc(steps, func(a, b trace.CommonStep) int { return cmp.Compare(a.Longest, b.Longest) })
		pick = (len(steps) - 1) / 2
	} else {
		pick = slices.IndexFunc(steps, func(s trace.CommonStep) bool { return s.Name == want || strconv.Itoa(s.Number) == want })
	}
	if pick < 0 {
		var names []string
		for _, s := range steps {
			names = append(names, strconv.Itoa(s.Number))
		}
		if names == nil {
			return fmt.Errorf("%w: %q: the traces mark no step that every rank has", ErrNoStep, want)
		}
		return fmt.Errorf("%w: %q: every rank has %s", ErrNoStep, want, strings.Join(names, ", "))
	}
	g.step = steps[pick].Name
	for _, s := range steps[pick].Ranks {
		g.windows = append(g.windows, Window{s.Start, s.End})
	}
	return nil
}

// extent is from the first to the last event of a rank that takes time.
func extent(rank *trace.Rank) Window {
	var w Window
	ev := &rank.Events
	found := false
	for i := range ev.Len() {
		switch c := ev.Category[i]; {
		case c.OnDevice(), c == trace.CPUOp, c == trace.Runtime, c == trace.UserAnnotation:
			if !found {
				w, found = Window{ev.TS[i], ev.End(i)}, true
			}
			w.Start, w.End = min(w.Start, ev.TS[i]), max(w.End, ev.End(i))
		}
	}
	return w
}
