package sim

import (
	"cmp"
	"slices"

	"mixdown/replay/schedule"
)

// mover moves the activations of a place to another memory and back, one after the
// other in each direction.
type mover struct {
	out, in int64              // when each direction is free, ns
	stored  map[[2]int32]int64 // by stage and micro-batch: when it is all there
	since   map[[2]int32]int64 // when the place began to hold it
	before  int64              // start of the task before
	held    []hold
}

// hold is a time in which a place holds the activations of one micro-batch of a
// stage, ns.
type hold struct{ from, to int64 }

func newMovers(places int) []mover {
	list := make([]mover, places)
	for i := range list {
		list[i].stored, list[i].since = map[[2]int32]int64{}, map[[2]int32]int64{}
	}
	return list
}

// fetch is when the activations that tasks need are back, 0 where they need none or
// where none have left.
func (m *mover) fetch(tasks []schedule.Action, costs *Costs) int64 {
	var there int64
	for _, a := range tasks {
		at := [2]int32{a.Stage, a.Microbatch}
		stored, ok := m.stored[at]
		if a.Kind != schedule.Backward && a.Kind != schedule.Input || !ok {
			continue
		}
		if stored > m.before { // it has not left yet: it stays
			m.since[at] = stored
			continue
		}
		begin := max(m.before, m.in)
		m.in = begin + costs.Move.of(a.Stage)
		m.since[at] = begin
		there = max(there, m.in)
	}
	return there
}

// ran tells that tasks ran, as one.
func (m *mover) ran(tasks []schedule.Action, when Moment, costs *Costs) {
	m.before = when.Start
	for _, a := range tasks {
		at := [2]int32{a.Stage, a.Microbatch}
		switch a.Kind {
		case schedule.Forward:
			m.out = max(m.out, when.End) + costs.Move.of(a.Stage)
			m.stored[at] = m.out
			m.held = append(m.held, hold{when.Start, m.out})
		case schedule.Backward, schedule.Weight:
			m.held = append(m.held, hold{m.since[at], when.End})
		}
	}
}

// most is how many are held at once.
func (m *mover) most() int {
	var edges []struct {
		at   int64
		step int
	}
	for _, h := range m.held {
		edges = append(edges, struct {
			at   int64
			step int
		}{h.from, 1}, struct {
			at   int64
			step int
		}{h.to, -1})
	}
	slices.SortFunc(edges, func(a, b struct {
		at   int64
		step int
	}) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step))
	})
	now, most := 0, 0
	for _, e := range edges {
		now += e.step
		most = max(most, now)
	}
	return most
}
