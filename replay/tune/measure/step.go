package measure

import (
	"math"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
)

// moment is operations of a step that are measured as one: alike, in groups of one
// size.
type moment struct {
	Point
	gap int64 // ns, of the row
}

// step is a traced step that is measured as a whole.
type step struct {
	workload *planpb.Workload
	moments  []moment
	meetings []meeting
}

// meeting is one operation of the step, or one transfer.
type meeting struct {
	moment  int
	members []member
}

// member is a task that takes part.
type member struct{ program, task int }

// newStep finds the operations of a workload.
func newStep(w *planpb.Workload) *step {
	s := &step{workload: w}
	sizeOf := mix.SizeOf(w)
	at := map[Point]int{}
	met := map[plan.MeetingKey]int{}
	gaps := [][]int64{} // by moment
	for i, program := range w.Programs {
		before := plan.Gaps(program)
		for j, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil {
				continue
			}
			add := func(k plan.MeetingKey, p Point) {
				n, ok := met[k]
				if !ok {
					if p.Op == comm.Barrier {
						p.DType, p.Bytes = "", 0
					}
					p.Streams = 1
					m, ok := at[p]
					if !ok {
						m = len(s.moments)
						at[p] = m
						s.moments, gaps = append(s.moments, moment{Point: p}), append(gaps, nil)
					}
					n = len(s.meetings)
					met[k] = n
					s.meetings = append(s.meetings, meeting{moment: m})
				}
				m := &s.meetings[n]
				m.members = append(m.members, member{i, j})
				gaps[m.moment] = append(gaps[m.moment], before[j])
			}
			dtype := plan.DType(c)
			for _, tr := range c.Transfers {
				add(plan.TransferKey(program.Rank, c, tr), Point{Op: comm.Send, DType: dtype, Bytes: tr.Count * dtype.Size(), Ranks: 2})
			}
			if !plan.Op(c).IsP2P() {
				add(plan.CollectiveKey(c), Point{Op: plan.Op(c), DType: dtype, Bytes: sizeOf(program.Rank, c), Ranks: len(w.Groups[c.Group].Ranks)})
			}
		}
	}
	for i := range s.moments {
		s.moments[i].gap = middle(gaps[i])
	}
	return s
}

// row begins the row of a moment.
func (m moment) row(who tune.Contender, device string) tune.Row {
	r := m.Point.row(who, device)
	r.InStep, r.Gap, r.Statistic = true, m.gap, tune.Mean
	return r
}

// plan is the step with everything on one backend.
func (s *step) plan(backend string) (*planpb.Plan, error) {
	return mix.Decide(s.workload, mix.Of(mix.Rule{Max: math.MaxInt64, Backend: backend}), "the step on "+backend, backend)
}

// times are those of the operations of an iteration, by meeting: from when the last
// member would have come, had computation taken what it took in the trace, to the
// last member's end. Members that come late because others wait in a way that
// keeps cores busy are so a part of what the operation costs. length is when the last
// task ends, reckoned alike. There are none where not all ranks finished the iteration.
func (s *step) times(records []*record) (times []int64, length int64) {
	due := make([][]int64, len(s.workload.Programs))
	for i, program := range s.workload.Programs {
		if records[i] == nil {
			return nil, 0
		}
		if due[i] = dues(program, records[i]); due[i] == nil {
			return nil, 0
		}
		for j, t := range program.Tasks {
			length = max(length, records[i].ends[j], due[i][j]+t.GetSpan().GetDurationNs())
		}
	}
	out := make([]int64, len(s.meetings))
	for i, m := range s.meetings {
		var came, ended int64
		for _, k := range m.members {
			came, ended = max(came, due[k.program][k.task]), max(ended, records[k.program].ends[k.task])
		}
		out[i] = max(1, ended-came)
	}
	return out, length
}

// dues says of each task of a program when it would have begun had the spans
// before it taken what they took in the trace; nil where a communication has no
// end.
func dues(p *planpb.Program, r *record) []int64 {
	start, end := make([]int64, len(p.Tasks)), make([]int64, len(p.Tasks))
	free := make([]int64, len(p.Streams))
	for i, t := range p.Tasks {
		at := p.StartOffsetNs
		at = max(at, free[t.Stream])
		for _, d := range t.Deps {
			at = max(at, end[d])
		}
		start[i], end[i] = at, at+t.GetSpan().GetDurationNs()
		if t.GetCommunication() != nil {
			if end[i] = r.ends[i]; end[i] == 0 {
				return nil
			}
		}
		free[t.Stream] = end[i]
	}
	return start
}

// byMoment sorts the times of an iteration by what they are of.
func (s *step) byMoment(times []int64) [][]int64 {
	out := make([][]int64, len(s.moments))
	for i, t := range times {
		m := s.meetings[i].moment
		out[m] = append(out[m], t)
	}
	return out
}
