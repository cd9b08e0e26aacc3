package sim

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// Meeting is what several ranks do together: a collective, or one transfer of
// point-to-point.
type Meeting struct {
	// Communication is that of one member, or of one side of the transfer.
	Communication *planpb.Communication
	Rank          int32 // whose it is
	Transfer      bool
	Count         int64 // elements of a transfer
	From, To      int32 // global ranks of a transfer
	Ranks         int   // that take part: 2 of a transfer

	// Traced is what it took in the trace, ns, from when its last member came to
	// its end; 0 where Known is false: the trace does not tell.
	Traced int64
	Known  bool
}

// Graph is a workload made ready to be played, as often as one likes. Its nodes
// are the tasks of all ranks: a task follows the one before it on its stream and
// those that it depends on, and the members of an operation meet.
//
// What the trace shows of an operation is kept apart, so that it can change part
// by part:
//
//   - from when it was issued, and the one before it was done, to when it began
//     (queues, threads that wake up): the member's own;
//   - waiting, from then to when the last member was there: nothing is kept of
//     it, a play makes it anew;
//   - the transfer, from then to when the members leave, in the lower median:
//     Meeting.Traced, which a CommunicationCost may replace;
//   - what a member ended later, or earlier, than that: its own again.
//
// A member that left before the last one came did not need it: it waits for those
// alone that came before it left (a broadcast, a receiver that is late).
type Graph struct {
	w      *planpb.Workload
	offset []int32 // of each program's first task
	rank   []int32 // of each task: index of its program
	tasks  []*planpb.Task
	own    []int64 // ns: of a span its duration, of communication from when it can start to its arrival
	waits  []int32 // tasks that must end before

	after   []int32 // tasks that wait for task n: after[afterAt[n]:afterAt[n+1]]
	afterAt []int32

	meetings []meeting
	members  []member // of meeting i: members[meetings[i].first:][:meetings[i].count]
	of       []int32  // members that task n is: of[ofAt[n]:ofAt[n+1]]
	ofAt     []int32
	// needing of members: early ones that wait for member i alone are
	// needing[needingAt[i]:needingAt[i+1]], itself among them.
	needing, needingAt []int32

	slowed *slowed // nil: spans take as long whatever runs beside them

	// contradicted is how many dependencies the times of the trace contradict: tasks of
	// one stream that overlapped, and members of an operation that left before others
	// came. They are not in the graph.
	contradicted int
}

// meeting is an operation, or one transfer, that several tasks take part in.
type meeting struct {
	want         int32 // tasks that must come
	first, count int32 // of Graph.members
	early        int32 // of them that wait for some of the others only
	Meeting
}

// member is a task's part in a meeting.
type member struct {
	task, meeting int32
	// need is what the member waits for: all, or one member of Graph.members that
	// was the last to come before it left.
	need int32
	own  int64 // ns, after the transfer; of one that does not wait for all, after need has come
}

// everyone is the need of a member that waits for all others.
const everyone = -1

// Len is the number of tasks.
func (g *Graph) Len() int { return len(g.tasks) }

// NewGraph makes the graph of a workload, which must not change any more.
func NewGraph(w *planpb.Workload) *Graph {
	g := &Graph{w: w, offset: make([]int32, len(w.Programs)+1)}
	for r, program := range w.Programs {
		g.offset[r+1] = g.offset[r] + int32(len(program.Tasks))
	}
	n := int(g.offset[len(w.Programs)])
	g.tasks, g.rank = make([]*planpb.Task, 0, n), make([]int32, 0, n)
	g.own, g.waits = make([]int64, n), make([]int32, n)
	edges := g.order()
	g.meet()
	g.measure()
	g.index()
	g.afterAt, g.after = group(n, len(edges), func(i int) (int32, int32) { return edges[i].before, edges[i].after })
	g.slowed = newSlowed(g)
	return g
}

// index finds who waits for whom of the early members.
func (g *Graph) index() {
	var early []int32
	for i := range g.members {
		if g.members[i].need != everyone {
			early = append(early, int32(i))
		}
	}
	g.needingAt, g.needing = group(len(g.members), len(early), func(i int) (int32, int32) { return g.members[early[i]].need, early[i] })
}

// group sorts n pairs by their first number, which is below keys: the second
// numbers of key k are list[at[k]:at[k+1]], in the order of the pairs.
func group(keys, n int, pair func(int) (int32, int32)) (at, list []int32) {
	at, list = make([]int32, keys+1), make([]int32, n)
	for i := range n {
		k, _ := pair(i)
		at[k+1]++
	}
	for k := range keys {
		at[k+1] += at[k]
	}
	next := slices.Clone(at[:keys])
	for i := range n {
		k, v := pair(i)
		list[next[k]] = v
		next[k]++
	}
	return at, list
}

type edge struct{ before, after int32 }

// maxLookBack bounds how many tasks of a stream are looked at for one that had
// ended when the next began.
const maxLookBack = 8

// order finds what each task follows.
func (g *Graph) order() []edge {
	var edges []edge
	follow := func(before, after int32) {
		edges = append(edges, edge{before, after})
		g.waits[after]++
	}
	for r, program := range g.w.Programs {
		last := make([][]int32, len(program.Streams)) // by stream: its latest tasks
		for i, t := range program.Tasks {
			at := g.offset[r] + int32(i)
			g.tasks, g.rank = append(g.tasks, t), append(g.rank, int32(r))
			for int(t.Stream) >= len(last) {
				last = append(last, nil)
			}
			free := t.GetOrigin().GetIssued() // from when the stream could have run it
			for k, before := range slices.Backward(last[t.Stream]) {
				if k < len(last[t.Stream])-maxLookBack {
					break
				}
				if overlapped(g.tasks[before], t) {
					g.contradicted++
					continue
				}
				follow(before, at)
				if o := g.tasks[before].Origin; o != nil {
					free = max(free, o.Ts+o.Dur)
				} else if g.tasks[before].GetCommunication() != nil {
					// Made of others (fused, cut): in the trace the stream was busy with those, so
					// what was queueing for them is not the member's own.
					free = max(free, t.GetOrigin().GetTs())
				}
				break
			}
			last[t.Stream] = append(last[t.Stream], at)
			if n := len(last[t.Stream]); n > 2*maxLookBack {
				last[t.Stream] = append(last[t.Stream][:0], last[t.Stream][n-maxLookBack:]...)
			}
			for _, d := range t.Deps {
				follow(g.offset[r]+d, at)
			}
			switch {
			case t.GetSpan() != nil:
				g.own[at] = t.GetSpan().DurationNs
			case t.GetCommunication() != nil && t.GetOrigin().GetIssued() > 0:
				g.own[at] = max(t.Origin.Ts-free, 0)
			}
		}
	}
	return edges
}

// overlapped says whether the trace shows two operations of a stream at once:
// Gloo has two threads for a group, and a program may wait late for a message.
func overlapped(before, next *planpb.Task) bool {
	a, b := before.Origin, next.Origin
	return a != nil && b != nil && before.GetCommunication() != nil && next.GetCommunication() != nil &&
		a.Rank == b.Rank && a.Ts+a.Dur > b.Ts+rounding && b.Issued > 0
}

// rounding is by how much, in ns, two moments of one clock may seem out of order:
// older profilers write whole microseconds.
const rounding = 2_000

// meet finds who takes part in what.
func (g *Graph) meet() {
	met := map[plan.MeetingKey]int32{}
	var list []member
	add := func(task int32, k plan.MeetingKey, want int, count int64) {
		i, ok := met[k]
		if !ok {
			i = int32(len(g.meetings))
			met[k] = i
			g.meetings = append(g.meetings, meeting{want: int32(want), Meeting: Meeting{
				Communication: g.tasks[task].GetCommunication(), Rank: g.w.Programs[g.rank[task]].Rank,
				Transfer: k.Transfer, Count: count, From: k.From, To: k.To, Ranks: want,
			}})
		}
		g.meetings[i].count++
		list = append(list, member{task: task, meeting: i, need: everyone})
	}
	for n, t := range g.tasks {
		c := t.GetCommunication()
		if c == nil {
			continue
		}
		if len(c.Transfers) == 0 {
			add(int32(n), plan.CollectiveKey(c), len(g.w.Groups[c.Group].Ranks), 0)
			continue
		}
		rank := g.w.Programs[g.rank[n]].Rank
		for _, tr := range c.Transfers {
			add(int32(n), plan.TransferKey(rank, c, tr), 2, tr.Count)
		}
	}
	first := int32(0)
	next := make([]int32, len(g.meetings))
	for i := range g.meetings {
		g.meetings[i].first, next[i] = first, first
		first += g.meetings[i].count
	}
	g.members = make([]member, len(list))
	for _, m := range list {
		g.members[next[m.meeting]] = m
		next[m.meeting]++
	}
	g.ofAt, g.of = group(len(g.tasks), len(g.members), func(i int) (int32, int32) { return g.members[i].task, int32(i) })
}

// side is what the trace shows of a member.
type side struct {
	issued     int64
	start, end int64
	stood      int64 // ns up to end in which the program stood still for it
	wait       int32 // task, none: nothing waits for it alone
}

// none is no task.
const none = -1

// minBlocked is how long, in ns, a program must have stood still for a message so
// that the end of its wait shows when the message was there.
const minBlocked = 50_000

// late is how many times as long as usual a message may have taken when a program
// begins to wait for it.
const late = 4

// measure splits what the trace shows of each operation.
func (g *Graph) measure() {
	waits := g.waitsFor()
	host := onHost(g.w)
	var quick map[int64]int64
	if host {
		quick = g.quick()
	}
	var sides []side
	for i := range g.meetings {
		m := &g.meetings[i]
		sides = sides[:0]
		for _, x := range g.members[m.first : m.first+m.count] {
			o := g.tasks[x.task].Origin
			if o == nil {
				break
			}
			s := side{issued: o.Issued, start: o.Ts, end: max(o.Ts, o.Ts+o.Dur), wait: waits[x.task]}
			if s.wait != none {
				s.stood = g.tasks[s.wait].GetWait().BlockedNs
			}
			sides = append(sides, s)
		}
		if len(sides) < int(m.want) || m.count != m.want {
			continue
		}
		m.Known = true
		switch {
		case g.w.ClocksDiffer:
			m.Traced = sides[0].end - sides[0].start
			for _, x := range sides {
				m.Traced = min(m.Traced, x.end-x.start)
			}
		case m.Transfer && host:
			g.splitMessage(m, sides, quick[m.size()])
		default:
			g.splitCollective(m, sides)
		}
	}
}

// size is by what messages are compared, in elements.
func (m *meeting) size() int64 {
	return max(m.Communication.InCount, m.Communication.OutCount)
}

// waitsFor is the task that waits for each one alone.
func (g *Graph) waitsFor() []int32 {
	waits := make([]int32, len(g.tasks))
	for n := range waits {
		waits[n] = none
	}
	for n, t := range g.tasks {
		if t.GetWait() != nil && len(t.Deps) == 1 && t.GetWait().BlockedNs > 0 {
			waits[g.offset[g.rank[n]]+t.Deps[0]] = int32(n)
		}
	}
	return waits
}

// quick is what a message of a size takes where the trace does not show it: on a
// host it seems to last until the program waited for it, however long it was
// there. The quickest quarter of the messages of a size says what one takes.
func (g *Graph) quick() map[int64]int64 {
	bySize := map[int64][]int64{}
	for i := range g.meetings {
		m := &g.meetings[i]
		if !m.Transfer || m.count != m.want {
			continue
		}
		var start, end int64
		complete := true
		for k, x := range g.members[m.first : m.first+m.count] {
			o := g.tasks[x.task].Origin
			if complete = complete && o != nil; !complete {
				break
			}
			start = max(start, o.Ts)
			if k == 0 || o.Ts+o.Dur < end {
				end = o.Ts + o.Dur
			}
		}
		if complete {
			bySize[m.size()] = append(bySize[m.size()], max(end-start, 0))
		}
	}
	quick := map[int64]int64{}
	for size, list := range bySize {
		slices.Sort(list)
		quick[size] = list[len(list)/4]
	}
	return quick
}

// splitCollective tells waiting from transfer and from what is a member's own. Of
// a message on a device it does the same.
func (g *Graph) splitCollective(m *meeting, s []side) {
	start, end := make([]int64, len(s)), make([]int64, len(s))
	for k, x := range s {
		start[k], end[k] = x.start, x.end
	}
	last, took, least := transferTime(start, end)
	m.Traced = took
	if m.Transfer {
		m.Traced = least
	}
	var byStart []int // made when a member left early
	for k, x := range s {
		me := &g.members[m.first+int32(k)]
		if x.end >= last {
			me.own = x.end - last - m.Traced
			continue
		}
		if byStart == nil {
			for j := range s {
				byStart = append(byStart, j)
			}
			slices.SortStableFunc(byStart, func(a, b int) int { return cmp.Compare(s[a].start, s[b].start) })
		}
		// The last that was there by then; it was there itself.
		n := sort.Search(len(byStart), func(j int) bool { return s[byStart[j]].start > x.end })
		need := byStart[n-1]
		g.early(m, me, need, x.end-s[need].start)
	}
}

// early makes a member wait for one other, or itself, only.
func (g *Graph) early(m *meeting, me *member, need int, own int64) {
	g.contradicted++
	m.early++
	me.need, me.own = m.first+int32(need), own
}

// splitMessage does so for a message of a host, which seems to last until the
// program waited for it: when it was there, only a program that stood still for it
// shows. Where the message was there before, or should have been for long, that the
// program stood still has another reason, and is its own time.
func (g *Graph) splitMessage(m *meeting, s []side, quick int64) {
	last := max(s[0].start, s[1].start)
	took := int64(math.MaxInt64)
	shows := func(x side) bool {
		return x.stood >= minBlocked && x.end >= last && x.end-x.stood <= last+late*quick+minBlocked
	}
	if !shows(s[0]) && !shows(s[1]) {
		took = quick
	}
	for _, x := range s {
		if x.end >= last {
			took = min(took, x.end-last)
		}
	}
	if took == math.MaxInt64 {
		took = quick
	}
	m.Traced = took
	for k, x := range s {
		me := &g.members[m.first+int32(k)]
		switch {
		case x.end < last && x.end >= s[1-k].issued:
			// The other side was there within its call, before the trace shows it.
			g.early(m, me, 1-k, x.end-s[1-k].start)
		case x.end < last && x.stood >= minBlocked:
			g.early(m, me, k, x.end-x.start)
		case x.end < last:
			g.early(m, me, k, min(x.end-x.start, quick))
		case x.end-x.stood < last+took:
			me.own = x.end - last - took
		case x.wait != none:
			g.own[x.wait] = x.stood
		}
	}
}

// onHost says whether no rank has a device.
func onHost(w *planpb.Workload) bool {
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			if t.GetSpan().GetKind() == planpb.Span_DEVICE {
				return false
			}
		}
	}
	return true
}
