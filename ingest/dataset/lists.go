package dataset

import (
	"hash/maphash"
	"slices"
	"sync"

	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// lists keeps one copy of lists of ranks that many groups of a run have: each of
// N ranks lists the N ranks of the job.
type lists struct {
	mu   sync.Mutex
	seed maphash.Seed
	byID map[uint64][][]int
}

// share makes the groups of a rank use the copies.
func (l *lists) share(r *trace.Rank) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.seed, l.byID = maphash.MakeSeed(), map[uint64][][]int{}
	}
	for _, groups := range [][]comm.Group{r.Groups, r.Distributed.Groups} {
		for i := range groups {
			groups[i].Ranks = l.one(groups[i].Ranks)
		}
	}
}

func (l *lists) one(list []int) []int {
	if len(list) == 0 {
		return list
	}
	var h maphash.Hash
	h.SetSeed(l.seed)
	for _, n := range list {
		maphash.WriteComparable(&h, n)
	}
	id := h.Sum64()
	for _, have := range l.byID[id] {
		if slices.Equal(have, list) {
			return have
		}
	}
	l.byID[id] = append(l.byID[id], list)
	return list
}
