package critical

import (
	"cmp"
	"fmt"
	"slices"

	"mixdown/ingest/comm"
)

// sum adds the path up and says what bounds the step.
func (r *Result) sum() {
	kinds := map[Kind]int64{}
	ranks := map[int]*RankTotal{}
	classes := map[classKey]*ClassTotal{}
	type named struct {
		kind Kind
		name string
	}
	names := map[named]int64{}
	for i := range r.Path {
		s := &r.Path[i]
		kinds[s.Kind] += s.Dur
		rank := ranks[s.Rank]
		if rank == nil {
			rank = &RankTotal{Rank: s.Rank}
			ranks[s.Rank] = rank
		}
		rank.NS += s.Dur
		if s.Kind != KindTransfer || s.Unsplit {
			rank.Own += s.Dur
		}
		name := named{s.Kind, s.Name}
		switch {
		case s.Class != nil:
			name.name = s.Class.name()
			addClass(classes, s)
		case s.Kind == KindIdle && s.Name != lateStart:
			name.name = "" // of what followed: nothing that took the time
		}
		names[name] += s.Dur
	}
	for _, k := range Kinds() {
		r.ByKind = append(r.ByKind, KindTotal{k, kinds[k]})
	}
	r.ByRank, r.ByClass, r.ByName = []RankTotal{}, []ClassTotal{}, []NameTotal{}
	for _, t := range ranks {
		r.ByRank = append(r.ByRank, *t)
	}
	slices.SortFunc(r.ByRank, func(a, b RankTotal) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Rank, b.Rank))
	})
	for _, t := range classes {
		r.ByClass = append(r.ByClass, *t)
	}
	slices.SortFunc(r.ByClass, func(a, b ClassTotal) int {
		return cmp.Or(cmp.Compare(b.Wait+b.Transfer, a.Wait+a.Transfer), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Op, b.Op), cmp.Compare(a.size(), b.size()))
	})
	for k, ns := range names {
		r.ByName = append(r.ByName, NameTotal{k.kind, k.name, ns})
	}
	slices.SortFunc(r.ByName, func(a, b NameTotal) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	r.setBound()
}

func addClass(classes map[classKey]*ClassTotal, s *Segment) {
	key := classKey{s.Class.Group, s.Class.Op, s.Class.size()}
	t := classes[key]
	if t == nil {
		t = &ClassTotal{Class: *s.Class}
		classes[key] = t
	}
	if s.Kind == KindWait {
		t.Wait += s.Dur
		return
	}
	t.Count++
	t.Transfer += s.Dur
	t.Unsplit = t.Unsplit || s.Unsplit
}

// size is the class's, -1 when unknown.
func (c *Class) size() int64 {
	if c.SizeFrom == nil {
		return -1
	}
	return *c.SizeFrom
}

func (c *Class) name() string { return string(c.Op) + " in group " + c.Group }

// setBound finds the rank that holds up the step and what takes the time.
func (r *Result) setBound() {
	if len(r.Path) == 0 {
		return
	}
	b := &r.Bound
	b.Rank = r.ByRank[0].Rank
	for i, t := range r.ByRank {
		if i == 0 || t.Own > b.RankNS || t.Own == b.RankNS && t.Rank < b.Rank {
			b.Rank, b.RankNS = t.Rank, t.Own
		}
	}
	b.Kind, b.Name, b.NS = r.ByName[0].Kind, r.ByName[0].Name, r.ByName[0].NS
	what := string(b.Kind)
	switch {
	case b.Kind == KindTransfer:
		what = "the transfer of " + b.Name
	case b.Kind == KindWait:
		what = "waiting for the other members of " + b.Name
	case b.Name == lateStart:
		what = "time before a rank starts its step, after the first one did"
	case b.Kind == KindIdle:
		what = "time between when something could start and its start"
	case b.Kind == KindHost && b.Name == "":
		what = "the host between operators"
	case b.Kind == KindHost:
		what = "the host in " + b.Name
	case b.Name != "":
		what = string(b.Kind) + " in " + b.Name
	}
	b.Text = fmt.Sprintf("rank %d bounds the step with %.3f ms (%.0f %%) of the critical path's %.3f ms; most of the path, %.3f ms (%.0f %%), is %s",
		b.Rank, ms(b.RankNS), percent(b.RankNS, r.StepNS), ms(r.StepNS), ms(b.NS), percent(b.NS, r.StepNS), what)
}

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// groupOp is the key of gains.
type groupOp struct {
	group string
	op    comm.Op
}
