package measure

import (
	"context"
	"errors"
	"os"
	"slices"

	"mixdown/replay/launch"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
)

// stepJob is a moment on a contender.
type stepJob struct {
	moment
	tune.Contender
}

// stepBatch is contenders that run the step in turns.
type stepBatch struct {
	launcher   string
	contenders []tune.Contender
}

// longStart is how long one start of the step should take at most, in ns, from
// what the step took in the trace.
const longStart = 20e9

// within measures the step as a whole on every contender without settings, in
// turns as far as they can share workers, until all of it is known well enough.
// It returns the contenders that are still to be measured one operation at a time.
func (c *campaign) within(ctx context.Context) ([]tune.Contender, error) {
	s := newStep(c.Step)
	var batches []stepBatch
	var rest []tune.Contender
	home := c.home()
	for _, who := range c.Contenders {
		if who.Variant != "" {
			rest = append(rest, who)
			continue
		}
		for _, m := range s.moments {
			j := stepJob{m, who}
			c.inStep[j] = &state{row: c.knownAs(m.row(who, c.Device))}
			c.inStep[j].earlier = c.inStep[j].row != nil
		}
		launcher, err := launch.LauncherFor([]string{who.Backend})
		if err == nil && launcher == "direct" && home != "" {
			launcher = home
		}
		i := slices.IndexFunc(batches, func(b stepBatch) bool { return b.launcher == launcher })
		if i < 0 {
			i = len(batches)
			batches = append(batches, stepBatch{launcher: launcher})
		}
		batches[i].contenders = append(batches[i].contenders, who)
	}
	iterations := firstIterations
	for len(batches) > 0 && !c.over(ctx) {
		// What is known well enough is not measured again.
		batches = slices.DeleteFunc(batches, func(b stepBatch) bool { return !c.looseIn(s, b) })
		c.rng.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
		for i := range batches {
			failed, err := c.runStep(ctx, s, &batches[i], iterations)
			if err != nil {
				return nil, err
			}
			rest = append(rest, failed...)
			if c.over(ctx) {
				break
			}
		}
		iterations = moreIterations
	}
	return rest, nil
}

// looseIn says whether something of the step is not known well enough on one of a
// batch's contenders, and more iterations may help.
func (c *campaign) looseIn(s *step, b stepBatch) bool {
	for _, who := range b.contenders {
		for _, m := range s.moments {
			if x := c.inStep[stepJob{m, who}]; x.row == nil || spread(x.row) > c.Precision && len(x.medians) < maxIterations {
				return true
			}
		}
	}
	return false
}

// runStep is one start of the step on a batch's contenders. Where it fails each is
// tried alone; those that fail alone are returned and leave the batch.
func (c *campaign) runStep(ctx context.Context, s *step, b *stepBatch, iterations int) ([]tune.Contender, error) {
	err := c.executeStep(ctx, s, b.contenders, iterations)
	if c.Checkpoint != nil {
		if err := c.Checkpoint(c.table); err != nil {
			return nil, err
		}
	}
	switch {
	case err == nil || c.over(ctx):
		return nil, nil
	case errors.Is(err, os.ErrPermission) || errors.Is(err, launch.ErrUnavailable) || errors.Is(err, ErrEmulated):
		return nil, err
	}
	var failed, left []tune.Contender
	for _, who := range b.contenders {
		if len(b.contenders) > 1 {
			err = c.executeStep(ctx, s, []tune.Contender{who}, iterations)
		}
		if c.over(ctx) {
			return failed, nil
		}
		if err == nil {
			left = append(left, who)
			continue
		}
		failed = append(failed, who)
		c.summary.Failures = append(c.summary.Failures, Failure{Contender: who, Step: true, Err: err})
		for _, m := range s.moments {
			if j := (stepJob{m, who}); c.inStep[j].row == nil {
				delete(c.inStep, j)
			}
		}
	}
	b.contenders = left
	return failed, nil
}

// executeStep is one start of the workers.
func (c *campaign) executeStep(ctx context.Context, s *step, contenders []tune.Contender, iterations int) error {
	dir, err := os.MkdirTemp("", "mixdown-tune-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if most := longStart / max(1, float64(s.workload.TraceStepNs)*float64(len(contenders))); float64(iterations) > most {
		iterations = max(2, int(most))
	}
	exp := &planpb.Experiment{SchemaVersion: 1, Settings: &planpb.Settings{
		Iterations: int32(iterations), Warmup: 2, Samples: int64(iterations), Seed: c.rng.Uint64(), SpanMode: planpb.SpanMode_SPAN_MODE_SLEEP,
	}}
	if c.Device == tune.GPU {
		exp.Settings.Device = planpb.Device_DEVICE_CUDA
	}
	for _, who := range contenders {
		p, err := s.plan(who.String())
		if err != nil {
			return err
		}
		exp.Plans = append(exp.Plans, p)
		for _, m := range s.moments {
			exp.Settings.Verify = exp.Settings.Verify || !c.inStep[stepJob{m, who}].checked
		}
	}
	c.summary.Starts++
	if c.Budget > 0 { // what a start has when the budget is spent is kept
		left, cancel := context.WithTimeout(ctx, max(leastTime, c.Budget-c.Now().Sub(c.started)))
		defer cancel()
		ctx = left
	}
	results, err := c.Worker.Run(ctx, exp, launch.Options{Dir: dir, Timeout: c.Timeout, Starter: c.Starter, Progress: func(p launch.Progress) {
		c.tell(p, "the step", len(s.workload.Programs))
	}})
	lengths := make([][]int64, len(exp.Plans))
	outcomes, readErr := readRun(dir, exp.Plans, func(plan int, records []*record) []int64 {
		times, length := s.times(records)
		if len(times) > 0 {
			lengths[plan] = append(lengths[plan], length)
		}
		return times
	})
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	return errors.Join(err, c.collectStep(s, contenders, outcomes, lengths, c.spans(s, results)))
}

// spans is on how many machines the members of each moment were, of the meeting with
// the most; 0 where that is not known.
func (c *campaign) spans(s *step, results *launch.Results) []int {
	nodes := make([]int, len(s.moments))
	if c.Starter != nil && results == nil {
		return nodes
	}
	at := make([]int, len(s.workload.Programs)) // host of each worker
	if results != nil {
		for h, host := range results.Hosts {
			for _, worker := range host.Workers {
				at[worker] = h
			}
		}
	}
	for _, m := range s.meetings {
		hosts := map[int]bool{}
		for _, k := range m.members {
			hosts[at[k.program]] = true
		}
		nodes[m.moment] = max(nodes[m.moment], len(hosts))
	}
	return nodes
}

// collectStep adds what a start measured to the table; lengths are those of the steps,
// by contender and iteration, ns.
func (c *campaign) collectStep(s *step, contenders []tune.Contender, outcomes []outcome, lengths [][]int64, nodes []int) error {
	var rows []tune.Row
	for i, who := range contenders {
		o := outcomes[i]
		if len(o.errors) > 0 { // which operations' times are wrong is not known
			return wrongData(o)
		}
		for k, times := range o.iterations {
			for m, of := range s.byMoment(times) {
				c.inStep[stepJob{s.moments[m], who}].addMean(of, lengths[i][k])
			}
		}
		for n, m := range s.moments {
			x := c.inStep[stepJob{m, who}]
			x.checked = x.checked || o.checked == len(s.workload.Programs)
			if len(x.medians) == 0 {
				continue
			}
			row := m.row(who, c.Device)
			row.Environment = c.hash
			row.Nodes = nodes[n]
			x.fill(&row)
			if x.earlier && row.N < x.row.N {
				continue // what was known rests on more
			}
			x.row, x.earlier = &row, false
			rows = append(rows, row)
		}
	}
	return c.table.Put(rows...)
}
