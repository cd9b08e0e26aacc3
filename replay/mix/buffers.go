package mix

import (
	"cmp"
	"fmt"
	"slices"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// use is that a task reads or writes a buffer.
type use struct {
	task   int32 // in its program
	writes bool
}

// checkReuse looks for memory that one communication writes while another one may
// still use it (E6): no stream, dependency or turn of the rank keeps them apart.
func (m *model) checkReuse(found *collector) {
	for p, program := range m.w.Programs {
		uses := usesOf(program)
		if len(uses) == 0 || tooLarge(program) {
			continue // gaps says so
		}
		after := m.newReached(p)
		if after == nil {
			continue // the rank waits for itself: reported elsewhere
		}
		for _, buffer := range uses {
			slices.SortStableFunc(buffer.uses, func(a, b use) int { return cmp.Compare(after.turn[a.task], after.turn[b.task]) })
			m.checkBuffer(found, p, buffer, after)
		}
	}
}

// maxReach bounds the memory of looking for buffers that are used too early, in
// tasks times streams of a rank.
const maxReach = 1 << 28

// tooLarge says whether a program is beyond that.
func tooLarge(program *planpb.Program) bool {
	return int64(len(program.Tasks))*int64(len(program.Streams)) > maxReach
}

// bufferUses are the uses of one buffer, in the order of the plan.
type bufferUses struct {
	number int64
	uses   []use
}

// usesOf lists the buffers of a program by their first use.
func usesOf(program *planpb.Program) []bufferUses {
	index := map[int64]int{}
	var all []bufferUses
	for i, t := range program.Tasks {
		c := t.GetCommunication()
		if c == nil {
			continue
		}
		add := func(buffer int64, writes bool) {
			if buffer == 0 {
				return
			}
			k, ok := index[buffer]
			if !ok {
				k = len(all)
				index[buffer] = k
				all = append(all, bufferUses{number: buffer})
			}
			all[k].uses = append(all[k].uses, use{int32(i), writes})
		}
		if plan.Op(c).IsP2P() {
			for _, tr := range c.Transfers {
				add(tr.Buffer, !tr.Send)
			}
			continue
		}
		add(c.InBuffer, false)
		add(c.OutBuffer, true)
	}
	return all
}

// checkBuffer: what writes a buffer comes before or after all other uses of it.
// Where each use comes after the last write before it, and each write after the
// reads since then too, all are ordered. Uses of one collective are its own
// affair; of one batch they are not.
func (m *model) checkBuffer(found *collector, p int, b bufferUses, after *reached) {
	var writes, reads []int32 // the last write, and the reads since
	program := m.w.Programs[p]
	for _, u := range b.uses {
		others := writes
		if u.writes {
			others = append(append([]int32{}, writes...), reads...)
		}
		for _, o := range others {
			if o == u.task && !plan.Op(program.Tasks[o].GetCommunication()).IsP2P() || o != u.task && after.comes(o, u.task) {
				continue
			}
			found.add("E6", "reuse", func() Finding {
				f := m.finding([]int32{m.base[p] + o, m.base[p] + u.task}, "",
					"let the later one depend on the earlier one, or give it memory of its own")
				last := f.Operations[len(f.Operations)-1]
				what := fmt.Sprintf("%s and %s use buffer %d on rank %d, and nothing orders them", f.Operations[0].short(), last.short(), b.number, program.Rank)
				if o == u.task {
					what = fmt.Sprintf("%s uses buffer %d twice on rank %d, and its messages move at once", last.short(), b.number, program.Rank)
				}
				f.Message = what + ": one may write what the other still reads or writes"
				return f
			})
		}
		if u.writes {
			writes, reads = []int32{u.task}, nil
		} else {
			reads = append(reads, u.task)
		}
	}
}

// reached answers whether one task of a rank must end before another begins.
type reached struct {
	program  *planpb.Program
	turn     []int32   // of each task in an order in which all can run
	position []int32   // of each task on its stream
	last     [][]int32 // by task and stream: the last position there that comes before it, -1 for none
}

// newReached prepares the answers for a program, nil when it waits for itself.
func (m *model) newReached(p int) *reached {
	program := m.w.Programs[p]
	order, before := m.localOrder(p)
	if order == nil {
		return nil
	}
	r := &reached{program: program, turn: make([]int32, len(program.Tasks)), position: make([]int32, len(program.Tasks)), last: make([][]int32, len(program.Tasks))}
	next := make([]int32, len(program.Streams))
	for i, t := range program.Tasks {
		r.position[i] = next[t.Stream]
		next[t.Stream]++
	}
	streams := len(program.Streams)
	all := fill(int32(len(program.Tasks) * streams))
	for k, i := range order {
		r.turn[i] = int32(k)
		last := all[k*streams : (k+1)*streams]
		for _, q := range before.of(i) {
			for s, at := range r.last[q] {
				last[s] = max(last[s], at)
			}
			on := program.Tasks[q].Stream
			last[on] = max(last[on], r.position[q])
		}
		r.last[i] = last
	}
	return r
}

// comes says whether task a ends before task b begins.
func (r *reached) comes(a, b int32) bool {
	return r.last[b][r.program.Tasks[a].Stream] >= r.position[a]
}

// unnamedBuffers counts the communications of the plan, and those that do not say
// what memory they use.
func (m *model) unnamedBuffers() (all, without int64) {
	for _, program := range m.w.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil || c.Op == planpb.Op_OP_BARRIER {
				continue
			}
			all++
			named := (c.InBuffer != 0 || c.InCount == 0) && (c.OutBuffer != 0 || c.OutCount == 0)
			if plan.Op(c).IsP2P() {
				named = true
				for _, tr := range c.Transfers {
					named = named && tr.Buffer != 0
				}
			}
			if !named {
				without++
			}
		}
	}
	return all, without
}
