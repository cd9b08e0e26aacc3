package sim

import (
	"slices"

	"mixdown/replay/schedule"
)

// Clone is a copy that may be changed without the model it is made of.
func (m *Model) Clone() *Model {
	c := *m
	for k := range m.task {
		c.task[k] = slices.Clone(m.task[k])
	}
	c.reduce = slices.Clone(m.reduce)
	c.pace = slices.Clone(m.pace)
	c.changes = slices.Clone(m.changes)
	return &c
}

// ChangeHops changes what messages take: the change is given the time as it was
// before, and says the new one. Changes add up.
func (m *Model) ChangeHops(change func(from, to int, activation bool, h Hop) Hop) {
	m.changes = append(m.changes, change)
}

// MessageBytes is the size of the largest message between stages, false where the
// trace does not tell.
func (m *Model) MessageBytes(activation bool) (int64, bool) {
	n := m.bytes[direction(activation)]
	return n, n > 0
}

// ScaleReductions multiplies what reducing gradients over data-parallel ranks, and
// gathering weights from them, takes.
func (m *Model) ScaleReductions(factor float64) {
	for s := range m.reduce {
		m.reduce[s] *= factor
	}
	in := atMost(factor * float64(m.reduceInTail))
	m.tail += in - m.reduceInTail
	m.reduceInTail = in
}

// Reduction is what reducing the whole gradient of a place's stages takes, of the
// place with most, in ns; 0 where the trace shows none.
func (m *Model) Reduction() float64 {
	held := make([]float64, m.Places)
	for stage, place := range m.stagePlace {
		held[place] += m.reduce[stage]
	}
	return slices.Max(held)
}

// Slow makes the tasks of a place take longer by a factor, whichever they are; a
// factor below 1 makes it quicker. Together they make it 1e9 times at most.
func (m *Model) Slow(place int, factor float64) {
	if m.pace == nil {
		m.pace = slices.Repeat([]float64{1}, m.Places)
	}
	m.pace[place] = min(m.pace[place]*factor, 1e9)
}

// Layers is how many layers the model was seen to have, over all stages; as many as
// stages where the trace does not show layers.
func (m *Model) Layers() int { return m.Stages * m.layers }

// LayersKnown says whether the trace shows how the time of a stage divides over its
// layers.
func (m *Model) LayersKnown() bool { return m.layers > 1 }

// LayerTime is the mean time of a layer for one micro-batch, forward and backward,
// in ns.
func (m *Model) LayerTime(layer int) float64 {
	var ns float64
	from := layer / m.layers
	for k := range m.task {
		for mb := range m.Microbatches {
			ns += m.task[k][from*m.Microbatches+mb] * m.layerShare[schedule.Kind(k)][layer] / float64(m.Microbatches)
		}
	}
	return ns
}

// Meetings lists what the ranks of a workload do together, in the order in which the
// first of their members stand in it.
func (g *Graph) Meetings() []Meeting {
	list := make([]Meeting, len(g.meetings))
	for i := range g.meetings {
		list[i] = g.meetings[i].Meeting
	}
	return list
}

// TransferTime is what a collective took in the trace, ns, from when its last member
// came to when the members left, in the median over those that left after that. The
// times are those of its members; where clocks differ it is what the quickest took.
func TransferTime(start, end []int64, clocksDiffer bool) int64 {
	if clocksDiffer {
		least := end[0] - start[0]
		for i := range start {
			least = min(least, end[i]-start[i])
		}
		return least
	}
	_, took, _ := transferTime(start, end)
	return took
}

// transferTime is when the last member came, and how long after that the members
// left, in the lower median and the first of them.
func transferTime(start, end []int64) (last, took, least int64) {
	last = slices.Max(start)
	var list []int64
	for _, at := range end {
		if at >= last {
			list = append(list, at-last)
		}
	}
	if len(list) == 0 { // times that no trace has
		return last, 0, 0
	}
	slices.Sort(list)
	return last, list[(len(list)-1)/2], list[0]
}
