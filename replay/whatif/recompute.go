package whatif

import (
	"fmt"
	"strconv"
	"strings"
)

var recompute = Kind{
	Name: "recompute", Value: "[PART[:KEPT]]", Example: "recompute=1:0.1",
	Summary: "a part of each forward (all of it if not given) is done again before its backward, so that less is kept",
	Formula: "backward + PART x forward; memory x KEPT, the part of the activations that stays",
	Source:  "activation checkpointing as in KARMA (SC 2020, arXiv 2008.11421) and Korthikanti et al. (arXiv 2205.05198)",
	Cost:    "time, for memory: how much less is kept is not known unless KEPT says so", NotModeled: "random numbers that must be the same again; that recomputing may begin before the gradient is there",
	Order: true,
	parse: func(value string) (change, error) {
		c := again{part: 1}
		if value == "" {
			return c, nil
		}
		part, kept, given := strings.Cut(value, ":")
		var err error
		if c.part, err = strconv.ParseFloat(part, 64); err != nil || !(c.part > 0 && c.part <= 1) {
			return nil, fmt.Errorf("%q is no part above 0, up to 1", part)
		}
		if given {
			if c.kept, err = strconv.ParseFloat(kept, 64); err != nil || !(c.kept > 0 && c.kept <= 1) {
				return nil, fmt.Errorf("%q is no part above 0, up to 1", kept)
			}
		}
		return c, nil
	},
}

type again struct{ part, kept float64 }

func (c again) order(o *Order) error {
	o.Shape.Recompute += c.part
	if o.Shape.Recompute > 1 {
		return fmt.Errorf("%w: more than a whole forward done again", ErrNotApplicable)
	}
	if c.kept == 0 {
		o.unknown = true
		o.note("how much less activations are kept is not known: give it as recompute=%g:KEPT", c.part)
		return nil
	}
	o.kept *= c.kept
	return nil
}
