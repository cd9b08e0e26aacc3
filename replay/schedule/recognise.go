package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Recognition says which known schedule an order is.
type Recognition struct {
	// Spec makes the recognised order, shape included; its costs are the
	// defaults. Spec.Name is empty if the order is none of those known.
	Spec Spec

	// Exact: every rank that does anything computes in the order of Spec.
	Exact bool

	// Differ are the ranks that don't, in order.
	Differ []Difference

	// InPlace is the share of actions that need not move to get Spec's order,
	// from 0 to 1. Of an order that is none of those known it is that of the
	// nearest.
	InPlace Rational

	// Same are other schedules, as Schedule writes them, that make the same
	// order as Spec.
	Same []string

	// Renumbered: micro-batches have other numbers than Spec gives them. They
	// are compared by the order in which they enter the pipeline.
	Renumbered bool

	// Fused: an input gradient and the weight gradient right after it stand
	// in one of the two as a full backward, which is taken for the same.
	Fused bool

	// Unobserved are ranks without any computation: nothing is said of them.
	Unobserved []int
}

// Difference is how one rank departs from the recognised schedule.
type Difference struct {
	Rank  int
	Moved int    // actions that stand elsewhere, are missing or are too many
	Of    int    // actions of the rank
	Place int    // of the first that differs, counting computations from 0
	Got   string // what stands there, empty behind the end
	Want  string // what the schedule has there, empty behind its end
	How   string // the difference in words, without a subject: "alternates ..."
}

// String is the difference in one line.
func (d Difference) String() string {
	return fmt.Sprintf("rank %d %s", d.Rank, d.How)
}

// Known says whether the order is one of those known, exactly or nearly.
func (r Recognition) Known() bool { return r.Spec.Name != "" }

// Schedule is the recognised schedule as --schedule takes it for the same job:
// "breadth-first:loops=4,backward-order=lifo". It is empty if none is known.
func (r Recognition) Schedule() string {
	if !r.Known() {
		return ""
	}
	return withoutJob(r.Spec)
}

// withoutJob is a spec without what a trace tells.
func withoutJob(s Spec) string {
	s.Ranks, s.Microbatches = 0, 0
	return s.String()
}

// NoneKnown is what Recognition.String says of an order like no other.
const NoneKnown = "none of those known"

// String is the finding in one line, for example "breadth-first:loops=4, but
// rank 3 alternates forward and backward in its last chunk (8 of 64 actions
// elsewhere)".
func (r Recognition) String() string {
	if !r.Known() {
		return NoneKnown
	}
	var b strings.Builder
	b.WriteString(r.Schedule())
	const most = 3
	for i, d := range r.Differ {
		switch {
		case i == most:
			fmt.Fprintf(&b, "; %d more ranks differ", len(r.Differ)-most)
		case i > most:
		default:
			b.WriteString([]string{", but ", "; "}[min(i, 1)])
			b.WriteString(d.String())
		}
	}
	return b.String()
}

// near says whether an order that is no schedule exactly is to be called after
// the nearest: when most ranks do that one exactly and most actions are in place,
// or nearly all actions are. Orders drawn at random stay below both.
func (s observed) near(r Recognition) bool {
	present := s.ranks - len(s.unobserved)
	exact := present - len(r.Differ)
	most, nearlyAll := Ratio(3, 4), Ratio(9, 10)
	return r.InPlace.Cmp(nearlyAll) >= 0 || r.InPlace.Cmp(most) >= 0 && 2*exact > present
}

// Recognise finds the known schedule that an order is, exactly or nearly.
// Communication in the order is ignored, and so is whether forwards and
// backwards overlap. Where several schedules make the same order it takes the
// first of Known.
//
// The order need not be complete: ranks without actions are left out of the
// comparison, and actions that are missing count as moved.
func Recognise(o Order) Recognition {
	seen := observe(o)
	var best Recognition
	var names []string // of best and Same
	if seen.actions == 0 {
		return best
	}
	for _, c := range seen.candidates() {
		made, err := c.Order()
		if err != nil {
			continue // not of this shape
		}
		r := seen.compare(c, made)
		r.Spec = c
		switch {
		case r.Exact && best.Exact:
			if !slices.Contains(names, c.Name) { // not once more for another setting
				names = append(names, c.Name)
				best.Same = append(best.Same, withoutJob(c))
			}
		case best.Exact:
		case r.Exact, r.InPlace.Cmp(best.InPlace) > 0:
			best, names = r, []string{c.Name}
		}
	}
	if !best.Exact && !seen.near(best) {
		return Recognition{InPlace: best.InPlace, Unobserved: seen.unobserved}
	}
	return best
}

// observed is what an order shows of its schedule.
type observed struct {
	rows                       [][]Action // computations alone, overlap marks off
	ranks, microbatches, loops int
	actions                    int
	splits, trains             bool
	fused                      [][]Action // rows with full backwards for pairs of gradients
	enter                      []int32    // by micro-batch: when it enters stage 0; nil if that can't be said
	unobserved                 []int
}

func observe(o Order) observed {
	s := observed{rows: computations(o), ranks: o.Ranks(), microbatches: o.Microbatches(), loops: o.Loops()}
	for r, row := range s.rows {
		if len(row) == 0 {
			s.unobserved = append(s.unobserved, r)
		}
		s.actions += len(row)
		for _, a := range row {
			s.splits = s.splits || a.Kind == Weight || a.Kind == Input
			s.trains = s.trains || a.Kind != Forward
		}
	}
	s.fused = fuse(s.rows)
	s.enter = entries(s.rows, s.microbatches)
	return s
}

// computations drops all else from an order.
func computations(o Order) [][]Action {
	rows := make([][]Action, len(o))
	for r, row := range o {
		rows[r] = make([]Action, 0, len(row))
		for _, a := range row {
			if a.Kind.Computes() && a.Stage >= 0 && a.Microbatch >= 0 {
				a.Overlap = false
				rows[r] = append(rows[r], a)
			}
		}
	}
	return rows
}

// fuse makes one full backward of an input gradient and its weight gradient
// where these stand side by side.
func fuse(rows [][]Action) [][]Action {
	fused := make([][]Action, len(rows))
	for r, row := range rows {
		for i := 0; i < len(row); i++ {
			a := row[i]
			if a.Kind == Input && i+1 < len(row) && row[i+1] == act(int(a.Stage), Weight, int(a.Microbatch)) {
				a.Kind = Backward
				i++
			}
			fused[r] = append(fused[r], a)
		}
	}
	return fused
}

// entries is the place of each micro-batch among the forwards of stage 0, nil
// where these are not all on one rank.
func entries(rows [][]Action, microbatches int) []int32 {
	for _, row := range rows {
		if len(row) < microbatches {
			continue // nothing on it, or not all of them
		}
		var place []int32
		count := int32(0)
		for _, a := range row {
			if a.Kind != Forward || a.Stage != 0 {
				continue
			}
			if place == nil {
				place = make([]int32, microbatches)
			}
			if place[a.Microbatch] == 0 {
				count++
				place[a.Microbatch] = count
			}
		}
		if int(count) == microbatches {
			return place
		}
		if count > 0 {
			return nil
		}
	}
	return nil
}

// candidates are the schedules that the order may be, simple ones first.
func (s observed) candidates() []Spec {
	work := (s.ranks - len(s.unobserved)) * s.loops
	if s.microbatches > s.actions || work > 2*s.actions/s.microbatches {
		return nil // most of its actions are missing
	}
	var list []Spec
	add := func(g generator, change func(*Spec)) {
		c := Spec{Name: g.Name, Shape: Shape{Ranks: s.ranks, Microbatches: s.microbatches}, Costs: DefaultCosts()}
		if g.loops == 0 {
			c.Loops = s.loops
		}
		if change != nil {
			change(&c)
		}
		list = append(list, c)
	}
	for _, g := range generators() {
		if g.loops != 0 && g.loops != s.loops || g.forwardOnly == s.trains || g.splits && !s.splits {
			continue
		}
		var variants []func(*Spec)
		for _, key := range g.own {
			switch key {
			case "group":
				for _, n := range s.groupSizes() {
					variants = append(variants, func(c *Spec) { c.Group = n })
				}
			case "rounds":
				for _, n := range s.rounds() {
					variants = append(variants, func(c *Spec) { c.Rounds = n })
				}
			}
		}
		if slices.Contains(g.own, "rounds") && len(variants) == 0 {
			continue
		}
		if !slices.Contains(g.own, "rounds") {
			variants = append([]func(*Spec){nil}, variants...)
		}
		for _, v := range variants {
			add(g, v)
		}
		plain := len(list) - len(variants)
		if slices.Contains(g.own, "backward-order") && s.microbatches > 1 {
			for _, c := range list[plain:] {
				c.BackwardOrder = LIFO
				list = append(list, c)
			}
		}
		if slices.Contains(g.own, "placement") && s.loops > 1 && s.ranks > 1 {
			for _, c := range list[plain:] {
				c.Placement = V
				list = append(list, c)
			}
		}
	}
	return list
}

// groupSizes are the numbers of forwards that ranks run of one chunk before the
// next, those that are a group's size by default left out.
func (s observed) groupSizes() []int {
	var sizes []int
	for _, row := range s.rows {
		run := 0
		var first Action
		for _, a := range row {
			if a.Kind != Forward {
				continue
			}
			if run == 0 {
				first = a
			}
			if a.Stage != first.Stage {
				break
			}
			run++
		}
		if run > 0 && run != s.ranks && !slices.Contains(sizes, run) {
			sizes = append(sizes, run)
		}
	}
	slices.Sort(sizes)
	return sizes[:min(len(sizes), 4)]
}

// rounds are the numbers of rounds, more than one, that the forwards of ranks
// before their first backward are a part of.
func (s observed) rounds() []int {
	var list []int
	for _, row := range s.rows {
		ahead := 0
		for ahead < len(row) && row[ahead].Kind == Forward {
			ahead++
		}
		all := s.microbatches * s.loops
		if ahead == 0 || all%ahead != 0 {
			continue
		}
		if n := all / ahead; n > 1 && s.microbatches%n == 0 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list[:min(len(list), 4)]
}
