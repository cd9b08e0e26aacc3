package pipeline

import (
	"cmp"
	"slices"

	"mixdown/ingest/comm"
)

// at is where a rank is: in which pipeline, at which place.
type at struct{ pipeline, place int }

// addReductions lists the collectives that the ranks of the pipelines took part
// in, step by step, and whose gradients they are about.
func (f *finding) addReductions() {
	where := map[int]at{} // by global rank
	for n, p := range f.res.Pipelines {
		for place, rank := range p.Ranks {
			where[rank] = at{n, place}
		}
	}
	for n, p := range f.res.Pipelines {
		parallel := f.parallelGroups(n, where)
		for i := range p.Steps {
			s := &p.Steps[i]
			for place := range p.Ranks {
				s.Reductions = append(s.Reductions, f.reductions(s, f.views[p.Index[place]], place, parallel)...)
			}
		}
		f.exceptActivations(p, parallel)
		for i := range p.Steps {
			f.nameStages(p, &p.Steps[i], &f.drafts[p][i])
		}
	}
}

// reductions lists those of one place, in the order they were issued.
func (f *finding) reductions(s *Step, v *view, place int, parallel map[int]bool) []Reduction {
	on := span{s.Start[place], s.End[place]}
	var list []Reduction
	for i := range v.rank.Operations {
		op := &v.rank.Operations[i]
		if op.Op.IsP2P() || !on.holds(op.Issued) {
			continue
		}
		g := f.match.GroupOf[v.index][op.Group]
		r := Reduction{Place: place, Operation: i, Op: op.Op, Group: g, Stage: Unknown,
			Issued: op.Issued, Start: op.Start, End: op.End, DataParallel: parallel[g]}
		if op.SizeKnown {
			r.Bytes = max(op.InBytes(), op.OutBytes())
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b Reduction) int { return cmp.Compare(a.Issued, b.Issued) })
	return list
}

// nameStages says of all places whose gradients or weights the reductions are about.
func (f *finding) nameStages(p *Pipeline, s *Step, d *draft) {
	for place := range p.Ranks {
		from := slices.IndexFunc(s.Reductions, func(r Reduction) bool { return r.Place == place })
		if from < 0 {
			continue
		}
		to := from
		for to < len(s.Reductions) && s.Reductions[to].Place == place {
			to++
		}
		f.views[p.Index[place]].nameStages(s.Reductions[from:to], d.works[place], p, place)
	}
}

// nameStages says whose gradients or weights the reductions are about: the label
// they were called in tells, else, of data parallelism, the only stage there is,
// or the stage that finished its backward passes just before.
func (v *view) nameStages(list []Reduction, works []work, p *Pipeline, place int) {
	var stages []int
	for stage, on := range p.StagePlace {
		if on == place {
			stages = append(stages, stage)
		}
	}
	finished := map[int]int64{} // stage -> when the program was through with its last backward
	for i := range works {
		if w := &works[i]; w.phase != Forward {
			finished[w.stage] = max(finished[w.stage], w.window.end)
		}
	}
	before, last := int64(0), Unknown
	for i := range list {
		r := &list[i]
		if stage, ok := v.labelledStage(r.Issued); ok {
			r.Stage = stage
			continue
		}
		if !r.DataParallel {
			continue
		}
		if len(stages) == 1 {
			r.Stage = stages[0]
			continue
		}
		var since []int
		for _, stage := range stages {
			if end, ok := finished[stage]; ok && end > before && end <= r.Issued {
				since = append(since, stage)
			}
		}
		switch {
		case len(since) == 1:
			last = since[0]
		case len(since) > 1:
			last = Unknown // which of them comes first is not known
		}
		before = r.Issued
		r.Stage = last
	}
}

// labelledStage is the stage of the label around a moment of the program.
func (v *view) labelledStage(t int64) (int, bool) {
	stage, found := Unknown, false
	for i := range v.labels {
		l := &v.labels[i]
		if l.start > t {
			break
		}
		if a := l.actions[0]; l.holds(t) && len(l.actions) == 1 && a.stage != Unknown {
			stage, found = a.stage, true
		}
	}
	return stage, found
}

// parallelGroups finds the groups in which the ranks of pipeline n meet those
// of the same place in other pipelines.
func (f *finding) parallelGroups(n int, where map[int]at) map[int]bool {
	parallel := map[int]bool{}
	for _, r := range f.res.Pipelines[n].Index {
		for _, g := range f.match.GroupOf[r] {
			if _, seen := parallel[g]; !seen {
				parallel[g] = f.meets(f.match.Groups[g].Ranks, where)
			}
		}
	}
	return parallel
}

// meets says whether the ranks hold one place in several pipelines.
func (f *finding) meets(ranks []int, where map[int]at) bool {
	first, several := at{Unknown, Unknown}, false
	for _, rank := range ranks {
		w, ok := where[rank]
		switch {
		case !ok:
		case first.place == Unknown:
			first = w
		case w.place != first.place:
			return false
		default:
			several = several || w.pipeline != first.pipeline
		}
	}
	return several
}

// exceptActivations takes back that groups are of data parallelism where their
// ranks share the work of layers: those hold the same place too, and reduce
// activations in the middle of a forward, which data parallelism never does.
func (f *finding) exceptActivations(p *Pipeline, parallel map[int]bool) {
	shared := map[int]bool{}
	for i := range p.Steps {
		for _, r := range p.Steps[i].Reductions {
			if r.Op == comm.AllReduce && parallel[r.Group] && !shared[r.Group] {
				shared[r.Group] = slices.ContainsFunc(f.drafts[p][i].works[r.Place], func(w work) bool {
					return w.phase == Forward && w.window.holds(r.Issued)
				})
			}
		}
	}
	for i := range p.Steps {
		for k := range p.Steps[i].Reductions {
			r := &p.Steps[i].Reductions[k]
			r.DataParallel = r.DataParallel && !shared[r.Group]
		}
	}
}
