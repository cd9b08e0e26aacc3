package mix

import (
	"errors"
	"fmt"
	"strings"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// ErrDeadlock: the plan can hang.
var ErrDeadlock = errors.New("the plan can deadlock")

// ErrInvalidPlan: the members of an operation do not agree on it.
var ErrInvalidPlan = errors.New("invalid plan")

// Check refuses a plan that is invalid or can deadlock.
//
// Every task has a beginning and an end. A task begins after the previous one
// of its stream and its dependencies have ended; a collective also after the
// previous one of its group on the same backend, because a library runs a
// communicator's operations in order. An operation ends only when all its
// members, or the partners of its transfers, have begun: no library is assumed
// to buffer. A cycle among these relations is a deadlock; the shortest one
// found is shown.
func Check(p *planpb.Plan) error {
	g := newGraph(p.Workload)
	if err := g.connect(p.Workload); err != nil {
		return err
	}
	if cycle := g.cycle(); cycle != nil {
		return fmt.Errorf("%w: %s", ErrDeadlock, g.describe(p.Workload, cycle))
	}
	return nil
}

// graph has two vertices a task: 2*i begins, 2*i+1 ends; i counts the tasks of
// all programs. An edge leads from what must happen first.
type graph struct {
	base []int // of each program: number of tasks in those before it
	out  [][]int32
}

func newGraph(w *planpb.Workload) *graph {
	g := &graph{}
	n := 0
	for _, program := range w.Programs {
		g.base = append(g.base, n)
		n += len(program.Tasks)
	}
	g.out = make([][]int32, 2*n)
	return g
}

func (g *graph) begin(program int, task int32) int32 { return int32(2 * (g.base[program] + int(task))) }
func (g *graph) end(program int, task int32) int32   { return g.begin(program, task) + 1 }
func (g *graph) edge(from, to int32)                 { g.out[from] = append(g.out[from], to) }

type communicator struct {
	program int
	group   int32
	backend string
}

// part is one rank's task in an operation.
type part struct {
	program int
	task    int32
}

type transferID struct {
	group    int32
	from, to int32
	match    int64
}

// connect adds all edges, and compares the members of each operation.
func (g *graph) connect(w *planpb.Workload) error {
	members := map[opKey][]part{}
	var order []opKey
	sends, recvs := map[transferID]part{}, map[transferID]part{}
	for p, program := range w.Programs {
		lastOfStream := map[int32]int32{}
		lastOfCommunicator := map[communicator]int32{}
		for i, t := range program.Tasks {
			id := int32(i)
			g.edge(g.begin(p, id), g.end(p, id))
			if last, ok := lastOfStream[t.Stream]; ok {
				g.edge(g.end(p, last), g.begin(p, id))
			}
			lastOfStream[t.Stream] = id
			for _, d := range t.Deps {
				if d < 0 || d >= id {
					return fmt.Errorf("%w: task %d of rank %d depends on task %d, which does not come before it", ErrInvalidPlan, i, program.Rank, d)
				}
				g.edge(g.end(p, d), g.begin(p, id))
			}
			c := t.GetCommunication()
			if c == nil {
				continue
			}
			if c.Group < 0 || int(c.Group) >= len(w.Groups) {
				return fmt.Errorf("%w: task %d of rank %d names group %d of %d", ErrInvalidPlan, i, program.Rank, c.Group, len(w.Groups))
			}
			if k, ok := keyOf(c); ok {
				if members[k] == nil {
					order = append(order, k)
				}
				members[k] = append(members[k], part{p, id})
				lc := communicator{p, c.Group, c.Backend}
				if last, ok := lastOfCommunicator[lc]; ok {
					g.edge(g.end(p, last), g.begin(p, id))
				}
				lastOfCommunicator[lc] = id
				continue
			}
			for _, tr := range c.Transfers {
				if tr.Send {
					sends[transferID{c.Group, program.Rank, tr.Peer, tr.Match}] = part{p, id}
				} else {
					recvs[transferID{c.Group, tr.Peer, program.Rank, tr.Match}] = part{p, id}
				}
			}
		}
	}
	for _, k := range order {
		if err := g.join(w, k, members[k]); err != nil {
			return err
		}
	}
	return g.joinTransfers(w, sends, recvs)
}

// join makes the end of a collective wait for the beginning of all members.
func (g *graph) join(w *planpb.Workload, k opKey, parts []part) error {
	group := w.Groups[k.group]
	first := w.Programs[parts[0].program].Tasks[parts[0].task].GetCommunication()
	if len(parts) != len(group.Ranks) {
		return fmt.Errorf("%w: %s %d of group %q has %d members, the group has %d",
			ErrInvalidPlan, plan.Op(first), k.seq, group.Name, len(parts), len(group.Ranks))
	}
	for _, a := range parts {
		c := w.Programs[a.program].Tasks[a.task].GetCommunication()
		if c.Backend != first.Backend || c.Op != first.Op || c.Dtype != first.Dtype || c.Root != first.Root {
			return fmt.Errorf("%w: rank %d and rank %d disagree on operation %d of group %q: %s on %s, %s on %s", ErrInvalidPlan,
				w.Programs[parts[0].program].Rank, w.Programs[a.program].Rank, k.seq, group.Name,
				plan.Op(first), first.Backend, plan.Op(c), c.Backend)
		}
		for _, b := range parts {
			if a != b {
				g.edge(g.begin(a.program, a.task), g.end(b.program, b.task))
			}
		}
	}
	return nil
}

func (g *graph) joinTransfers(w *planpb.Workload, sends, recvs map[transferID]part) error {
	for id, s := range sends {
		r, ok := recvs[id]
		if !ok {
			return fmt.Errorf("%w: rank %d sends to rank %d what that one never receives", ErrInvalidPlan, id.from, id.to)
		}
		sender, receiver := w.Programs[s.program].Tasks[s.task].GetCommunication(), w.Programs[r.program].Tasks[r.task].GetCommunication()
		if sender.Backend != receiver.Backend {
			return fmt.Errorf("%w: rank %d sends to rank %d on %s, which receives on %s", ErrInvalidPlan, id.from, id.to, sender.Backend, receiver.Backend)
		}
		if s != r {
			g.edge(g.begin(s.program, s.task), g.end(r.program, r.task))
			g.edge(g.begin(r.program, r.task), g.end(s.program, s.task))
		}
	}
	for id := range recvs {
		if _, ok := sends[id]; !ok {
			return fmt.Errorf("%w: rank %d receives from rank %d what that one never sends", ErrInvalidPlan, id.to, id.from)
		}
	}
	return nil
}

// cycle returns the vertices of a short cycle, nil when there is none: vertices
// that never become free hold one, and from a few of them the shortest is
// searched.
func (g *graph) cycle() []int32 {
	blocked := make([]int32, len(g.out))
	for _, list := range g.out {
		for _, to := range list {
			blocked[to]++
		}
	}
	var free []int32
	for v, n := range blocked {
		if n == 0 {
			free = append(free, int32(v))
		}
	}
	left := len(g.out)
	for len(free) > 0 {
		v := free[len(free)-1]
		free = free[:len(free)-1]
		left--
		for _, to := range g.out[v] {
			if blocked[to]--; blocked[to] == 0 {
				free = append(free, to)
			}
		}
	}
	if left == 0 {
		return nil
	}
	var best []int32
	tries := 0
	for v, n := range blocked {
		if n == 0 {
			continue
		}
		if c := g.shortestThrough(int32(v), blocked); c != nil && (best == nil || len(c) < len(best)) {
			best = c
		}
		if tries++; tries >= maxCycleStarts && best != nil {
			break
		}
	}
	return best
}

// maxCycleStarts bounds the search for the shortest cycle in large plans.
const maxCycleStarts = 1000

// shortestThrough is the shortest cycle through v among blocked vertices.
func (g *graph) shortestThrough(v int32, blocked []int32) []int32 {
	from := map[int32]int32{}
	queue := []int32{v}
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		for _, to := range g.out[u] {
			if blocked[to] == 0 {
				continue
			}
			if to == v {
				cycle := []int32{u}
				for u != v {
					u = from[u]
					cycle = append(cycle, u)
				}
				// Reversed: from v on.
				for i, j := 0, len(cycle)-1; i < j; i, j = i+1, j-1 {
					cycle[i], cycle[j] = cycle[j], cycle[i]
				}
				return cycle
			}
			if _, seen := from[to]; !seen && to != v {
				from[to] = u
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// describe words a cycle: each communication of it once.
func (g *graph) describe(w *planpb.Workload, cycle []int32) string {
	var steps []string
	last := int32(-1)
	for _, v := range cycle {
		i := v / 2
		if i == last {
			continue
		}
		last = i
		p := 0
		for p+1 < len(g.base) && int(i) >= g.base[p+1] {
			p++
		}
		program := w.Programs[p]
		t := program.Tasks[int(i)-g.base[p]]
		c := t.GetCommunication()
		if c == nil {
			continue
		}
		steps = append(steps, fmt.Sprintf("rank %d %s %d of group %q on %s", program.Rank, plan.Op(c), c.Seq, w.Groups[c.Group].Name, c.Backend))
	}
	if len(steps) == 0 {
		return "tasks of one rank wait for each other"
	}
	return strings.Join(append(steps, steps[0]), " waits for ")
}
