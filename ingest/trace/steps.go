package trace

import "slices"

// CommonStep is a step that every rank has.
type CommonStep struct {
	Name    string
	Number  int
	Longest int64  // ns, on the slowest rank
	Ranks   []Step // of each rank, in the order of Run.Ranks
}

// CommonSteps lists the steps that every rank has, in the order of the first
// rank. Of steps with the same name on one rank the first counts.
func (r *Run) CommonSteps() []CommonStep {
	index := map[string]int{}
	var all []CommonStep
	for k, rank := range r.Ranks {
		for _, s := range rank.Steps {
			i, known := index[s.Name]
			if !known {
				i = len(all)
				index[s.Name] = i
				all = append(all, CommonStep{Name: s.Name, Number: s.Number})
			}
			if len(all[i].Ranks) == k {
				all[i].Ranks = append(all[i].Ranks, s)
				all[i].Longest = max(all[i].Longest, s.End-s.Start)
			}
		}
	}
	return slices.DeleteFunc(all, func(s CommonStep) bool { return len(s.Ranks) < len(r.Ranks) })
}
