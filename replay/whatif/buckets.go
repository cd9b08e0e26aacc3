package whatif

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

var buckets = Kind{
	Name: "buckets", Value: "SIZE", Example: "buckets=50MiB",
	Summary: "all_reduces are gathered in buckets of another size: neighbours fused, larger ones cut",
	Formula: "T(n) = a + b n, fitted to the all_reduces of the group in the trace (least squares of relative errors); parts of one that is cut start while the span before it runs",
	Source:  "gradient bucketing of PyTorch DDP (VLDB 2020, arXiv 2006.15704)",
	Cost:    "memory: a bucket is a copy of its gradients, so larger ones hold more", NotModeled: "copying into buckets; which gradient is made when, but for an even rate",
	Step: true, AllRanks: true, structure: true, once: true,
	parse: func(value string) (change, error) {
		n, err := mix.ParseSize(value)
		if err == nil && n == 0 {
			err = fmt.Errorf("%q: a bucket of nothing", value)
		}
		return bucketsOf{n}, err
	},
}

type bucketsOf struct{ size int64 }

func (c bucketsOf) step(s *Step) error {
	if s.serial {
		return errCutBeside
	}
	bucketed, fused, cut := plan.Bucket(s.Workload, c.size)
	large := stillLarger(bucketed, c.size)
	if fused+cut == 0 && large > 0 {
		return fmt.Errorf("%w: buckets of %d bytes hold less than an element, or would be more than can be counted", ErrNotApplicable, c.size)
	}
	if fused+cut == 0 {
		return fmt.Errorf("%w: no all_reduce is larger, and no two neighbours fit into one", ErrNotApplicable)
	}
	made, notes, err := Refit(s.Workload, bucketed, s.Costs(s.Workload))
	if err != nil {
		return err
	}
	s.Workload, s.fused = bucketed, made
	s.note("%d all_reduces fused into others, %d cut", fused, cut)
	if large > 0 {
		s.note("%d all_reduces stay larger: they can't be cut into so many parts", large)
	}
	s.notes = append(s.notes, notes...)
	return nil
}

// stillLarger counts the all_reduces that Bucket left larger than a bucket.
func stillLarger(w *planpb.Workload, size int64) int {
	found := map[plan.MeetingKey]bool{}
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			c := t.GetCommunication()
			if c != nil && t.Origin != nil && c.Op == planpb.Op_OP_ALL_REDUCE && plan.Bytes(c) > size {
				found[plan.CollectiveKey(c)] = true
			}
		}
	}
	return len(found)
}

// Refit is what the all_reduces took that plan.Fuse or plan.Bucket made, which are
// not in the trace: by a line through what those of the same group took before, by
// the cost given. The function is false for any other operation; the notes say how
// well the lines fit. Where a group had one size only, no line can be drawn, and it
// is ErrNotApplicable.
func Refit(before, after *planpb.Workload, cost sim.CommunicationCost) (made func(sim.Meeting) (int64, bool), notes []string, err error) {
	fits := fitReductions(before, cost)
	isNew := map[*planpb.Communication]bool{}
	for _, program := range after.Programs {
		for _, t := range program.Tasks {
			isNew[t.GetCommunication()] = t.Origin == nil
		}
	}
	changed := map[plan.MeetingKey]bool{}
	needed := map[int32]*span{} // sizes of what is new, by group
	for _, m := range sim.NewGraph(after).Meetings() {
		if m.Transfer || m.Communication.Op != planpb.Op_OP_ALL_REDUCE || !isNew[m.Communication] {
			continue
		}
		g := m.Communication.Group
		changed[plan.CollectiveKey(m.Communication)] = true
		if needed[g] == nil {
			needed[g] = &span{math.MaxInt64, 0}
		}
		needed[g].add(plan.Bytes(m.Communication))
		if _, ok := fits[g]; !ok {
			return nil, nil, fmt.Errorf("%w: what an all_reduce of another size takes follows from those of two sizes or more, and group %q has one", ErrNotApplicable, before.Groups[g].Name)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(needed)) {
		f := fits[g]
		if made := needed[g]; made.least < f.sizes.least || made.most > f.sizes.most {
			notes = append(notes, fmt.Sprintf("all_reduces of group %q of %d to %d bytes are made of those of %d to %d bytes: beyond what the trace shows",
				before.Groups[g].Name, made.least, made.most, f.sizes.least, f.sizes.most))
		}
		notes = append(notes, fmt.Sprintf("an all_reduce of group %q takes %.1f us + %.3f us a MiB, within %.0f %% of what %d of them took",
			before.Groups[g].Name, f.fixed/1e3, f.each*(1<<20)/1e3, 100*f.off, f.n))
	}
	return func(m sim.Meeting) (int64, bool) {
		if m.Transfer || !changed[plan.CollectiveKey(m.Communication)] {
			return 0, false
		}
		f := fits[m.Communication.Group]
		return new(bounded).nanoseconds(math.Round(f.fixed + f.each*float64(plan.Bytes(m.Communication)))), true
	}, notes, nil
}

// fitted is a line through what operations took: fixed + each x bytes, ns.
type fitted struct {
	fixed, each float64
	off         float64 // root of the mean square of relative errors
	n           int
	sizes       span
}

// span is from the least to the most bytes.
type span struct{ least, most int64 }

func (s *span) add(bytes int64) { s.least, s.most = min(s.least, bytes), max(s.most, bytes) }

// fitReductions fits a line for each group with all_reduces of two sizes or more.
func fitReductions(w *planpb.Workload, cost sim.CommunicationCost) map[int32]fitted {
	type point struct{ bytes, ns float64 }
	points := map[int32][]point{}
	for _, m := range sim.NewGraph(w).Meetings() {
		if m.Transfer || m.Communication.Op != planpb.Op_OP_ALL_REDUCE {
			continue
		}
		if ns := cost(m); ns > 0 {
			points[m.Communication.Group] = append(points[m.Communication.Group], point{float64(plan.Bytes(m.Communication)), float64(ns)})
		}
	}
	fits := map[int32]fitted{}
	for g, list := range points {
		// Least squares of (fixed + each·bytes)/ns - 1.
		var ff, fe, ee, f1, e1 float64
		differ := false
		for _, p := range list {
			x, y := 1/p.ns, p.bytes/p.ns
			ff, fe, ee, f1, e1 = ff+x*x, fe+x*y, ee+y*y, f1+x, e1+y
			differ = differ || p.bytes != list[0].bytes
		}
		if !differ {
			continue
		}
		det := ff*ee - fe*fe
		f := fitted{n: len(list), sizes: span{math.MaxInt64, 0}}
		f.fixed, f.each = (f1*ee-e1*fe)/det, (ff*e1-fe*f1)/det
		switch {
		case f.fixed < 0:
			f.fixed, f.each = 0, e1/ee
		case f.each < 0:
			f.fixed, f.each = f1/ff, 0
		}
		for _, p := range list {
			e := (f.fixed+f.each*p.bytes)/p.ns - 1
			f.off += e * e / float64(len(list))
			f.sizes.add(int64(p.bytes))
		}
		f.off = math.Sqrt(f.off)
		fits[g] = f
	}
	return fits
}
