package fold

import (
	"cmp"
	"slices"

	"mixdown/replay/plan/planpb"
)

// unit is what is kept whole or left out: ranks that exchange messages, directly or
// through others.
type unit struct {
	programs []int // in rank order
	sign     uint64
	work     int64 // ns of spans, of the rank with most
}

// units finds the units of a workload, in the order of their first program.
func units(w *planpb.Workload) []unit {
	index := map[int32]int{}
	for i, p := range w.Programs {
		index[p.Rank] = i
	}
	root := make([]int, len(w.Programs))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for i, p := range w.Programs {
		for _, t := range p.Tasks {
			for _, tr := range t.GetCommunication().GetTransfers() {
				if j, ok := index[tr.Peer]; ok {
					a, b := find(i), find(j)
					root[max(a, b)] = min(a, b)
				}
			}
		}
	}
	at := map[int]int{}
	var list []unit
	for i := range w.Programs {
		r := find(i)
		n, ok := at[r]
		if !ok {
			n = len(list)
			at[r] = n
			list = append(list, unit{})
		}
		list[n].programs = append(list[n].programs, i)
	}
	for n := range list {
		u := &list[n]
		slices.SortFunc(u.programs, func(a, b int) int { return cmp.Compare(w.Programs[a].Rank, w.Programs[b].Rank) })
		position := map[int32]int{}
		for k, i := range u.programs {
			position[w.Programs[i].Rank] = k
		}
		h := newHash()
		for _, i := range u.programs {
			h.program(w, w.Programs[i], position)
			u.work = max(u.work, work(w.Programs[i]))
		}
		u.sign = h.sum
	}
	return list
}

// work is the time that a rank computes or launches, ns.
func work(p *planpb.Program) int64 {
	var ns int64
	for _, t := range p.Tasks {
		ns += t.GetSpan().GetDurationNs()
	}
	return ns
}

// hash is FNV-1a over numbers: 64 bits, so that two of a million unlike units are
// taken for alike once in ten million workloads.
type hash struct{ sum uint64 }

func newHash() *hash { return &hash{14695981039346656037} }

func (h *hash) add(numbers ...int64) {
	for _, n := range numbers {
		for range 8 {
			h.sum = (h.sum ^ uint64(n&255)) * 1099511628211
			n >>= 8
		}
	}
}

// program adds what a rank communicates: groups by when it first uses them and
// their size, streams by when they first communicate, peers by their place in the
// unit. Times are left out, and the splits of uneven operations: so are the streams
// of hosts and of computation, as threads of a rank may happen not to overlap where
// those of another do.
func (h *hash) program(w *planpb.Workload, p *planpb.Program, position map[int32]int) {
	groups, streams := map[int32]int64{}, map[int32]int64{}
	for _, t := range p.Tasks {
		c := t.GetCommunication()
		if c == nil {
			continue
		}
		g, ok := groups[c.Group]
		if !ok {
			g = int64(len(groups))
			groups[c.Group] = g
			h.add(int64(len(w.Groups[c.Group].Ranks)))
		}
		stream, ok := streams[t.Stream]
		if !ok {
			stream = int64(len(streams))
			streams[t.Stream] = stream
		}
		h.add(g, int64(c.Op), int64(c.Dtype), stream, int64(len(c.Transfers)))
		if !uneven(c) {
			h.add(c.InCount, c.OutCount)
		}
		for _, tr := range c.Transfers {
			send := int64(0)
			if tr.Send {
				send = 1
			}
			place, ok := position[tr.Peer]
			if !ok {
				place = -1
			}
			h.add(send, tr.Count, int64(place))
		}
	}
}

// uneven says whether the sizes of an operation may differ from rank to rank.
func uneven(c *planpb.Communication) bool {
	switch c.Op {
	case planpb.Op_OP_ALL_TO_ALLV, planpb.Op_OP_ALL_GATHERV, planpb.Op_OP_REDUCE_SCATTERV, planpb.Op_OP_GATHERV, planpb.Op_OP_SCATTERV:
		return true
	}
	return false
}

// Alike sorts the programs of a workload into sets of those that communicate alike,
// by index, each in rank order. Ranks of a unit stand in different sets unless
// nothing tells them apart.
func Alike(w *planpb.Workload) [][]int {
	list := units(w)
	type role struct {
		sign  uint64
		place int
	}
	at := map[role]int{}
	var sets [][]int
	for _, u := range list {
		for k, i := range u.programs {
			r := role{u.sign, k}
			n, ok := at[r]
			if !ok {
				n = len(sets)
				at[r] = n
				sets = append(sets, nil)
			}
			sets[n] = append(sets[n], i)
		}
	}
	return sets
}
