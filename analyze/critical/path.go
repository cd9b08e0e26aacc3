package critical

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/trace"
)

// stretch is the part of the critical path that one node explains: from when
// its last dependency allowed it to where the node after it on the path begins;
// empty for nodes that only connect, and where a lag left nothing.
type stretch struct {
	node       int32
	start, end int64 // ns since the start of the step
}

// walk follows the path back from the last moment of the step: at every node to
// the dependency that was met last. Stretches are by time and leave no gap.
func (g *Graph) walk() []stretch {
	n := last(g.end)
	at := g.end[n]
	var list []stretch
	for {
		ready := min(g.end[n]-g.own[n], at) // a lag may let a dependency begin later than what follows it
		list = append(list, stretch{n, ready, at})
		at = ready
		next := none
		for e := g.depAt[n]; e < g.depAt[n+1]; e++ {
			if g.end[g.deps[e]]+int64(g.lags[e]) == g.end[n]-g.own[n] {
				next = g.deps[e]
				break
			}
		}
		if next == none {
			break
		}
		n = next
	}
	slices.Reverse(list)
	return list
}

// segments names the stretches of the path.
func (g *Graph) segments(list []stretch) ([]Segment, error) {
	hosts := map[int]*hostNames{}
	held := []int{} // ranks whose events are in memory, the one longest not used first
	defer func() {
		for _, r := range held {
			g.run.Ranks[r].Release()
		}
	}()
	hold := func(r int) error {
		if k := slices.Index(held, r); k >= 0 {
			held = append(slices.Delete(held, k, k+1), r)
			return nil
		}
		if len(held) == maxHeld {
			g.run.Ranks[held[0]].Release()
			delete(hosts, held[0])
			held = slices.Delete(held, 0, 1)
		}
		if err := g.run.Ranks[r].Acquire(); err != nil {
			return err
		}
		held = append(held, r)
		return nil
	}
	path := make([]Segment, 0, len(list))
	add := func(s Segment) {
		if s.End <= s.Start {
			return
		}
		if n := len(path); n > 0 && s.Stream == hostStream {
			if b := &path[n-1]; b.Stream == hostStream && b.Rank == s.Rank && b.Kind == s.Kind && b.Name == s.Name {
				b.End = s.End
				b.Dur = b.End - b.Start
				return
			}
		}
		s.Dur = s.End - s.Start
		path = append(path, s)
	}
	for _, st := range list {
		if st.start == st.end {
			continue
		}
		n := st.node
		r := int(g.rank[n])
		rank := g.run.Ranks[r]
		if err := hold(r); err != nil {
			return nil, err
		}
		s := Segment{Rank: rank.Rank, Start: st.start, End: st.end, BeforeStep: g.flags[n]&beforeStep != 0}
		// Before its work begins, a node was free to start but did not.
		begin := min(max(g.begin[n], st.start), st.end)
		idle := s
		idle.Kind, idle.End = KindIdle, begin
		switch g.kind[n] {
		case NodeHost, NodeHostWait:
			if hosts[r] == nil {
				hosts[r] = newHostNames(rank)
			}
			for _, piece := range hosts[r].pieces(st.start+g.base[r], st.end+g.base[r]) {
				s.Stream, s.Kind, s.Name = hostStream, KindHost, piece.name
				if rank.CPUOnly && computes(piece.name) {
					s.Kind = KindCompute
				}
				s.Start, s.End = piece.start-g.base[r], piece.end-g.base[r]
				add(s)
			}
			continue
		case NodeRankStart:
			s.Stream, s.Kind, s.Name = hostStream, KindIdle, lateStart
			add(s)
			continue
		case NodeCompute:
			s.Kind = KindCompute
		case NodeMemory:
			s.Kind = KindMemory
		case NodeArrival, NodeJoin:
			s.Kind, begin = KindIdle, st.start
		case NodeWait:
			s.Kind, begin = KindWait, st.start
		case NodeTransfer:
			s.Kind = KindTransfer
			s.Unsplit = g.flags[n]&unsplit != 0
		}
		s.Stream, s.Name = g.stream(n), g.name(n)
		if c := g.class[n]; c >= 0 {
			s.Class = &g.classes[c]
		}
		idle.Stream, idle.Name = s.Stream, s.Name
		if begin > st.start {
			add(idle)
		}
		s.Start = begin
		add(s)
	}
	return path, nil
}

// maxHeld is of how many ranks on the path the events are in memory at once.
const maxHeld = 16

const hostStream = "host"

// lateStart is the name of the time until a rank starts its step.
const lateStart = "before its step starts"

// computes says whether an operator, on a rank without a device, is computation:
// not the interpreter between operators, and not the issuing of communication.
func computes(name string) bool { return name != "" && !strings.HasPrefix(name, "c10d::") }

// stream names the stream or worker thread of a node.
func (g *Graph) stream(n int32) string {
	rank := g.run.Ranks[g.rank[n]]
	if o := g.operation[n]; o >= 0 && rank.CPUOnly {
		return rank.Operations[o].Stream
	}
	e := g.event[n]
	if e < 0 && g.operation[n] >= 0 {
		e = int32(rank.Operations[g.operation[n]].Event)
	}
	if e < 0 || rank.Events.Stream[e] == trace.NoStream {
		return "device"
	}
	return "stream " + strconv.FormatInt(rank.Events.Stream[e], 10)
}

// name is that of the event or operation behind a node, "" without one.
func (g *Graph) name(n int32) string {
	rank := g.run.Ranks[g.rank[n]]
	switch {
	case g.operation[n] >= 0:
		return rank.Operations[g.operation[n]].Name
	case g.event[n] >= 0:
		return rank.Name(int(g.event[n]))
	}
	return ""
}

// hostNames tells what operators the host of a rank was in: the outermost of
// all its threads, in a line without overlaps.
type hostNames struct {
	rank *trace.Rank
	ops  []hostOp
}

type hostOp struct {
	start, end int64 // ns, clipped to what no earlier one covers
	event      int32
}

// piece is a time of the host in one operator, "" between operators.
type piece struct {
	start, end int64
	name       string
}

func newHostNames(rank *trace.Rank) *hostNames {
	h := &hostNames{rank: rank}
	ev := &rank.Events
	for i := range ev.Len() {
		if c := ev.Category[i]; (c == trace.CPUOp || c == trace.Runtime) && ev.Dur[i] > 0 && !isStep(rank, i) {
			h.ops = append(h.ops, hostOp{ev.TS[i], ev.End(i), int32(i)})
		}
	}
	slices.SortStableFunc(h.ops, func(a, b hostOp) int {
		if c := cmp.Compare(a.start, b.start); c != 0 {
			return c
		}
		return cmp.Compare(b.end, a.end) // the enclosing one first
	})
	outer := h.ops[:0]
	for _, op := range h.ops {
		if n := len(outer); n > 0 {
			op.start = max(op.start, outer[n-1].end)
		}
		if op.end > op.start {
			outer = append(outer, op)
		}
	}
	h.ops = outer
	return h
}

// isStep says whether event i is a step: old profilers give it the category of
// operators.
func isStep(rank *trace.Rank, i int) bool {
	return strings.HasPrefix(rank.Name(i), "ProfilerStep")
}

// pieces cuts a time on the rank's clock where the outermost operator changes.
func (h *hostNames) pieces(start, end int64) []piece {
	k, _ := slices.BinarySearchFunc(h.ops, start, func(op hostOp, t int64) int {
		if op.end <= t {
			return -1
		}
		return 1
	})
	var list []piece
	for ; k < len(h.ops) && h.ops[k].start < end; k++ {
		op := h.ops[k]
		if op.start > start {
			list = append(list, piece{start, op.start, ""})
			start = op.start
		}
		to := min(op.end, end)
		list = append(list, piece{start, to, h.rank.Name(int(op.event))})
		start = to
	}
	if start < end {
		list = append(list, piece{start, end, ""})
	}
	return list
}
