package sim

import (
	"errors"
	"fmt"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// ErrPlan: a plan can't be played to its end: an operation lacks a member, or
// tasks wait for each other. "mixdown check" says which.
var ErrPlan = errors.New("the plan can't be played to its end")

// Meeting is what several ranks do together: a collective, or one transfer of
// point-to-point.
type Meeting struct {
	// Communication is that of one member, or of one side of the transfer.
	Communication *planpb.Communication
	Rank          int32 // whose it is
	Transfer      bool
	Count         int64 // elements of a transfer
	Ranks         int   // that take part: 2 of a transfer

	key plan.MeetingKey
}

// CommunicationCost is how long an operation takes, in ns, from when its last
// member came to its end.
type CommunicationCost func(Meeting) int64

// WorkloadRun is a workload that was played.
type WorkloadRun struct {
	Step   int64     // ns, from the first rank's start to the last task's end
	Starts [][]int64 // by program and task, ns
	Ends   [][]int64
}

// PlayWorkload plays the programs of all ranks against each other: a task starts
// when what it depends on has ended, an operation of several ranks moves when the
// last of them is there. Streams run side by side; nothing else holds them up, so
// what ranks share (cores, links) must be in the costs.
func PlayWorkload(w *planpb.Workload, cost CommunicationCost) (*WorkloadRun, error) {
	p := newWorkloadPlayer(w, cost)
	for len(p.ready) > 0 {
		n := p.ready[len(p.ready)-1]
		p.ready = p.ready[:len(p.ready)-1]
		p.begin(n)
	}
	if p.done < len(p.end) {
		return nil, p.stuck()
	}
	run := &WorkloadRun{Starts: make([][]int64, len(w.Programs)), Ends: make([][]int64, len(w.Programs))}
	for r := range w.Programs {
		from, to := p.offset[r], p.offset[r+1]
		run.Starts[r], run.Ends[r] = p.start[from:to], p.end[from:to]
		for _, end := range run.Ends[r] {
			run.Step = max(run.Step, end)
		}
	}
	return run, nil
}

// meeting is an operation, or one transfer, that several tasks take part in.
type meeting struct {
	want    int32 // tasks that must come
	came    int32
	at      int64 // ns, when the last so far came
	members []int32
	Meeting
}

type workloadPlayer struct {
	w      *planpb.Workload
	cost   CommunicationCost
	offset []int32 // of each program's first task
	tasks  []*planpb.Task

	start, end []int64
	waits      []int32 // what each task still waits for
	open       []int32 // meetings that a communication still waits for
	after      [][]int32
	meetings   []meeting
	of         [][]int32 // by task: its meetings
	ready      []int32
	done       int
}

func newWorkloadPlayer(w *planpb.Workload, cost CommunicationCost) *workloadPlayer {
	p := &workloadPlayer{w: w, cost: cost, offset: make([]int32, len(w.Programs)+1)}
	for r, program := range w.Programs {
		p.tasks = append(p.tasks, program.Tasks...)
		p.offset[r+1] = int32(len(p.tasks))
	}
	n := len(p.tasks)
	p.start, p.end = make([]int64, n), make([]int64, n)
	p.waits, p.open = make([]int32, n), make([]int32, n)
	p.after, p.of = make([][]int32, n), make([][]int32, n)
	met := map[plan.MeetingKey]int32{}
	for r, program := range w.Programs {
		last := map[int32]int32{} // stream -> its latest task
		for i, t := range program.Tasks {
			at := p.offset[r] + int32(i)
			p.start[at] = program.StartOffsetNs
			if before, ok := last[t.Stream]; ok {
				p.follow(before, at)
			}
			last[t.Stream] = at
			for _, d := range t.Deps {
				p.follow(p.offset[r]+d, at)
			}
			if c := t.GetCommunication(); c != nil {
				p.join(met, program.Rank, at, c)
			}
			if p.waits[at] == 0 {
				p.ready = append(p.ready, at)
			}
		}
	}
	return p
}

func (p *workloadPlayer) follow(before, after int32) {
	p.after[before] = append(p.after[before], after)
	p.waits[after]++
}

func (p *workloadPlayer) join(met map[plan.MeetingKey]int32, rank int32, at int32, c *planpb.Communication) {
	add := func(k plan.MeetingKey, want int, count int64) {
		i, ok := met[k]
		if !ok {
			i = int32(len(p.meetings))
			met[k] = i
			p.meetings = append(p.meetings, meeting{want: int32(want), Meeting: Meeting{
				Communication: c, Rank: rank, Transfer: k.Transfer, Count: count, Ranks: want, key: k,
			}})
		}
		m := &p.meetings[i]
		m.members = append(m.members, at)
		p.of[at] = append(p.of[at], i)
		p.open[at]++
	}
	if len(c.Transfers) == 0 {
		add(plan.CollectiveKey(c), len(p.w.Groups[c.Group].Ranks), 0)
		return
	}
	for _, t := range c.Transfers {
		add(plan.TransferKey(rank, c, t), 2, t.Count)
	}
}

// begin starts a task that nothing holds up any more.
func (p *workloadPlayer) begin(n int32) {
	c := p.tasks[n].GetCommunication()
	if c == nil {
		p.finish(n, p.start[n]+p.tasks[n].GetSpan().GetDurationNs())
		return
	}
	if len(p.of[n]) == 0 {
		p.finish(n, p.start[n])
		return
	}
	p.end[n] = p.start[n]
	for _, i := range p.of[n] {
		m := &p.meetings[i]
		m.came++
		m.at = max(m.at, p.start[n])
		if m.came == m.want && int(m.want) == len(m.members) {
			p.move(m)
		}
	}
}

// move lets an operation run whose members are all there.
func (p *workloadPlayer) move(m *meeting) {
	end := m.at + p.cost(m.Meeting)
	for _, n := range m.members {
		p.end[n] = max(p.end[n], end)
		if p.open[n]--; p.open[n] == 0 {
			p.finish(n, p.end[n])
		}
	}
}

func (p *workloadPlayer) finish(n int32, at int64) {
	p.end[n] = at
	p.done++
	for _, next := range p.after[n] {
		p.start[next] = max(p.start[next], at)
		if p.waits[next]--; p.waits[next] == 0 {
			p.ready = append(p.ready, next)
		}
	}
}

// stuck names an operation that waits.
func (p *workloadPlayer) stuck() error {
	for i := range p.meetings {
		m := &p.meetings[i]
		if m.came == 0 || m.came == m.want && int(m.want) == len(m.members) {
			continue
		}
		return fmt.Errorf("%w: %d of %d members of an operation of group %d never come", ErrPlan, int(m.want)-int(m.came), m.want, m.Communication.Group)
	}
	return fmt.Errorf("%w: tasks wait for each other", ErrPlan)
}
