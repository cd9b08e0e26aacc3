package sim

import (
	"slices"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// TracedCosts is what the operations of a workload took to transfer in the trace:
// from when the last member was there to when the members had ended, in ns. What
// came before is waiting, which a simulation makes itself.
//
// Sends and receives of a host seem to last until the program waited for them,
// however long the message was there: there the quickest quarter of the messages
// of a size says what one takes.
func TracedCosts(w *planpb.Workload) CommunicationCost {
	type span struct {
		start int64
		ends  []int64
		size  int64
	}
	spans := map[plan.MeetingKey]*span{}
	each := func(rank int32, c *planpb.Communication, do func(plan.MeetingKey)) {
		if len(c.Transfers) == 0 {
			do(plan.CollectiveKey(c))
			return
		}
		for _, t := range c.Transfers {
			do(plan.TransferKey(rank, c, t))
		}
	}
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c == nil || t.Origin == nil {
				continue
			}
			each(program.Rank, c, func(k plan.MeetingKey) {
				s := spans[k]
				if s == nil {
					s = &span{start: t.Origin.Ts, size: max(c.InCount, c.OutCount)}
					spans[k] = s
				}
				s.start = max(s.start, t.Origin.Ts)
				s.ends = append(s.ends, t.Origin.Ts+t.Origin.Dur)
			})
		}
	}
	took := map[plan.MeetingKey]int64{}
	for k, s := range spans {
		slices.Sort(s.ends)
		end := s.ends[len(s.ends)/2]
		if k.Transfer {
			end = s.ends[0]
		}
		took[k] = max(end-s.start, 0)
	}
	if onHost(w) {
		quick := map[int64][]int64{}
		for k, s := range spans {
			if k.Transfer {
				quick[s.size] = append(quick[s.size], took[k])
			}
		}
		for _, list := range quick {
			slices.Sort(list)
		}
		for k, s := range spans {
			if k.Transfer {
				took[k] = quick[s.size][len(quick[s.size])/4]
			}
		}
	}
	return func(m Meeting) int64 { return took[m.key] }
}

// onHost says whether no rank has a device.
func onHost(w *planpb.Workload) bool {
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			if t.GetSpan().GetKind() == planpb.Span_DEVICE {
				return false
			}
		}
	}
	return true
}

// Scaled is costs of a workload whose operations run on other backends: what an
// operation took in the trace, times what the table says of the new backend
// over what it says of the old. Where the table has no cost of the old one, the
// table's alone; where it has none of the new one, what it took.
type Scaled struct {
	Traced CommunicationCost
	// Table is what an operation costs on a backend, false where that is not known.
	Table func(m Meeting, backend string) (int64, bool)
	Old   string // the backend of the trace, or what stands in for it

	// Unscaled and Unknown count, over all plays, operations without a cost of the
	// old backend and without one of the new.
	Unscaled, Unknown int
}

// Cost is the time of an operation on the backend that its communication names.
func (s *Scaled) Cost(m Meeting) int64 {
	traced := s.Traced(m)
	backend := m.Communication.Backend
	if backend == "" || backend == s.Old {
		return traced
	}
	now, ok := s.Table(m, backend)
	if !ok {
		s.Unknown++
		return traced
	}
	before, ok := s.Table(m, s.Old)
	if !ok || before == 0 {
		s.Unscaled++
		return now
	}
	return int64(float64(traced) * float64(now) / float64(before))
}
