package plan

import "mixdown/replay/plan/planpb"

// Machines are those of a job whose ranks fill one after the other, as many on each.
// Those of a job of which this is not known are nil.
type Machines struct {
	count  int
	each   int32 // ranks on one
	groups []int // by group: on how many its ranks are
}

// NewMachines are so many machines of a job, nil for less than one. w has all ranks of
// the job's groups, not only some that are played.
func NewMachines(w *planpb.Workload, count int) *Machines {
	if count < 1 {
		return nil
	}
	m := &Machines{count: count, each: int32(perMachine(w.WorldSize, count)), groups: make([]int, len(w.Groups))}
	for i, g := range w.Groups {
		on := map[int32]bool{}
		for _, r := range g.Ranks {
			on[m.at(r)] = true
		}
		m.groups[i] = len(on)
	}
	return m
}

func (m *Machines) at(rank int32) int32 { return rank / m.each }

// Count is how many there are, 0 when not known.
func (m *Machines) Count() int {
	if m == nil {
		return 0
	}
	return m.count
}

// Apart says whether two ranks are on different machines; false when not known.
func (m *Machines) Apart(a, b int32) bool { return m != nil && m.at(a) != m.at(b) }

// Of is on how many machines those who take part in a communication are, 0 when not
// known. rank is whose communication it is.
func (m *Machines) Of(rank int32, c *planpb.Communication) int {
	if m == nil {
		return 0
	}
	if len(c.Transfers) == 0 {
		if g := int(c.Group); g >= 0 && g < len(m.groups) {
			return m.groups[g]
		}
		return 0
	}
	for _, t := range c.Transfers {
		if m.Apart(rank, t.Peer) {
			return 2 // the slowest of a batch is what it takes
		}
	}
	return 1
}

// perMachine is how many ranks lie on one of so many machines.
func perMachine(ranks int32, machines int) int {
	return max(1, (int(ranks)+machines-1)/machines)
}

// MachinesUsed is on how many of so many machines ranks lie that fill one after the
// other, as many on each but the last: of 4 ranks on 3 machines, 2. It is 0 of none.
func MachinesUsed(ranks int32, machines int) int {
	if machines < 1 {
		return 0
	}
	each := perMachine(ranks, machines)
	return (int(ranks) + each - 1) / each
}
