package whatif

import (
	"fmt"
	"slices"
	"strings"

	"mixdown/replay/sim"
)

var link = Kind{
	Name: "link", Value: "RANK-RANK:xFACTOR", Example: "link=0-1:0.1x",
	Summary: "the link between two ranks, both ways, carries so many times the bytes a second: one slow or quick link among others",
	Formula: "messages between them as for bandwidth; a collective of both goes at the pace of its slowest link: as for bandwidth below 1, no change above",
	Source:  "SWARM parallelism (arXiv 2301.11913): unequal links",
	Cost:    "hardware; none in memory or accuracy", NotModeled: "algorithms that keep off a slow link, or send less over it; other ranks' traffic over it",
	Step: true, Order: true, AllRanks: true,
	parse: func(value string) (change, error) {
		ends, factor, _ := strings.Cut(value, ":")
		a, b, _ := strings.Cut(ends, "-")
		c := linkOf{}
		var err error
		if c.factor, err = parseFactor(factor); err != nil {
			return nil, err
		}
		if c.a, err = parseRank(a); err != nil {
			return nil, err
		}
		if c.b, err = parseRank(b); err != nil {
			return nil, err
		}
		if c.a == c.b {
			return nil, fmt.Errorf("%q: a link has two ends", ends)
		}
		return c, nil
	},
}

type linkOf struct {
	a, b   int
	factor float64
}

func (c linkOf) step(s *Step) error {
	concerned := func(m sim.Meeting) bool {
		if m.Transfer {
			return int(m.From) == c.a && int(m.To) == c.b || int(m.From) == c.b && int(m.To) == c.a
		}
		ranks := s.Workload.Groups[m.Communication.Group].Ranks
		return c.factor < 1 && slices.Contains(ranks, int32(c.a)) && slices.Contains(ranks, int32(c.b))
	}
	if !slices.ContainsFunc(sim.NewGraph(s.Workload).Meetings(), concerned) {
		if c.factor >= 1 {
			return fmt.Errorf("%w: ranks %d and %d send no messages to each other, and a collective of both goes at the pace of its slowest link, which need not be theirs: ask bandwidth=x%g", ErrNotApplicable, c.a, c.b, c.factor)
		}
		return fmt.Errorf("%w: no operation of the step goes at the pace of a link between ranks %d and %d", ErrNotApplicable, c.a, c.b)
	}
	s.changed = append(s.changed, func(m sim.Meeting, t *took) {
		if concerned(m) {
			t.scale(1 / c.factor)
		}
	})
	return nil
}

func (c linkOf) order(o *Order) error {
	a, b := slices.Index(o.Ranks, c.a), slices.Index(o.Ranks, c.b)
	if a < 0 || b < 0 {
		return fmt.Errorf("%w: ranks %d and %d are not both in the pipeline of ranks %v", ErrNotApplicable, c.a, c.b, o.Ranks)
	}
	o.note("messages below 64 KiB are latency and keep their time")
	o.Model.ChangeHops(func(from, to int, _ bool, h sim.Hop) sim.Hop {
		if from == a && to == b || from == b && to == a {
			h.Occupied = o.bounded.nanoseconds(float64(h.Occupied) / c.factor)
		}
		return h
	})
	return nil
}
