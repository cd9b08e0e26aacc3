package plan

import (
	"cmp"
	"maps"
	"slices"

	"mixdown/analyze/waiting"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
	"mixdown/replay/plan/planpb"
)

// HostStream is the name of the stream of a rank's host.
const HostStream = "host"

// hostProgram builds the program of a rank without a device: its host works,
// issues communication, and waits for it.
func (w *workload) hostProgram(r int, win window) *builder {
	b := newBuilder()
	w.walk(b, r, win, hostPoints(w.run.Ranks[r], win))
	return b
}

// walk appends what a host did in a window: work from point to point,
// communication at the points. All of it has ended at the end.
func (w *workload) walk(b *builder, r int, win window, points []hostPoint) {
	rank := w.run.Ranks[r]
	tasks := map[int]*node{} // operation -> task
	cursor := win.start
	advance := func(to int64) {
		if to > cursor {
			b.span(HostStream, planpb.Span_HOST, cursor, to-cursor)
			cursor = to
		}
	}
	for _, p := range points {
		advance(p.at)
		if !p.wait {
			c := w.communication(r, p.operation)
			if c == nil {
				continue
			}
			op := &rank.Operations[p.operation]
			tasks[p.operation] = b.add(hostCommStream(op, c), &node{at: p.at, comm: c, origin: originOf(rank.Rank, op)}, b.last(HostStream))
			tasks[p.operation].origin.Issued = op.Issued
			continue
		}
		t := tasks[p.operation]
		if t == nil {
			// Left out, or issued before the step: how long it takes is all that is known.
			if !w.simulate {
				// Most of it is waiting for others to come, who come at other times in
				// another order or on another backend: it is not run.
				cursor = max(cursor, p.end)
				continue
			}
			w.pb.Dependencies.FixedWaitNs += max(p.end-cursor, 0)
			continue
		}
		w.pb.Dependencies.Inferred++
		b.wait(HostStream, p.at, t).blocked = max(p.end-cursor, 0)
		cursor = max(cursor, p.end)
	}
	advance(win.end)
	// The window is over when its communication is.
	var open []*node
	for _, i := range slices.Sorted(maps.Keys(tasks)) {
		open = append(open, tasks[i])
	}
	if len(open) > 0 {
		b.wait(HostStream, win.end, open...)
	}
}

// hostPoint is a moment at which the host issued an operation or began to wait
// for one.
type hostPoint struct {
	at, end   int64
	operation int
	wait      bool
}

func hostPoints(rank *trace.Rank, win window) []hostPoint {
	var points []hostPoint
	for i := range rank.Operations {
		if at := rank.Operations[i].Issued; at >= win.start && at < win.end {
			points = append(points, hostPoint{at: at, operation: i})
		}
	}
	for _, wt := range waiting.Find(rank) {
		if wt.End > win.start && wt.Start < win.end {
			points = append(points, hostPoint{at: max(wt.Start, win.start), end: min(wt.End, win.end), operation: wt.Operation, wait: true})
		}
	}
	slices.SortStableFunc(points, func(a, b hostPoint) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.end, b.end))
	})
	return points
}

// hostCommStream names the stream of an operation that the host issued: one for
// the collectives of each group, which its library runs in order, and one for
// each direction and peer of point-to-point, which wait for nothing else.
func hostCommStream(op *comm.Operation, c *planpb.Communication) string {
	if op.Op.IsP2P() && len(c.Transfers) == 1 {
		if c.Transfers[0].Send {
			return "send to " + itoa(int(c.Transfers[0].Peer))
		}
		return "recv from " + itoa(int(c.Transfers[0].Peer))
	}
	return "group " + itoa(int(c.Group))
}
