package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"mixdown/ingest/comm"
)

// Question is what contenders are compared on: one operation of one kind of
// elements in groups of one size.
type Question struct {
	Op      comm.Op
	Class   string // of element types; see Class
	Device  string // where the buffers are
	Ranks   int
	Nodes   int // 0 when not known
	Streams int
	InStep  bool // within a job's step; else in a row
}

// String names the question in a few words.
func (q Question) String() string {
	s := fmt.Sprintf("%s, %d ranks", q.Op, q.Ranks)
	if q.Nodes > 0 {
		s += fmt.Sprintf(" on %d node", q.Nodes)
		if q.Nodes > 1 {
			s += "s"
		}
	}
	if q.Class != "any" && q.Class != "unknown" {
		s += ", " + q.Class
	}
	if q.Device == GPU {
		s += ", on GPUs"
	}
	if q.Streams > 1 {
		s += fmt.Sprintf(", %d groups at once", q.Streams)
	}
	if q.InStep {
		s += ", in a step"
	}
	return s
}

// Comparison is who wins where on a question.
type Comparison struct {
	Question
	Contenders []Contender
	Places     []Place    // by size
	Crossings  []Crossing // by size
	// Fits are lines alpha + beta x bytes through each contender's times; none where
	// there are too few.
	Fits map[Contender]Fit
}

// Place is the outcome at one size.
type Place struct {
	Bytes  int64
	Times  map[Contender]int64 // ns, measured or between two measured sizes
	Winner Contender
	// Clear: no other contender's confidence interval reaches the winner's, and it
	// is ahead by MinGain. Otherwise the difference is within the noise.
	Clear bool
	Gain  float64 // time of the next best over the winner's
}

// Crossing is a size at which the winner changes.
type Crossing struct {
	Bytes         int64 // the change is at or above
	Below, Above  Contender
	Lower, Higher int64 // the measured sizes around it
}

// MinGain is by how much a contender has to be ahead to win clearly.
const MinGain = 1.03

// Compare compares all contenders of a table that keep accepts (all for nil), on
// every question that more than one has answers to.
func Compare(t *Table, keep func(Contender) bool) []Comparison {
	c := t.Costs()
	by := map[Question]map[Contender][]sample{}
	for k, curve := range c.series {
		q := Question{k.op, k.class, k.device, k.ranks, k.nodes, k.streams, k.inStep}
		if keep != nil && !keep(k.Contender) {
			continue
		}
		if by[q] == nil {
			by[q] = map[Contender][]sample{}
		}
		by[q][k.Contender] = overall(curve)
	}
	var list []Comparison
	for q, curves := range by {
		list = append(list, compare(q, curves))
	}
	slices.SortFunc(list, func(a, b Comparison) int {
		return cmp.Or(cmp.Compare(opRank(a.Op), opRank(b.Op)), cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Streams, b.Streams), truth(a.InStep)-truth(b.InStep))
	})
	return list
}

func opRank(op comm.Op) int { return slices.Index(comm.Ops(), op) }

// CompareContenders orders contenders by name.
func CompareContenders(a, b Contender) int { return cmp.Compare(a.String(), b.String()) }

func compare(q Question, curves map[Contender][]sample) Comparison {
	c := Comparison{Question: q, Fits: map[Contender]Fit{}}
	var sizes []int64
	for who, curve := range curves {
		c.Contenders = append(c.Contenders, who)
		if f, ok := line(curve); ok && len(curve) > 2 {
			c.Fits[who] = f
		}
		for _, s := range curve {
			sizes = append(sizes, s.bytes)
		}
	}
	slices.SortFunc(c.Contenders, CompareContenders)
	slices.Sort(sizes)
	for _, bytes := range slices.Compact(sizes) {
		p := Place{Bytes: bytes, Times: map[Contender]int64{}}
		for _, who := range c.Contenders {
			if s, ok := at(curves[who], bytes); ok {
				p.Times[who] = s.time
			}
		}
		p.judge(c.Contenders, curves)
		c.Places = append(c.Places, p)
	}
	c.cross()
	return c
}

// at is a contender's point at a size, between two measured sizes where need be.
func at(curve []sample, bytes int64) (sample, bool) {
	i, found := slices.BinarySearchFunc(curve, bytes, func(s sample, bytes int64) int { return cmp.Compare(s.bytes, bytes) })
	switch {
	case found:
		return curve[i], true
	case i == 0 || i == len(curve):
		return sample{}, false
	}
	return sample{bytes: bytes, time: between(curve[i-1], curve[i], bytes)}, true
}

// judge finds the winner, and whether it wins clearly.
func (p *Place) judge(order []Contender, curves map[Contender][]sample) {
	best, second := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, who := range order {
		t, ok := p.Times[who]
		switch {
		case !ok:
		case t < best:
			p.Winner, best, second = who, t, best
		case t < second:
			second = t
		}
	}
	if second == math.MaxInt64 {
		p.Clear, p.Gain = true, 1 // nobody else was measured
		return
	}
	p.Gain = float64(second) / float64(best)
	p.Clear = p.Gain >= MinGain
	won, _ := at(curves[p.Winner], p.Bytes)
	for _, who := range order {
		if s, ok := at(curves[who], p.Bytes); ok && who != p.Winner && won.row != nil && s.row != nil {
			if won.row.CIHigh > 0 && s.row.CILow > 0 && s.row.CILow <= won.row.CIHigh {
				p.Clear = false
			}
		}
	}
}

// cross finds where the winner changes. Only clear wins make a change; it is where
// the earlier winner won for the last time, clearly or not.
func (c *Comparison) cross() {
	first := slices.IndexFunc(c.Places, func(p Place) bool { return p.Clear && len(p.Times) > 1 })
	if first < 0 {
		return
	}
	holder := c.Places[first].Winner
	won := first // the last place at which the holder won
	for i := first + 1; i < len(c.Places); i++ {
		p := &c.Places[i]
		if len(p.Times) < 2 {
			continue
		}
		if p.Winner == holder {
			won = i
			continue
		}
		if !p.Clear {
			continue
		}
		lower, higher := &c.Places[won], &c.Places[won+1]
		c.Crossings = append(c.Crossings, Crossing{
			Bytes: crossing(lower, higher, holder, p.Winner), Below: holder, Above: p.Winner, Lower: lower.Bytes, Higher: higher.Bytes,
		})
		holder, won = p.Winner, i
	}
}

// crossing is the size between two places at which the straight lines through the
// logarithms of both contenders' times meet; the higher one where they don't.
func crossing(lower, higher *Place, below, above Contender) int64 {
	b0, b1, a0, a1 := lower.Times[below], higher.Times[below], lower.Times[above], higher.Times[above]
	if b0 == 0 || b1 == 0 || a0 == 0 || a1 == 0 {
		return higher.Bytes
	}
	ratio := func(a, b int64) float64 { return math.Log(float64(a) / float64(b)) }
	d0, d1 := ratio(a0, b0), ratio(a1, b1) // above is slower at first, faster then
	if d0 <= 0 || d1 >= 0 {
		return higher.Bytes
	}
	x0, x1 := logSize(lower.Bytes), logSize(higher.Bytes)
	return min(higher.Bytes, max(lower.Bytes+1, int64(math.Ceil(math.Exp(x0+(x1-x0)*d0/(d0-d1))))))
}

// Choice is a contender for a range of sizes, both ends included.
type Choice struct {
	Contender
	Min, Max int64 // bytes; Max is math.MaxInt64 without end
}

// Choices cuts all sizes into the ranges that the crossings make. The first begins
// at 0 and the last has no end: beyond the measured sizes the nearest winner stays.
// Without a clear winner anywhere it is the library's own choice where only settings
// of one are compared, else the contender that loses least.
func (c *Comparison) Choices() []Choice {
	if len(c.Places) == 0 {
		return nil
	}
	if len(c.Crossings) == 0 {
		return []Choice{{Contender: c.overall(), Max: math.MaxInt64}}
	}
	list := []Choice{{Contender: c.Crossings[0].Below, Max: math.MaxInt64}}
	for _, x := range c.Crossings {
		list[len(list)-1].Max = x.Bytes - 1
		list = append(list, Choice{Contender: x.Above, Min: x.Bytes, Max: math.MaxInt64})
	}
	return list
}

// overall is the winner where the winner does not change.
func (c *Comparison) overall() Contender {
	for _, p := range c.Places {
		if p.Clear && len(p.Times) > 1 {
			return p.Winner
		}
	}
	// Settings of one library that don't win are not worth having.
	if own := (Contender{Backend: c.Contenders[0].Backend}); slices.Contains(c.Contenders, own) &&
		!slices.ContainsFunc(c.Contenders, func(o Contender) bool { return o.Backend != own.Backend }) {
		return own
	}
	if losses := Losses([]Comparison{*c}); len(losses) > 0 {
		return losses[0].Contender
	}
	return c.Places[0].Winner
}

// Loss is what one contender for everything costs against the best at each place.
type Loss struct {
	Contender
	Mean  float64 // geometric mean over places of its time over the winner's
	Worst float64
	Where Question // of the worst
	Bytes int64    // there
	// Places is how many it was measured at, Of how many there are. A contender is
	// best judged where both are the same.
	Places, Of int
}

// Losses says for every contender what it loses against the mix of the best, the
// least first.
func Losses(list []Comparison) []Loss {
	by := map[Contender]*Loss{}
	sums := map[Contender]float64{}
	all := 0
	for i := range list {
		c := &list[i]
		if len(c.Contenders) < 2 {
			continue
		}
		for _, p := range c.Places {
			if len(p.Times) < 2 {
				continue
			}
			all++
			for who, t := range p.Times {
				l := by[who]
				if l == nil {
					l = &Loss{Contender: who}
					by[who] = l
				}
				ratio := float64(t) / float64(p.Times[p.Winner])
				sums[who] += math.Log(ratio)
				l.Places++
				if ratio > l.Worst {
					l.Worst, l.Where, l.Bytes = ratio, c.Question, p.Bytes
				}
			}
		}
	}
	var out []Loss
	for who, l := range by {
		l.Mean, l.Of = math.Exp(sums[who]/float64(l.Places)), all
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Loss) int {
		return cmp.Or(-cmp.Compare(a.Places, b.Places), cmp.Compare(a.Mean, b.Mean), CompareContenders(a.Contender, b.Contender))
	})
	return out
}
