package launch

import (
	"fmt"
	"slices"
	"strings"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// presence says where a worker is with its part of an operation.
type presence int

const (
	before  presence = iota // it has not begun
	inside                  // the library works on it
	after                   // it has ended
	unknown                 // the control file does not show its stream
	lost                    // nothing is known of its host any more
)

// maxNamed bounds how many ranks a line names.
const maxNamed = 8

// waitsFor says whom the others in an operation wait for: what worker i, whose
// status is s, is in, judged from where all others are.
func (r *running) waitsFor(i int, s Status, c *planpb.Communication, statuses []Status) string {
	w := r.exp.Plans[s.Plan].Workload
	var missing, ended, gone []string
	seen := 0
	for _, part := range parts(w, i, c) {
		seen++
		name := fmt.Sprint(w.Programs[part.worker].Rank)
		switch r.presence(part, s, statuses[part.worker]) {
		case before:
			missing = append(missing, name)
		case after:
			ended = append(ended, name)
		case lost:
			gone = append(gone, name)
		}
	}
	switch {
	case len(gone) == 1:
		return ", waiting for " + ranks(gone) + ", which is lost"
	case len(gone) > 1:
		return ", waiting for " + ranks(gone) + ", which are lost"
	case len(missing) > 0:
		return ", waiting for " + ranks(missing)
	case len(ended) > 0:
		return ", which has ended on " + ranks(ended)
	case seen > 0:
		return ", as are all others that take part"
	}
	return ""
}

func ranks(names []string) string {
	rest := ""
	if n := len(names) - maxNamed; n > 0 {
		names, rest = names[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	if len(names) == 1 {
		return "rank " + names[0]
	}
	return "ranks " + strings.Join(names, ", ") + rest
}

// place is a task of a worker.
type place struct{ worker, task int }

// parts are the tasks of other workers that belong to worker i's operation: the
// other members' of a collective, the other ends of transfers.
func parts(w *planpb.Workload, i int, c *planpb.Communication) []place {
	var list []place
	for j, program := range w.Programs {
		if j == i {
			continue
		}
		for k, t := range program.Tasks {
			if other := t.GetCommunication(); other != nil && other.Group == c.Group && belong(c, other, w.Programs[i].Rank, program.Rank) {
				list = append(list, place{j, k})
			}
		}
	}
	return list
}

// belong says whether two communications of a group, of two ranks, are parts of one
// operation.
func belong(a, b *planpb.Communication, rankOfA, rankOfB int32) bool {
	if p2p := plan.Op(a).IsP2P(); p2p != plan.Op(b).IsP2P() {
		return false
	} else if !p2p {
		return a.Seq == b.Seq
	}
	return slices.ContainsFunc(a.Transfers, func(t *planpb.Transfer) bool {
		return t.Peer == rankOfB && slices.ContainsFunc(b.Transfers, func(u *planpb.Transfer) bool {
			return u.Peer == rankOfA && u.Match == t.Match && u.Send != t.Send
		})
	})
}

// presence of a worker, whose status is other, in its part of an operation that a
// worker with status s is in.
func (r *running) presence(p place, s, other Status) presence {
	switch {
	case r.crew.Lost(p.worker) != nil:
		return lost
	case other.State < Verifying:
		return before
	case other.State == Finished:
		return after
	}
	// A barrier lies between any two steps: who is not in this one has left it.
	if other.Plan != s.Plan || other.Iteration != s.Iteration {
		return after
	}
	stream := int(r.exp.Plans[s.Plan].Workload.Programs[p.worker].Tasks[p.task].Stream)
	if stream >= len(other.Streams) {
		return unknown
	}
	st := other.Streams[stream]
	switch {
	case st.Doing == StreamIdle && st.Since >= r.crew.Began():
		return after
	case st.Doing == StreamIdle, int(st.Task) < p.task:
		return before
	case int(st.Task) > p.task:
		return after
	case st.Doing == StreamCommunicates:
		return inside
	}
	return before
}
