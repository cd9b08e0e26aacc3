package whatif

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var lost = Kind{
	Name: "lost", Value: "RANK[:REPLICAS]", Example: "lost=2:4",
	Summary: "a rank is gone, and the other replicas of its stages do its work",
	Formula: "tasks of its place x REPLICAS/(REPLICAS-1); REPLICAS as the trace shows pipelines, if not given",
	Source:  "SWARM parallelism (arXiv 2301.11913)",
	Cost:    "memory: none beyond the activations of the additional micro-batches; accuracy: none, all samples are seen", NotModeled: "how long it takes to notice and to send work elsewhere; peers that move to the stage",
	Order: true,
	parse: func(value string) (change, error) {
		rank, replicas, given := strings.Cut(value, ":")
		c := lostRank{}
		var err error
		if c.rank, err = parseRank(rank); err != nil {
			return nil, err
		}
		if given {
			if c.replicas, err = strconv.Atoi(replicas); err != nil || c.replicas < 2 {
				return nil, fmt.Errorf("%q is no number of replicas, at least 2", replicas)
			}
		}
		return c, nil
	},
}

type lostRank struct{ rank, replicas int }

func (c lostRank) order(o *Order) error {
	replicas := c.replicas
	if replicas == 0 {
		replicas = o.Replicas
	}
	if replicas < 2 {
		return fmt.Errorf("%w: the trace shows one pipeline, so nobody else holds what rank %d held; give the replicas as lost=%d:REPLICAS", ErrNotApplicable, c.rank, c.rank)
	}
	place := slices.Index(o.Ranks, c.rank)
	if place < 0 {
		return fmt.Errorf("%w: rank %d is not in the pipeline of ranks %v (--pipeline chooses another)", ErrNotApplicable, c.rank, o.Ranks)
	}
	if slices.Contains(o.lost, place) {
		return fmt.Errorf("%w: rank %d can be lost once: say how many replicas are left", ErrNotApplicable, c.rank)
	}
	o.lost = append(o.lost, place)
	o.Model.Slow(place, float64(replicas)/float64(replicas-1))
	o.note("%d replicas share the work of %d, as if it could be divided evenly", replicas-1, replicas)
	return nil
}
