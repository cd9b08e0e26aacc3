package whatif

import (
	"fmt"
	"slices"
	"strconv"

	"mixdown/replay/schedule"
)

var local = Kind{
	Name: "local-learning", Value: "[EXTRA]", Example: "local-learning=0.05",
	Summary: "every stage learns from a loss of its own: a backward follows its forward at once and sends no gradient on",
	Formula: "forwards wait for the stage before, backwards for nothing; each task takes 1 + EXTRA times as long, for the stage's own head (0 if not given)",
	Source:  "pipeline parallelism with local learning, PPLL (arXiv 2411.12780)",
	Cost:    "accuracy: another training algorithm, whose result must be judged by training; memory: a head for each stage", NotModeled: "what the heads look like",
	Order: true, structure: true, once: true,
	parse: func(value string) (change, error) {
		if value == "" {
			return localBy{}, nil
		}
		extra, err := strconv.ParseFloat(value, 64)
		if err != nil || !(extra >= 0 && extra <= 100) {
			return nil, fmt.Errorf("%q is no part such as 0.05", value)
		}
		return localBy{extra}, nil
	},
}

type localBy struct{ extra float64 }

func (c localBy) order(o *Order) error {
	if o.Order.Copies() > 1 {
		return fmt.Errorf("%w: %s holds stages twice", ErrNotApplicable, o.Name)
	}
	if o.Shape.Slices != nil {
		return fmt.Errorf("%w: local-learning must come before slices", ErrNotApplicable)
	}
	o.Shape.Local = true
	if o.Shape.Scale == 0 {
		o.Shape.Scale = 1
	}
	o.Shape.Scale *= 1 + c.extra
	order := make(schedule.Order, len(o.Order))
	for place, row := range o.Order {
		var stages []int32
		for _, a := range row {
			if a.Kind == schedule.Forward && !slices.Contains(stages, a.Stage) {
				stages = append(stages, a.Stage)
			}
		}
		slices.Sort(stages)
		for mb := range int32(o.Order.Microbatches()) {
			for _, s := range stages {
				order[place] = append(order[place], schedule.Action{Stage: s, Microbatch: mb, Kind: schedule.Forward},
					schedule.Action{Stage: s, Microbatch: mb, Kind: schedule.Backward})
			}
		}
	}
	o.Order = order
	if c.extra == 0 {
		o.note("the stages' own heads and losses take no time")
	}
	return nil
}
