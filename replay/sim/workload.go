package sim

import (
	"errors"
	"fmt"
	"math"

	"mixdown/replay/plan/planpb"
)

// ErrPlan: a plan can't be played to its end: an operation lacks a member, or
// tasks wait for each other. "mixdown check" says which.
var ErrPlan = errors.New("the plan can't be played to its end")

// CommunicationCost is how long an operation takes, in ns, from when its last
// member came to its end.
type CommunicationCost func(Meeting) int64

// WorkloadRun is a workload that was played.
type WorkloadRun struct {
	Step   int64     // ns, from the first rank's start to the last task's end
	Starts [][]int64 // by program and task, ns; of communication: when it was there
	Ends   [][]int64
	// Unsettled: the lengths of spans and what runs beside them did not come to agree.
	Unsettled bool
}

// PlayWorkload plays the programs of all ranks against each other, once. See
// Graph.Play.
func PlayWorkload(w *planpb.Workload, cost CommunicationCost) (*WorkloadRun, error) {
	return NewGraph(w).Play(cost)
}

// Play plays the programs of all ranks against each other: a task starts when
// what it depends on has ended, an operation of several ranks moves when the last
// of them is there. Streams run side by side; nothing else holds them up, so what
// ranks share (cores, links) must be in the costs. Where the workload knows how much
// communication slows kernels (Contend), their spans last as long as what then runs
// beside them makes them.
func (g *Graph) Play(cost CommunicationCost) (*WorkloadRun, error) {
	if g.slowed == nil {
		return g.playOnce(cost, nil)
	}
	return g.settle(cost)
}

// playOnce plays all tasks with the lengths that they have. What operations cost is
// kept in took, if it is not nil, and asked for where that has notAsked.
func (g *Graph) playOnce(cost CommunicationCost, took []int64) (*WorkloadRun, error) {
	p := newWorkloadPlayer(g, cost)
	p.took = took
	for n := range p.waits {
		if p.waits[n] == 0 {
			p.ready = append(p.ready, int32(n))
		}
		for len(p.ready) > 0 {
			next := p.ready[len(p.ready)-1]
			p.ready = p.ready[:len(p.ready)-1]
			p.waits[next] = begun
			p.begin(next)
		}
	}
	if p.done < len(p.end) {
		return nil, p.stuck()
	}
	if p.tooLate {
		return nil, ErrTooLong
	}
	programs := len(g.w.Programs)
	run := &WorkloadRun{Starts: make([][]int64, programs), Ends: make([][]int64, programs)}
	for r := range programs {
		from, to := g.offset[r], g.offset[r+1]
		run.Starts[r], run.Ends[r] = p.start[from:to], p.end[from:to]
		for _, end := range run.Ends[r] {
			run.Step = max(run.Step, end)
		}
	}
	return run, nil
}

// begun marks a task that waits for nothing any more.
const begun = -1

// gathering is a meeting while it is played.
type gathering struct {
	came int32
	at   int64 // ns, when the last so far came
}

type workloadPlayer struct {
	*Graph
	cost CommunicationCost
	took []int64 // by meeting, see playOnce

	start, end []int64
	waits      []int32 // what each task still waits for
	open       []int32 // members that a communication still waits with
	meets      []gathering
	ready      []int32
	done       int
	tooLate    bool // a task ended beyond the farthest moment
}

func newWorkloadPlayer(g *Graph, cost CommunicationCost) *workloadPlayer {
	n := g.Len()
	p := &workloadPlayer{
		Graph: g, cost: cost, start: make([]int64, n), end: make([]int64, n),
		waits: append([]int32(nil), g.waits...), open: make([]int32, n), meets: make([]gathering, len(g.meetings)),
	}
	for n := range p.start {
		p.start[n] = g.w.Programs[g.rank[n]].StartOffsetNs
		p.open[n] = g.ofAt[n+1] - g.ofAt[n]
	}
	return p
}

// begin starts a task that nothing holds up any more.
func (p *workloadPlayer) begin(n int32) {
	parts := p.of[p.ofAt[n]:p.ofAt[n+1]]
	if len(parts) == 0 {
		p.finish(n, p.start[n]+min(p.own[n], longestTask))
		return
	}
	p.start[n] += p.own[n]
	p.end[n] = p.start[n]
	for _, i := range parts {
		m, met := &p.meetings[p.members[i].meeting], &p.meets[p.members[i].meeting]
		met.came++
		met.at = max(met.at, p.start[n])
		if m.early > 0 {
			p.leaveEarly(i)
		}
		if met.came == m.want && m.want == m.count {
			p.move(p.members[i].meeting, met.at)
		}
	}
}

// leaveEarly ends the members that waited for the one which came, and itself if
// whom it waits for is there.
func (p *workloadPlayer) leaveEarly(came int32) {
	for _, k := range p.needing[p.needingAt[came]:p.needingAt[came+1]] {
		if p.members[k].task != p.members[came].task { // else it comes by itself
			p.tryLeaving(k)
		}
	}
	if p.members[came].need != everyone {
		p.tryLeaving(came)
	}
}

// tryLeaving ends an early member when it and whom it waits for are there.
func (p *workloadPlayer) tryLeaving(k int32) {
	x := &p.members[k]
	needed := p.members[x.need].task
	if p.waits[x.task] == begun && p.waits[needed] == begun {
		p.leave(x.task, max(p.start[x.task], p.start[needed]+x.own))
	}
}

// move lets an operation run whose members are all there.
func (p *workloadPlayer) move(i int32, at int64) {
	m := &p.meetings[i]
	end := at + min(p.costOf(i), longestTask)
	for k := m.first; k < m.first+m.count; k++ {
		if x := &p.members[k]; x.need == everyone {
			p.leave(x.task, max(end+x.own, at))
		}
	}
}

// notAsked is the cost of an operation that was not asked for yet.
const notAsked = math.MinInt64

// costOf is what an operation takes.
func (p *workloadPlayer) costOf(i int32) int64 {
	if p.took == nil {
		return p.cost(p.meetings[i].Meeting)
	}
	if p.took[i] == notAsked {
		p.took[i] = p.cost(p.meetings[i].Meeting)
	}
	return p.took[i]
}

// leave ends a task's part in a meeting.
func (p *workloadPlayer) leave(n int32, at int64) {
	p.end[n] = max(p.end[n], at)
	if p.open[n]--; p.open[n] == 0 {
		p.finish(n, p.end[n])
	}
}

func (p *workloadPlayer) finish(n int32, at int64) {
	if at > farthest {
		at, p.tooLate = farthest, true
	}
	p.end[n] = at
	p.done++
	for _, next := range p.after[p.afterAt[n]:p.afterAt[n+1]] {
		p.start[next] = max(p.start[next], at)
		if p.waits[next]--; p.waits[next] == 0 {
			p.ready = append(p.ready, next)
		}
	}
}

// stuck names an operation that waits.
func (p *workloadPlayer) stuck() error {
	for i := range p.meetings {
		m, came := &p.meetings[i], p.meets[i].came
		if came == 0 || came == m.want && m.want == m.count {
			continue
		}
		return fmt.Errorf("%w: %d of %d members of an operation of group %d never come", ErrPlan, int(m.want)-int(came), m.want, m.Communication.Group)
	}
	return fmt.Errorf("%w: tasks wait for each other", ErrPlan)
}
