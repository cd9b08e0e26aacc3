package schedule

// eagerOneFOneB is 1F1B with about twice as many forwards first, which hides
// the hops of activations behind computation.
//
// Source: arXiv 2211.05322; 1f1b_overlap_friendly in Alpa.
//
// Makespan as 1F1B without hops, 2(p-1)c more with them; rank r holds
// min(m, 2(p-r)-1) micro-batches.
func eagerOneFOneB(s Shape) (Order, error) {
	return rows(s.Ranks, func(r int) []Action {
		return alternate(r, s.Microbatches, 2*(s.Ranks-r)-1)
	}), nil
}
