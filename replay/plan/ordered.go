package plan

import (
	"slices"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/schedule"
)

// reduction is the gradient of one place over the replicas.
type reduction struct {
	collective *planpb.Communication // one of the trace's, for group, op and type
	in, out    int64                 // elements of all of them
	seq        int64                 // of the first
}

// takeReductions takes the data-parallel collectives out of what comes after the
// tasks, where they are to run early.
func (o *ordering) takeReductions() {
	o.reduce = make([]*reduction, len(o.p.Ranks))
	inside := 0
	for i := range o.step.Reductions {
		r := &o.step.Reductions[i]
		m := collective.Member{Rank: o.p.Index[r.Place], Operation: r.Operation}
		tasks := o.step.Tasks[r.Place]
		c := o.w.chosen[m]
		if c == nil {
			continue
		}
		within := r.Issued > tasks[0].Start && r.Issued < tasks[len(tasks)-1].End
		if !r.DataParallel || !o.early && !within {
			if within {
				inside++
			}
			continue
		}
		o.skip[m] = true
		have := o.reduce[r.Place]
		if have == nil {
			have = &reduction{collective: c, seq: c.Seq}
			o.reduce[r.Place] = have
		}
		if have.collective.Group != c.Group || have.collective.Op != c.Op || have.collective.Dtype != c.Dtype {
			inside++
			continue
		}
		have.in += c.InCount
		have.out += c.OutCount
	}
	if inside > 0 {
		o.w.diags.Addf("communication-inside-task", diagnostic.NoRank, diagnostic.NoOffset,
			"%d collectives within tasks of the pipeline are a part of the tasks' time in the other order and are not run", inside)
	}
}

// program builds the program of a place.
func (o *ordering) program(place int) *builder {
	r := o.p.Index[place]
	b := newBuilder()
	tasks := o.step.Tasks[place]
	o.w.section(b, r, window{o.step.Start[place], o.ready(place)}, o.skip)
	recv := o.receives(b, place)
	var open []*node
	reduced := o.lastBackwards(place)
	at := o.step.Start[place]
	for i, a := range o.order[place] {
		if !a.Kind.Computes() {
			continue
		}
		at++
		if m := o.input(a); m != nil {
			b.wait(HostStream, at, recv[m])
		}
		done := b.span(HostStream, planpb.Span_HOST, at, o.spans[place][i])
		if m := o.by[task(a)]; m != nil && a.Kind != schedule.Weight {
			n := &node{at: at, comm: o.transfer(m, true)}
			open = append(open, b.add("send to "+itoa(o.p.Ranks[m.to]), n, done))
		}
		if part, ok := reduced[i]; ok {
			open = append(open, b.add("reduce", &node{at: at, comm: part}, done))
		}
	}
	last := tasks[len(tasks)-1].End
	b.wait(HostStream, at+1, open...)
	o.w.section(b, r, window{last, max(o.step.End[place], last)}, o.skip)
	return b
}

// ready is when a place could have run its first task in the trace: from then on
// it waited for a message.
func (o *ordering) ready(place int) int64 {
	first := &o.step.Tasks[place][0]
	for i := range o.step.Transfers {
		t := &o.step.Transfers[i]
		if t.To == place && t.Microbatch == first.Microbatch && t.Phase == first.Phase && t.Stage == first.Stage-1 {
			op := &o.w.run.Ranks[t.Recv.Rank].Operations[t.Recv.Operation]
			return min(op.Issued, first.Start)
		}
	}
	if first.Stage > 0 {
		return o.step.Start[place]
	}
	return first.Start
}

// input is the message that an action needs, nil if it needs none from another
// place.
func (o *ordering) input(a schedule.Action) *message {
	switch a.Kind {
	case schedule.Forward:
		return o.by[schedule.Action{Stage: a.Stage - 1, Microbatch: a.Microbatch, Kind: schedule.Forward}]
	case schedule.Backward, schedule.Input:
		return o.by[schedule.Action{Stage: a.Stage + 1, Microbatch: a.Microbatch, Kind: schedule.Backward}]
	}
	return nil
}

// receives posts all of a place's receives, one after the other for each place
// that sends, in the order in which they are sent: each is there before its
// message.
func (o *ordering) receives(b *builder, place int) map[*message]*node {
	recv := map[*message]*node{}
	for from := range o.order {
		for _, m := range o.edges[[2]int{from, place}] {
			n := &node{at: o.step.Start[place], comm: o.transfer(m, false)}
			recv[m] = b.add("recv from "+itoa(o.p.Ranks[from]), n)
		}
	}
	return recv
}

// transfer is one end of a message.
func (o *ordering) transfer(m *message, send bool) *planpb.Communication {
	size := o.counts[indexOf(m.activation)]
	c := &planpb.Communication{Group: o.group, Op: planpb.Op_OP_RECV, Dtype: size.dtype, OutCount: size.count}
	peer := m.from
	if send {
		c.Op, c.InCount, c.OutCount, peer = planpb.Op_OP_SEND, size.count, 0, m.to
	}
	c.Transfers = []*planpb.Transfer{{Send: send, Peer: int32(o.p.Ranks[peer]), Count: size.count, Match: m.number}}
	return c
}

// lastBackwards is the reduction that follows each position of a place's order.
// Chunks share the gradient evenly.
func (o *ordering) lastBackwards(place int) map[int]*planpb.Communication {
	r := o.reduce[place]
	if r == nil {
		return nil
	}
	last := map[int32]int{}
	var positions []int
	for i, a := range o.order[place] {
		if a.Kind == schedule.Backward || a.Kind == schedule.Weight {
			last[a.Stage] = i
		}
	}
	for _, i := range last {
		positions = append(positions, i)
	}
	slices.Sort(positions)
	parts := map[int]*planpb.Communication{}
	for n, i := range positions {
		c := &planpb.Communication{
			Group: r.collective.Group, Seq: r.seq + int64(n), Op: r.collective.Op, Dtype: r.collective.Dtype,
			ReduceOp: r.collective.ReduceOp, InCount: part(r.in, n, len(positions)), OutCount: part(r.out, n, len(positions)),
		}
		parts[i] = c
	}
	return parts
}

// part is the n-th of so many nearly even parts.
func part(total int64, n, of int) int64 {
	return total*int64(n+1)/int64(of) - total*int64(n)/int64(of)
}

// section appends what a rank did in a part of the step, without the operations
// to skip: its host's work, the communication it issued, and its waits. On a
// rank with a device, communication is taken to run alone there.
func (w *workload) section(b *builder, r int, win window, skip map[collective.Member]bool) {
	points := hostPoints(w.run.Ranks[r], win)
	points = slices.DeleteFunc(points, func(p hostPoint) bool { return skip[collective.Member{Rank: r, Operation: p.operation}] })
	if !w.run.Ranks[r].CPUOnly {
		points = devicePoints(w, r, win, skip)
	}
	w.walk(b, r, win, points, oneHost())
}

// devicePoints is the communication that a rank's device ran within a window:
// each is issued and waited for.
func devicePoints(w *workload, r int, win window, skip map[collective.Member]bool) []hostPoint {
	var points []hostPoint
	for i := range w.run.Ranks[r].Operations {
		op := &w.run.Ranks[r].Operations[i]
		if op.Start < win.start || op.Start >= win.end || skip[collective.Member{Rank: r, Operation: i}] || op.Op == comm.Unknown {
			continue
		}
		points = append(points, hostPoint{at: op.Start, end: op.Start, operation: i},
			hostPoint{at: op.Start, end: op.End, operation: i, wait: true})
	}
	return points
}
