package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrNoStep: the step asked for is not in the traces of all ranks.
var ErrNoStep = errors.New("no such step")

// CommonStep is a step that every rank has.
type CommonStep struct {
	Name    string
	Number  int
	Longest int64  // ns, on the slowest rank
	Ranks   []Step // of each rank, in the order of Run.Ranks
}

// CommonSteps lists the steps that every rank has, in the order of the first
// rank. Of steps with the same name on one rank the first counts.
func (r *Run) CommonSteps() []CommonStep {
	index := map[string]int{}
	var all []CommonStep
	for k, rank := range r.Ranks {
		for _, s := range rank.Steps {
			i, known := index[s.Name]
			if !known {
				i = len(all)
				index[s.Name] = i
				all = append(all, CommonStep{Name: s.Name, Number: s.Number})
			}
			if len(all[i].Ranks) == k {
				all[i].Ranks = append(all[i].Ranks, s)
				all[i].Longest = max(all[i].Longest, s.End-s.Start)
			}
		}
	}
	return slices.DeleteFunc(all, func(s CommonStep) bool { return len(s.Ranks) < len(r.Ranks) })
}

// WholeTrace is the name that asks for no step but the whole trace.
const WholeTrace = "all"

// ChooseStep picks a step by its name or number. "" takes the step of median length among
// those that every rank has, so that neither a warm-up nor an outlier is taken; WholeTrace
// takes all, as "" does of traces without steps: nil then.
func (r *Run) ChooseStep(name string) (*CommonStep, error) {
	steps := r.CommonSteps()
	switch {
	case name == WholeTrace || name == "" && len(steps) == 0:
		return nil, nil
	case name == "":
		slices.SortStableFunc(steps, func(a, b CommonStep) int { return cmp.Compare(a.Longest, b.Longest) })
		return &steps[(len(steps)-1)/2], nil
	}
	var numbers []string
	for i := range steps {
		number := strconv.Itoa(steps[i].Number)
		if steps[i].Name == name || number == name {
			return &steps[i], nil
		}
		numbers = append(numbers, number)
	}
	if numbers == nil {
		return nil, fmt.Errorf("%w: %q: the traces mark no step that every rank has, use --step %s", ErrNoStep, name, WholeTrace)
	}
	return nil, fmt.Errorf("%w: %q: every rank has %s", ErrNoStep, name, strings.Join(numbers, ", "))
}

// Extent is from the first to the last event of a rank that takes time, ns on its own
// clock; 0 and 0 where none does.
func (r *Rank) Extent() (start, end int64) {
	found := false
	ev := &r.Events
	for i := range ev.Len() {
		switch c := ev.Category[i]; {
		case c.OnDevice(), c == CPUOp, c == Runtime, c == UserAnnotation:
			if !found {
				start, end, found = ev.TS[i], ev.End(i), true
			}
			start, end = min(start, ev.TS[i]), max(end, ev.End(i))
		}
	}
	return start, end
}
