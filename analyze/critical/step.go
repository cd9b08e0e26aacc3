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
		parts[r] = g.addRank(r)
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
	steps := commonSteps(g.run)
	if want == "all" || want == "" && len(steps) == 0 {
		for _, rank := range g.run.Ranks {
			g.windows = append(g.windows, extent(rank))
		}
		return nil
	}
	pick := -1
	if want == "" {
		slices.SortStableFunc(steps, func(a, b stepOfAll) int { return cmp.Compare(a.longest, b.longest) })
		pick = (len(steps) - 1) / 2
	} else {
		pick = slices.IndexFunc(steps, func(s stepOfAll) bool { return s.name == want || strconv.Itoa(s.number) == want })
	}
	if pick < 0 {
		var names []string
		for _, s := range steps {
			names = append(names, strconv.Itoa(s.number))
		}
		if names == nil {
			return fmt.Errorf("%w: %q: the traces mark no step that every rank has", ErrNoStep, want)
		}
		return fmt.Errorf("%w: %q: every rank has %s", ErrNoStep, want, strings.Join(names, ", "))
	}
	g.step, g.windows = steps[pick].name, steps[pick].windows
	return nil
}

// stepOfAll is a step that every rank has.
type stepOfAll struct {
	name    string
	number  int
	longest int64 // ns, on the slowest rank
	windows []Window
}

func commonSteps(run *trace.Run) []stepOfAll {
	index := map[string]int{}
	var all []stepOfAll
	for r, rank := range run.Ranks {
		for _, s := range rank.Steps {
			i, known := index[s.Name]
			if !known {
				i = len(all)
				index[s.Name] = i
				all = append(all, stepOfAll{name: s.Name, number: s.Number})
			}
			if len(all[i].windows) == r { // a name that comes twice on a rank counts once
				all[i].windows = append(all[i].windows, Window{s.Start, s.End})
				all[i].longest = max(all[i].longest, s.End-s.Start)
			}
		}
	}
	return slices.DeleteFunc(all, func(s stepOfAll) bool { return len(s.windows) < len(run.Ranks) })
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
