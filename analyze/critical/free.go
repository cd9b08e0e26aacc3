package critical

import (
	"cmp"
	"slices"

	"mixdown/ingest/comm"
)

// setGains evaluates the graph without the transfers of each kind of
// communication.
//
// What has no transfer on the critical path gains nothing: the path stays as
// long. So only what is on the path is evaluated, and a run of thousands of
// groups costs no more than its path has.
func (g *Graph) setGains(r *Result, path []stretch) {
	onPath := make([]int64, len(g.classes))
	var all int64
	for _, st := range path {
		if g.kind[st.node] == NodeTransfer {
			onPath[g.class[st.node]] += g.own[st.node]
			all += g.own[st.node]
		}
	}
	everything := make([]bool, len(g.classes))
	byOp, byGroup := map[comm.Op][]bool{}, map[groupOp][]bool{}
	for i, c := range g.classes {
		everything[i] = true
		mark(byOp, c.Op, i, len(g.classes))
		mark(byGroup, groupOp{c.Group, c.Op}, i, len(g.classes))
	}
	r.Free = g.gain(r, everything, all)
	r.FreeByOp, r.FreeByGroup = []Gain{}, []Gain{}
	for op, free := range byOp {
		gain := g.gain(r, free, total(onPath, free))
		gain.Op = &op
		r.FreeByOp = append(r.FreeByOp, gain)
	}
	for key, free := range byGroup {
		gain := g.gain(r, free, total(onPath, free))
		gain.Group, gain.Op = &key.group, &key.op
		r.FreeByGroup = append(r.FreeByGroup, gain)
	}
	slices.SortFunc(r.FreeByOp, func(a, b Gain) int {
		return cmp.Or(cmp.Compare(b.GainNS, a.GainNS), cmp.Compare(*a.Op, *b.Op))
	})
	slices.SortFunc(r.FreeByGroup, func(a, b Gain) int {
		return cmp.Or(cmp.Compare(b.GainNS, a.GainNS), cmp.Compare(*a.Group, *b.Group), cmp.Compare(*a.Op, *b.Op))
	})
}

// mark sets class i in the set that belongs to key.
func mark[K comparable](sets map[K][]bool, key K, i, n int) {
	if sets[key] == nil {
		sets[key] = make([]bool, n)
	}
	sets[key][i] = true
}

func total(onPath []int64, free []bool) int64 {
	var sum int64
	for i, ns := range onPath {
		if free[i] {
			sum += ns
		}
	}
	return sum
}

// gain evaluates the graph with the transfers of the classes in free at 0.
func (g *Graph) gain(r *Result, free []bool, onPath int64) Gain {
	gain := Gain{PathTransfer: onPath, StepNS: r.StepNS}
	if onPath > 0 {
		end := g.Evaluate(func(n int) int64 {
			if g.kind[n] == NodeTransfer && free[g.class[n]] {
				return 0
			}
			return g.own[n]
		})
		gain.StepNS = end[last(end)]
	}
	gain.GainNS = r.StepNS - gain.StepNS
	if gain.StepNS > 0 {
		speedup := float64(r.StepNS) / float64(gain.StepNS)
		gain.Speedup = &speedup
	}
	return gain
}
