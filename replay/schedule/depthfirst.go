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

	groups := newGroups(s, group)
	return rows(s.Ranks, func(r int) []Action {
		return groups.row(r, 2*(s.Ranks-1-r)+(s.Loops-1)*group)
	}), nil
}

// groups is the sequence in which every rank takes micro-batches through its
// chunks in a loop: the k-th forward is micro-batch table[k] of chunk[k]; the
// k-th backward is the same micro-batch of the chunk counted from the end.
type groups struct {
	ranks, loops int
	table, chunk []int
}

func newGroups(s Shape, group int) groups {
	g := groups{ranks: s.Ranks, loops: s.Loops}
	for first := 0; first < s.Microbatches; first += group {
		for c := range s.Loops {
			for mb := first; mb < min(first+group, s.Microbatches); mb++ {
				g.table, g.chunk = append(g.table, mb), append(g.chunk, c)
			}
		}
	}
	return g
}

// row is the order of a rank that runs `ahead` forwards before the first pair
// of a forward and a backward.
func (g groups) row(r, ahead int) []Action {
	ahead = min(ahead, len(g.table))
	row := make([]Action, 0, 2*len(g.table))
	for k := range len(g.table) + ahead {
		if k < len(g.table) {
			row = append(row, forward(Loop.Stage(g.ranks, r, g.chunk[k]), g.table[k]))
		}
		if b := k - ahead; b >= 0 {
			row = append(row, backward(Loop.Stage(g.ranks, r, g.loops-1-g.chunk[b]), g.table[b]))
		}
	}
	return row
}

// checkGroup is Megatron-LM's rule: without it a rank would wait for a forward
// that its neighbour runs after a backward that waits for the rank. One group of
// all micro-batches works however few they are, and PyTorch makes it so.
func checkGroup(s Shape, group int) error {
	last := s.Microbatches % group
	fits := func(g int) bool {
		return g >= s.Ranks && g <= s.Microbatches && (s.Microbatches%g == 0 || s.Microbatches%g >= s.Ranks)
	}
	switch {
	case group == s.Microbatches || fits(group):
		return nil
	case s.Microbatches < s.Ranks:
		return fmt.Errorf("depth-first needs at least as many micro-batches as ranks, not %d for %d: use breadth-first, more micro-batches, or group=%d as PyTorch does", s.Microbatches, s.Ranks, s.Microbatches)
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
