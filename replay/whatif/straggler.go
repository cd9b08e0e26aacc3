package whatif

import (
	"fmt"
	"slices"

	"mixdown/replay/fold"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

var heal = Kind{
	Name: "straggler", Value: "heal", Example: "straggler=heal",
	Summary: "no rank takes longer for its work than the median of those that do the same, and none starts later",
	Formula: "ranks of equal programs: each span at most the median of that span over them; ranks that only communicate alike: all spans of a rank x median work / its work, where that is below 1",
	Source:  "what-if analysis of stragglers (OSDI 2025, arXiv 2505.05713): re-simulation without stragglers",
	Cost:    "none, if the straggler's cause can be removed", NotModeled: "why a rank was slow: more work of its own (uneven experts, say) is healed too",
	Step: true, once: true, AllRanks: true,
	parse: func(value string) (change, error) {
		if value != "heal" {
			return nil, fmt.Errorf("%q: expected heal", value)
		}
		return healAll{}, nil
	},
}

type healAll struct{}

func (healAll) step(s *Step) error {
	var same, alike, alone int
	for _, set := range fold.Alike(s.Workload) {
		switch {
		case len(set) < 2:
			alone++
		case equalPrograms(s.Workload, set):
			same += len(set)
			healTasks(s.Workload, set)
			healStarts(s.Workload, set)
		default:
			alike += len(set)
			healWork(s.Workload, set)
			healStarts(s.Workload, set)
		}
	}
	if same+alike == 0 {
		return fmt.Errorf("%w: no two ranks do the same, so no rank has peers to be measured by", ErrNotApplicable)
	}
	if same > 0 {
		s.note("%d ranks are healed span by span", same)
	}
	if alike > 0 {
		s.note("%d ranks are healed as a whole: they communicate alike, but their spans can't be paired", alike)
	}
	if alone > 0 {
		s.note("%d ranks do what no other does and keep their times", alone)
	}
	return nil
}

// equalPrograms says whether programs have the same tasks, but for their times.
func equalPrograms(w *planpb.Workload, set []int) bool {
	first := w.Programs[set[0]]
	for _, i := range set[1:] {
		p := w.Programs[i]
		if len(p.Tasks) != len(first.Tasks) {
			return false
		}
		for k, t := range p.Tasks {
			u := first.Tasks[k]
			if t.Stream != u.Stream || t.GetSpan().GetKind() != u.GetSpan().GetKind() || t.GetCommunication().GetOp() != u.GetCommunication().GetOp() {
				return false
			}
		}
	}
	return true
}

// healTasks brings every span down to the median of it.
func healTasks(w *planpb.Workload, set []int) {
	for k := range w.Programs[set[0]].Tasks {
		var list []int64
		for _, i := range set {
			list = append(list, w.Programs[i].Tasks[k].GetSpan().GetDurationNs())
		}
		most := median(list)
		for _, i := range set {
			if span := w.Programs[i].Tasks[k].GetSpan(); span != nil {
				plan.Resize(span, min(span.DurationNs, most))
			}
		}
	}
}

// healWork brings the work of every rank down to the median of it.
func healWork(w *planpb.Workload, set []int) {
	var list []int64
	for _, i := range set {
		list = append(list, spans(w.Programs[i]))
	}
	most := median(list)
	for n, i := range set {
		if list[n] <= most {
			continue
		}
		for _, t := range w.Programs[i].Tasks {
			if span := t.GetSpan(); span != nil {
				plan.Resize(span, int64(float64(span.DurationNs)*float64(most)/float64(list[n])))
			}
		}
	}
}

// healStarts lets nobody start later than the median.
func healStarts(w *planpb.Workload, set []int) {
	var list []int64
	for _, i := range set {
		list = append(list, w.Programs[i].StartOffsetNs)
	}
	most := median(list)
	for _, i := range set {
		w.Programs[i].StartOffsetNs = min(w.Programs[i].StartOffsetNs, most)
	}
}

func spans(p *planpb.Program) int64 {
	var ns int64
	for _, t := range p.Tasks {
		ns += t.GetSpan().GetDurationNs()
	}
	return ns
}

// median is the lower one of two in the middle.
func median(list []int64) int64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[(len(sorted)-1)/2]
}
