package schedule

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
)

// compare compares the order with the one that a candidate makes.
func (s observed) compare(c Spec, made Order) Recognition {
	want := computations(made)
	r := s.differences(s.rows, want)
	if len(r.Differ) > 0 && s.splits {
		// Where backwards are split, a framework may still run both parts
		// at once when nothing comes between them.
		if f := s.differences(s.fused, fuse(want)); len(f.Differ) < len(r.Differ) {
			r, r.Fused = f, true
		}
	}
	r.Exact = len(r.Differ) == 0
	r.Unobserved = s.unobserved
	return r
}

// differences compares rows of the order with those of a schedule.
func (s observed) differences(got, want [][]Action) Recognition {
	r := Recognition{}
	want, r.Renumbered = s.renumber(want)
	kept, all := 0, 0
	for rank, row := range got {
		if len(row) == 0 {
			continue
		}
		all += max(len(row), len(want[rank]))
		if slices.Equal(row, want[rank]) {
			kept += len(row)
			continue
		}
		in := inPlace(row, want[rank])
		kept += in
		r.Differ = append(r.Differ, difference(rank, row, want[rank], in))
	}
	r.InPlace = Ratio(int64(kept), int64(all))
	return r
}

// renumber gives the micro-batches of a schedule the numbers that those of the
// order have, taking for the same those that enter stage 0 at the same place.
func (s observed) renumber(want [][]Action) ([][]Action, bool) {
	enter := entries(want, s.microbatches)
	if enter == nil || s.enter == nil || slices.Equal(enter, s.enter) {
		return want, false
	}
	number := make([]int32, s.microbatches+1) // by place in stage 0: the order's number
	for mb, place := range s.enter {
		number[place] = int32(mb)
	}
	for _, row := range want {
		for i := range row {
			row[i].Microbatch = number[enter[row[i].Microbatch]]
		}
	}
	return want, true
}

// inPlace is the most actions of a row that stand in the same sequence in
// another: what need not move to make the one of the other.
func inPlace(row, want []Action) int {
	at := make(map[Action]int, len(want))
	for i, a := range want {
		at[a] = i
	}
	// Each action stands once, so that the longest common subsequence is the
	// longest ascending one of places; ends[k] is the least place in which
	// one of k+1 actions ends.
	var ends []int
	for _, a := range row {
		place, ok := at[a]
		if !ok {
			continue
		}
		if k := sort.SearchInts(ends, place); k == len(ends) {
			ends = append(ends, place)
		} else {
			ends[k] = place
		}
	}
	return len(ends)
}

// difference describes how a row departs from a schedule's.
func difference(rank int, row, want []Action, in int) Difference {
	d := Difference{Rank: rank, Of: len(row), Moved: max(len(row), len(want)) - in}
	for d.Place < len(row) && d.Place < len(want) && row[d.Place] == want[d.Place] {
		d.Place++
	}
	if d.Place < len(row) {
		d.Got = row[d.Place].String()
	}
	if d.Place < len(want) {
		d.Want = want[d.Place].String()
	}
	d.How = fmt.Sprintf("%s (%d of %d actions elsewhere)", how(row, want, d), d.Moved, d.Of)
	return d
}

// how finds words for a difference.
func how(row, want []Action, d Difference) string {
	if held, other := stages(row), stages(want); !slices.Equal(held, other) {
		return fmt.Sprintf("holds stages %s, not %s", list(held), list(other))
	}
	if len(row) != len(want) {
		return fmt.Sprintf("has %d actions, not %d", len(row), len(want))
	}
	now, usual := alternating(row), alternating(want)
	for _, stage := range stages(row) {
		if now[stage] && !usual[stage] {
			return "alternates forward and backward in " + chunkName(row, stage)
		}
	}
	forwards, back := slices.Equal(only(row, isForward), only(want, isForward)), slices.Equal(only(row, isBackward), only(want, isBackward))
	ahead, expected := slices.IndexFunc(row, isBackward), slices.IndexFunc(want, isBackward)
	switch {
	case forwards && back && ahead != expected:
		noun := "forwards"
		if ahead == 1 {
			noun = "forward"
		}
		return fmt.Sprintf("runs %d %s before its first backward, not %d", ahead, noun, expected)
	case forwards && !back:
		return "takes its backwards in another order, " + d.instead()
	case !forwards && back:
		return "takes its forwards in another order, " + d.instead()
	}
	return "has " + d.instead()
}

// list is numbers for a message, of many the first ones.
func list(numbers []int32) string {
	const most = 8
	if len(numbers) <= most {
		return fmt.Sprint(numbers)
	}
	return fmt.Sprintf("%v and %d more", numbers[:most], len(numbers)-most)
}

// instead names the first actions that differ.
func (d Difference) instead() string {
	return fmt.Sprintf("%s instead of %s at place %d", d.Got, d.Want, d.Place)
}

func isForward(a Action) bool  { return a.Kind == Forward }
func isBackward(a Action) bool { return a.Kind == Backward || a.Kind == Input }

// only is the actions of a row that are of some kind.
func only(row []Action, is func(Action) bool) []Action {
	var list []Action
	for _, a := range row {
		if is(a) {
			list = append(list, a)
		}
	}
	return list
}

// stages are those that a row holds, ascending.
func stages(row []Action) []int32 {
	held := map[int32]bool{}
	for _, a := range row {
		held[a.Stage] = true
	}
	return slices.Sorted(maps.Keys(held))
}

// alternating are the stages whose every forward is followed, among all the
// actions of the row, by its own backward.
func alternating(row []Action) map[int32]bool {
	forwards, followed := map[int32]int{}, map[int32]int{}
	for i, a := range row {
		if a.Kind != Forward {
			continue
		}
		forwards[a.Stage]++
		if i+1 < len(row) && isBackward(row[i+1]) && row[i+1].Stage == a.Stage && row[i+1].Microbatch == a.Microbatch {
			followed[a.Stage]++
		}
	}
	found := map[int32]bool{}
	for stage, n := range forwards {
		found[stage] = n > 1 && followed[stage] == n
	}
	return found
}

// chunkName names a stage by its place among a rank's, for messages.
func chunkName(row []Action, stage int32) string {
	held := stages(row)
	switch i := slices.Index(held, stage); {
	case len(held) == 1:
		return "its stage"
	case i == len(held)-1:
		return "its last chunk"
	case i == 0:
		return "its first chunk"
	default:
		return "chunk " + strconv.Itoa(i)
	}
}
