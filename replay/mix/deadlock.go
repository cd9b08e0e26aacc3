package mix

import (
	"fmt"
	"slices"
	"strings"
)

// checkOrder looks for operations that wait for each other (E3, D2, D8, D10). A
// circle within one communicator means that its members submit in different
// orders (E1, D1).
func (m *model) checkOrder(found *collector, g *graph) (happened []int32) {
	happened, blocked := g.order()
	if int32(len(happened)) == g.n {
		return happened
	}
	c := g.circle(blocked)
	if c == nil { // a circle without operations: dependencies only point back, so there is none
		return happened
	}
	steps := g.steps(c.vertices)
	code, kinds := "E3", map[string]bool{}
	var tasks []int32
	same, p2p := true, true
	for _, s := range steps {
		tasks = append(tasks, s.first, s.then)
		for _, n := range []int32{s.first, s.then} {
			kinds[m.backendName(m.commOf[n])] = true
			same = same && m.commOf[n] == m.commOf[steps[0].first] && m.communication(n).Transfers == nil
			p2p = p2p && m.communication(n).Transfers != nil
		}
	}
	advice := "let all these ranks run the operations in one order, for example that of the lowest rank, on one stream or with a dependency between them"
	switch {
	case same:
		code = "E1"
		advice = "the members of a group must submit its operations in one order: number and order them alike on all ranks"
	case p2p:
		advice = "join the sends and receives that these ranks exchange into one batch, or let one side receive before it sends"
	case len(kinds) > 1:
		advice += "; a library can't go on while its rank waits in another one"
	}
	stuckTasks, stuckRanks := m.stuck(g, blocked)
	found.add(code, "circle", func() Finding {
		what := "wait for each other in a circle"
		if same {
			what = "are submitted in different orders"
		}
		f := m.finding(tasks, fmt.Sprintf("%s %s; %d tasks of %s never run",
			countOf(len(steps), "operation"), what, stuckTasks, ranksText(stuckRanks)), advice)
		for _, s := range steps {
			_, rank := m.task(s.first)
			f.Cycle = append(f.Cycle, Step{Rank: rank, First: m.operation(s.first), Then: m.operation(s.then), Why: s.why})
		}
		f.Shortest = c.shortest
		return f
	})
	return happened
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// stuck counts the tasks that never end, and lists their ranks.
func (m *model) stuck(g *graph, blocked []int32) (tasks int, ranks []int32) {
	for p, program := range m.w.Programs {
		before := tasks
		for i := range program.Tasks {
			if blocked[m.base[p]+int32(i)] > 0 {
				tasks++
			}
		}
		if tasks > before {
			ranks = append(ranks, program.Rank)
		}
	}
	return tasks, ranks
}

// step is two tasks of one rank, the second of which must wait for the first.
type step struct {
	first, then int32
	why         string
}

// steps reads a circle as pairs of communications of one rank each. The circle
// begins with an operation.
func (g *graph) steps(vertices []int32) []step {
	start := slices.IndexFunc(vertices, g.isOperation)
	vertices = append(slices.Clone(vertices[start:]), vertices[:start]...)
	vertices = append(vertices, vertices[0])
	var list []step
	for i := 1; i < len(vertices); {
		var between []int32
		for !g.isOperation(vertices[i]) {
			between = append(between, vertices[i])
			i++
		}
		then := g.into(between[len(between)-1], vertices[i])
		list = append(list, step{between[0], then, g.why(between, then)})
		i++
	}
	lowest := 0
	for i := range list { // tasks are numbered by rank
		if list[i].first < list[lowest].first {
			lowest = i
		}
	}
	return append(list[lowest:], list[:lowest]...)
}

// into is the task behind task n whose beginning is v.
func (g *graph) into(n, v int32) int32 {
	for _, to := range append([]int32{g.nextInStream[n], g.nextTurn[n]}, g.dependents.of(n)...) {
		if to >= 0 && g.entry[to] == v {
			return to
		}
	}
	return n
}

// why says what makes a task wait for the first of those before it.
func (g *graph) why(before []int32, then int32) string {
	last, _ := g.m.task(then)
	p := g.m.programOf(then)
	oneStream := true
	var ids []string
	for _, n := range before {
		t, _ := g.m.task(n)
		oneStream = oneStream && t.Stream == last.Stream
		ids = append(ids, fmt.Sprint(t.Id))
	}
	switch {
	case oneStream:
		return fmt.Sprintf("both are on stream %q", g.m.w.Programs[p].Streams[last.Stream].GetName())
	case len(before) == 1 && g.nextTurn[before[0]] == then:
		return "the collectives of a group on one library take turns"
	case len(before) == 1:
		return fmt.Sprintf("it depends on task %s", ids[0])
	}
	if len(ids) > maxIDs {
		ids = append(append(ids[:maxIDs/2:maxIDs/2], "..."), ids[len(ids)-maxIDs/2:]...)
	}
	return "by way of tasks " + strings.Join(ids, ", ")
}

// maxIDs bounds the tasks that a reason lists.
const maxIDs = 8
