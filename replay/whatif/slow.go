package whatif

import (
	"fmt"
	"slices"
	"strings"

	"mixdown/replay/plan"
)

var slow = Kind{
	Name: "slow", Value: "RANK:FACTOR", Example: "slow=3:1.2",
	Summary: "a rank takes so many times as long for everything it computes; below 1 it is quicker",
	Formula: "each span of the rank x FACTOR; of a pipeline each task of its place",
	Source:  "SWARM parallelism (arXiv 2301.11913): unequal peers",
	Cost:    "none", NotModeled: "work moved to quicker peers; lost does that for a peer that is gone",
	Step: true, Order: true, AllRanks: true,
	parse: func(value string) (change, error) {
		rank, factor, _ := strings.Cut(value, ":")
		n, err := parseRank(rank)
		if err != nil {
			return nil, err
		}
		f, ok := times(factor)
		if !ok || f > 1e6 {
			return nil, fmt.Errorf("%q is no factor such as 1.2, from 1e-9 to 1e6", factor)
		}
		return slowOf{n, f}, nil
	},
}

type slowOf struct {
	rank   int
	factor float64
}

func (c slowOf) step(s *Step) error {
	for _, program := range s.Workload.Programs {
		if int(program.Rank) != c.rank {
			continue
		}
		for _, t := range program.Tasks {
			if span := t.GetSpan(); span != nil {
				plan.Resize(span, s.bounded.nanoseconds(float64(span.DurationNs)*c.factor))
			}
		}
		return nil
	}
	return fmt.Errorf("%w: rank %d has no program in the step", ErrNotApplicable, c.rank)
}

func (c slowOf) order(o *Order) error {
	place := slices.Index(o.Ranks, c.rank)
	if place < 0 {
		return fmt.Errorf("%w: rank %d is not in the pipeline of ranks %v", ErrNotApplicable, c.rank, o.Ranks)
	}
	o.Model.Slow(place, c.factor)
	return nil
}
