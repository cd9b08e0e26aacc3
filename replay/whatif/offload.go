package whatif

import (
	"fmt"
	"strings"

	"mixdown/replay/mix"
)

var offload = Kind{
	Name: "offload", Value: "SPEED[:BYTES]", Example: "offload=25GB/s:512MiB",
	Summary: "activations are moved to host memory after their forward and fetched for their backward",
	Formula: "BYTES (what a traced chunk keeps of a micro-batch, or --activation-bytes) / SPEED each way, one after the other in each direction, beside the tasks; a fetch begins with the task before the backward",
	Source:  "KARMA (SC 2020, arXiv 2008.11421)",
	Cost:    "host memory for what is moved; copies share the links to the host", NotModeled: "that copies slow computation or communication down; recomputing what would come too late",
	Order: true, once: true,
	parse: func(value string) (change, error) {
		speed, bytes, given := strings.Cut(value, ":")
		c := moved{}
		var err error
		if c.speed, err = parseSpeed(speed); err != nil {
			return nil, err
		}
		if given {
			if c.bytes, err = mix.ParseSize(bytes); err != nil {
				return nil, err
			}
		}
		return c, nil
	},
}

type moved struct {
	speed float64
	bytes int64
}

func (c moved) order(o *Order) error {
	bytes := c.bytes
	if bytes == 0 {
		bytes = o.Activation
	}
	if bytes == 0 {
		return fmt.Errorf("%w: the trace does not tell what a chunk keeps: give it as offload=SPEED:BYTES, or with --activation-bytes", ErrNotApplicable)
	}
	// Of a micro-batch of the recorded size.
	recorded := float64(o.Model.Microbatches) / float64(o.Order.Microbatches()/max(1, len(o.Shape.Slices)))
	o.Shape.Offload = min(recorded*1e9*float64(bytes)/c.speed, float64(longest))
	o.note("%d bytes a chunk and micro-batch go to host memory and back, at the speed given", bytes)
	return nil
}
