package mix

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"mixdown/replay/plan"
)

// DefaultMaxChanges is how often the backend may change on a rank in one step
// before it is worth a warning.
const DefaultMaxChanges = 32

// checkChanges counts how often a rank goes from one library to another (W3).
func (m *model) checkChanges(found *collector, limit int) {
	for p, program := range m.w.Programs {
		changes := 0
		last := int32(-1)
		var at int32
		for i := range program.Tasks {
			n := m.base[p] + int32(i)
			if m.commOf[n] < 0 {
				continue
			}
			b := m.comms[m.commOf[n]].backend
			if last >= 0 && b != last {
				changes++
				at = n
			}
			last = b
		}
		if changes > limit {
			found.add("W3", "", func() Finding {
				return m.finding([]int32{at}, fmt.Sprintf("rank %d goes from one library to another %d times in a step: each time one of them has to wake up", program.Rank, changes),
					"let one library run small neighbouring operations together; compare with a mix that has fewer changes")
			})
		}
	}
}

// checkTrace says where the trace does not tell everything (W4).
func (m *model) checkTrace(found *collector) {
	if missing := int(m.w.WorldSize) - len(m.w.Programs); missing > 0 {
		found.add("W4", "ranks", func() Finding {
			var without []int32
			for r := range m.w.WorldSize {
				if _, ok := m.program[r]; !ok {
					if without = append(without, r); len(without) >= maxMissing {
						break
					}
				}
			}
			return Finding{
				Message: fmt.Sprintf("%d of %d ranks are not in the plan (%s): what they do, and who waits for it, is not checked", missing, m.w.WorldSize, ranksText(without)),
				Advice:  "give the traces of all ranks", Ranks: without,
			}
		})
	}
	for i := range m.comms {
		g := m.comms[i].group
		if name := m.w.Groups[g].GetName(); isHash(name) {
			found.add("W4", "hash", func() Finding {
				return Finding{
					Message: fmt.Sprintf("group %s is named by a hash: whether ranks mean the same group by it is not certain", m.groupName(g)),
					Advice:  "give groups descriptions (group_desc=) where the job makes them", Groups: []string{m.groupLabel(g)},
				}
			})
		}
	}
	for p, program := range m.w.Programs {
		for i, t := range program.Tasks {
			if c := t.GetCommunication(); c != nil && c.SplitsEstimated {
				found.add("W4", "estimated", func() Finding {
					return m.finding([]int32{m.base[p] + int32(i)}, fmt.Sprintf("the parts of %s are estimated from totals", opName(c)),
						"--execution-traces has the real ones")
				})
			}
		}
	}
}

// maxMissing bounds the missing ranks that are listed.
const maxMissing = 1000

// isHash says whether a group's name is a number in hexadecimal, as c10d gives it.
func isHash(name string) bool {
	return len(name) >= 16 && strings.Trim(name, "0123456789abcdef") == ""
}

// checkMeasured: the choice of a backend rests on measurements (W5).
func (m *model) checkMeasured(found *collector) {
	for o := range m.ops {
		n := m.ops[o].members[0]
		c := m.cap(m.commOf[n])
		if len(c.Measured) == 0 {
			continue
		}
		var bytes int64
		for _, member := range m.ops[o].members {
			bytes = max(bytes, plan.Bytes(m.communication(member)))
		}
		op, ranks := string(opName(m.communication(n))), len(m.w.Groups[m.ops[o].group].Ranks)
		if slices.ContainsFunc(c.Measured, func(r Range) bool { return r.holds(op, bytes, ranks) }) {
			continue
		}
		found.add("W5", fmt.Sprintf("%d/%s", m.commOf[n], op), func() Finding {
			return m.finding([]int32{n}, fmt.Sprintf("%s was not measured for %s of %s on %d ranks", c.Name, op, bytesText(bytes), ranks),
				"measure there (mixdown tune), or leave the operation on the traced backend")
		})
	}
}

func (r Range) holds(op string, bytes int64, ranks int) bool {
	return (r.Op == "" || r.Op == op) && bytes >= r.MinBytes && bytes <= r.MaxBytes && ranks >= r.MinRanks && ranks <= r.MaxRanks
}

// checkCritical warns of slow libraries on the critical path of the trace: the
// chain of spans and communications that makes the step as long as it is (W7).
// happened is an order in which everything can run.
func (m *model) checkCritical(found *collector, g *graph, happened []int32) {
	if int32(len(happened)) < g.n || !slices.ContainsFunc(m.backends, func(b backend) bool { return b.cap.SMFree }) {
		return
	}
	transfer := m.transferTimes()
	length := make([]int64, g.n) // of the longest way to the end of an event
	from := fill(g.n)
	last := int32(-1)
	for _, v := range happened {
		if v < m.total {
			length[v] += m.duration(v, transfer)
		}
		if last < 0 || length[v] > length[last] {
			last = v
		}
		g.successors(v, func(to int32) {
			if from[to] < 0 || length[v] > length[to] {
				length[to], from[to] = length[v], v
			}
		})
	}
	for v := last; v >= 0; v = from[v] {
		if v >= m.total || m.commOf[v] < 0 || !m.cap(m.commOf[v]).SMFree {
			continue
		}
		n := v
		found.add("W7", m.backendName(m.commOf[n]), func() Finding {
			f := m.finding([]int32{n}, "", "keep it for communication that computation hides")
			f.Message = fmt.Sprintf("%s on rank %d bounds the step in the trace: %s spares SMs, but what counts here is its time",
				f.Operations[0].short(), f.Ranks[0], m.backendName(m.commOf[n]))
			return f
		})
	}
}

// transferTimes is how long each collective took in the trace once its last
// member had come: the shortest time of any member, ns.
func (m *model) transferTimes() map[int32]int64 {
	times := map[int32]int64{}
	for o := range m.ops {
		shortest := int64(math.MaxInt64)
		for _, n := range m.ops[o].members {
			t, _ := m.task(n)
			shortest = min(shortest, t.GetOrigin().GetDur())
		}
		for _, n := range m.ops[o].members {
			times[n] = shortest
		}
	}
	return times
}

// duration is how long a task took in the trace, ns, without waiting for others.
func (m *model) duration(n int32, transfer map[int32]int64) int64 {
	t, _ := m.task(n)
	if s := t.GetSpan(); s != nil {
		return s.DurationNs
	}
	if shortest, ok := transfer[n]; ok {
		return shortest
	}
	if t.GetCommunication() != nil {
		return t.GetOrigin().GetDur()
	}
	return 0
}
