package fold

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// ErrCannotFold: a job can't be made as small as asked, or at all.
var ErrCannotFold = errors.New("can't fold the job")

// Folded is a job of which some ranks are kept.
type Folded struct {
	// Workload has the programs that are kept and groups of their ranks. It shares
	// tasks with the one that was folded.
	Workload *planpb.Workload
	From     int // ranks of the job before
	// Classes are the sets of ranks that do the same, the largest first.
	Classes []Class

	whole  *planpb.Workload          // before
	sizes  []int                     // by group: its ranks before
	traced map[plan.MeetingKey]int64 // what collectives took that lost members
	places [][]int                   // by group: where its kept ranks were in it
}

// Class is a set of ranks that do the same.
type Class struct {
	Ranks int     // in the job
	Kept  []int32 // global ranks
	// Spread is how much longer the rank with most work takes for it than the one with
	// least, as a share of the most: what is not known of those left out.
	Spread float64
}

// Fold keeps at most so many ranks of a workload.
func Fold(w *planpb.Workload, ranks int) (*Folded, error) {
	if ranks < 1 {
		return nil, fmt.Errorf("%w: %d ranks to keep", ErrCannotFold, ranks)
	}
	all := units(w)
	classes := classify(all)
	least := 0
	for _, c := range classes {
		least += len(all[c[0]].programs)
	}
	if least > ranks {
		return nil, fmt.Errorf("%w: %d of %d ranks do something that no other does, so %d is the least (--ranks %d was asked for)", ErrCannotFold, least, len(w.Programs), least, ranks)
	}
	chosen := choose(w, all, classes, ranks)
	var kept []int32
	for n, u := range all {
		if chosen[n] {
			for _, i := range u.programs {
				kept = append(kept, w.Programs[i].Rank)
			}
		}
	}
	f, err := Keep(w, kept)
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		f.Classes = append(f.Classes, describe(w, all, c, chosen))
	}
	slices.SortStableFunc(f.Classes, func(a, b Class) int { return cmp.Compare(b.Ranks, a.Ranks) })
	return f, nil
}

// Keep keeps the ranks given, such as Fold chose them for another plan of the same
// job. It does not tell classes.
func Keep(w *planpb.Workload, kept []int32) (*Folded, error) {
	f := &Folded{whole: w, From: len(w.Programs), Workload: &planpb.Workload{
		WorldSize: w.WorldSize, Step: w.Step, TraceStepNs: w.TraceStepNs, ClocksDiffer: w.ClocksDiffer, Dependencies: w.Dependencies,
		Slowdowns: w.Slowdowns,
	}}
	keeps := map[int32]bool{}
	for _, r := range kept {
		keeps[r] = true
	}
	for _, p := range w.Programs {
		if !keeps[p.Rank] {
			continue
		}
		f.Workload.Programs = append(f.Workload.Programs, p)
		for _, t := range p.Tasks {
			for _, tr := range t.GetCommunication().GetTransfers() {
				if !keeps[tr.Peer] {
					return nil, fmt.Errorf("%w: rank %d exchanges messages with rank %d, which is not kept", ErrCannotFold, p.Rank, tr.Peer)
				}
			}
		}
	}
	for _, g := range w.Groups {
		small := &planpb.Group{Name: g.Name, Description: g.Description}
		var places []int
		for at, r := range g.Ranks {
			if keeps[r] {
				small.Ranks = append(small.Ranks, r)
				places = append(places, at)
			}
		}
		f.places = append(f.places, places)
		f.sizes = append(f.sizes, len(g.Ranks))
		f.Workload.Groups = append(f.Workload.Groups, small)
	}
	f.measure()
	return f, nil
}

// Kept are the global ranks that are kept.
func (f *Folded) Kept() []int32 {
	var list []int32
	for _, p := range f.Workload.Programs {
		list = append(list, p.Rank)
	}
	return list
}

func describe(w *planpb.Workload, all []unit, class []int, kept map[int]bool) Class {
	var c Class
	least, most := all[class[0]].work, int64(0)
	for _, n := range class {
		c.Ranks += len(all[n].programs)
		least, most = min(least, all[n].work), max(most, all[n].work)
		if kept[n] {
			for _, i := range all[n].programs {
				c.Kept = append(c.Kept, w.Programs[i].Rank)
			}
		}
	}
	if most > 0 {
		c.Spread = float64(most-least) / float64(most)
	}
	return c
}

// classify sorts units into classes of those alike, by their index, each with the
// slowest first.
func classify(all []unit) [][]int {
	at := map[uint64]int{}
	var classes [][]int
	for n, u := range all {
		k, ok := at[u.sign]
		if !ok {
			k = len(classes)
			at[u.sign] = k
			classes = append(classes, nil)
		}
		classes[k] = append(classes[k], n)
	}
	for _, c := range classes {
		slices.SortStableFunc(c, func(a, b int) int { return cmp.Compare(all[b].work, all[a].work) })
	}
	return classes
}

// choose says which units are kept: of each class the slowest or, where units of
// other classes were chosen before, the one that shares most groups with them; then
// more of the classes of which the smallest part is kept.
func choose(w *planpb.Workload, all []unit, classes [][]int, ranks int) map[int]bool {
	groups := groupsOf(w)
	kept := map[int]bool{}
	chosen := map[int32]int{} // group -> ranks chosen
	count := make([]int, len(classes))
	take := func(k int) {
		best, most := -1, -1
		for _, n := range classes[k] {
			if kept[n] {
				continue
			}
			shared := 0
			for _, i := range all[n].programs {
				for _, g := range groups[i] {
					if chosen[g] > 0 {
						shared++
					}
				}
			}
			if shared > most {
				best, most = n, shared
			}
			if count[k] > 0 { // the next slowest
				break
			}
		}
		kept[best] = true
		count[k]++
		ranks -= len(all[best].programs)
		for _, i := range all[best].programs {
			for _, g := range groups[i] {
				chosen[g]++
			}
		}
	}
	for k := range classes {
		take(k)
	}
	for {
		next := -1
		for k, c := range classes {
			if count[k] < len(c) && len(all[c[0]].programs) <= ranks &&
				(next < 0 || count[k]*len(classes[next]) < count[next]*len(c)) {
				next = k
			}
		}
		if next < 0 {
			return kept
		}
		take(next)
	}
}

// groupsOf lists the groups of each program's rank.
func groupsOf(w *planpb.Workload) [][]int32 {
	index := map[int32]int{}
	for i, p := range w.Programs {
		index[p.Rank] = i
	}
	list := make([][]int32, len(w.Programs))
	for g, group := range w.Groups {
		for _, r := range group.Ranks {
			if i, ok := index[r]; ok {
				list[i] = append(list[i], int32(g))
			}
		}
	}
	return list
}

// Size is the number of ranks that a group had before.
func (f *Folded) Size(group int32) int { return f.sizes[group] }

// Cost is a cost of the job that was folded, asked by the operations of the folded
// one: they have the size of their group back, and what they took in the trace with
// all their members.
func (f *Folded) Cost(cost sim.CommunicationCost) sim.CommunicationCost {
	return func(m sim.Meeting) int64 {
		if !m.Transfer {
			m.Ranks = f.sizes[m.Communication.Group]
			if ns, ok := f.traced[plan.CollectiveKey(m.Communication)]; ok {
				m.Traced = ns
			}
		}
		return cost(m)
	}
}

// Late is how much later than the kept members of an operation the others came in
// the trace, ns: it is waiting, which no change of the operation makes shorter. It is
// 0 where the trace does not tell.
func (f *Folded) Late(m sim.Meeting) int64 {
	if m.Transfer || !m.Known {
		return 0
	}
	if ns, ok := f.traced[plan.CollectiveKey(m.Communication)]; ok {
		return max(m.Traced-ns, 0)
	}
	return 0
}

// Play plays the folded workload by a cost of the job that was folded, with those
// left out as late as they were.
func (f *Folded) Play(cost sim.CommunicationCost) (*sim.WorkloadRun, error) {
	full := f.Cost(cost)
	return sim.PlayWorkload(f.Workload, func(m sim.Meeting) int64 { return full(m) + f.Late(m) })
}

// measure takes what the collectives took of which members were left out: those
// who are kept may not have been the last to come.
func (f *Folded) measure() {
	type sides struct{ start, end []int64 }
	lost := map[plan.MeetingKey]*sides{}
	each := func(w *planpb.Workload, do func(plan.MeetingKey, *planpb.Origin)) {
		for _, p := range w.Programs {
			for _, t := range p.Tasks {
				if c := t.GetCommunication(); c != nil && len(c.Transfers) == 0 && t.Origin != nil && f.sizes[c.Group] > len(f.Workload.Groups[c.Group].Ranks) {
					do(plan.CollectiveKey(c), t.Origin)
				}
			}
		}
	}
	each(f.Workload, func(k plan.MeetingKey, _ *planpb.Origin) { lost[k] = &sides{} })
	if len(lost) == 0 {
		return
	}
	each(f.whole, func(k plan.MeetingKey, o *planpb.Origin) {
		if s := lost[k]; s != nil {
			s.start, s.end = append(s.start, o.Ts), append(s.end, o.Ts+o.Dur)
		}
	})
	f.traced = map[plan.MeetingKey]int64{}
	for k, s := range lost {
		f.traced[k] = sim.TransferTime(s.start, s.end, f.whole.ClocksDiffer)
	}
}
