package align

import (
	"slices"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
)

// sighting is one moment, the end of a collective, as several clocks show it.
type sighting struct {
	collective, group int     // indices into the matching's
	ranks             []int   // indices into Run.Ranks
	starts, ends      []int64 // ns, on each one's own clock
	wrong             bool    // the corrected times show that this is no one collective
}

// message is something that was sent before it was received.
type message struct {
	from, to  int // indices into Run.Ranks
	sent, got int64
}

// view is what a run tells about its clocks.
type view struct {
	sightings []sighting
	of        [][]position // by rank: the sightings it is in
	messages  []message
}

// position is a rank's place in a sighting.
type position struct{ sighting, member int }

func look(run *trace.Run, m *collective.Matching) *view {
	v := &view{of: make([][]position, len(run.Ranks))}
	operation := func(at collective.Member) *comm.Operation { return &run.Ranks[at.Rank].Operations[at.Operation] }
	for i := range m.Collectives {
		c := &m.Collectives[i]
		switch {
		case len(c.Members) < 2:
		case c.Op.Rooted():
			v.addRooted(run, c)
		case c.Op == comm.Unknown || c.Op.IsP2P():
		default:
			s := sighting{collective: i, group: c.Group}
			for k, at := range c.Members {
				s.ranks = append(s.ranks, at.Rank)
				s.starts = append(s.starts, operation(at).Start)
				s.ends = append(s.ends, operation(at).End)
				v.of[at.Rank] = append(v.of[at.Rank], position{len(v.sightings), k})
			}
			v.sightings = append(v.sightings, s)
		}
	}
	for _, p := range m.Pairs {
		if p.Send.Rank != p.Recv.Rank {
			v.messages = append(v.messages, message{p.Send.Rank, p.Recv.Rank, sentFrom(run.Ranks[p.Send.Rank], operation(p.Send)), operation(p.Recv).End})
		}
	}
	return v
}

// sentFrom is the earliest moment at which a send may have left. On a host that is
// the call: the annotation of the send begins when the call returns, and the
// receiver may have it by then.
func sentFrom(rank *trace.Rank, op *comm.Operation) int64 {
	if rank.CPUOnly {
		return min(op.Issued, op.Start)
	}
	return op.Start
}

// addRooted adds the messages between the root of a collective and the others.
func (v *view) addRooted(run *trace.Run, c *collective.Collective) {
	root := slices.IndexFunc(c.Members, func(at collective.Member) bool {
		op := &run.Ranks[at.Rank].Operations[at.Operation]
		return op.RootKnown && op.Root == run.Ranks[at.Rank].Rank
	})
	if root < 0 {
		return
	}
	at := c.Members[root]
	own := &run.Ranks[at.Rank].Operations[at.Operation]
	for k, other := range c.Members {
		if k == root {
			continue
		}
		op := &run.Ranks[other.Rank].Operations[other.Operation]
		if c.Op == comm.Broadcast || c.Op == comm.Scatter {
			v.messages = append(v.messages, message{at.Rank, other.Rank, own.Start, op.End})
		} else {
			v.messages = append(v.messages, message{other.Rank, at.Rank, op.Start, own.End})
		}
	}
}

// middle is the median of the corrected ends of those members that are known,
// and how many those are.
func (s *sighting) middle(clocks []Clock, known []bool, buf []int64) (int64, int) {
	buf = buf[:0]
	for k, r := range s.ranks {
		if known[r] {
			buf = append(buf, clocks[r].Correct(s.ends[k]))
		}
	}
	if len(buf) == 0 {
		return 0, 0
	}
	return median(buf), len(buf)
}

// spread is how far apart the corrected ends of the members in a part lie.
func (s *sighting) spread(clocks []Clock, in []bool) (int64, bool) {
	var lo, hi int64
	n := 0
	for k, r := range s.ranks {
		if !in[r] {
			continue
		}
		t := clocks[r].Correct(s.ends[k])
		if n == 0 {
			lo, hi = t, t
		}
		lo, hi = min(lo, t), max(hi, t)
		n++
	}
	return hi - lo, n > 1
}

// impossible says whether a member left before another one of its part arrived.
func (s *sighting) impossible(clocks []Clock) bool {
	latest := map[int]int64{} // arrival, by part
	for k, r := range s.ranks {
		start := clocks[r].Correct(s.starts[k])
		if at, ok := latest[clocks[r].Component]; !ok || start > at {
			latest[clocks[r].Component] = start
		}
	}
	for k, r := range s.ranks {
		if latest[clocks[r].Component] > clocks[r].Correct(s.ends[k])+Agreement {
			return true
		}
	}
	return false
}

// median of a list that is not empty, which it reorders; of an even number the
// mean of the two in the middle, computed without overflow.
func median(list []int64) int64 {
	slices.Sort(list)
	n := len(list)
	a, b := list[(n-1)/2], list[n/2]
	return a + (b-a)/2
}
