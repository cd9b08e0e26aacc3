package mix

import (
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// sizes are the sizes by which a mix decides, in bytes: the same for everyone who
// takes part, so that all decide alike.
type sizes struct {
	collectives map[plan.MeetingKey]int64
	transfers   map[plan.MeetingKey]int32 // -> number of its set
	sets        *sets
	largest     []int64 // by representative of a set
}

// measure finds the size of every operation: of a collective the most bytes that
// any member contributes or receives; of point-to-point the largest transfer
// among those that batches tie together. A batch has one backend, so both sides
// of all its transfers must come to the same, whatever else they are batched
// with.
func measure(w *planpb.Workload) *sizes {
	s := &sizes{collectives: map[plan.MeetingKey]int64{}, transfers: map[plan.MeetingKey]int32{}}
	var bytes []int64
	var together [][2]int32
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil {
				continue
			}
			if !plan.Op(c).IsP2P() {
				k := plan.CollectiveKey(c)
				s.collectives[k] = max(s.collectives[k], plan.Bytes(c))
				continue
			}
			first := int32(-1)
			for _, tr := range c.Transfers {
				k := plan.TransferKey(program.Rank, c, tr)
				n, ok := s.transfers[k]
				if !ok {
					n = int32(len(bytes))
					s.transfers[k] = n
					bytes = append(bytes, 0)
				}
				bytes[n] = max(bytes[n], tr.Count*plan.DType(c).Size())
				if first >= 0 {
					together = append(together, [2]int32{first, n})
				}
				first = n
			}
		}
	}
	s.sets = newSets(len(bytes))
	for _, pair := range together {
		s.sets.join(pair[0], pair[1])
	}
	s.largest = make([]int64, len(bytes))
	for n, b := range bytes {
		set := s.sets.find(int32(n))
		s.largest[set] = max(s.largest[set], b)
	}
	return s
}

// of is the size of a communication of a rank.
func (s *sizes) of(rank int32, c *planpb.Communication) int64 {
	if !plan.Op(c).IsP2P() {
		return s.collectives[plan.CollectiveKey(c)]
	}
	for _, tr := range c.Transfers {
		return s.largest[s.sets.find(s.transfers[plan.TransferKey(rank, c, tr)])]
	}
	return 0
}
