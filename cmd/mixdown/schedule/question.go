package schedule

import (
	"fmt"
	"strings"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/memory"
	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
)

// question is what the command line asks for, read.
type question struct {
	spec    schedule.Spec
	order   schedule.Order
	variant *sharding.Variant // nil: sharding isn't asked for
	buffers sharding.Options
	gather  *schedule.Rational // nil: not given, takes no time
	reduce  *schedule.Rational // nil: not given
	model   *memory.Model      // nil: memory isn't asked for
	against *question
}

// question reads the flags.
func (opts *Options) question() (question, error) {
	q := question{buffers: sharding.Options{WeightBuffers: opts.WeightBuffers, GradientBuffers: opts.GradientBuffers}}
	var err error
	if q.spec, err = schedule.Parse(opts.Spec); err != nil {
		return q, err
	}
	if q.order, err = q.spec.Order(); err != nil {
		return q, err
	}
	if opts.Sharding != "" {
		v, err := sharding.Parse(opts.Sharding)
		if err != nil {
			return q, usage(err)
		}
		q.variant = &v
	}
	if q.gather, err = parseTime("--gather", opts.Gather); err != nil {
		return q, err
	}
	if q.reduce, err = parseTime("--reduce", opts.Reduce); err != nil {
		return q, err
	}
	if q.gather != nil && (q.variant == nil || *q.variant == sharding.None) {
		return q, fmt.Errorf("%w: --gather: nothing is gathered without --sharding partial or full", cli.ErrUsage)
	}
	switch {
	case opts.Comms != "" && opts.Comms != commsNone && opts.Comms != commsPlain && opts.Comms != commsWaits:
		return q, fmt.Errorf("%w: --comms=%s: expected none, plain or waits", cli.ErrUsage, opts.Comms)
	case opts.Comms != "" && opts.Comms != commsNone && opts.Format != csv:
		return q, fmt.Errorf("%w: --comms is for --format %s", cli.ErrUsage, csv)
	}
	if q.model, err = opts.model(); err != nil {
		return q, err
	}
	if opts.Against != "" {
		q.against, err = q.other(opts.Against)
	}
	return q, err
}

// other reads the schedule to compare with. What its spec leaves open is as in
// the first, and its durations are those of the same model, cut into as many
// stages as it has.
func (q question) other(text string) (*question, error) {
	other := q
	other.against = nil
	var err error
	if other.spec, err = schedule.Parse(text); err != nil {
		return nil, err
	}
	other.spec = other.spec.Fill(q.spec.Ranks, q.spec.Microbatches, q.spec.Loops)
	if other.order, err = other.spec.Order(); err != nil {
		return nil, err
	}
	parts := schedule.Ratio(int64(q.order.Stages()), int64(other.order.Stages()))
	if !strings.Contains(text, "forward=") && !strings.Contains(text, "backward=") && !strings.Contains(text, "weight=") {
		c := &other.spec.Costs
		c.Forward, c.Backward, c.Weight = q.spec.Costs.Forward.Mul(parts), q.spec.Costs.Backward.Mul(parts), q.spec.Costs.Weight.Mul(parts)
	}
	if !strings.Contains(text, "hop=") {
		other.spec.Costs.Hop = q.spec.Costs.Hop
	}
	for _, t := range []**schedule.Rational{&other.gather, &other.reduce} {
		if *t != nil {
			each := (*t).Mul(parts)
			*t = &each
		}
	}
	if q.model != nil && q.model.Activation != nil {
		model := *q.model
		bytes, whole := schedule.Int(*q.model.Activation).Mul(parts).Int64()
		model.Activation = &bytes
		if !whole {
			model.Activation = nil // not to be made up
		}
		other.model = &model
	}
	return &other, nil
}

// parseTime reads a flag's duration, nil if it isn't given.
func parseTime(flag, text string) (*schedule.Rational, error) {
	if text == "" {
		return nil, nil
	}
	t, err := schedule.ParseRational(text)
	if err != nil || t.Sign() < 0 {
		return nil, fmt.Errorf("%w: %s %q: expected a time such as 3, 0.5 or 1/2", cli.ErrUsage, flag, text)
	}
	return &t, nil
}

// time is a duration that takes no time where it isn't given.
func (question) time(given *schedule.Rational) schedule.Rational {
	if given == nil {
		return schedule.Rational{}
	}
	return *given
}

// model reads what is said of the model, nil if nothing is.
func (opts *Options) model() (*memory.Model, error) {
	variant, buffers := sharding.None, sharding.Options{WeightBuffers: opts.WeightBuffers, GradientBuffers: opts.GradientBuffers}
	if opts.Sharding != "" {
		var err error
		if variant, err = sharding.Parse(opts.Sharding); err != nil {
			return nil, usage(err)
		}
	}
	return opts.Sizes.Model(variant, buffers)
}

// How much of the communication a CSV names.
const (
	commsNone  = "none"
	commsPlain = "plain" // transfers and collectives
	commsWaits = "waits" // and when they are waited for
)

// lower is the order as a CSV holds it. PyTorch scales and reduces a gradient at
// each REDUCE_GRAD, so that there is one for each stage, whatever the buffers.
func (q question) lower(comms string) (schedule.Order, error) {
	if comms == commsNone || comms == "" {
		return q.order, nil
	}
	variant := sharding.None
	if q.variant != nil {
		variant = *q.variant
	}
	buffers := q.buffers
	buffers.GradientBuffers = max(1, q.order.Loops())
	o, _, err := sharding.Shard(q.order, variant, buffers)
	if err != nil {
		return nil, usage(err)
	}
	if comms == commsWaits {
		o = o.WithReductionWaits()
	}
	if o, err = o.WithTransfers(); err != nil {
		return nil, err
	}
	if comms == commsWaits {
		o = o.WithSendWaits()
	}
	return o, nil
}
