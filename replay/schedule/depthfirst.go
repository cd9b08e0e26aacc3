package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// depthFirst gives each rank v chunks in a loop and takes micro-batches through
// them in groups: a group passes chunk 0, then chunk 1 and so on, before the
// next group begins. Backwards follow as in 1F1B.
//
// Source: Megatron-LM forward_backward_pipelining_with_interleaving; the group
// is its microbatch_group_size_per_vp_stage, by default the number of ranks.
//
// With equal stages, makespan (mv+p-1)(forward+backward), bubble
// (p-1)/(mv+p-1); rank r holds min(mv, 2(p-1-r)+(v-1)g+1) chunks.
func depthFirst(s Shape) (Order, error) {
	group := s.Group
	if group == 0 {
		group = s.Ranks
	}
	if err := checkGroup(s, group); err != nil {
		return nil, err
	}

	// The k-th forward of any rank is micro-batch table[k] of chunk[k]; the
	// k-th backward is the same micro-batch of the chunk counted from the end.
	var table, chunk []int
	for first := 0; first < s.Microbatches; first += group {
		for c := range s.Loops {
			for mb := first; mb < min(first+group, s.Microbatches); mb++ {
				table, chunk = append(table, mb), append(chunk, c)
			}
		}
	}

	return rows(s.Ranks, func(r int) []Action {
		ahead := min(len(table), 2*(s.Ranks-1-r)+(s.Loops-1)*group)
		row := make([]Action, 0, 2*len(table))
		for k := range len(table) + ahead {
			if k < len(table) {
				row = append(row, forward(Loop.Stage(s.Ranks, r, chunk[k]), table[k]))
			}
			if b := k - ahead; b >= 0 {
				row = append(row, backward(Loop.Stage(s.Ranks, r, s.Loops-1-chunk[b]), table[b]))
			}
		}
		return row
	}), nil
}

// checkGroup is Megatron-LM's rule: without it a rank would wait for a forward
// that its neighbour runs after a backward that waits for the rank.
func checkGroup(s Shape, group int) error {
	last := s.Microbatches % group
	fits := func(g int) bool {
		return g >= s.Ranks && g <= s.Microbatches && (s.Microbatches%g == 0 || s.Microbatches%g >= s.Ranks)
	}
	switch {
	case s.Microbatches < s.Ranks:
		return fmt.Errorf("depth-first needs at least as many micro-batches as ranks, not %d for %d: use breadth-first or more micro-batches", s.Microbatches, s.Ranks)
	case fits(group):
		return nil
	}
	var works []string
	for g := s.Ranks; g <= s.Microbatches && len(works) < 4; g++ {
		if fits(g) {
			works = append(works, strconv.Itoa(g))
		}
	}
	hint := "group=" + strings.Join(works, " or group=") + " works"
	if group < s.Ranks || group > s.Microbatches {
		return fmt.Errorf("group=%d is not between the %d ranks and the %d micro-batches: %s", group, s.Ranks, s.Microbatches, hint)
	}
	return fmt.Errorf("group=%d leaves a last group of %d of the %d micro-batches, fewer than the %d ranks: %s", group, last, s.Microbatches, s.Ranks, hint)
}
