package mix

import (
	"fmt"
	"slices"

	"mixdown/replay/plan/planpb"
)

// checkEvents refuses what a rank can't do with communicators.
func (m *model) checkEvents(program *planpb.Program, members []map[int32]int32) error {
	last := int32(0)
	for i, e := range program.GetCommunicators() {
		switch {
		case e.GetGroup() < 0 || int(e.GetGroup()) >= len(members):
			return fmt.Errorf("communicator event %d: group %d of %d", i, e.GetGroup(), len(members))
		case e.GetKind() != planpb.CommunicatorEvent_MADE && e.GetKind() != planpb.CommunicatorEvent_DESTROYED:
			return fmt.Errorf("communicator event %d: neither made nor destroyed", i)
		case e.Before < last || int(e.Before) > len(program.Tasks):
			return fmt.Errorf("communicator event %d: it is before task %d, the one before it before task %d of %d", i, e.Before, last, len(program.Tasks))
		}
		if _, ok := members[e.Group][program.Rank]; !ok {
			return fmt.Errorf("communicator event %d: rank %d is not in group %s", i, program.Rank, m.groupName(e.Group))
		}
		last = e.Before
	}
	return nil
}

// life is one thing that happens to a communicator: it is made or destroyed, for
// the n-th time.
type life struct {
	group   int32
	backend string
	kind    planpb.CommunicatorEvent_Kind
	nth     int32
}

func (m *model) lifeText(l life) string {
	text := "makes the communicator of group " + m.groupName(l.group)
	if l.kind == planpb.CommunicatorEvent_DESTROYED {
		text = "destroys the communicator of group " + m.groupName(l.group)
	}
	if l.backend != "" {
		text += " on " + l.backend
	}
	return text
}

// checkLives: communicators are made and destroyed by all their members, in
// orders that do not wait for each other, and used in between (E7, D11, D16).
func (m *model) checkLives(found *collector) {
	lives := make([][]life, len(m.w.Programs))
	for p, program := range m.w.Programs {
		count := map[life]int32{}
		for _, e := range program.Communicators {
			l := life{group: e.Group, backend: e.Backend, kind: e.Kind}
			count[l]++
			l.nth = count[l]
			lives[p] = append(lives[p], l)
		}
		if len(program.Communicators) > 0 {
			m.checkUses(found, p)
		}
	}
	m.checkAttendance(found, lives)
	m.checkLifeOrder(found, lives)
}

// checkUses looks for operations of a rank on communicators that are not there: a
// rank that says when it makes or destroys one has it only in between.
func (m *model) checkUses(found *collector, p int) {
	program := m.w.Programs[p]
	type communicator struct {
		group   int32
		backend string
	}
	made := map[communicator]bool{} // false: destroyed, or to be made later
	for _, e := range slices.Backward(program.Communicators) {
		made[communicator{e.Group, e.Backend}] = e.Kind == planpb.CommunicatorEvent_DESTROYED
	}
	next := 0
	for i, t := range program.Tasks {
		for ; next < len(program.Communicators) && program.Communicators[next].Before <= int32(i); next++ {
			e := program.Communicators[next]
			made[communicator{e.Group, e.Backend}] = e.Kind == planpb.CommunicatorEvent_MADE
		}
		c := t.GetCommunication()
		if c == nil {
			continue
		}
		there, known := made[communicator{c.Group, c.Backend}]
		if !known {
			there, known = made[communicator{c.Group, ""}]
		}
		if !known || there {
			continue
		}
		found.add("E7", fmt.Sprintf("gone/%d", c.Group), func() Finding {
			f := m.finding([]int32{m.base[p] + int32(i)}, "", "make communicators before their first use and destroy them after the last one has ended")
			f.Message = fmt.Sprintf("%s on rank %d has no communicator: it is made later, or was destroyed", f.Operations[0].short(), program.Rank)
			return f
		})
	}
}

// checkAttendance looks for members that do not come where a communicator is made
// or destroyed. Ranks without any events are not known to.
func (m *model) checkAttendance(found *collector, lives [][]life) {
	comes := map[life]map[int32]bool{}
	var order []life
	for p, list := range lives {
		for _, l := range list {
			if comes[l] == nil {
				comes[l] = map[int32]bool{}
				order = append(order, l)
			}
			comes[l][m.w.Programs[p].Rank] = true
		}
	}
	for _, l := range order {
		var without, with []int32
		for _, r := range m.w.Groups[l.group].Ranks {
			switch p, runs := m.program[r]; {
			case comes[l][r]:
				with = append(with, r)
			case runs && len(lives[p]) > 0:
				without = append(without, r)
			}
		}
		if len(without) == 0 {
			continue
		}
		found.add("E7", fmt.Sprintf("attendance/%d/%d", l.group, l.kind), func() Finding {
			return Finding{
				hangs:   true,
				Message: fmt.Sprintf("%s %s, and %s never: all members must take part", ranksText(with), m.lifeText(l), ranksText(without)),
				Advice:  "let all members make and destroy it",
				Ranks:   without, Groups: []string{m.groupLabel(l.group)},
			}
		})
	}
}

// checkLifeOrder looks for communicators that wait for each other in a circle: one
// is made or destroyed when all its members are there, and each member does one
// after the other (D16).
func (m *model) checkLifeOrder(found *collector, lives [][]life) {
	number := map[life]int{}
	var list []life
	after := map[int]map[int]int32{} // event -> the next -> a rank that does them so
	for p, of := range lives {
		before := -1
		for _, l := range of {
			n, ok := number[l]
			if !ok {
				n = len(list)
				number[l] = n
				list = append(list, l)
				after[n] = map[int]int32{}
			}
			if before >= 0 {
				if _, have := after[before][n]; !have {
					after[before][n] = m.w.Programs[p].Rank
				}
			}
			before = n
		}
	}
	circle := shortCircle(len(list), after)
	if circle == nil {
		return
	}
	found.add("E7", "order", func() Finding {
		f := Finding{hangs: true, Message: "communicators wait for each other: ", Advice: "make and destroy communicators in one order on all ranks, for example that of the lowest rank"}
		for i, n := range circle {
			next := circle[(i+1)%len(circle)]
			rank := after[n][next]
			if i > 0 {
				f.Message += "; "
			}
			f.Message += fmt.Sprintf("rank %d %s before it %s", rank, m.lifeText(list[n]), m.lifeText(list[next]))
			f.Ranks = append(f.Ranks, rank)
			f.Groups = append(f.Groups, m.groupLabel(list[n].group))
		}
		slices.Sort(f.Ranks)
		f.Ranks = slices.Compact(f.Ranks)
		slices.Sort(f.Groups)
		f.Groups = slices.Compact(f.Groups)
		return f
	})
}

// shortCircle is a circle of a graph of n vertices, nil when it has none: a
// shortest one through the first vertex that is on any.
func shortCircle(n int, after map[int]map[int]int32) []int {
	waits := make([]int, n)
	for _, to := range after {
		for v := range to {
			waits[v]++
		}
	}
	var free []int
	for v := range n {
		if waits[v] == 0 {
			free = append(free, v)
		}
	}
	for len(free) > 0 {
		v := free[len(free)-1]
		free = free[:len(free)-1]
		waits[v] = -1 // ends
		for to := range after[v] {
			if waits[to]--; waits[to] == 0 {
				free = append(free, to)
			}
		}
	}
	for start := range n {
		if waits[start] <= 0 {
			continue
		}
		from := map[int]int{start: -1}
		for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
			v := queue[0]
			next := make([]int, 0, len(after[v]))
			for to := range after[v] {
				next = append(next, to)
			}
			slices.Sort(next)
			for _, to := range next {
				if to == start {
					var circle []int
					for ; v >= 0; v = from[v] {
						circle = append(circle, v)
					}
					slices.Reverse(circle)
					return circle
				}
				if _, seen := from[to]; !seen && waits[to] > 0 {
					from[to] = v
					queue = append(queue, to)
				}
			}
		}
	}
	return nil
}

// unknownLives lists the ranks that do not say when they make and destroy
// communicators.
func (m *model) unknownLives() (ranks []int32) {
	for _, program := range m.w.Programs {
		if len(program.Communicators) == 0 {
			ranks = append(ranks, program.Rank)
		}
	}
	return ranks
}
