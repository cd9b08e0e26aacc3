package collective

import "mixdown/ingest/trace"

// sameSteps reports whether all members were recorded during the same steps. Then
// a collective is issued in the same step on all of them, for every rank runs the
// same program, and an event that is missing from one step can't shift the matches
// of the next. Members whose windows differ are aligned by order alone.
func sameSteps(run *trace.Run, members []int) bool {
	first := run.Ranks[members[0]].Steps
	for _, r := range members {
		steps := run.Ranks[r].Steps
		if len(steps) == 0 || len(steps) != len(first) {
			return false
		}
		for i, s := range steps {
			if s.Number != first[i].Number || i > 0 && s.Start < steps[i-1].Start {
				return false
			}
		}
	}
	return true
}
