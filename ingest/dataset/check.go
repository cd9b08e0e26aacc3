package dataset

import (
	"fmt"

	"mixdown/ingest/trace"
)

// check refuses a rank whose tables do not fit together: analyses follow these
// numbers without looking. events is how many there are, read or not.
func check(r *trace.Rank, events int) error {
	for i, t := range r.Events.Thread {
		if int(t) >= len(r.Threads) {
			return fmt.Errorf("event %d is of thread %d of %d", i, t, len(r.Threads))
		}
	}
	for i, w := range r.Waits {
		if int(w.Thread) >= len(r.Threads) {
			return fmt.Errorf("wait %d is of thread %d of %d", i, w.Thread, len(r.Threads))
		}
	}
	for i := range r.Operations {
		op := &r.Operations[i]
		switch {
		case op.Group < 0 || op.Group >= len(r.Groups):
			return fmt.Errorf("operation %d is of group %d of %d", i, op.Group, len(r.Groups))
		case op.Thread < -1 || op.Thread >= len(r.Threads):
			return fmt.Errorf("operation %d is of thread %d of %d", i, op.Thread, len(r.Threads))
		case op.Event < -1 || op.Event >= events || op.Event < 0 && (events > 0 || op.Thread >= 0):
			return fmt.Errorf("operation %d is of event %d of %d", i, op.Event, events)
		}
		for _, e := range op.Events {
			if e < 0 || e >= events {
				return fmt.Errorf("operation %d is of event %d of %d", i, e, events)
			}
		}
	}
	return nil
}
