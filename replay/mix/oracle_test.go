package mix_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// world executes a plan as the worker does, in the smallest steps: a task begins,
// a task ends. It knows nothing of graphs.
type world struct {
	w     *planpb.Workload
	began []map[int32]bool // of each rank, by task
	ended []map[int32]bool
	// gpu is the communication that holds a rank's GPU, -1 for none: kernels that
	// nothing orders run one after the other, in any order.
	gpu []int32
}

func newWorld(p *planpb.Plan) *world {
	s := &world{w: p.Workload}
	for range s.w.Programs {
		s.began, s.ended, s.gpu = append(s.began, map[int32]bool{}), append(s.ended, map[int32]bool{}), append(s.gpu, -1)
	}
	return s
}

// move is one thing that can happen: a task begins or ends.
type move struct {
	rank int
	task int32
	end  bool
}

func (s *world) do(m move) {
	c := s.w.Programs[m.rank].Tasks[m.task].GetCommunication()
	if !m.end {
		s.began[m.rank][m.task] = true
		if c != nil && c.Backend == "nccl" {
			s.gpu[m.rank] = m.task
		}
		return
	}
	s.ended[m.rank][m.task] = true
	if s.gpu[m.rank] == m.task {
		s.gpu[m.rank] = -1
	}
}

// moves lists all that can happen now.
func (s *world) moves() []move {
	var list []move
	for r, program := range s.w.Programs {
		for _, t := range program.Tasks {
			switch {
			case s.ended[r][t.Id]:
			case s.began[r][t.Id]:
				if s.canEnd(r, t) {
					list = append(list, move{r, t.Id, true})
				}
			case s.canBegin(r, t):
				list = append(list, move{r, t.Id, false})
			}
		}
	}
	return list
}

func (s *world) canBegin(r int, t *planpb.Task) bool {
	c := t.GetCommunication()
	for _, o := range s.w.Programs[r].Tasks {
		if o.Stream == t.Stream && o.Id < t.Id && !s.ended[r][o.Id] {
			return false
		}
		oc := o.GetCommunication()
		if c != nil && oc != nil && !plan.Op(c).IsP2P() && !plan.Op(oc).IsP2P() && oc.Group == c.Group && oc.Backend == c.Backend &&
			oc.Seq < c.Seq && !s.ended[r][o.Id] {
			return false // not its turn
		}
	}
	for _, d := range t.Deps {
		if !s.ended[r][d] {
			return false
		}
	}
	return c == nil || c.Backend != "nccl" || s.gpu[r] < 0
}

func (s *world) canEnd(r int, t *planpb.Task) bool {
	c := t.GetCommunication()
	if c == nil {
		return true
	}
	if !plan.Op(c).IsP2P() {
		for _, member := range s.w.Groups[c.Group].Ranks {
			if !s.began1(int(member), func(o *planpb.Communication) bool {
				return !plan.Op(o).IsP2P() && o.Group == c.Group && o.Seq == c.Seq && o.Backend == c.Backend && o.Op == c.Op && o.Dtype == c.Dtype && o.InCount == c.InCount
			}) {
				return false
			}
		}
		return true
	}
	for _, tr := range c.Transfers {
		if !s.began1(int(tr.Peer), func(o *planpb.Communication) bool {
			return o.Group == c.Group && o.Backend == c.Backend && o.Dtype == c.Dtype && slices.ContainsFunc(o.Transfers, func(x *planpb.Transfer) bool {
				return x.Send != tr.Send && int(x.Peer) == r && x.Match == tr.Match && x.Count == tr.Count
			})
		}) {
			return false
		}
	}
	return true
}

// began1 says whether a communication of the rank that matches has begun.
func (s *world) began1(r int, match func(*planpb.Communication) bool) bool {
	for _, t := range s.w.Programs[r].Tasks {
		if c := t.GetCommunication(); c != nil && s.began[r][t.Id] && match(c) {
			return true
		}
	}
	return false
}

func (s *world) finished() bool {
	for r, program := range s.w.Programs {
		if len(s.ended[r]) < len(program.Tasks) {
			return false
		}
	}
	return true
}

// runs executes the plan, choosing at random what happens next.
func runs(p *planpb.Plan, rng *rand.Rand) bool {
	s := newWorld(p)
	for {
		moves := s.moves()
		if len(moves) == 0 {
			return s.finished()
		}
		s.do(moves[rng.IntN(len(moves))])
	}
}

// canHang tries every order in which things can happen. What can be done without
// taking a GPU is done at once: it takes nothing from others.
func canHang(p *planpb.Plan) bool {
	seen := map[string]bool{}
	var explore func(path []move) bool
	explore = func(path []move) bool {
		s := newWorld(p)
		for _, m := range path {
			s.do(m)
		}
		for {
			moves := s.moves()
			if len(moves) == 0 {
				return !s.finished()
			}
			free := slices.IndexFunc(moves, func(m move) bool {
				c := p.Workload.Programs[m.rank].Tasks[m.task].GetCommunication()
				return m.end || c == nil || c.Backend != "nccl"
			})
			if free >= 0 {
				s.do(moves[free])
				path = append(path, moves[free])
				continue
			}
			if key := fmt.Sprint(s.began, s.ended); seen[key] {
				return false
			} else {
				seen[key] = true
			}
			for _, m := range moves {
				if explore(append(slices.Clone(path), m)) {
					return true
				}
			}
			return false
		}
	}
	return explore(nil)
}
