package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/trace"
)

// ErrNoStep: the step asked for is not in the traces of all ranks.
var ErrNoStep = errors.New("no such step")

// window is the time of the chosen step on one rank, ns.
type window struct{ start, end int64 }

// chooseStep picks the step to replay. Name is a step's name or number;
// "" takes the step of median length among those that every rank has, so that
// neither a warm-up nor an outlier is replayed; "all" takes the whole trace, as
// do traces without steps. It returns the step's name, "" for the whole trace.
func chooseStep(run *trace.Run, name string) (string, []window, error) {
	common := run.CommonSteps()
	switch {
	case name == "all" || name == "" && len(common) == 0:
		return "", wholeTrace(run), nil
	case name == "":
		slices.SortStableFunc(common, func(a, b trace.CommonStep) int { return cmp.Compare(a.Longest, b.Longest) })
		return windowsOf(common[(len(common)-1)/2])
	}
	var names []string
	for _, s := range common {
		if s.Name == name || strconv.Itoa(s.Number) == name {
			return windowsOf(s)
		}
		names = append(names, strconv.Itoa(s.Number))
	}
	if len(names) == 0 {
		return "", nil, fmt.Errorf("%w: %q: the traces mark no steps, use --step all", ErrNoStep, name)
	}
	slices.Sort(names)
	return "", nil, fmt.Errorf("%w: %q: every rank has %s", ErrNoStep, name, strings.Join(names, ", "))
}

// StepName is the step that Options.Step chooses, "" for the whole trace.
func StepName(run *trace.Run, step string) (string, error) {
	name, _, err := chooseStep(run, step)
	return name, err
}

func windowsOf(s trace.CommonStep) (string, []window, error) {
	var windows []window
	for _, of := range s.Ranks {
		windows = append(windows, window{of.Start, of.End})
	}
	return s.Name, windows, nil
}

// wholeTrace is from the first to the last event of each rank that costs time.
func wholeTrace(run *trace.Run) []window {
	windows := make([]window, len(run.Ranks))
	for r, rank := range run.Ranks {
		first := true
		ev := &rank.Events
		for i := range ev.Len() {
			switch c := ev.Category[i]; {
			case c.OnDevice(), c == trace.CPUOp, c == trace.Runtime, c == trace.UserAnnotation:
				if first {
					windows[r], first = window{ev.TS[i], ev.End(i)}, false
				}
				windows[r].start = min(windows[r].start, ev.TS[i])
				windows[r].end = max(windows[r].end, ev.End(i))
			}
		}
	}
	return windows
}
