package align

import (
	"mixdown/analyze/collective"
	"mixdown/ingest/trace"
)

// Apply moves all times of a run to the clocks of the result's references:
// events, operations, waits and steps. Lengths follow from the moved ends, so
// that what lay inside something else still does. A second call would move them
// again. A matching made before has to be brought up to date by UpdateArrivals.
func Apply(run *trace.Run, res *Result) {
	for i, rank := range run.Ranks {
		if c := res.Clocks[i]; !c.Identity() {
			move(rank, c)
		}
	}
}

func move(rank *trace.Rank, c Clock) {
	rank.AdjustEvents(func(ev *trace.Events) {
		for i := range ev.TS {
			start, end := c.Correct(ev.TS[i]), c.Correct(ev.TS[i]+ev.Dur[i])
			ev.TS[i], ev.Dur[i] = start, end-start
		}
	})
	for i := range rank.Operations {
		op := &rank.Operations[i]
		for _, t := range []*int64{&op.Issued, &op.Returned, &op.Start, &op.End} {
			*t = c.Correct(*t)
		}
	}
	for i := range rank.Waits {
		rank.Waits[i].TS = c.Correct(rank.Waits[i].TS)
	}
	for i := range rank.Steps {
		s := &rank.Steps[i]
		s.Start, s.End = c.Correct(s.Start), c.Correct(s.End)
	}
}

// UpdateArrivals finds the last arrival of every collective anew, after Apply.
func UpdateArrivals(run *trace.Run, m *collective.Matching) {
	for i := range m.Collectives {
		c := &m.Collectives[i]
		for k, at := range c.Members {
			if start := run.Ranks[at.Rank].Operations[at.Operation].Start; k == 0 || start > c.LastStart {
				c.LastStart = start
			}
		}
	}
}
