package exports

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
	"mixdown/replay/tune"
)

// Decision is a contender for a range of sizes.
type Decision struct {
	tune.Contender
	Op           comm.Op
	Ranks, Nodes int   // 0: any
	Min, Max     int64 // bytes, both included; Max is math.MaxInt64 without end
	// Measured are the smallest and the largest size measured in the whole question,
	// 0 and 0 when nothing was.
	Measured [2]int64
}

// FromTable makes decisions from the comparisons of those contenders that keep
// accepts. Where element types of several kinds were measured, those of the kind
// with the most sizes count.
func FromTable(t *tune.Table, keep func(tune.Contender) bool) ([]Decision, []error) {
	type place struct {
		op           comm.Op
		ranks, nodes int
	}
	best := map[place]tune.Comparison{}
	var warnings []error
	for _, c := range tune.Compare(t, keep) {
		if c.Streams > 1 {
			continue
		}
		p := place{c.Op, c.Ranks, c.Nodes}
		have, ok := best[p]
		// What was measured in a row covers sizes beyond those of one job's step.
		if ok && c.InStep {
			continue
		}
		if ok {
			warnings = append(warnings, fmt.Errorf("%s on %d ranks was measured with several kinds of elements or in several memories: those with the most sizes count", c.Op, c.Ranks))
		}
		if !ok || len(c.Places) > len(have.Places) {
			best[p] = c
		}
	}
	var list []Decision
	for p, c := range best {
		for _, x := range c.Choices() {
			list = append(list, Decision{
				Contender: x.Contender, Op: p.op, Ranks: p.ranks, Nodes: p.nodes, Min: x.Min, Max: x.Max,
				Measured: [2]int64{c.Places[0].Bytes, c.Places[len(c.Places)-1].Bytes},
			})
		}
	}
	sortDecisions(list)
	return list, warnings
}

// FromMix makes decisions from the rules of a mix, for the operations that are
// asked for. Rules about groups can't be expressed.
func FromMix(m mix.Mix, ops []comm.Op) ([]Decision, error) {
	if m.IsTraced() {
		return nil, fmt.Errorf("%w: the mix %s says nothing without a trace", ErrNothing, mix.Traced)
	}
	var list []Decision
	for _, r := range m.Rules {
		if r.Group != "" {
			return nil, fmt.Errorf("%w: the rule for group %q: no library knows groups by name", ErrInexpressible, r.Group)
		}
	}
	for _, op := range ops {
		cuts := []int64{0}
		for _, r := range m.Rules {
			if r.Op != "" && r.Op != op {
				continue
			}
			cuts = append(cuts, r.Min)
			if r.Max < math.MaxInt64 {
				cuts = append(cuts, r.Max+1)
			}
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		for i, from := range cuts {
			to := int64(math.MaxInt64)
			if i+1 < len(cuts) {
				to = cuts[i+1] - 1
			}
			name, ok := m.Backend(op, from, "", "")
			if !ok {
				continue
			}
			d := Decision{Contender: tune.ParseContender(name), Op: op, Min: from, Max: to}
			if n := len(list); n > 0 && list[n-1].Op == op && list[n-1].Contender == d.Contender && list[n-1].Max == from-1 {
				list[n-1].Max = to
				continue
			}
			list = append(list, d)
		}
	}
	sortDecisions(list)
	return list, nil
}

func sortDecisions(list []Decision) {
	slices.SortFunc(list, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Min, b.Min))
	})
}

// of keeps the decisions for one backend.
func of(list []Decision, backend string) []Decision {
	return slices.DeleteFunc(slices.Clone(list), func(d Decision) bool { return d.Backend != backend })
}

// group is the decisions on one operation in groups of one size, by size.
type group struct {
	op           comm.Op
	ranks, nodes int
	list         []Decision
}

// groups cuts sorted decisions into groups.
func groups(list []Decision) []group {
	var out []group
	for _, d := range list {
		if n := len(out); n == 0 || out[n-1].op != d.Op || out[n-1].ranks != d.Ranks || out[n-1].nodes != d.Nodes {
			out = append(out, group{d.Op, d.Ranks, d.Nodes, nil})
		}
		g := &out[len(out)-1]
		g.list = append(g.list, d)
	}
	return out
}
