package breakdown

import (
	"cmp"
	"slices"

	"mixdown/ingest/trace"
)

// Outside is the step of what belongs to none.
const Outside = -1

// Step is a training iteration of the run.
type Step struct {
	Name   string `json:"name"`
	Number int    `json:"number"`
	Ranks  int    `json:"ranks"` // that have it
	// Dur is the longest of the ranks', ns, as the CPU saw it.
	Dur int64 `json:"dur_ns"`
}

// stepKey tells the steps of one rank apart: profilers number them, but a file
// made of several may have a name twice.
type stepKey struct {
	name       string
	occurrence int
}

// findSteps lists the steps of all ranks, by number, and says for each rank
// which of them its own are.
func findSteps(run *trace.Run) (steps []Step, of [][]int) {
	index := map[stepKey]int{}
	of = make([][]int, len(run.Ranks))
	for r, rank := range run.Ranks {
		seen := map[string]int{}
		for _, s := range rank.Steps {
			k := stepKey{s.Name, seen[s.Name]}
			seen[s.Name]++
			i, ok := index[k]
			if !ok {
				i = len(steps)
				index[k] = i
				steps = append(steps, Step{Name: s.Name, Number: s.Number})
			}
			steps[i].Ranks++
			steps[i].Dur = max(steps[i].Dur, s.End-s.Start)
			of[r] = append(of[r], i)
		}
	}
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(steps[a].Number, steps[b].Number) })
	sorted, place := make([]Step, len(steps)), make([]int, len(steps))
	for to, from := range order {
		sorted[to], place[from] = steps[from], to
	}
	for _, list := range of {
		for i := range list {
			list[i] = place[list[i]]
		}
	}
	return sorted, of
}

// segment is a part of a rank's CPU time: a step, or what lies between two.
type segment struct {
	start int64 // ns; it ends where the next one starts
	step  int   // of the run, or Outside
}

// segments cuts a rank's time at its steps. They do not overlap: a step that has
// not ended when the next one starts ends there. The first segment has no start.
func segments(rank *trace.Rank, of []int) []segment {
	order := make([]int, len(rank.Steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank.Steps[a].Start, rank.Steps[b].Start) })
	list := []segment{{start: -1 << 63, step: Outside}}
	for n, i := range order {
		s := rank.Steps[i]
		list = append(list, segment{start: s.Start, step: of[i]})
		if n+1 == len(order) || rank.Steps[order[n+1]].Start > s.End {
			list = append(list, segment{start: s.End, step: Outside})
		}
	}
	return list
}

// segmentAt is the index of the segment that a time, ns, lies in.
func segmentAt(list []segment, t int64) int {
	i, _ := slices.BinarySearchFunc(list, t, func(s segment, t int64) int {
		if s.start <= t {
			return -1
		}
		return 1
	})
	return i - 1
}
