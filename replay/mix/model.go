package mix

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// model is a plan with its tasks numbered through: task i of program p is
// base[p]+i.
type model struct {
	w       *planpb.Workload
	caps    *Capabilities
	base    []int32
	total   int32
	program map[int32]int // global rank -> index of its program
	origin  int64         // earliest start in the trace, ns; MaxInt64 when no task has one

	backends []backend
	byName   map[string]int32

	comms  []communicator
	byKey  map[commKey]int32
	commOf []int32 // of each task: its communicator, -1 when it is no communication

	ops       []collective
	transfers []transferEnd
}

// backend is a library that the plan uses.
type backend struct {
	name  string
	cap   Capability
	known bool
}

type commKey struct{ group, backend int32 }

// communicator is a group on a backend.
type communicator struct {
	commKey
	ranks map[int32]int32 // members -> position; shared by the group's communicators
}

// collective is one operation of a group: the tasks of its members.
type collective struct {
	group   int32
	seq     int64
	members []int32
}

// transferEnd is one side of a transfer.
type transferEnd struct {
	group, from, to int32
	match           int64
	send            bool
	task            int32
	count           int64
	order           int32 // position among this side's transfers of the pair
}

// limits of a plan, as the worker has them.
const (
	maxTasks  = math.MaxInt32 / 4
	maxGroups = math.MaxInt32 / 4
)

// newModel numbers the tasks. What is malformed is an error: nothing else can
// be said about such a plan.
func newModel(w *planpb.Workload, caps *Capabilities) (*model, error) {
	m := &model{w: w, caps: caps, program: map[int32]int{}, origin: math.MaxInt64, byName: map[string]int32{}, byKey: map[commKey]int32{}}
	if w == nil {
		return nil, errors.New("it has no workload")
	}
	if len(w.Groups) > maxGroups {
		return nil, fmt.Errorf("%d groups", len(w.Groups))
	}
	total := 0
	for p, program := range w.Programs {
		if p > 0 && program.GetRank() <= w.Programs[p-1].GetRank() {
			return nil, fmt.Errorf("programs are not in rank order at rank %d", program.GetRank())
		}
		if r := program.GetRank(); r < 0 || r >= w.WorldSize {
			return nil, fmt.Errorf("program of rank %d in a world of %d", r, w.WorldSize)
		}
		m.program[program.GetRank()] = p
		m.base = append(m.base, int32(total))
		if total += len(program.GetTasks()); total > maxTasks {
			return nil, fmt.Errorf("more than %d tasks", maxTasks)
		}
	}
	m.total = int32(total)
	members := make([]map[int32]int32, len(w.Groups))
	for g, group := range w.Groups {
		members[g] = make(map[int32]int32, len(group.GetRanks()))
		for i, r := range group.GetRanks() {
			if _, twice := members[g][r]; twice {
				return nil, fmt.Errorf("rank %d is twice in group %s", r, m.groupName(int32(g)))
			}
			if r < 0 || r >= w.WorldSize {
				return nil, fmt.Errorf("rank %d of group %s in a world of %d", r, m.groupName(int32(g)), w.WorldSize)
			}
			members[g][r] = int32(i)
		}
	}
	m.commOf = make([]int32, total)
	index := map[plan.MeetingKey]int32{}
	for p, program := range w.Programs {
		for i, t := range program.Tasks {
			if err := m.addTask(p, int32(i), t, members, index); err != nil {
				return nil, fmt.Errorf("task %d of rank %d: %w", i, program.Rank, err)
			}
		}
	}
	for _, program := range w.Programs {
		if err := m.checkEvents(program, members); err != nil {
			return nil, fmt.Errorf("rank %d: %w", program.Rank, err)
		}
	}
	m.numberTransfers()
	return m, nil
}

// addTask enters one task.
func (m *model) addTask(p int, i int32, t *planpb.Task, members []map[int32]int32, index map[plan.MeetingKey]int32) error {
	program := m.w.Programs[p]
	task := m.base[p] + i
	m.commOf[task] = -1
	if t == nil {
		return errors.New("it is empty")
	}
	if t.Stream < 0 || int(t.Stream) >= len(program.Streams) {
		return fmt.Errorf("stream %d of %d", t.Stream, len(program.Streams))
	}
	for _, d := range t.Deps {
		if d < 0 || d >= i {
			return fmt.Errorf("it depends on task %d, which does not come before it", d)
		}
	}
	if o := t.Origin; o != nil {
		m.origin = min(m.origin, o.Ts)
	}
	c := t.GetCommunication()
	if c == nil {
		return nil
	}
	if c.Group < 0 || int(c.Group) >= len(m.w.Groups) {
		return fmt.Errorf("group %d of %d", c.Group, len(m.w.Groups))
	}
	if opName(c) == "" {
		return fmt.Errorf("unknown operation %d", c.Op)
	}
	if _, ok := members[c.Group][program.Rank]; !ok {
		return fmt.Errorf("rank %d is not in group %s", program.Rank, m.groupName(c.Group))
	}
	if strings.Trim(Library(c.Backend), "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return fmt.Errorf("backend %q: only a-z, 0-9, _ and - may be in its name", c.Backend)
	}
	if err := checkBackend(c.Backend); err != nil {
		return err
	}
	if err := checkShape(c); err != nil {
		return err
	}
	if c.InBuffer < 0 || c.OutBuffer < 0 || c.Channels < 0 {
		return errors.New("a number of a buffer or of channels is negative")
	}
	m.commOf[task] = m.communicator(c, members)
	if !plan.Op(c).IsP2P() {
		k := plan.CollectiveKey(c)
		o, ok := index[k]
		if !ok {
			o = int32(len(m.ops))
			index[k] = o
			m.ops = append(m.ops, collective{group: c.Group, seq: c.Seq})
		}
		m.ops[o].members = append(m.ops[o].members, task)
		return nil
	}
	for _, tr := range c.Transfers {
		if tr.GetBuffer() < 0 {
			return errors.New("a number of a buffer is negative")
		}
		if _, ok := members[c.Group][tr.GetPeer()]; !ok {
			return fmt.Errorf("its peer %d is not in group %s", tr.GetPeer(), m.groupName(c.Group))
		}
		end := transferEnd{group: c.Group, from: program.Rank, to: tr.Peer, match: tr.Match, send: tr.Send, task: task, count: tr.Count}
		if !tr.Send {
			end.from, end.to = tr.Peer, program.Rank
		}
		m.transfers = append(m.transfers, end)
	}
	return nil
}

// checkShape: only point-to-point has transfers, and send and recv have one.
func checkShape(c *planpb.Communication) error {
	op := opName(c)
	switch {
	case !op.IsP2P() && len(c.Transfers) > 0:
		return fmt.Errorf("%s has transfers", op)
	case !op.IsP2P():
		return nil
	case len(c.Transfers) == 0:
		return fmt.Errorf("%s has no transfer", op)
	case op == comm.Batch:
		return nil
	case len(c.Transfers) > 1 || c.Transfers[0].Send != (op == comm.Send):
		return fmt.Errorf("%s needs one transfer, of its own direction", op)
	}
	return nil
}

// communicator returns the index of the communicator of a communication.
func (m *model) communicator(c *planpb.Communication, members []map[int32]int32) int32 {
	b, ok := m.byName[c.Backend]
	if !ok {
		b = int32(len(m.backends))
		m.byName[c.Backend] = b
		known, ok := m.caps.Find(c.Backend)
		m.backends = append(m.backends, backend{c.Backend, known, ok})
	}
	k := commKey{c.Group, b}
	i, ok := m.byKey[k]
	if !ok {
		i = int32(len(m.comms))
		m.byKey[k] = i
		m.comms = append(m.comms, communicator{k, members[c.Group]})
	}
	return i
}

// numberTransfers gives each side of a transfer its place among those of the
// same pair and communicator, in the order of its rank's tasks.
func (m *model) numberTransfers() {
	type side struct {
		comm, from, to int32
		send           bool
	}
	next := map[side]int32{}
	for i := range m.transfers {
		e := &m.transfers[i]
		s := side{m.commOf[e.task], e.from, e.to, e.send}
		e.order = next[s]
		next[s]++
	}
}

// programOf is the program of a task.
func (m *model) programOf(task int32) int {
	return sort.Search(len(m.base), func(p int) bool { return m.base[p] > task }) - 1
}

// task returns a task by its number, and its rank.
func (m *model) task(n int32) (*planpb.Task, int32) {
	p := m.programOf(n)
	return m.w.Programs[p].Tasks[n-m.base[p]], m.w.Programs[p].Rank
}

func (m *model) communication(n int32) *planpb.Communication {
	t, _ := m.task(n)
	return t.GetCommunication()
}

func (m *model) cap(comm int32) *Capability { return &m.backends[m.comms[comm].backend].cap }

func (m *model) backendName(comm int32) string { return m.backends[m.comms[comm].backend].name }

// groupLabel is the group's name, else its description, else its members.
func (m *model) groupLabel(g int32) string {
	group := m.w.Groups[g]
	switch {
	case group.GetName() != "":
		return group.Name
	case group.GetDescription() != "":
		return group.Description
	}
	return ranksText(group.GetRanks())
}

// groupName is how messages name a group: its name and description, else its
// members.
func (m *model) groupName(g int32) string {
	group := m.w.Groups[g]
	switch {
	case group.GetName() != "" && group.GetDescription() != "" && group.GetName() != group.GetDescription():
		return fmt.Sprintf("%q (%s)", group.Name, group.Description)
	case group.GetName() != "":
		return fmt.Sprintf("%q", group.Name)
	case group.GetDescription() != "":
		return fmt.Sprintf("%q", group.Description)
	}
	return "of " + ranksText(group.GetRanks())
}
