package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// fail words a failed run: what went wrong, then what every rank was doing.
func (r *running) fail(cause error, statuses []Status) error {
	var b strings.Builder
	for i, s := range statuses {
		fmt.Fprintf(&b, "\n  %s", r.account(i, s, statuses))
	}
	return fmt.Errorf("%w: %w%s", ErrFailed, cause, b.String())
}

// account is one line on one rank.
func (r *running) account(i int, s Status, statuses []Status) string {
	var b strings.Builder
	on := ""
	if host := r.crew.Host(i); host != "" {
		on = " on " + host
	}
	fmt.Fprintf(&b, "rank %d%s: %s", r.rank(i), on, s.State)
	if s.State == NotStarted {
		return b.String()
	}
	if int(s.Plan) < len(r.exp.Plans) && s.Plan >= 0 && (s.State == Verifying || s.State == WarmingUp || s.State == Timing || s.State == Failed || s.State == Left) {
		fmt.Fprintf(&b, ", plan %q, iteration %d", r.exp.Plans[s.Plan].Name, s.Iteration)
	}
	if s.Message != "" {
		fmt.Fprintf(&b, ": %s", s.Message)
	}
	if s.State == Finished {
		return b.String()
	}
	if lost := r.crew.Lost(i); lost != nil {
		fmt.Fprintf(&b, "; it is lost: %v", lost)
		return b.String()
	}
	switch state := r.crew.Process(i); {
	case s.State < Finished && !lives(state):
		b.WriteString("; its process is gone")
	case state == 'T' || state == 't':
		b.WriteString("; its process is stopped by a signal or a debugger")
	}
	if r.waitsInBarrier(s) {
		b.WriteString("; it has done its part of the iteration and waits for the others")
	}
	for k, st := range s.Streams {
		if text := r.streamAccount(i, s, k, st, statuses); text != "" {
			b.WriteString("; ")
			b.WriteString(text)
		}
	}
	return b.String()
}

// waitsInBarrier says whether a worker has ended the iteration that is under way.
func (r *running) waitsInBarrier(s Status) bool {
	if s.State != Verifying && s.State != WarmingUp && s.State != Timing || len(s.Streams) == 0 {
		return false
	}
	for _, st := range s.Streams {
		if st.Doing != StreamIdle || st.Since < r.crew.Began() {
			return false
		}
	}
	return true
}

// streamAccount says what a stream is in, "" when it is idle.
func (r *running) streamAccount(i int, s Status, k int, st StreamState, statuses []Status) string {
	if st.Doing == StreamIdle || s.Plan < 0 || int(s.Plan) >= len(r.exp.Plans) {
		return ""
	}
	w := r.exp.Plans[s.Plan].Workload
	program := w.Programs[i]
	if st.Task < 0 || int(st.Task) >= len(program.Tasks) || k >= len(program.Streams) {
		return ""
	}
	name := program.Streams[k].Name
	c := program.Tasks[st.Task].GetCommunication()
	what := "a span"
	if c != nil {
		what = describe(w, c)
	}
	switch st.Doing {
	case StreamWaitsForTasks:
		return fmt.Sprintf("%s waits to begin %s", name, what)
	case StreamWaitsForTurn:
		return fmt.Sprintf("%s waits for its turn on the communicator for %s", name, what)
	case StreamCommunicates:
		return fmt.Sprintf("%s is in %s since %.1f s%s", name, what, seconds(st.Since), r.waitsFor(i, s, c, statuses))
	}
	return fmt.Sprintf("%s is in %s", name, what)
}

// describe names an operation: its group, its place there, its size on this rank.
func describe(w *planpb.Workload, c *planpb.Communication) string {
	group := ""
	if int(c.Group) < len(w.Groups) {
		group = w.Groups[c.Group].Name
	}
	if plan.Op(c).IsP2P() {
		var peers []string
		for _, t := range c.Transfers {
			direction := "from"
			if t.Send {
				direction = "to"
			}
			peers = append(peers, fmt.Sprintf("%s rank %d", direction, t.Peer))
		}
		return fmt.Sprintf("%s %s on %s (group %q, %d bytes)", plan.Op(c), strings.Join(peers, " and "), c.Backend, group, plan.Bytes(c))
	}
	size := ""
	if plan.Op(c) != comm.Barrier {
		size = fmt.Sprintf(" (%d bytes)", plan.Bytes(c))
	}
	return fmt.Sprintf("%s %d of group %q on %s%s", plan.Op(c), c.Seq, group, c.Backend, size)
}

func seconds(since int64) float64 { return float64(Now()-since) / 1e9 }

// maxOutput bounds how much of a child's own words an error repeats.
const maxOutput = 2000

// OutputOf is the output that a run's folder has of a child, of a worker by its index or a launcher by its
// name, to follow an error; "" when it said nothing.
func OutputOf(dir, child string) string {
	data, err := os.ReadFile(filepath.Join(dir, "stderr."+child))
	text := strings.TrimSpace(string(data))
	if err != nil || text == "" {
		return ""
	}
	if len(text) > maxOutput {
		text = "..." + text[len(text)-maxOutput:]
	}
	return "\n" + text
}
