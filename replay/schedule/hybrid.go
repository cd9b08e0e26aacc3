package schedule

import "fmt"

// hybrid makes D rounds, each breadth-first over its m/D micro-batches: less to
// hold than breadth-first, but each round pays the bubble again. Micro-batch
// b·D+d is number b of round d.
//
// Source: Fast-LLM, whose depth_first_micro_batches is D.
//
// With equal stages and m/D >= p, makespan (mv+D(p-1))(forward+backward);
// every rank holds mv/D chunks.
func hybrid(s Shape) (Order, error) {
	if s.Rounds < 1 {
		return nil, fmt.Errorf("hybrid needs rounds, for example rounds=2")
	}
	if s.Microbatches%s.Rounds != 0 {
		return nil, fmt.Errorf("rounds=%d does not divide the %d micro-batches", s.Rounds, s.Microbatches)
	}
	return rows(s.Ranks, func(r int) []Action {
		row := make([]Action, 0, 2*s.Loops*s.Microbatches)
		for d := range s.Rounds {
			row = breadth(s, r, d, s.Rounds, row)
		}
		return row
	}), nil
}
