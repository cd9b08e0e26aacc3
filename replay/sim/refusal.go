package sim

import (
	"fmt"

	"mixdown/analyze/collective"
	"mixdown/ingest/trace"
)

// WhyNot says why a run has no workload that could be simulated: what joins its
// ranks is not in the traces.
func WhyNot(run *trace.Run, match *collective.Matching) string {
	operations := 0
	for _, rank := range run.Ranks {
		operations += len(rank.Operations)
	}
	switch missing := run.Missing(); {
	case operations == 0:
		return "no communication in the trace"
	case len(missing) > 0:
		return fmt.Sprintf("%d of %d ranks are missing: no operation has all its members", len(missing), run.WorldSize())
	case len(match.Collectives)+len(match.Pairs) > 0:
		return "no operation lies in one step on all its members"
	case len(match.Unmatched) > 0:
		return "no operation was found on all its members: " + match.Unmatched[0].Reason
	}
	return "no operation was found on all its members"
}
