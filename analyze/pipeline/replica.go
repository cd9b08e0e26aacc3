package pipeline

import (
	"cmp"
	"maps"
	"slices"

	"mixdown/ingest/diagnostic"
)

// replicas tells which ranks make a pipeline together: those that exchange
// messages; where the trace does not name peers, those of a process group that
// holds every stage once; where only one rank has each stage, all.
func (f *finding) replicas(ran map[int][][][]work) []*members {
	ranks := slices.Sorted(maps.Keys(ran))
	g := &grouping{stages: map[int][]int{}, of: map[int]int{}}
	for _, r := range ranks {
		g.stages[r] = ofStages(ran[r])
		g.of[r] = r
		g.all = max(g.all, slices.Max(g.stages[r])+1, f.views[r].neighbour()+1)
	}
	index := map[int]int{} // global rank -> index, of the ranks with tasks
	for _, r := range ranks {
		index[f.run.Ranks[r].Rank] = r
	}
	for _, r := range ranks {
		for _, p := range f.views[r].parts {
			if to, ok := index[p.peer]; ok && p.peer != Unknown {
				g.join(r, to)
			}
		}
	}
	g.byProcessGroup(f, index)
	// With ranks missing, those left could be of different replicas.
	if rest := g.incomplete(ranks); len(f.run.Missing()) == 0 && g.disjoint(rest) {
		for _, r := range rest {
			g.join(rest[0], r)
		}
	}
	var list []*members
	for _, r := range ranks {
		if g.of[r] != r {
			continue
		}
		if m := g.members(f, r, ranks); m != nil {
			list = append(list, m)
		}
	}
	return list
}

// grouping joins ranks; each part is named by its lowest.
type grouping struct {
	stages map[int][]int // by rank index
	all    int           // stages of a pipeline
	of     map[int]int
}

func (g *grouping) join(a, b int) {
	if g.of[a] == g.of[b] {
		return
	}
	to, from := min(g.of[a], g.of[b]), max(g.of[a], g.of[b])
	for r, part := range g.of {
		if part == from {
			g.of[r] = to
		}
	}
}

// disjoint says whether no two of the ranks hold the same stage.
func (g *grouping) disjoint(ranks []int) bool {
	held := map[int]bool{}
	for _, r := range ranks {
		for _, s := range g.stages[r] {
			if held[s] {
				return false
			}
			held[s] = true
		}
	}
	return true
}

// whole says whether the ranks hold all stages.
func (g *grouping) whole(ranks []int) bool {
	n := 0
	for _, r := range ranks {
		n += len(g.stages[r])
	}
	return n == g.all && g.disjoint(ranks)
}

func (g *grouping) part(name int, ranks []int) []int {
	var list []int
	for _, r := range ranks {
		if g.of[r] == name {
			list = append(list, r)
		}
	}
	return list
}

func (g *grouping) incomplete(ranks []int) []int {
	var rest []int
	for _, r := range ranks {
		if !g.whole(g.part(g.of[r], ranks)) {
			rest = append(rest, r)
		}
	}
	return rest
}

// byProcessGroup joins the ranks of groups that hold every stage once.
func (g *grouping) byProcessGroup(f *finding, index map[int]int) {
	for _, r := range g.incomplete(slices.Sorted(maps.Keys(g.stages))) {
		for _, group := range f.run.Ranks[r].Distributed.Groups {
			var inside []int
			for _, rank := range group.Ranks {
				if i, ok := index[rank]; ok {
					inside = append(inside, i)
				}
			}
			if len(inside) > 1 && g.whole(inside) {
				for _, i := range inside {
					g.join(inside[0], i)
				}
			}
		}
	}
}

// members makes a pipeline of a part, places in the order of the lowest stages.
func (g *grouping) members(f *finding, name int, all []int) *members {
	ranks := g.part(name, all)
	first := f.run.Ranks[ranks[0]].Rank
	if !g.disjoint(ranks) {
		f.res.Diagnostics.Addf(CodeAmbiguous, first, diagnostic.NoOffset,
			"%d ranks hold the same stages and nothing tells which of them make one pipeline", len(ranks))
		return nil
	}
	slices.SortStableFunc(ranks, func(a, b int) int { return cmp.Compare(g.stages[a][0], g.stages[b][0]) })
	m := &members{ranks: ranks, stagePlace: make([]int, g.all), evidence: evidence(f, ranks)}
	missing := 0
	for s := range m.stagePlace {
		m.stagePlace[s] = Unknown
		for place, r := range ranks {
			if slices.Contains(g.stages[r], s) {
				m.stagePlace[s] = place
			}
		}
		if m.stagePlace[s] == Unknown {
			missing++
		}
	}
	if missing == 0 && len(ranks) == 1 {
		return nil // it hands nothing on
	}
	if missing > 0 {
		f.res.Diagnostics.Addf(CodeMissing, first, diagnostic.NoOffset, "%d of the %d stages of its pipeline are on ranks that were not read", missing, g.all)
	}
	return m
}

// neighbour is the last stage that labels of messages imply: the one after a stage
// that sends activations, which may be on a rank that was not read.
func (v *view) neighbour() int {
	last := Unknown
	for i := range v.labels {
		if a := v.labels[i].actions[0]; a.phase == Forward && a.kind == sending {
			last = max(last, a.stage+1)
		}
	}
	return last
}

// evidence says which labels told.
func evidence(f *finding, ranks []int) []string {
	var list []string
	for _, r := range ranks {
		for i := range f.views[r].labels {
			text := `labels "PP:..."`
			if f.views[r].labels[i].actions[0].stage == Unknown {
				text = `labels "Forward ...", and who sends to whom`
			}
			if !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}
