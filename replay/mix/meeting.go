package mix

// meeting is a set of ranks that wait for each other: the members of a
// communicator in its collectives, or ranks with point-to-point between them.
// Transfers of one batch belong to one meeting, and so do those of the same two
// ranks.
type meeting struct {
	comm     int32
	programs []int32
}

// meetings finds the meetings, and that of each task, -1 for spans and waits.
func (m *model) meetings(pairs []pair) (list []meeting, of []int32) {
	of = fill(m.total)
	collectives := map[int32]int32{}
	for _, o := range m.ops {
		for _, n := range o.members {
			c := m.commOf[n]
			k, ok := collectives[c]
			if !ok {
				k = int32(len(list))
				collectives[c] = k
				list = append(list, meeting{comm: c})
				for _, r := range m.w.Groups[m.comms[c].group].Ranks {
					if p, ok := m.program[r]; ok {
						list[k].programs = append(list[k].programs, int32(p))
					}
				}
			}
			of[n] = k
		}
	}
	s := newSets(int(m.total))
	type between struct{ comm, low, high int32 }
	first := map[between]int32{}
	for _, p := range pairs {
		s.join(p.send.task, p.recv.task)
		b := between{m.commOf[p.send.task], min(p.send.from, p.send.to), max(p.send.from, p.send.to)}
		if f, ok := first[b]; ok {
			s.join(f, p.send.task)
		} else {
			first[b] = p.send.task
		}
	}
	number := map[int32]int32{} // of a set
	for p, program := range m.w.Programs {
		for i := range program.Tasks {
			n := m.base[p] + int32(i)
			if m.commOf[n] < 0 || of[n] >= 0 {
				continue
			}
			set := s.find(n)
			k, ok := number[set]
			if !ok {
				k = int32(len(list))
				number[set] = k
				list = append(list, meeting{comm: m.commOf[n]})
			}
			of[n] = k
			if have := list[k].programs; len(have) == 0 || have[len(have)-1] != int32(p) {
				list[k].programs = append(have, int32(p))
			}
		}
	}
	return list, of
}

// sets are disjoint sets of tasks.
type sets struct{ parent []int32 }

func newSets(n int) *sets {
	s := &sets{make([]int32, n)}
	for i := range s.parent {
		s.parent[i] = int32(i)
	}
	return s
}

func (s *sets) find(x int32) int32 {
	for s.parent[x] != x {
		s.parent[x] = s.parent[s.parent[x]]
		x = s.parent[x]
	}
	return x
}

// join unites two sets; the smaller number stands for both.
func (s *sets) join(a, b int32) {
	a, b = s.find(a), s.find(b)
	s.parent[max(a, b)] = min(a, b)
}
