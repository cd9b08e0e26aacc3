package whatif

import (
	"maps"
	"math"
	"slices"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// sequence lets collectives of a group that ran at once, as Gloo's two threads for a
// group let them, run one after the other, and gives the number of those. The time
// in which several ran is divided among them by their bytes, so all of them together
// take as long as before. (Evenly it is not: a small one waits in every round for what a
// large one has put on the link.) Were they played at once, each as long as it took, then two that
// share a link would both be done twice as soon where the link is twice as quick, but
// no later where one is made longer by what the other still has to send.
func sequence(w *planpb.Workload) int {
	if w.ClocksDiffer {
		return 0
	}
	groups := map[int32]map[int64]*ran{}
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			if !isCollective(t) || t.Origin == nil || t.Origin.Issued <= 0 {
				continue
			}
			c := t.GetCommunication()
			if groups[c.Group] == nil {
				groups[c.Group] = map[int64]*ran{}
			}
			r := groups[c.Group][c.Seq]
			if r == nil {
				r = &ran{bytes: float64(plan.Bytes(c))}
				groups[c.Group][c.Seq] = r
			}
			r.origins = append(r.origins, t.Origin)
		}
	}
	n := 0
	for _, bySeq := range groups {
		var list []*ran
		for _, seq := range slices.Sorted(maps.Keys(bySeq)) {
			r := bySeq[seq]
			r.measure()
			list = append(list, r)
		}
		for len(list) > 0 {
			k := together(list)
			if k > 1 {
				share(list[:k])
				follow(list[:k])
				n += k
			}
			list = list[k:]
		}
	}
	return n
}

// ran is what the trace shows of a collective on all its members.
type ran struct {
	origins    []*planpb.Origin
	bytes      float64
	start, end int64   // ns: when the last member was there, and when the members left, in the median
	alone      float64 // ns that it would have taken without others beside it
}

func (r *ran) measure() {
	var ends []int64
	for _, o := range r.origins {
		r.start = max(r.start, o.Ts)
		ends = append(ends, o.Ts+o.Dur)
	}
	r.end = max(median(ends), r.start)
}

// atOnce is from how many ns on two collectives are said to have run at once.
const atOnce = 50_000

// together is how many of the first of a list, in the order of their calls, ran at
// once, each with one before it.
func together(list []*ran) int {
	end := list[0].end
	for k, r := range list[1:] {
		if r.start+atOnce > end {
			return k + 1
		}
		end = max(end, r.end)
	}
	return len(list)
}

// share divides the time of collectives that ran at once.
func share(list []*ran) {
	var moments []int64
	for _, r := range list {
		moments = append(moments, r.start, r.end)
	}
	slices.Sort(moments)
	for i := range moments[1:] {
		from, to := moments[i], moments[i+1]
		var running []*ran
		for _, r := range list {
			if r.start <= from && r.end >= to {
				running = append(running, r)
			}
		}
		var bytes float64
		for _, r := range running {
			bytes += r.bytes
		}
		for _, r := range running {
			part := 1 / float64(len(running))
			if bytes > 0 {
				part = r.bytes / bytes
			}
			r.alone += float64(to-from) * part
		}
	}
}

// follow writes into the trace of collectives that each began on a rank when the one
// before it was over there. What a member left later than others, or came later, stays.
func follow(list []*ran) {
	free := map[int32]int64{} // by rank: when the one before it was over
	var before int64
	var rest float64 // of a ns, so that the sum stays
	for k, r := range list {
		start := r.start
		if k > 0 {
			start = max(start, before)
		}
		took := math.Round(r.alone + rest)
		rest += r.alone - took
		end := start + int64(took)
		for _, o := range r.origins {
			left := end + o.Ts + o.Dur - r.end
			if at, ok := free[o.Rank]; ok {
				o.Ts = max(o.Ts, at)
			}
			o.Dur = max(left-o.Ts, 0)
			o.Issued = min(o.Issued, o.Ts)
			free[o.Rank] = o.Ts + o.Dur
		}
		before = end
	}
}
