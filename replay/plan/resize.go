package plan

import "mixdown/replay/plan/planpb"

// Resize makes a span last so many ns. What part of it kernels compute, and what part
// communication ran beside, stays.
func Resize(s *planpb.Span, ns int64) {
	if before := s.DurationNs; before > 0 {
		factor := float64(ns) / float64(before)
		s.KernelNs = min(int64(float64(s.KernelNs)*factor+0.5), ns)
		s.BesideNs = min(int64(float64(s.BesideNs)*factor+0.5), ns)
	}
	s.DurationNs = ns
}
