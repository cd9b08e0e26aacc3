package whatif

import (
	"fmt"
	"strings"
	"time"

	"mixdown/replay/mix"
)

var fill = Kind{
	Name: "fill", Value: "TIME[:BYTES[:LIMIT]]", Example: "fill=5ms:2GiB:80GiB",
	Summary: "pieces of other work, of so much time and memory each, run in the bubbles: how many fit on each rank",
	Formula: "of each time in which a place runs no task: its length / TIME, rounded down; none where what the rank holds and BYTES exceed LIMIT",
	Source:  "PipeFill (MLSys 2025, arXiv 2410.07192)",
	Cost:    "memory of the other work, BYTES on each rank that is filled", NotModeled: "switching between the works, and that the filled rank is slowed by it; the step itself is taken to stay as long",
	Order: true, once: true,
	parse: func(value string) (change, error) {
		parts := strings.Split(value, ":")
		d, err := time.ParseDuration(parts[0])
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("%q is no time such as 5ms", parts[0])
		}
		c := fillWith{ns: d.Nanoseconds()}
		for i, to := range []*int64{&c.bytes, &c.limit} {
			if len(parts) > i+1 {
				if *to, err = mix.ParseSize(parts[i+1]); err != nil {
					return nil, err
				}
			}
		}
		if len(parts) > 3 {
			return nil, fmt.Errorf("%q: expected TIME, BYTES and LIMIT at most", value)
		}
		return c, nil
	},
}

type fillWith struct{ ns, bytes, limit int64 }

// Fill is what fits into the bubbles of one rank in a step.
type Fill struct {
	Rank    int    `json:"rank"`
	Idle    int64  `json:"idle_ns"` // in which it runs no task
	Gaps    int    `json:"gaps"`    // times of idleness
	Longest int64  `json:"longest_ns"`
	Fits    *int   `json:"fits"` // pieces, null: whether their memory fits is not known
	Used    int64  `json:"used_ns"`
	Free    *int64 `json:"free_bytes"` // null: not known
}

func (c fillWith) order(o *Order) error {
	o.afterwards = append(o.afterwards, func(a *OrderAnswer) error {
		var totals []*int64
		if o.Total != nil && c.limit > 0 {
			var err error
			if totals, err = o.Total(a.Order); err != nil {
				return err
			}
		}
		for place := range a.Order {
			f := c.of(a, place)
			f.Rank = o.Ranks[place]
			pieces := 0
			if f.Fits != nil {
				pieces = *f.Fits
			}
			if c.bytes > 0 {
				f.Fits = nil
				if totals != nil && totals[place] != nil {
					free := max(c.limit-*totals[place], 0)
					f.Free = &free
					if free < c.bytes {
						pieces, f.Used = 0, 0
					}
					f.Fits = &pieces
				}
			}
			a.Fills = append(a.Fills, f)
		}
		return nil
	})
	if c.bytes > 0 && (c.limit == 0 || o.Total == nil) {
		o.note("whether %d bytes more fit is not known: give LIMIT, --params and --activation-bytes", c.bytes)
	}
	return nil
}

// of counts the pieces that fit between the tasks of a place.
func (c fillWith) of(a *OrderAnswer, place int) Fill {
	var f Fill
	pieces := 0
	at := int64(0)
	gap := func(until int64) {
		if n := until - at; n > 0 {
			f.Idle += n
			f.Gaps++
			f.Longest = max(f.Longest, n)
			pieces += int(n / c.ns)
			f.Used += n / c.ns * c.ns
		}
	}
	for i, m := range a.Run.Moments[place] {
		if a.Order[place][i].Kind.Computes() && m.End > at {
			gap(m.Start)
			at = m.End
		}
	}
	gap(a.Run.Step)
	f.Fits = &pieces
	return f
}
