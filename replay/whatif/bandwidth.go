package whatif

import "mixdown/replay/sim"

var bandwidth = Kind{
	Name: "bandwidth", Value: "[OPERATION[@CONDITION]:|inter:|intra:]xFACTOR", Example: "bandwidth=inter:x2",
	Summary: "links carry so many times the bytes a second",
	Formula: "T = a + (T0 - a)/FACTOR, a the part of T0 that does not depend on the size: by --table what is left of the time of the smallest size at none, else 0",
	Source:  "COMET (arXiv 2211.16648): what-ifs over cluster bandwidth",
	Cost:    "hardware; none in memory or accuracy", NotModeled: "contention on links that several groups share, beyond what the trace holds; collectives of one group that ran at once are taken to share them by their bytes",
	Step: true, Order: true,
	parse: func(value string) (change, error) {
		rule, last := cutLast(value)
		f, err := parseFactor(last)
		if err != nil {
			return nil, err
		}
		w, err := parseWhich(rule)
		return bandwidthOf{w, f}, err
	},
}

type bandwidthOf struct {
	which  which
	factor float64
}

func (b bandwidthOf) step(s *Step) error {
	if err := s.knowNodes(b.which); err != nil {
		return err
	}
	if err := s.concern(b.which); err != nil {
		return err
	}
	s.changed = append(s.changed, func(m sim.Meeting, t *took) {
		if b.which.matches(s, m) {
			t.scale(1 / b.factor)
		}
	})
	return nil
}

func (b bandwidthOf) order(o *Order) error {
	messages, reductions, err := o.concerns(b.which)
	if err != nil {
		return err
	}
	if messages {
		o.note("messages below 64 KiB are latency and keep their time")
		o.Model.ChangeHops(func(_, _ int, _ bool, h sim.Hop) sim.Hop {
			h.Occupied = o.bounded.nanoseconds(float64(h.Occupied) / b.factor)
			return h
		})
	}
	if reductions {
		o.note("all of a reduction's time goes with the bandwidth: the effect is an upper bound")
		o.Model.ScaleReductions(1 / b.factor)
	}
	return nil
}

var latency = Kind{
	Name: "latency", Value: "[OPERATION[@CONDITION]:|inter:|intra:]TIME", Example: "latency=+5us",
	Summary: "every operation, or message, takes so much longer or shorter",
	Formula: "T = max(0, T0 + TIME), once for each operation",
	Source:  "COMET (arXiv 2211.16648): what-ifs over cluster latency",
	Cost:    "hardware; none in memory or accuracy", NotModeled: "that an algorithm of several rounds, or a message that is asked for before it is sent, pays a link's latency in each: give the sum; of an order, collectives that end the step keep their time",
	Step: true, Order: true,
	parse: func(value string) (change, error) {
		rule, last := cutLast(value)
		ns, err := parseTime(last)
		if err != nil {
			return nil, err
		}
		w, err := parseWhich(rule)
		return latencyOf{w, ns}, err
	},
}

type latencyOf struct {
	which which
	ns    int64
}

func (l latencyOf) step(s *Step) error {
	if err := s.knowNodes(l.which); err != nil {
		return err
	}
	if err := s.concern(l.which); err != nil {
		return err
	}
	s.changed = append(s.changed, func(m sim.Meeting, t *took) {
		if l.which.matches(s, m) {
			t.more += float64(l.ns)
		}
	})
	return nil
}

func (l latencyOf) order(o *Order) error {
	messages, reductions, err := o.concerns(l.which)
	if err != nil {
		return err
	}
	if messages {
		o.later.messages += l.ns
	}
	if reductions {
		o.later.reductions += l.ns
	}
	return nil
}
