package mix_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// TestCircleIsShortest compares the circle with the shortest that a search over
// all simple ways finds.
func TestCircleIsShortest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	compared := 0
	for i := range 4000 {
		p, texts := randomPlan(t, rng, []string{"gloo", "openmpi"}, 1+i%2, true, false)
		r := mix.Inspect(p, mix.CheckOptions{})
		if !r.Has("E3") {
			continue
		}
		compared++
		f := r.Errors[slices.IndexFunc(r.Errors, func(f mix.Finding) bool { return f.Code == "E3" })]
		if want := shortestWait(p); len(f.Cycle) != want || !f.Shortest {
			t.Fatalf("%v: a circle of %d operations, the shortest has %d\n%v", texts, len(f.Cycle), want, f.Cycle)
		}
		for k, s := range f.Cycle {
			if s.First.Rank != s.Rank || s.Then.Rank != s.Rank {
				t.Fatalf("%v: step %d is on two ranks: %v", texts, k, s)
			}
		}
	}
	if compared < 500 {
		t.Errorf("%d circles compared", compared)
	}
}

// shortestWait is the number of operations in the shortest circle, by Floyd and
// Warshall over operations: operation B waits for A when some rank must end A
// before it begins B.
func shortestWait(p *planpb.Plan) int {
	type task struct{ r, i int }
	id := map[task]int{} // of the operation; point-to-point tasks have their own
	collective := map[string]int{}
	var tasks []task
	n := 0
	for r, program := range p.Workload.Programs {
		for i, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil {
				continue
			}
			k := task{r, i}
			tasks = append(tasks, k)
			if plan.Op(c).IsP2P() {
				id[k] = n
				n++
				continue
			}
			name := fmt.Sprint(c.Group, c.Seq)
			if _, ok := collective[name]; !ok {
				collective[name] = n
				n++
			}
			id[k] = collective[name]
		}
	}
	const far = 1 << 20
	dist := make([][]int, n)
	for a := range dist {
		dist[a] = slices.Repeat([]int{far}, n)
	}
	for _, a := range tasks {
		for _, b := range tasks {
			if a.r == b.r && precedes(p.Workload.Programs[a.r], int32(a.i), int32(b.i)) {
				// b begins after a ended; a ends after its other sides began.
				for _, o := range append(otherSides(p, a.r, a.i), [2]int{a.r, a.i}) {
					dist[id[task{o[0], o[1]}]][id[b]] = 1
				}
			}
		}
	}
	for k := range n {
		for a := range n {
			for b := range n {
				dist[a][b] = min(dist[a][b], dist[a][k]+dist[k][b])
			}
		}
	}
	best := far
	for a := range n {
		best = min(best, dist[a][a])
	}
	return best
}

func otherSides(p *planpb.Plan, r, i int) [][2]int {
	var list [][2]int
	for _, tr := range p.Workload.Programs[r].Tasks[i].GetCommunication().Transfers {
		for j, t := range p.Workload.Programs[tr.Peer].Tasks {
			for _, x := range t.GetCommunication().GetTransfers() {
				if int(x.Peer) == r && x.Send != tr.Send && x.Match == tr.Match {
					list = append(list, [2]int{int(tr.Peer), j})
				}
			}
		}
	}
	return list
}

// precedes says whether task a must end before task b begins, without another
// communication between them: by stream, dependency or turn.
func precedes(program *planpb.Program, a, b int32) bool {
	seen := map[int32]bool{}
	var reach func(x int32) bool
	reach = func(x int32) bool {
		for _, t := range program.Tasks {
			if seen[t.Id] || !directly(program, x, t) {
				continue
			}
			if t.Id == b {
				return true
			}
			if t.GetCommunication() == nil {
				seen[t.Id] = true
				if reach(t.Id) {
					return true
				}
			}
		}
		return false
	}
	return reach(a)
}

func directly(program *planpb.Program, x int32, t *planpb.Task) bool {
	from := program.Tasks[x]
	if slices.Contains(t.Deps, x) {
		return true
	}
	if from.Stream == t.Stream && from.Id < t.Id {
		for k := x + 1; k < t.Id; k++ {
			if program.Tasks[k].Stream == t.Stream {
				return false
			}
		}
		return true
	}
	a, b := from.GetCommunication(), t.GetCommunication()
	if a == nil || b == nil || plan.Op(a).IsP2P() || plan.Op(b).IsP2P() || a.Group != b.Group || a.Backend != b.Backend || a.Seq >= b.Seq {
		return false
	}
	for _, o := range program.Tasks {
		if c := o.GetCommunication(); c != nil && !plan.Op(c).IsP2P() && c.Group == a.Group && c.Backend == a.Backend && c.Seq > a.Seq && c.Seq < b.Seq {
			return false
		}
	}
	return true
}
