package whatif

import (
	"fmt"
	"math"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/sim"
)

var compressed = Kind{
	Name: "compress", Value: "[OPERATION[@CONDITION]:]RATIOx:SPEED[:SPEED]", Example: "compress=all_reduce:4x:200GB/s",
	Summary: "payloads are made smaller before they are sent, and restored after",
	Formula: "T = a + (T0 - a)/RATIO + in_bytes/SPEED (encoding) + out_bytes/SPEED (decoding, the second one if given), a as for bandwidth",
	Source:  "dynamic communication thresholding (KDD 2021, arXiv 2010.08899), compressed activations (MLSys 2024, arXiv 2301.02654)",
	Cost:    "accuracy: lossy unless the codec is not, to be judged by training; memory: the compressed copy, and a copy of the payload if errors are fed back", NotModeled: "what the codec takes from computation beside it, more than communication does, and from the thread that computes, which encodes in PyTorch; reductions that decompress in every round; ratios that differ from tensor to tensor",
	Step: true, Order: true,
	parse: func(value string) (change, error) {
		c := compressBy{}
		rest, last := cutLast(value)
		speed, err := parseSpeed(last)
		if err != nil {
			return nil, fmt.Errorf("%w: a codec takes time, say how much it does", err)
		}
		c.encode, c.decode = speed, speed
		if before, encoder := cutLast(rest); strings.HasSuffix(encoder, "/s") {
			rest = before
			if c.encode, err = parseSpeed(encoder); err != nil {
				return nil, err
			}
		}
		rule, ratio := cutLast(rest)
		if c.ratio, err = parseFactor(ratio); err != nil {
			return nil, err
		}
		c.which, err = parseWhich(rule)
		return c, err
	},
}

type compressBy struct {
	which          which
	ratio          float64
	encode, decode float64 // bytes per second
}

func (c compressBy) step(s *Step) error {
	if err := s.knowNodes(c.which); err != nil {
		return err
	}
	if err := s.concern(c.which); err != nil {
		return err
	}
	s.note("the ratio of %gx and the codec's speed are given, not measured", c.ratio)
	unsized := 0
	for _, m := range sim.NewGraph(s.Workload).Meetings() {
		if c.which.matches(s, m) && plan.DType(m.Communication).Size() == 0 && plan.Op(m.Communication) != comm.Barrier {
			unsized++
		}
	}
	if unsized > 0 {
		s.note("%d operations of unknown size are not compressed", unsized)
	}
	s.changed = append(s.changed, func(m sim.Meeting, t *took) {
		if !c.which.matches(s, m) || plan.DType(m.Communication).Size() == 0 {
			return
		}
		size := plan.DType(m.Communication).Size()
		in, out := m.Communication.InCount*size, m.Communication.OutCount*size
		if m.Transfer {
			in, out = m.Count*size, m.Count*size
		}
		t.scale(1 / c.ratio)
		t.more += 1e9*float64(in)/c.encode + 1e9*float64(out)/c.decode
	})
	return nil
}

func (c compressBy) order(o *Order) error {
	messages, reductions, err := o.concerns(c.which)
	if err != nil {
		return err
	}
	if reductions && !messages {
		return fmt.Errorf("%w: the model of a pipeline does not know how large the gradients are, so not what a codec takes for them; ask it of the step, without --schedule", ErrNotApplicable)
	}
	forward, known := o.Model.MessageBytes(true)
	backward, known2 := o.Model.MessageBytes(false)
	if !known && !known2 {
		return fmt.Errorf("%w: the trace does not tell how large messages are (record_shapes=True records it), so not what a codec takes for them", ErrNotApplicable)
	}
	size := [2]int64{max(backward, forward*int64(one(!known2))), max(forward, backward*int64(one(!known)))}
	o.note("the ratio of %gx and the codec's speed are given, not measured; messages between stages alone are compressed", c.ratio)
	o.Model.ChangeHops(func(_, _ int, activation bool, h sim.Hop) sim.Hop {
		bytes := size[one(activation)]
		codec := o.bounded.nanoseconds(math.Round(1e9*float64(bytes)/c.encode + 1e9*float64(bytes)/c.decode))
		return sim.Hop{Occupied: o.bounded.nanoseconds(float64(h.Occupied) / c.ratio), Latency: h.Latency + codec}
	})
	return nil
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
