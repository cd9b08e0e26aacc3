package mix

import (
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// sizes are the sizes by which a mix decides, in bytes: the same for everyone who
// takes part, so that all decide alike.
type sizes struct {
	collectives bySeq
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
	s := &sizes{collectives: bySeq{dense: make([][]int64, len(w.Groups))}, transfers: map[plan.MeetingKey]int32{}}
	var bytes []int64
	var together [][2]int32
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil {
				continue
			}
			if !plan.Op(c).IsP2P() {
				at := s.collectives.at(c)
				*at = max(*at, plan.Bytes(c))
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
		return *s.collectives.at(c)
	}
	for _, tr := range c.Transfers {
		return s.largest[s.sets.find(s.transfers[plan.TransferKey(rank, c, tr)])]
	}
	return 0
}

// bySeq is a number for each collective, 0 at first. Sequence numbers count from 0
// in each group, so that most of them are places in a slice: a job of many ranks has
// millions of operations.
type bySeq struct {
	dense [][]int64 // by group and sequence number
	rest  map[plan.MeetingKey]*int64
}

// maxJump is how far a sequence number may be beyond the next of its group to be
// given a place in the slice.
const maxJump = 1024

// at is the number of a collective, until the next call.
func (b *bySeq) at(c *planpb.Communication) *int64 {
	if g := int(c.Group); g >= 0 && g < len(b.dense) && c.Seq >= 0 {
		list := b.dense[g]
		if n := int64(len(list)); c.Seq >= n && c.Seq < n+maxJump {
			list = append(list, make([]int64, c.Seq-n+1)...)
			b.dense[g] = list
			for i := n; i <= c.Seq && len(b.rest) > 0; i++ { // one rank's may have begun later than another's
				k := plan.MeetingKey{Group: c.Group, Seq: i}
				if have, ok := b.rest[k]; ok {
					list[i] = *have
					delete(b.rest, k)
				}
			}
		}
		if c.Seq < int64(len(list)) {
			return &list[c.Seq]
		}
	}
	k := plan.CollectiveKey(c)
	if b.rest[k] == nil {
		if b.rest == nil {
			b.rest = map[plan.MeetingKey]*int64{}
		}
		b.rest[k] = new(int64)
	}
	return b.rest[k]
}
