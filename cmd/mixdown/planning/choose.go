package planning

import (
	"errors"
	"fmt"
	"slices"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/auto"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
)

// readTable reads the tuning table, nil where none is named and no mix needs one.
func (o *Options) readTable() (*tune.Table, error) {
	switch {
	case o.Table != "":
	case !slices.Contains(o.Mixes, mix.Auto):
		return nil, nil
	default:
		return nil, fmt.Errorf("%w: --mix auto chooses from a tuning table: name one with --table (\"mixdown tune\" makes it)", cli.ErrUsage)
	}
	t, err := tune.Read(o.Table)
	if err != nil {
		return nil, fmt.Errorf("--table: %w", err)
	}
	return t, nil
}

// choose chooses a mix of the backends that the table knows and that can run.
func (o *Options) choose(p *Plans, table *tune.Table, canRun func(string) error) (mix.Mix, error) {
	var backends []string
	for i := range table.Rows {
		r := &table.Rows[i]
		// Settings of a library are applied when it starts, not for one operation.
		if name := r.Contender.String(); name == r.Backend && !slices.Contains(backends, name) && canRun(name) == nil {
			backends = append(backends, name)
		}
	}
	opts := auto.Options{Backends: backends, Traced: p.Stand, Nodes: o.Nodes, Noise: minNoise}
	for _, c := range mix.Known().Backends {
		if c.Family == "mpi" {
			opts.Exclusive = append(opts.Exclusive, c.Name)
		}
	}
	w := p.Workload
	if o.Simulate { // operations of unknown size have no cost to choose by
		var err error
		if w, _, err = plan.Build(p.Job.Run, p.Job.Match, plan.Options{Step: o.Step, Clocks: p.Job.Clocks}); err != nil {
			return mix.Mix{}, err
		}
	}
	choice, err := auto.Choose(w, p.Costs, opts)
	if err != nil {
		return mix.Mix{}, err
	}
	p.Chosen = choice
	if choice.Speedup > 0 {
		p.Predicted[mix.Auto] = choice.Speedup
	}
	return choice.Mix, nil
}

// predict says what a replay of the mixes so far should measure, where a table has what
// all their operations take.
func (o *Options) predict(p *Plans) error {
	base, known, err := o.step(p, p.Baseline)
	if err != nil || !known {
		return err
	}
	for _, v := range p.Variants {
		if _, has := p.Predicted[v.Name]; has {
			continue
		}
		step, known, err := o.step(p, v)
		if err != nil {
			return err
		}
		if known {
			p.Predicted[v.Name] = float64(base) / float64(step)
		}
	}
	return nil
}

// step is how long a step of a plan should take when it is replayed, in ns; false where
// no table has what all its operations take.
func (o *Options) step(p *Plans, v *planpb.Plan) (ns int64, known bool, err error) {
	if p.Costs == nil || o.Simulate { // simulate has predictions of its own, of the job
		return 0, false, nil
	}
	ns, err = auto.Predict(v, p.Costs, auto.Options{Traced: p.Stand, Nodes: o.Nodes})
	if errors.Is(err, auto.ErrNoCosts) {
		return 0, false, nil
	}
	return ns, err == nil && ns > 0, err
}

// minNoise is the least that a mix must gain to be chosen, as a share of the step.
const minNoise = 0.03
