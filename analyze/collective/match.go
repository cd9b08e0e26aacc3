package collective

import (
	"slices"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Member is one rank's part in a matched communication.
type Member struct {
	Rank      int // index into Run.Ranks
	Operation int // index into that rank's operations
}

// Collective is one collective on all members of its group, in group order.
type Collective struct {
	Group   int // index into Matching.Groups
	Seq     int // position among the matched collectives of the group
	Op      comm.Op
	Members []Member
	// LastStart is when the last member arrived, ns: what came before is
	// waiting, what follows is transfer.
	LastStart int64
}

// Pair is a matched send and receive.
type Pair struct {
	Group      int
	Send, Recv Member
	// SendTransfer and RecvTransfer are indices into the operations' transfers.
	SendTransfer, RecvTransfer int
	Count                      int64
	DType                      comm.DType
}

// Unmatched is an operation that could not be matched, and why.
type Unmatched struct {
	Member
	Reason string
}

// Matching is the communication of a run, matched across ranks.
type Matching struct {
	Groups []Group
	// GroupOf[rank index][group of the rank] is an index into Groups.
	GroupOf     [][]int
	Collectives []Collective // by group, then sequence
	Pairs       []Pair
	Unmatched   []Unmatched
	Diagnostics diagnostic.Set

	matched map[Member]int   // to the collective
	partner map[Member]int64 // point-to-point: when the last partner arrived, ns
}

// LastStart is when the last member of an operation arrived, ns: of a collective
// the last of its group, of point-to-point the later of both ends. It reports
// false where that is not known.
//
// The annotation of a send or receive that runs on the host begins with the call
// and ends with its wait, whatever the program did in between: there arrival
// means nothing, and it reports false too.
func (m *Matching) LastStart(run *trace.Run, member Member) (int64, bool) {
	if c, ok := m.Of(member); ok {
		return c.LastStart, true
	}
	if run.Ranks[member.Rank].CPUOnly {
		return 0, false
	}
	last, ok := m.partner[member]
	return max(last, run.Ranks[member.Rank].Operations[member.Operation].Start), ok
}

// Of returns the collective that an operation is part of.
func (m *Matching) Of(member Member) (*Collective, bool) {
	i, ok := m.matched[member]
	if !ok {
		return nil, false
	}
	return &m.Collectives[i], true
}

// Index is the index into Collectives of what an operation is part of.
func (m *Matching) Index(member Member) (int, bool) {
	i, ok := m.matched[member]
	return i, ok
}

// Match matches the communication of a run.
func Match(run *trace.Run) *Matching {
	m := &Matching{matched: map[Member]int{}, partner: map[Member]int64{}}
	grouping := groupRun(run, &m.Diagnostics)
	m.Groups, m.GroupOf = grouping.groups, grouping.of
	index := map[int]int{} // global rank -> index into Run.Ranks
	for i, rank := range run.Ranks {
		index[rank.Rank] = i
	}
	for g := range m.Groups {
		m.matchCollectives(run, g, index)
	}
	m.matchTransfers(run, index)
	for _, u := range m.Unmatched {
		op := &run.Ranks[u.Rank].Operations[u.Operation]
		m.Diagnostics.Addf("communication-unmatched", run.Ranks[u.Rank].Rank, op.Offset, "%s %d of its group: %s", op.Op, op.Index, u.Reason)
	}
	return m
}

// sequence lists the collectives that rank index r issued in group g.
func (m *Matching) sequence(run *trace.Run, r, g int) []int {
	var list []int
	for i := range run.Ranks[r].Operations {
		op := &run.Ranks[r].Operations[i]
		if m.GroupOf[r][op.Group] == g && !op.Op.IsP2P() {
			list = append(list, i)
		}
	}
	return list
}

func (m *Matching) matchCollectives(run *trace.Run, g int, index map[int]int) {
	group := &m.Groups[g]
	if group.Ranks == nil {
		for r := range run.Ranks {
			for _, i := range m.sequence(run, r, g) {
				m.Unmatched = append(m.Unmatched, Unmatched{Member{r, i}, "the members of its group are not known"})
			}
		}
		return
	}
	var members []int // indices into Run.Ranks, in group order
	missing := -1
	for _, rank := range group.Ranks {
		if r, ok := index[rank]; ok {
			members = append(members, r)
		} else if missing < 0 {
			missing = rank
		}
	}
	sequences := make([][]int, len(members))
	for k, r := range members {
		sequences[k] = m.sequence(run, r, g)
	}
	if missing >= 0 {
		for k, r := range members {
			for _, i := range sequences[k] {
				m.Unmatched = append(m.Unmatched, Unmatched{Member{r, i}, "a member of its group was not read"})
			}
		}
		return
	}
	m.pairUp(run, g, members, sequences)
}

// pairUp matches the members' sequences against the longest of them.
func (m *Matching) pairUp(run *trace.Run, g int, members []int, sequences [][]int) {
	reference := 0
	for k := range sequences {
		if len(sequences[k]) > len(sequences[reference]) {
			reference = k
		}
	}
	steps := sameSteps(run, members)
	signatures := make([][]signature, len(members))
	for k, r := range members {
		signatures[k] = make([]signature, len(sequences[k]))
		for n, i := range sequences[k] {
			op := &run.Ranks[r].Operations[i]
			signatures[k][n] = signatureOf(op)
			if op.CommsID != 0 { // the same on all ranks, and different for every collective
				signatures[k][n] = signature{op: "comms id", count: int64(op.CommsID)}
			} else if op.SeqKnown {
				signatures[k][n].count = op.Seq
			} else if steps {
				signatures[k][n].step = run.Ranks[r].StepsBegun(op.Issued)
			}
		}
	}
	aligned := make([][]int, len(members))
	for k := range members {
		aligned[k] = alignSequences(signatures[reference], signatures[k])
	}
	m.pairUneven(run, members, sequences, reference, aligned)
	used := make([]map[int]bool, len(members))
	for k := range used {
		used[k] = map[int]bool{}
	}
	seq := 0
	for n := range sequences[reference] {
		whole := true
		for k := range members {
			whole = whole && aligned[k][n] >= 0
		}
		if !whole {
			continue
		}
		c := Collective{Group: g, Seq: seq}
		for k, r := range members {
			i := sequences[k][aligned[k][n]]
			used[k][aligned[k][n]] = true
			op := &run.Ranks[r].Operations[i]
			if c.Op != comm.AllToAllV {
				c.Op = op.Op
			}
			c.Members = append(c.Members, Member{r, i})
			if k == 0 || op.Start > c.LastStart {
				c.LastStart = op.Start
			}
		}
		for _, member := range c.Members {
			m.matched[member] = len(m.Collectives)
		}
		m.Collectives = append(m.Collectives, c)
		seq++
	}
	for k, r := range members {
		for n, i := range sequences[k] {
			if !used[k][n] {
				m.Unmatched = append(m.Unmatched, Unmatched{Member{r, i}, "another member of its group has no such operation in its place"})
			}
		}
	}
}

// transferKey: transfers of one group between two ranks match in order.
type transferKey struct{ group, from, to int }

type openTransfer struct {
	Member
	transfer int
}

func (m *Matching) matchTransfers(run *trace.Run, index map[int]int) {
	sends, recvs := map[transferKey][]openTransfer{}, map[transferKey][]openTransfer{}
	var keys []transferKey
	for r, rank := range run.Ranks {
		for i := range rank.Operations {
			op := &rank.Operations[i]
			if !op.Op.IsP2P() {
				continue
			}
			if len(op.Transfers) == 0 {
				m.Unmatched = append(m.Unmatched, Unmatched{Member{r, i}, "its peer is not in the trace"})
				continue
			}
			for t, tr := range op.Transfers {
				k := transferKey{m.GroupOf[r][op.Group], rank.Rank, tr.Peer}
				side := sends
				if !tr.Send {
					k.from, k.to = k.to, k.from
					side = recvs
				}
				if len(sends[k]) == 0 && len(recvs[k]) == 0 {
					keys = append(keys, k)
				}
				side[k] = append(side[k], openTransfer{Member{r, i}, t})
			}
		}
	}
	for _, k := range keys {
		s, r := sends[k], recvs[k]
		both := min(len(s), len(r))
		for n := range both {
			op := &run.Ranks[s[n].Rank].Operations[s[n].Operation]
			m.Pairs = append(m.Pairs, Pair{
				Group: k.group, Send: s[n].Member, Recv: r[n].Member,
				SendTransfer: s[n].transfer, RecvTransfer: r[n].transfer,
				Count: op.Transfers[s[n].transfer].Count, DType: op.DType,
			})
			other := &run.Ranks[r[n].Rank].Operations[r[n].Operation]
			m.partner[s[n].Member] = max(m.partner[s[n].Member], other.Start)
			m.partner[r[n].Member] = max(m.partner[r[n].Member], op.Start)
		}
		for _, rest := range slices.Concat(s[both:], r[both:]) {
			reason := "its peer has no operation for it"
			if _, read := index[k.from]; !read {
				reason = "its peer was not read"
			}
			if _, read := index[k.to]; !read {
				reason = "its peer was not read"
			}
			m.Unmatched = append(m.Unmatched, Unmatched{rest.Member, reason})
		}
	}
}
