package sim

import (
	"slices"

	"mixdown/replay/plan/planpb"
)

// class is operations that are expected to take as long as each other.
type class struct {
	op      planpb.Op
	dtype   planpb.DType
	in, out int64
	ranks   int
}

func classOf(m *Meeting) class {
	c := m.Communication
	k := class{op: c.Op, dtype: c.Dtype, in: c.InCount, out: c.OutCount, ranks: m.Ranks}
	if m.Transfer {
		k.op, k.in, k.out = planpb.Op_OP_SEND, m.Count, m.Count
	}
	return k
}

// timings are what operations of a class took in a step, ns: transfers, and what
// was their members' own before they arrived and after the others left.
type timings struct{ transfers, before, after []int64 }

func (g *Graph) timings() map[class]*timings {
	all := map[class]*timings{}
	for i := range g.meetings {
		m := &g.meetings[i]
		if !m.Known {
			continue
		}
		k := classOf(&m.Meeting)
		t := all[k]
		if t == nil {
			t = &timings{}
			all[k] = t
		}
		t.transfers = append(t.transfers, m.Traced)
		for _, x := range g.members[m.first : m.first+m.count] {
			t.before = append(t.before, g.own[x.task])
			if x.need == everyone {
				t.after = append(t.after, x.own)
			}
		}
	}
	return all
}

// CrossValidate plays each of several steps of a run with what operations of its
// kind took in the other steps, in the mean, and gives for each step the simulated
// over the traced length. Only computation and launches are the step's own, so this
// is how far off a prediction may be whose operations are known from elsewhere.
// It is nil for fewer than two steps.
func CrossValidate(steps []*Graph) ([]float64, error) {
	if len(steps) < 2 {
		return nil, nil
	}
	took := make([]map[class]*timings, len(steps))
	for i, g := range steps {
		took[i] = g.timings()
	}
	var ratios []float64
	for i, g := range steps {
		others := map[class]*timings{}
		for j, of := range took {
			if j == i {
				continue
			}
			for k, t := range of {
				have := others[k]
				if have == nil {
					have = &timings{}
					others[k] = have
				}
				have.transfers = append(have.transfers, t.transfers...)
				have.before = append(have.before, t.before...)
				have.after = append(have.after, t.after...)
			}
		}
		length, err := g.playTypical(others)
		if err != nil {
			return nil, err
		}
		ratios = append(ratios, ratio(length, g.w.TraceStepNs))
	}
	return ratios, nil
}

// playTypical plays a step with the means of other steps; operations that those do
// not have keep their times.
func (g *Graph) playTypical(others map[class]*timings) (int64, error) {
	typical := *g
	typical.own, typical.members = slices.Clone(g.own), slices.Clone(g.members)
	cost := map[class]int64{}
	for k, t := range others {
		cost[k] = mean(t.transfers)
	}
	before, after := map[class]int64{}, map[class]int64{}
	for k, t := range others {
		before[k], after[k] = mean(t.before), mean(t.after)
	}
	for i := range g.meetings {
		m := &g.meetings[i]
		k := classOf(&m.Meeting)
		if _, ok := cost[k]; !ok || !m.Known {
			continue
		}
		for x := m.first; x < m.first+m.count; x++ {
			typical.own[g.members[x].task] = before[k]
			if g.members[x].need == everyone {
				typical.members[x].own = after[k]
			}
		}
	}
	run, err := typical.Play(func(m Meeting) int64 {
		if ns, ok := cost[classOf(&m)]; ok {
			return ns
		}
		return m.Traced
	})
	if err != nil {
		return 0, err
	}
	return run.Step, nil
}

func mean(list []int64) int64 {
	if len(list) == 0 {
		return 0
	}
	var sum int64
	for _, n := range list {
		sum += n
	}
	return sum / int64(len(list))
}
