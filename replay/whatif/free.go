package whatif

import (
	"fmt"

	"mixdown/ingest/comm"
	"mixdown/replay/sim"
)

var free = Kind{
	Name: "free", Value: "OPERATION[@CONDITION]", Example: "free=all_reduce@>=1MiB",
	Summary: "such operations take no time once all members are there: an upper bound on what a better library, network or overlap could give",
	Formula: "T = 0, whatever else is supposed of them; waiting for the last member stays",
	Source:  "upper bounds as in Daydream (USENIX ATC 2020)",
	Cost:    "none: a bound, nothing that can be bought", NotModeled: "what else the freed links would speed up",
	Step: true, Order: true,
	parse: func(value string) (change, error) {
		w, err := parseWhich(value)
		return freeOf{w}, err
	},
}

type freeOf struct{ which which }

func (f freeOf) step(s *Step) error {
	if err := s.knowNodes(f.which); err != nil {
		return err
	}
	if err := s.concern(f.which); err != nil {
		return err
	}
	s.note("%d operations are free", s.count(f.which))
	s.changed = append(s.changed, func(m sim.Meeting, t *took) { t.free = t.free || f.which.matches(s, m) })
	return nil
}

func (f freeOf) order(o *Order) error {
	messages, reductions, err := o.concerns(f.which)
	if err != nil {
		return err
	}
	o.free.messages, o.free.reductions = o.free.messages || messages, o.free.reductions || reductions
	return nil
}

// concerns says whether a rule concerns a pipeline's messages, and the reductions
// over its replicas.
func (o *Order) concerns(w which) (messages, reductions bool, err error) {
	if w.links != "" || !w.all() && len(w.rule.Rules) == 1 && (w.rule.Rules[0].Group != "" || w.rule.Rules[0].Min > 0 || w.rule.Rules[0].Max < 1<<62) {
		return false, false, fmt.Errorf("%w: of a pipeline's order, messages (send) and reductions (all_reduce) are known, not their groups, sizes or links: %s", ErrNotApplicable, w)
	}
	op := w.rule.Rules[0].Op
	messages = op == "" || op.IsP2P()
	switch op {
	case "", comm.AllReduce, comm.ReduceScatter, comm.AllGather:
		reductions = o.Model.Reduces()
	}
	if !messages && !reductions {
		return false, false, fmt.Errorf("%w: the model of the pipeline has no %s", ErrNotApplicable, w)
	}
	return messages, reductions, nil
}
