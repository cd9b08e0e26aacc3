package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"mixdown/replay/launch"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
)

// Options of a campaign.
type Options struct {
	Worker     launch.Worker
	Starter    launch.Starter   // of workers on several hosts, nil for this one
	Contenders []tune.Contender // their backends can run here
	Variants   Variants
	Device     string  // where the buffers are, tune.Host or tune.GPU; "" means Host
	GPU        string  // kind of GPU, launch.OnCUDA or OnHIP; "" means the first
	Points     []Point // as Normal makes them
	// Step, when set, is run as a whole on every contender without settings, and its
	// operations are measured in it; Points are then for the others, and for those on
	// which it can't run.
	Step *planpb.Workload
	// Environment is what the rows refer to.
	Environment tune.Environment
	// Table is what is known already: its rows of the same environment are not
	// measured again unless they are known less well than Precision.
	Table *tune.Table
	// Budget ends the campaign when it is spent; 0: none.
	Budget time.Duration
	// Precision is half the confidence interval over the median at which a time is
	// known well enough; 0 means DefaultPrecision.
	Precision float64
	// NoRefine: no sizes beside those of Points.
	NoRefine bool
	Seed     uint64
	Timeout  time.Duration // of a start without progress; 0 means the launcher's
	// Checkpoint, when set, is called with the table after each start of workers.
	Checkpoint func(*tune.Table) error
	Progress   func(Progress)
	Now        func() time.Time // nil: time.Now
}

// DefaultPrecision is that of Options.
const DefaultPrecision = 0.05

// Progress is how far a campaign has come.
type Progress struct {
	Done, Total int // points on contenders
	Detail      string
}

// Summary is what became of a campaign.
type Summary struct {
	Measured, Wanted int  // points on contenders
	Loose            int  // of the measured: less well known than Precision
	Starts           int  // of workers
	Spent            bool // the budget ended it
	Interrupted      bool // the caller did
	Failures         []Failure
}

// Failure is a point that could not be measured.
type Failure struct {
	Point
	tune.Contender
	Step bool // it is the whole step; Point is empty
	Err  error
}

// What names what could not be measured.
func (f Failure) What() string {
	if f.Step {
		return "the step as a whole"
	}
	return f.Point.String()
}

// job is a point on a contender.
type job struct {
	Point
	tune.Contender
}

// inPlan is the contender as a plan names it: with the settings that the worker
// makes, without those that the environment does.
func (j job) inPlan() string {
	if inPlan(j.Contender) {
		return j.Contender.String()
	}
	return j.Backend
}

// campaign is a campaign in progress.
type campaign struct {
	Options
	rng     *rand.Rand
	started time.Time
	table   *tune.Table
	hash    string // of the environment
	jobs    []job
	state   map[job]*state
	inStep  map[stepJob]*state
	summary Summary
}

// state is what is known of a job.
type state struct {
	series
	row     *tune.Row // nil until measured
	failed  bool
	earlier bool // row is of an earlier campaign
}

// Iterations of each start, and how many a job gets at most.
const (
	firstIterations = 8
	moreIterations  = 16
	maxIterations   = 96
	refinements     = 3
	maxFailures     = 8 // with nothing measured: then something is wrong with all
)

// leastTime is what a start gets even where the budget is almost spent.
const leastTime = 5 * time.Second

// Run measures. It returns the table as far as it came, whatever happened.
func Run(ctx context.Context, opts Options) (*tune.Table, Summary, error) {
	c := &campaign{Options: opts, state: map[job]*state{}, inStep: map[stepJob]*state{}, table: opts.Table}
	if c.table == nil {
		c.table = &tune.Table{}
	}
	if c.Precision <= 0 {
		c.Precision = DefaultPrecision
	}
	if c.Device == "" {
		c.Device = tune.Host
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.started = c.Now()
	c.rng = rand.New(rand.NewPCG(opts.Seed, 1))
	c.hash = c.table.AddEnvironment(opts.Environment)
	err := c.run(ctx)
	c.count()
	return c.table, c.summary, err
}

// want adds points to what is to be measured on some contenders.
func (c *campaign) want(points []Point, contenders []tune.Contender) {
	for _, p := range points {
		for _, who := range contenders {
			j := job{p, who}
			if c.state[j] != nil || !c.Variants.Applies(who, p) {
				continue
			}
			c.jobs = append(c.jobs, j)
			c.state[j] = &state{row: c.known(j)}
			c.state[j].earlier = c.state[j].row != nil
		}
	}
}

// known is the row of a job in the table, nil if it has none.
func (c *campaign) known(j job) *tune.Row { return c.knownAs(j.row(j.Contender, c.Device)) }

// knownAs is the row of the table that measures the same, nil if there is none.
func (c *campaign) knownAs(want tune.Row) *tune.Row {
	for i := range c.table.Rows {
		r := c.table.Rows[i]
		if r.Contender == want.Contender && r.Op == want.Op && r.DType == want.DType && r.Ranks == want.Ranks && r.In == want.In &&
			r.Out == want.Out && r.Streams == want.Streams && r.InStep == want.InStep && r.Gap == want.Gap && r.Device == want.Device && r.Environment == c.hash {
			return &r
		}
	}
	return nil
}

func (c *campaign) run(ctx context.Context) error {
	contenders := c.Contenders
	if c.Step != nil {
		var err error
		if contenders, err = c.within(ctx); err != nil {
			return err
		}
	}
	c.want(c.Points, contenders)
	if err := c.measure(ctx, c.pending(func(s *state) bool { return s.row == nil }), firstIterations); err != nil {
		return err
	}
	for range refinements {
		if c.NoRefine {
			break
		}
		more := refine(c.table, c.points(), c.Contenders)
		if len(more) == 0 {
			break
		}
		c.want(more, contenders)
		if err := c.measure(ctx, c.pending(func(s *state) bool { return s.row == nil }), firstIterations); err != nil {
			return err
		}
	}
	for {
		loose := c.pending(func(s *state) bool {
			return s.row != nil && spread(s.row) > c.Precision && len(s.medians) < maxIterations
		})
		if len(loose) == 0 || c.over(ctx) {
			return nil
		}
		if err := c.measure(ctx, loose, moreIterations); err != nil {
			return err
		}
	}
}

func (c *campaign) points() []Point {
	var list []Point
	for _, j := range c.jobs {
		list = append(list, j.Point)
	}
	slices.SortFunc(list, comparePoints)
	return slices.Compact(list)
}

// pending lists the jobs whose state is as asked.
func (c *campaign) pending(is func(*state) bool) []job {
	var list []job
	for _, j := range c.jobs {
		if s := c.state[j]; !s.failed && is(s) {
			list = append(list, j)
		}
	}
	return list
}

// over says whether to stop, and notes why.
func (c *campaign) over(ctx context.Context) bool {
	if ctx.Err() != nil {
		c.summary.Interrupted = true
	} else if c.Budget > 0 && c.Now().Sub(c.started) >= c.Budget {
		c.summary.Spent = true
	}
	return c.summary.Interrupted || c.summary.Spent
}

// measure runs jobs in as few starts of workers as are sensible.
func (c *campaign) measure(ctx context.Context, jobs []job, iterations int) error {
	failures := 0
	for _, b := range c.batches(jobs) {
		if c.over(ctx) {
			return nil
		}
		n := len(c.summary.Failures)
		if err := c.start(ctx, b, iterations); err != nil {
			return err
		}
		if failures += len(c.summary.Failures) - n; failures >= maxFailures && c.measured() == 0 {
			return fmt.Errorf("nothing can be measured: %w", c.summary.Failures[0].Err)
		}
	}
	return nil
}

func (c *campaign) measured() int {
	n := 0
	for _, s := range c.state {
		if s.row != nil {
			n++
		}
	}
	for _, s := range c.inStep {
		if s.row != nil {
			n++
		}
	}
	return n
}

// start runs a batch, and again in halves when it fails: what can't run must not
// take the rest with it.
func (c *campaign) start(ctx context.Context, b batch, iterations int) error {
	err := c.execute(ctx, b, iterations)
	if c.Checkpoint != nil {
		if err := c.Checkpoint(c.table); err != nil {
			return err
		}
	}
	switch {
	case err == nil:
		return nil
	case c.over(ctx):
		return nil
	case errors.Is(err, os.ErrPermission) || errors.Is(err, launch.ErrUnavailable) || errors.Is(err, ErrEmulated):
		return err
	case len(b.jobs) == 1:
		j := b.jobs[0]
		c.state[j].failed = c.state[j].row == nil
		c.summary.Failures = append(c.summary.Failures, Failure{Point: j.Point, Contender: j.Contender, Err: err})
		return nil
	}
	// What it did write is known; the rest is tried again.
	left := slices.DeleteFunc(slices.Clone(b.jobs), func(j job) bool { return c.state[j].row != nil && !c.state[j].earlier })
	for len(left) > 0 {
		half := left[:max(1, (len(left)+1)/2)]
		left = left[len(half):]
		if c.over(ctx) {
			return nil
		}
		if err := c.start(ctx, batch{group: b.group, jobs: half}, iterations); err != nil {
			return err
		}
		if len(c.summary.Failures) >= maxFailures && c.measured() == 0 {
			return nil
		}
	}
	return nil
}

// execute is one start of the workers.
func (c *campaign) execute(ctx context.Context, b batch, iterations int) error {
	dir, err := os.MkdirTemp("", "mixdown-tune-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	worker, err := workerWith(c.Worker, b.settings, dir)
	if err != nil {
		return err
	}
	exp := &planpb.Experiment{SchemaVersion: 1, Settings: &planpb.Settings{
		Iterations: int32(iterations), Warmup: 1, Samples: int64(iterations), Seed: c.rng.Uint64(), SpanMode: planpb.SpanMode_SPAN_MODE_SLEEP,
	}}
	if c.Device == tune.GPU {
		exp.Settings.Device = launch.PlanDevice(cmp.Or(c.GPU, launch.OnCUDA))
	}
	var programs []*program
	for i, j := range b.jobs {
		g := newProgram(fmt.Sprintf("%d: %s on %s", i, j.Point, j.Contender), j.Point, j.inPlan())
		programs = append(programs, g)
		exp.Plans = append(exp.Plans, g.plan)
		exp.Settings.Verify = exp.Settings.Verify || !c.state[j].checked
	}
	c.summary.Starts++
	if c.Budget > 0 { // what a start has when the budget is spent is kept
		left, cancel := context.WithTimeout(ctx, max(leastTime, c.Budget-c.Now().Sub(c.started)))
		defer cancel()
		ctx = left
	}
	results, err := worker.Run(ctx, exp, launch.Options{Dir: dir, Timeout: c.Timeout, Starter: c.Starter, Progress: func(p launch.Progress) { c.tell(p, fmt.Sprintf("%d points", len(b.jobs)), b.ranks) }})
	outcomes, readErr := readOutcomes(dir, programs)
	if readErr != nil {
		if err != nil {
			return err
		}
		return readErr
	}
	return errors.Join(err, c.collect(b, outcomes, c.nodes(results)))
}

// nodes is how many machines a start ran on, 0 when that is not known.
func (c *campaign) nodes(results *launch.Results) int {
	switch {
	case c.Starter == nil:
		return 1
	case results == nil: // it failed
		return 0
	}
	return len(results.Hosts)
}

// collect adds what a start measured to the table. Times of operations whose data
// was wrong are not times of these operations.
func (c *campaign) collect(b batch, outcomes []outcome, nodes int) error {
	var rows []tune.Row
	for i, j := range b.jobs {
		o, s := outcomes[i], c.state[j]
		if len(o.errors) > 0 {
			s.failed, s.row = true, nil
			c.summary.Failures = append(c.summary.Failures, Failure{Point: j.Point, Contender: j.Contender, Err: wrongData(o)})
			continue
		}
		s.checked = s.checked || o.checked == j.Ranks
		if len(o.iterations) == 0 {
			continue
		}
		s.add(o)
		row := j.row(j.Contender, c.Device)
		row.Environment, row.Nodes = c.hash, nodes
		s.fill(&row)
		if s.earlier && row.N < s.row.N {
			continue // what was known rests on more
		}
		s.row, s.earlier = &row, false
		rows = append(rows, row)
	}
	return c.table.Put(rows...)
}

// wrongData is the error of an outcome whose data was not right.
func wrongData(o outcome) error { return fmt.Errorf("wrong data: %s", o.errors[0]) }

func (c *campaign) tell(p launch.Progress, what string, ranks int) {
	if c.Progress == nil {
		return
	}
	done := c.measured()
	detail := fmt.Sprintf("%s on %d ranks, %s", what, ranks, p.State)
	if p.State == launch.Timing {
		detail += fmt.Sprintf(", iteration %d of %d", p.Iteration, p.Last)
	}
	c.Progress(Progress{Done: done, Total: len(c.jobs) + len(c.inStep), Detail: detail})
}

// count makes the summary.
func (c *campaign) count() {
	c.summary.Wanted = len(c.jobs) + len(c.inStep)
	for _, s := range slices.Concat(slices.Collect(maps.Values(c.state)), slices.Collect(maps.Values(c.inStep))) {
		if s.row != nil {
			c.summary.Measured++
			if spread(s.row) > c.Precision {
				c.summary.Loose++
			}
		}
	}
}
