package mix

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// sharing looks at what may run at the same time on one rank.
type sharing struct {
	*model
	found    *collector
	meetings []meeting
	of       []int32 // of each task: its meeting
	blocks   *blocks
}

// computing is the class of spans, beside those of meetings.
func (s *sharing) computing() int32 { return int32(len(s.meetings)) }

// checkSharing looks at what may run at the same time on one rank: on its GPU
// (E4, W1: D3, D4, D5, D7, D9, D13), in one library (E8), beside a library that
// allocates (W2: D6), and beside computation that a library blocks (W6).
func (m *model) checkSharing(found *collector, pairs []pair) {
	matters := false
	for i := range m.backends {
		c := &m.backends[i].cap
		matters = matters || c.gpu() || c.Threads == "serialized" || c.Threads == "single" || c.BlocksHost || c.Allocates
	}
	if !matters {
		return
	}
	s := &sharing{model: m, found: found}
	s.meetings, s.of = m.meetings(pairs)
	for p := range m.w.Programs {
		at := m.concurrent(p, s.class)
		sorted := slices.SortedFunc(maps.Keys(at), func(x, y classPair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
		var compete []together
		for _, pair := range sorted {
			t := at[pair]
			if pair.b == s.computing() {
				s.lostOverlap(t)
				continue
			}
			x, y := m.cap(m.commOf[t.a]), m.cap(m.commOf[t.b])
			s.checkThreads(t)
			if x.gpu() && y.Allocates || y.gpu() && x.Allocates {
				s.allocation(t)
			}
			switch {
			case !x.gpu() || !y.gpu():
			case s.canBlock(p, pair):
				s.unsafe(pair, t)
			default:
				compete = append(compete, t)
			}
		}
		s.checkSMs(p, compete)
		s.checkSingleThread(p)
	}
}

// canBlock says whether two meetings on one GPU could keep each other from ever
// ending when nothing orders them. It looks at who waits for whom, not at when,
// so it errs on the safe side.
func (s *sharing) canBlock(p int, pair classPair) bool {
	a, b := s.meetings[pair.a].comm, s.meetings[pair.b].comm
	switch {
	case pair.a == pair.b || s.comms[a].backend != s.comms[b].backend:
		return true
	case s.cap(a).Concurrent && a != b:
		return false
	}
	if s.blocks == nil {
		s.blocks = newBlocks(len(s.w.Programs), s.meetings)
	}
	return s.blocks.onCircle(p, pair.a) || s.blocks.onCircle(p, pair.b)
}

// class is a task's meeting, or computing.
func (s *sharing) class(n int32) int32 {
	if k := s.of[n]; k >= 0 {
		return k
	}
	if t, _ := s.task(n); t.GetSpan().GetDurationNs() > 0 {
		return s.computing()
	}
	return -1
}

// unsafe reports operations on one GPU that nothing orders (E4).
func (s *sharing) unsafe(pair classPair, t together) {
	a, b := s.commOf[t.a], s.commOf[t.b]
	s.found.add("E4", fmt.Sprintf("%d/%d", a, b), func() Finding {
		f := s.finding([]int32{t.a, t.b}, "", "put the one behind the other with a dependency, in the same direction on all ranks that have both, or move one of them to a library in host memory")
		why := fmt.Sprintf("kernels of %s wait on the GPU for other ranks, and which of the two gets there first may differ between ranks", s.backendName(a))
		if s.comms[a].backend != s.comms[b].backend {
			why = fmt.Sprintf("%s and %s know nothing of each other, and one that waits for other ranks can keep the other from ever starting", s.backendName(a), s.backendName(b))
		}
		var both []int32
		for _, p := range s.meetings[pair.a].programs {
			if slices.Contains(s.meetings[pair.b].programs, p) {
				both = append(both, s.w.Programs[p].Rank)
			}
		}
		f.Message = fmt.Sprintf("on rank %d nothing orders %s and %s, which share its GPU: %s", f.Operations[0].Rank, f.Operations[0].short(), f.Operations[1].short(), why)
		if len(both) > 1 {
			f.Message += "; both are on " + ranksText(both)
		}
		f.Ranks = both
		return f
	})
}

// smShare is how much of a GPU's SMs waiting kernels may hold: computation needs
// the rest to go on.
const smShare = 0.5

// checkSMs warns of kernels that may wait on one GPU at once (W1).
func (s *sharing) checkSMs(p int, compete []together) {
	if len(compete) == 0 {
		return
	}
	comms := map[int32]bool{}
	for _, t := range compete {
		comms[s.of[t.a]], comms[s.of[t.b]] = true, true
	}
	sms := s.caps.SMs
	if sms == 0 {
		sms = int(s.w.Programs[p].GetPlace().GetSms())
	}
	channels, known := 0, sms > 0
	for _, n := range s.channels(p, comms) {
		channels += n
		known = known && n > 0
	}
	if known && float64(channels) <= smShare*float64(sms) {
		return
	}
	s.found.add("W1", "", func() Finding {
		text := "how many SMs they hold is not known"
		if known {
			text = fmt.Sprintf("they hold up to %d of %d SMs", channels, sms)
		}
		f := s.finding([]int32{compete[0].a, compete[0].b}, "", "limit their channels (NCCL_MAX_CTAS), or order their operations; --capabilities can say channels and sms")
		f.Message = fmt.Sprintf("on rank %d kernels for %d sets of ranks may wait at once, for example %s and %s; %s",
			s.w.Programs[p].Rank, len(comms), f.Operations[0].short(), f.Operations[1].short(), text)
		return f
	})
}

// channels is how many SMs a kernel of each of some meetings holds at most on a
// rank, 0 where that is not known: as the backend's settings or --capabilities
// say, else as the plan says of its operations.
func (s *sharing) channels(p int, meetings map[int32]bool) map[int32]int {
	most := map[int32]int{}
	unknown := map[int32]bool{}
	for i, t := range s.w.Programs[p].Tasks {
		n := s.base[p] + int32(i)
		k := s.of[n]
		if !meetings[k] {
			continue
		}
		held := s.cap(s.meetings[k].comm).Channels
		if held == 0 {
			held = int(t.GetCommunication().GetChannels())
		}
		most[k] = max(most[k], held)
		unknown[k] = unknown[k] || held == 0
	}
	for k := range unknown {
		if unknown[k] {
			most[k] = 0
		}
	}
	return most
}

// checkThreads: a library that must be called by one thread at a time (E8).
func (s *sharing) checkThreads(t together) {
	a, b := s.commOf[t.a], s.commOf[t.b]
	if s.comms[a].backend != s.comms[b].backend || s.cap(a).Threads != "serialized" {
		return
	}
	s.found.add("E8", s.backendName(a), func() Finding {
		f := s.finding([]int32{t.a, t.b}, "", "order them with a dependency, or use a build that may be called by several threads (MPI_THREAD_MULTIPLE)")
		f.Message = fmt.Sprintf("%s and %s may run at once on rank %d, but %s may be called by one thread at a time",
			f.Operations[0].short(), f.Operations[1].short(), f.Ranks[0], s.backendName(a))
		return f
	})
}

// checkSingleThread: a library that must be called by one thread only (E8).
func (s *sharing) checkSingleThread(p int) {
	stream := map[int32]int32{}
	first := map[int32]int32{}
	for i, t := range s.w.Programs[p].Tasks {
		n := s.base[p] + int32(i)
		if s.commOf[n] < 0 || s.cap(s.commOf[n]).Threads != "single" {
			continue
		}
		b := s.comms[s.commOf[n]].backend
		if other, ok := stream[b]; ok && other != t.Stream {
			s.found.add("E8", s.backends[b].name, func() Finding {
				f := s.finding([]int32{first[b], n}, "", "put all operations of this library on one stream, or use a build that may be called by several threads")
				f.Message = fmt.Sprintf("%s and %s are on different streams of rank %d, which are threads, but %s may be called by one thread only",
					f.Operations[0].short(), f.Operations[1].short(), f.Ranks[0], s.backends[b].name)
				return f
			})
			continue
		}
		if _, ok := stream[b]; !ok {
			stream[b], first[b] = t.Stream, n
		}
	}
}

// allocation warns of a library that may allocate while a GPU operation waits (W2).
func (s *sharing) allocation(t together) {
	gpu, other := s.commOf[t.a], s.commOf[t.b]
	if !s.cap(gpu).gpu() || !s.cap(other).Allocates {
		gpu, other = other, gpu
	}
	s.found.add("W2", fmt.Sprintf("%s/%s", s.backendName(gpu), s.backendName(other)), func() Finding {
		f := s.finding([]int32{t.a, t.b}, "", "use every buffer and every pair of ranks once before anything is timed, or order these operations")
		f.Message = fmt.Sprintf("%s and %s may run at once on rank %d: %s may allocate, register or connect while it runs, which waits until %s's kernels are gone",
			f.Operations[0].short(), f.Operations[1].short(), f.Ranks[0], s.backendName(other), s.backendName(gpu))
		return f
	})
}

// lostOverlap warns of a library that blocks the host beside computation (W6).
func (s *sharing) lostOverlap(t together) {
	n := max(t.a, t.b)
	if s.commOf[n] < 0 {
		n = min(t.a, t.b)
	}
	a := s.commOf[n]
	if a < 0 || !s.cap(a).BlocksHost {
		return
	}
	s.found.add("W6", s.backendName(a), func() Finding {
		f := s.finding([]int32{n}, "", "expect less than the replay shows: it gives every stream a thread; in the job let a thread of its own make these calls")
		f.Message = fmt.Sprintf("%s runs beside computation on rank %d, but %s blocks the host while it runs: in the job this overlap would be lost",
			f.Operations[0].short(), f.Ranks[0], s.backendName(a))
		return f
	})
}
