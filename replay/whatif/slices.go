package whatif

import (
	"fmt"
	"strconv"
	"strings"

	"mixdown/replay/schedule"
)

var slices_ = Kind{
	Name: "slices", Value: "NUMBER[:ATTENTION]", Example: "slices=4:0.2",
	Summary: "every micro-batch is cut along its tokens into so many slices, which follow each other through the stages",
	Formula: "slice i of k takes (1-A)/k + A(2i+1)/k^2 of its task, A the part of a task that is attention over what came before (0 if not given); gaps between tasks are paid for each slice; backwards run the slices in reverse",
	Source:  "TeraPipe (arXiv 2102.07988)",
	Cost:    "memory: keys and values of earlier slices are kept; needs a model that is causal along its tokens", NotModeled: "kernels of fewer tokens that use a device less well; slices of uneven length, which TeraPipe chooses",
	Order: true, once: true,
	parse: func(value string) (change, error) {
		number, attention, given := strings.Cut(value, ":")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 1024 {
			return nil, fmt.Errorf("%q is no number of slices from 1 to 1024", number)
		}
		c := sliced{n: n}
		if given {
			if c.attention, err = strconv.ParseFloat(attention, 64); err != nil || !(c.attention >= 0 && c.attention <= 1) {
				return nil, fmt.Errorf("%q is no part from 0 to 1", attention)
			}
		}
		return c, nil
	},
}

type sliced struct {
	n         int
	attention float64
}

// shares is the part of a task that each slice takes.
func (c sliced) shares() []float64 {
	list := make([]float64, c.n)
	k := float64(c.n)
	for i := range list {
		list[i] = (1-c.attention)/k + c.attention*float64(2*i+1)/(k*k)
	}
	return list
}

func (c sliced) order(o *Order) error {
	if o.Shape.Slices != nil {
		return fmt.Errorf("%w: micro-batches are cut once", ErrNotApplicable)
	}
	o.Shape.Slices = c.shares()
	o.Order = sliceOrder(o.Order, c.n)
	o.kept /= float64(c.n)
	if c.attention == 0 {
		o.note("slices take equally long: no part of a task is said to be attention")
	}
	return nil
}

// sliceOrder runs each task of an order in slices, backwards in reverse.
func sliceOrder(order schedule.Order, n int) schedule.Order {
	cut := make(schedule.Order, len(order))
	for place, row := range order {
		for i := 0; i < len(row); i++ {
			a := row[i]
			if !a.Kind.Computes() {
				if a.Microbatch == schedule.NoMicrobatch {
					cut[place] = append(cut[place], a)
				}
				continue // messages leave when they are made
			}
			for k := range n {
				part := a
				part.Overlap = false
				if a.Kind != schedule.Forward {
					k = n - 1 - k
				}
				part.Microbatch = a.Microbatch*int32(n) + int32(k)
				cut[place] = append(cut[place], part)
			}
		}
	}
	return cut
}
