package whatif

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// Step is a traced step of which questions are asked.
type Step struct {
	Workload *planpb.Workload
	// Costs is what the operations of a workload take; it is asked anew where a
	// what-if changes which operations there are.
	Costs func(*planpb.Workload) sim.CommunicationCost
	// Fixed is the part of an operation's time, from 0 to 1, that does not depend on its
	// size, false where that is not known; nil: it never is.
	Fixed func(sim.Meeting) (float64, bool)
	// Ratio is what an operation takes in a group of so many times the ranks, on so many
	// times the machines, over what it takes now; false where that is not known; nil: it never is.
	Ratio func(m sim.Meeting, ranks, times int) (float64, bool)
	// Sizes is how many ranks a group has in the job, where the workload has only some of
	// them; nil: those it lists.
	Sizes func(group int32) int
	// Late is waiting for ranks that the workload leaves out, ns, added to what an
	// operation takes after all changes; nil: none.
	Late func(sim.Meeting) int64
	// FixedWaits is sim.FixedWaits of all ranks: what stays whatever is supposed.
	FixedWaits float64
	// Machines are those of the job, all of whose ranks they know; nil: not known.
	Machines *plan.Machines

	sizes   func(int32, *planpb.Communication) int64
	changed []func(sim.Meeting, *took)
	fused   func(sim.Meeting) (int64, bool)
	unfixed bool
	serial  bool // no computation runs beside a collective
	bounded bounded
	after   []func() // once it was played
	notes   []string
}

// Answer is what was found.
type Answer struct {
	Run   *sim.WorkloadRun
	Notes []string // what it rests on
}

// Step asks the question of a step.
func (q Question) Step(of Step) (*Answer, error) {
	s := of
	s.changed, s.notes, s.fused, s.after, s.unfixed, s.serial, s.bounded = nil, nil, nil, nil, false, false, bounded{}
	s.Workload = proto.CloneOf(of.Workload)
	if n := sequence(s.Workload); n > 0 {
		s.note("%d collectives ran beside others of their group: they are taken to share the links by their bytes, and to follow each other", n)
	}
	ordered := slices.Clone(q.parts)
	slices.SortStableFunc(ordered, byStructure)
	for _, p := range ordered {
		c, ok := p.change.(stepChange)
		if !ok {
			return nil, fmt.Errorf("%w: %s changes the order of a pipeline, not what ran", ErrNotApplicable, p.kind.Name)
		}
		s.sizes = mix.SizeOf(s.Workload)
		if err := c.step(&s); err != nil {
			return nil, fmt.Errorf("%s: %w", p.kind.Name, err)
		}
	}
	s.sizes = mix.SizeOf(s.Workload)
	base := s.Costs(s.Workload)
	run, err := sim.PlayWorkload(s.Workload, func(m sim.Meeting) int64 {
		ns := base(m)
		if s.fused != nil {
			if made, ok := s.fused(m); ok {
				ns = made
			}
		}
		ns = s.cost(m, ns)
		if s.Late != nil {
			ns += s.Late(m)
		}
		return ns
	})
	if err != nil {
		return nil, err
	}
	for _, do := range s.after {
		do()
	}
	if s.FixedWaits > 0 && len(s.changed) > 0 {
		s.note("operations that are not simulated keep their time, and ranks wait for them in %.1f %% of theirs: of these nothing is supposed", 100*s.FixedWaits)
	}
	if s.bounded.hit {
		s.note(tooLong)
	}
	if s.unfixed {
		s.notes = append(s.notes, "all of an operation's time is taken to go with its size, as no --table tells which part is latency: the effect is an upper bound")
	}
	return &Answer{Run: run, Notes: s.notes}, nil
}

func (s *Step) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// bytes is the size of what is done together: of a collective the most that a
// member contributes or receives, of a transfer what is sent.
func (s *Step) bytes(m sim.Meeting) int64 {
	if m.Transfer {
		return m.Count * plan.DType(m.Communication).Size()
	}
	return s.sizes(m.Rank, m.Communication)
}

// count is how many operations of the step a rule concerns.
func (s *Step) count(w which) int {
	n := 0
	for _, m := range sim.NewGraph(s.Workload).Meetings() {
		if w.matches(s, m) {
			n++
		}
	}
	return n
}

// concern refuses a rule that concerns no operation.
func (s *Step) concern(w which) error {
	if s.count(w) == 0 {
		return fmt.Errorf("%w: no operation of the step is %s", ErrNotApplicable, w)
	}
	return nil
}
