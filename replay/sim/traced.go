package sim

import "mixdown/replay/plan/planpb"

// TracedCosts is what the operations of a workload took to transfer in the trace:
// from when the last member was there to when the members had ended, in ns. What
// came before is waiting, which a simulation makes itself.
func TracedCosts(*planpb.Workload) CommunicationCost {
	return func(m Meeting) int64 { return m.Traced }
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
	// old backend and without one of the new; Found those with one of the new.
	Unscaled, Unknown, Found int
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
	s.Found++
	before, ok := s.Table(m, s.Old)
	if !ok || before == 0 {
		s.Unscaled++
		return now
	}
	return int64(float64(traced) * float64(now) / float64(before))
}
