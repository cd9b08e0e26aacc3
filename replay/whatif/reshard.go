package whatif

import (
	"fmt"
	"strconv"
	"strings"

	"mixdown/replay/sim"
)

var reshard = Kind{
	Name: "reshard", Value: "RECEIVERS[:CHUNKS]", Example: "reshard=8:32",
	Summary: "a message that went to each of so many receivers of the next stage goes to one, which passes it on to the others in chunks",
	Formula: "T = T0/RECEIVERS x (1 + (RECEIVERS - 1)/CHUNKS), 16 chunks if not given",
	Source:  "cross-mesh resharding by broadcast (MLSys 2023, arXiv 2211.05322); its eager 1F1B is --schedule eager-1f1b",
	Cost:    "memory: a chunk's buffer on each receiver", NotModeled: "the links among the receivers, taken to be as quick as the one between stages; that each traced message went to so many is what you say",
	Order: true, once: true,
	parse: func(value string) (change, error) {
		receivers, chunks, given := strings.Cut(value, ":")
		c := broadcastTo{chunks: 16}
		var err error
		if c.receivers, err = strconv.Atoi(receivers); err != nil || c.receivers < 1 || c.receivers > 1<<20 {
			return nil, fmt.Errorf("%q is no number of receivers", receivers)
		}
		if given {
			if c.chunks, err = strconv.Atoi(chunks); err != nil || c.chunks < 1 || c.chunks > 1<<20 {
				return nil, fmt.Errorf("%q is no number of chunks", chunks)
			}
		}
		return c, nil
	},
}

type broadcastTo struct{ receivers, chunks int }

func (c broadcastTo) order(o *Order) error {
	n, k := float64(c.receivers), float64(c.chunks)
	share := (1 + (n-1)/k) / n
	o.note("each message of the trace is said to have gone to %d receivers; messages below 64 KiB are latency and keep their time", c.receivers)
	o.Model.ChangeHops(func(_, _ int, _ bool, h sim.Hop) sim.Hop {
		h.Occupied = o.bounded.nanoseconds(float64(h.Occupied) * share)
		return h
	})
	return nil
}
