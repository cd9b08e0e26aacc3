package sim

import (
	"slices"

	"mixdown/analyze/pipeline"
	"mixdown/ingest/comm"
)

// takeLayers takes which part of a stage's time each of its layers takes. A phase
// that does not show them divides like the forward.
func (m *Model) takeLayers(p *pipeline.Pipeline) {
	m.layers = 1
	if p.Layers != nil {
		m.layers = p.Layers.Count
	}
	for k := range m.layerShare {
		m.layerShare[k] = slices.Repeat([]float64{1 / float64(m.layers)}, m.Stages*m.layers)
		if p.Layers == nil {
			continue
		}
		for stage := range m.Stages {
			share := p.Layers.Share[k][stage]
			if share == nil {
				share = p.Layers.Share[pipeline.Forward][stage]
			}
			copy(m.layerShare[k][stage*m.layers:], share)
		}
	}
}

// gapSums adds up the gaps of a place, as gapTable has them.
type gapSums [5][4][2]struct{ ns, n int64 }

// takeGaps takes the mean time between the moment when a task had all it needed
// and its start, for each place and kind, once for each way to send.
func (m *Model) takeGaps(p *pipeline.Pipeline) {
	for mode := range Sends(sends) {
		sums := make([]gapSums, m.Places)
		for _, i := range m.Steps {
			s := &p.Steps[i]
			w := newWaits(p, s, mode)
			for place, tasks := range s.Tasks {
				for n := 1; n < len(tasks); n++ {
					t := &tasks[n]
					ready, waited := tasks[n-1].End, 0
					if at := m.arrival(p, place, t, w.ends); at > ready {
						ready, waited = at, 1
					}
					held := t.Held
					if at := w.taken(place, n); at > 0 {
						ready, held = max(ready, at), 0
					}
					entry := &sums[place][tasks[n-1].Phase][t.Phase][waited]
					entry.ns += max(t.Start-ready-held, 0)
					entry.n++
				}
			}
		}
		m.gaps[mode] = make([]gapTable, m.Places)
		for place := range sums {
			m.gaps[mode][place] = sums[place].means()
		}
	}
}

// waits knows when the messages of a recorded step were sent and asked for, by
// the way that its program sends.
type waits struct {
	p     *pipeline.Pipeline
	s     *pipeline.Step
	mode  Sends
	ends  map[key]int64
	asked map[key]int64 // when the place of a task was done with the one before it
}

func newWaits(p *pipeline.Pipeline, s *pipeline.Step, mode Sends) *waits {
	w := &waits{p: p, s: s, mode: mode, ends: taskEnds(s), asked: map[key]int64{}}
	for _, tasks := range s.Tasks {
		for n := 1; n < len(tasks); n++ {
			w.asked[keyOf(&tasks[n])] = tasks[n-1].End
		}
	}
	return w
}

// taken is when what was sent before the n-th task of a place was asked for, 0
// where that holds nobody, or where the clocks of the places don't compare.
func (w *waits) taken(place, n int) int64 {
	if w.mode == Running || !w.s.Comparable {
		return 0
	}
	return w.asked[w.next(place, &w.s.Tasks[place][n-1])]
}

// next is the task that needs what another one makes, the zero key if none on
// another place does, or if it is always asked for.
func (w *waits) next(place int, t *pipeline.Task) key {
	k := keyOf(t)
	switch k.phase {
	case pipeline.Forward:
		k.stage++
	case pipeline.Backward:
		k.stage--
	default:
		return key{stage: pipeline.Unknown}
	}
	if k.stage < 0 || k.stage >= len(w.p.StagePlace) {
		return key{stage: pipeline.Unknown}
	}
	to := w.p.StagePlace[k.stage]
	if to == place || around(k.phase == pipeline.Forward, int32(place), int32(to)) {
		return key{stage: pipeline.Unknown}
	}
	return k
}

// means makes a table of the sums. What a place did not do in the trace is taken
// from what comes next to it: the same kind after any other, any gap before the
// same kind, any with as much waiting, any at all.
func (g *gapSums) means() gapTable {
	var table gapTable
	for b := range g {
		for k := range g[b] {
			for w := range g[b][k] {
				for _, match := range []func(b2, k2, w2 int) bool{
					func(b2, k2, w2 int) bool { return b2 == b && k2 == k && w2 == w },
					func(_, k2, w2 int) bool { return k2 == k && w2 == w },
					func(_, k2, _ int) bool { return k2 == k },
					func(_, _, w2 int) bool { return w2 == w },
					func(_, _, _ int) bool { return true },
				} {
					if ns, ok := g.mean(match); ok {
						table[b][k][w] = ns
						break
					}
				}
			}
		}
	}
	return table
}

func (g *gapSums) mean(match func(b, k, w int) bool) (int64, bool) {
	var ns, n int64
	for b := range g {
		for k := range g[b] {
			for w, e := range g[b][k] {
				if match(b, k, w) {
					ns += e.ns
					n += e.n
				}
			}
		}
	}
	if n == 0 {
		return 0, false
	}
	return ns / n, true
}

// arrival is when what a task needs of another place was there, 0 when it needs
// nothing. Where the trace does not say, it is when the other stage was done
// and a hop had passed, if the clocks of the places agree.
func (m *Model) arrival(p *pipeline.Pipeline, place int, t *pipeline.Task, ends map[key]int64) int64 {
	if t.Arrived != pipeline.Unknown {
		return t.Arrived
	}
	need := key{pipeline.Forward, t.Stage - 1, t.Microbatch}
	switch t.Phase {
	case pipeline.Backward, pipeline.InputGradient:
		need = key{pipeline.Backward, t.Stage + 1, t.Microbatch}
	case pipeline.WeightGradient:
		return 0
	}
	made, ok := ends[need]
	if !ok {
		return 0
	}
	from := p.StagePlace[need.stage]
	if from == place {
		return made
	}
	hop := m.edge(from, place, need.phase == pipeline.Forward)
	return made + hop.Occupied + hop.Latency
}

// edge is the time of a message between two places.
func (m *Model) edge(from, to int, activation bool) Hop {
	h := m.recordedHop(from, to, activation)
	for _, change := range m.changes {
		h = change(from, to, activation, h)
	}
	return h
}

// recordedHop is the time of a message between two places in the trace.
func (m *Model) recordedHop(from, to int, activation bool) Hop {
	k := direction(activation)
	if hops, ok := m.hops[[2]int{from, to}]; ok && hops[k] != (Hop{}) {
		return hops[k]
	}
	if m.hop[k] != (Hop{}) {
		return m.hop[k]
	}
	return m.hop[1-k]
}

// takeEnds takes what lies before the first task and after the last.
func (m *Model) takeEnds(p *pipeline.Pipeline) {
	m.head = make([]int64, m.Places)
	m.reduce = make([]float64, m.Stages)
	n := int64(len(m.Steps))
	for _, i := range m.Steps {
		s := &p.Steps[i]
		start, end := slices.Min(s.Start), slices.Max(s.End)
		first, last := s.Tasks[0][0].Start, int64(0)
		for place, tasks := range s.Tasks {
			first = min(first, tasks[0].Start)
			last = max(last, tasks[len(tasks)-1].End)
			head := s.Start[place] - start
			if tasks[0].Stage == 0 && tasks[0].Phase == pipeline.Forward {
				head = tasks[0].Start - start
			}
			m.head[place] += max(head, 0) / n
		}
		end = max(end, last)
		m.Measured += (end - start) / n
		m.Makespan += (last - first) / n
		m.tail += (end - last) / n
		m.takeReductions(p, s, last, n)
	}
}

// takeReductions takes the data-parallel communication of a step, whose last
// task ended at `last`. Where nothing tells whose gradient was reduced, the stages
// of the place share it.
func (m *Model) takeReductions(p *pipeline.Pipeline, s *pipeline.Step, last, n int64) {
	held := make([][]int, m.Places)
	for stage, place := range p.StagePlace {
		held[place] = append(held[place], stage)
	}
	inTail := make([]int64, m.Places)
	for i := range s.Reductions {
		r := &s.Reductions[i]
		if !r.DataParallel {
			continue
		}
		took := float64(r.End-r.Start) / float64(n)
		switch r.Op { // as an all_reduce of the same gradient
		case comm.ReduceScatter, comm.ReduceScatterV:
			took *= 2
		case comm.AllGather, comm.AllGatherV: // goes with a reduce_scatter
			took = 0
		}
		if r.Stage != pipeline.Unknown {
			m.reduce[r.Stage] += took
		} else {
			for _, stage := range held[r.Place] {
				m.reduce[stage] += took / float64(len(held[r.Place]))
			}
		}
		inTail[r.Place] += max(r.End-max(r.Start, last), 0)
	}
	m.reduceInTail += slices.Max(inTail) / n
}

// Reduces says whether the trace shows data-parallel communication.
func (m *Model) Reduces() bool {
	return slices.ContainsFunc(m.reduce, func(ns float64) bool { return ns > 0 })
}

// SetReduction says what an all_reduce of the gradients of all stages of a place
// takes, in ns, where the trace does not show it or another network is meant. The
// recorded order is then taken to run it after its tasks.
func (m *Model) SetReduction(ns int64) {
	m.tail += ns - m.reduceInTail
	m.reduceInTail = ns
	held := make([]int, m.Places)
	for _, place := range m.stagePlace {
		held[place]++
	}
	for stage, place := range m.stagePlace {
		m.reduce[stage] = float64(ns) / float64(held[place])
	}
}
