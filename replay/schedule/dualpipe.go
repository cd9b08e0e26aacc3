package schedule

import "fmt"

// dualPipe runs two pipelines in opposite directions over the same ranks: stage
// s is on rank s for the first half of the micro-batches and on rank p-1-s for
// the second half, so that the weights are held twice. A rank's order is that of
// DualPipeV over half the ranks, counted from the nearer end.
//
// Source: deepseek-ai/DualPipe, DualPipe.
func dualPipe(s Shape) (Order, error) {
	p, m := s.Ranks, s.Microbatches
	if p%2 != 0 || m%2 != 0 || m < 2*p {
		return nil, fmt.Errorf("dualpipe needs an even number of ranks and an even number of micro-batches, at least two per rank, not ranks=%d with microbatches=%d", p, m)
	}
	return rows(p, func(r int) []Action {
		down := chunkCursor{stage: r}
		up := chunkCursor{stage: p - 1 - r, first: m / 2}
		if r < p/2 {
			return dualRow(p/2, r, m/2, down, up)
		}
		return dualRow(p/2, p-1-r, m/2, up, down)
	}), nil
}
