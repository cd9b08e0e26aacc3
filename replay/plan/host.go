package plan

import (
	"cmp"
	"maps"
	"slices"

	"mixdown/analyze/overlap"
	"mixdown/analyze/waiting"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
	"mixdown/replay/plan/planpb"
)

// hostProgram builds the program of a rank without a device: its host works,
// issues communication, and waits for it.
func (w *workload) hostProgram(r int, win window) *builder {
	b := newBuilder()
	points := hostPoints(w.run.Ranks[r], win)
	count := map[trace.ThreadID]int{}
	blocked := map[trace.ThreadID][]overlap.Interval{}
	for _, p := range points {
		if t := w.run.Ranks[r].Operations[p.operation].Thread; t >= 0 {
			count[trace.ThreadID(t)]++
			if p.wait {
				blocked[trace.ThreadID(t)] = append(blocked[trace.ThreadID(t)], overlap.Interval{Start: p.at, End: p.end})
			}
		}
	}
	w.walk(b, r, win, points, w.findHosts(r, win, count, blocked))
	return b
}

// walk appends what a host did in a window: work from point to point,
// communication at the points. All of it has ended at the end.
func (w *workload) walk(b *builder, r int, win window, points []hostPoint, hosts *hosts) {
	rank := w.run.Ranks[r]
	tasks := map[int]*node{} // operation -> task
	lines := newHostLines(b, hosts, w.pb.Dependencies, win.start)
	for _, p := range points {
		op := &rank.Operations[p.operation]
		s := hosts.ofOperation(op)
		lines.reach(s, p.at)
		if !p.wait {
			c := w.communication(r, p.operation)
			if c == nil {
				continue
			}
			tasks[p.operation] = b.add(hostCommStream(op, c), &node{at: p.at, comm: c, origin: originOf(rank.Rank, op)}, lines.last(s))
			tasks[p.operation].origin.Issued = op.Issued
			continue
		}
		t := tasks[p.operation]
		if t == nil {
			// Left out, or issued before the step: how long it takes is all that is known.
			if !w.simulate {
				// Most of it is waiting for others to come, who come at other times in
				// another order or on another backend: it is not run.
				lines.skip(s, p.end)
				continue
			}
			w.pb.Dependencies.FixedWaitNs += max(p.end-lines.cursor[s], 0)
			continue
		}
		w.pb.Dependencies.Inferred++
		b.wait(hosts.names[s], p.at, t).blocked = max(p.end-lines.cursor[s], 0)
		lines.skip(s, p.end)
	}
	lines.reach(0, win.end)
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
