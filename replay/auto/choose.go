package auto

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
	"mixdown/replay/tune"
)

// ErrNoCosts: the table can't say what the job's operations cost on any backend.
var ErrNoCosts = errors.New("the table has no costs for this job")

// Costs answers what an operation costs; tune.Costs does.
type Costs interface {
	// Estimate is false where nothing measured allows an answer.
	Estimate(tune.Query) (tune.Estimate, bool)
}

// Options of choosing. The zero value is ready but for Backends.
type Options struct {
	Backends []string // to choose from
	// Exclusive are backends of which a job can have one only, as a process can load
	// one MPI.
	Exclusive []string
	Traced    string // what the job runs on, or what stands in for it
	Nodes     int    // of the job, 0 when not known; ranks fill one after the other
	// Noise is the least share of the step that a change must gain, 0 means 3 %; more
	// where what it rests on is known less well.
	Noise float64
	// MaxPlayed is up to how many tasks the whole step is played for every choice;
	// larger steps are judged by the sum of their operations' costs. 0 means 500,000.
	MaxPlayed int
}

// Choice is a mix and why.
type Choice struct {
	Mix     mix.Mix
	Reasons []Reason // one for each rule

	Traced  int64            // ns, the step on the traced backend, predicted
	Step    int64            // ns, the step with the mix, predicted
	Singles map[string]int64 // ns, the step on each backend alone, predicted; only those whose costs are known
	// Speedup is Traced / Step, 1 where the traced backend is kept; 0 where its
	// costs are not known.
	Speedup float64
	// Unknown is how many operations of a step the table knows no cost of, on the
	// backend chosen for them: they are played as taking no time.
	Unknown int
	Played  bool // the step was played, not added up
	// Noise is by how much the predicted gain of the best other choice may be off, as
	// a share of the traced step: the 95 % interval, or Options.Noise if that is more.
	Noise float64
}

// Reason says why a rule stands in a mix.
type Reason struct {
	Rule string
	Text string
}

// class is the operations that a mix can tell apart from others.
type class struct {
	op    comm.Op
	size  int64
	count int        // of a step, over all ranks
	ranks int        // of the largest group
	nodes int        // that its members are on, 0 when not known
	dtype comm.DType // of one of them
	gap   int64      // ns, in the geometric mean: how long its rank did not communicate before it
	gaps  float64    // sum of the logarithms of that, and of 1
}

// Choose chooses a mix for a workload: of the exclusive backends with each alone,
// and of these choices the fastest.
func Choose(w *planpb.Workload, costs Costs, opts Options) (*Choice, error) {
	var best *Choice
	var first error
	sets := opts.sets()
	chooser := newChooser(w, costs, opts)
	for _, set := range sets {
		chooser.opts.Backends = set
		c, err := chooser.choose()
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		if best != nil {
			for backend, step := range best.Singles {
				c.Singles[backend] = step
			}
			if c.Step >= best.Step {
				best.Singles = c.Singles
				continue
			}
		}
		best = c
	}
	if best == nil {
		return nil, first
	}
	return best, nil
}

// sets are the sets of backends that a job can have.
func (o *Options) sets() [][]string {
	var free, exclusive []string
	for _, b := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(o.Backends), o.Traced)))) {
		if slices.Contains(o.Exclusive, b) {
			exclusive = append(exclusive, b)
		} else {
			free = append(free, b)
		}
	}
	if slices.Contains(o.Exclusive, o.Traced) {
		exclusive = []string{o.Traced}
	}
	if len(exclusive) < 2 {
		return [][]string{append(free, exclusive...)}
	}
	var sets [][]string
	for _, b := range exclusive {
		sets = append(sets, append(slices.Clone(free), b))
	}
	return sets
}

// choose chooses among backends that go together.
func (c *chooser) choose() (*Choice, error) {
	choice := &Choice{Singles: map[string]int64{}, Played: c.played}
	var best map[classKey]string
	for _, backend := range c.opts.Backends {
		all, known := c.all(backend), true
		for _, k := range c.order {
			known = known && c.knows(k, backend)
		}
		if !known && backend != c.opts.Traced {
			continue
		}
		step, err := c.step(all)
		if err != nil {
			return nil, err
		}
		if known {
			choice.Singles[backend] = step
		}
		if known && (best == nil || step < choice.Step) {
			best, choice.Step = all, step
		}
	}
	traced, known := choice.Singles[c.opts.Traced]
	if best == nil {
		if best = c.cheapest(); best == nil {
			return nil, fmt.Errorf("%w: measure its operations first (\"mixdown tune\" with its traces)", ErrNoCosts)
		}
		var err error
		if choice.Step, err = c.step(best); err != nil {
			return nil, err
		}
	}
	// A mix of several is worth it where it is faster than the best of them alone by
	// more than the noise.
	single, alone := maps.Clone(best), choice.Step
	if err := c.improve(best, &choice.Step); err != nil {
		return nil, err
	}
	if len(choice.Singles) > 0 && float64(alone-choice.Step) < c.noise(single, best, alone)*float64(alone) {
		best, choice.Step = single, alone
	}
	if known {
		choice.Traced = traced
		choice.Speedup = float64(traced) / float64(choice.Step)
		choice.Noise = c.noise(c.all(c.opts.Traced), best, traced)
		if choice.Speedup < 1+choice.Noise {
			c.keepTraced(choice)
			return choice, nil
		}
	}
	c.state(choice, best)
	return choice, nil
}

// classKey names a class.
type classKey struct {
	op   comm.Op
	size int64
}

type chooser struct {
	w       *planpb.Workload
	costs   Costs
	opts    Options
	classes map[classKey]*class
	order   []classKey // the most expensive first
	sizeOf  func(rank int32, c *planpb.Communication) int64
	nodesOf func(rank int32, c *planpb.Communication) int
	keys    map[*planpb.Communication]classKey
	played  bool
	spans   int64 // ns, of all ranks
	known   map[costKey]cost
	graph   *sim.Graph // of the workload, made for the first play
}

type costKey struct {
	classKey
	backend      string
	ranks, nodes int
}

type cost struct {
	tune.Estimate
	ok bool
}

// loose is half the 95 % interval of the time, ns.
func (c cost) loose() float64 { return c.Spread * float64(c.Time) }

func newChooser(w *planpb.Workload, costs Costs, opts Options) *chooser {
	if opts.Noise == 0 {
		opts.Noise = 0.03
	}
	if opts.MaxPlayed == 0 {
		opts.MaxPlayed = 500_000
	}
	opts.Backends = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(opts.Backends), opts.Traced))))
	c := &chooser{w: w, costs: costs, opts: opts, classes: map[classKey]*class{}, keys: map[*planpb.Communication]classKey{}, known: map[costKey]cost{}}
	c.sizeOf, c.nodesOf = mix.SizeOf(w), plan.NewMachines(w, opts.Nodes).Of
	tasks := 0
	for _, program := range w.Programs {
		tasks += len(program.Tasks)
	}
	c.played = tasks <= opts.MaxPlayed
	for _, program := range w.Programs {
		before := plan.Gaps(program)
		for i, t := range program.Tasks {
			c.spans += t.GetSpan().GetDurationNs()
			pb := t.GetCommunication()
			if pb == nil {
				continue
			}
			k := classKey{plan.Op(pb), c.sizeOf(program.Rank, pb)}
			if c.played {
				c.keys[pb] = k
			}
			n := c.classes[k]
			if n == nil {
				n = &class{op: k.op, size: k.size, dtype: plan.DType(pb)}
				c.classes[k] = n
			}
			n.count++
			switch ranks, nodes := c.ranks(pb), c.nodesOf(program.Rank, pb); {
			case ranks > n.ranks:
				n.ranks, n.nodes = ranks, nodes
			case ranks == n.ranks:
				n.nodes = max(n.nodes, nodes)
			}
			n.gaps += math.Log(float64(before[i] + 1))
		}
	}
	for _, n := range c.classes {
		n.gap = int64(math.Exp(n.gaps/float64(n.count)) - 0.5)
	}
	c.order = slices.Collect(maps.Keys(c.classes))
	weight := func(k classKey) int64 {
		var most int64
		for _, b := range c.opts.Backends {
			most = max(most, c.typical(k, b).Time*int64(c.classes[k].count))
		}
		return most
	}
	slices.SortFunc(c.order, func(a, b classKey) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.op, b.op), cmp.Compare(a.size, b.size))
	})
	return c
}

// ranks is how many ranks take part in an operation.
func (c *chooser) ranks(pb *planpb.Communication) int {
	if plan.Op(pb).IsP2P() {
		return 2
	}
	return len(c.w.Groups[pb.Group].Ranks)
}

// typical is the cost of a class on a backend, in the largest group that has it.
func (c *chooser) typical(k classKey, backend string) cost {
	n := c.classes[k]
	return c.cost(k, backend, n.ranks, n.nodes)
}

func (c *chooser) cost(k classKey, backend string, ranks, nodes int) cost {
	key := costKey{k, backend, ranks, nodes}
	have, ok := c.known[key]
	if !ok {
		q := tune.Query{Contender: tune.ParseContender(backend), Op: k.op, Bytes: k.size, Ranks: ranks, Nodes: nodes, InStep: true}
		if n := c.classes[k]; n != nil {
			q.DType, q.Gap = n.dtype, n.gap
		}
		if q.Op.IsP2P() {
			q.Op = comm.Send
		}
		have.Estimate, have.ok = c.costs.Estimate(q)
		c.known[key] = have
	}
	return have
}

func (c *chooser) knows(k classKey, backend string) bool {
	return c.typical(k, backend).ok
}

// step is how long the step takes with a choice.
func (c *chooser) step(choice map[classKey]string) (int64, error) {
	if !c.played {
		return c.sum(choice), nil
	}
	return c.play(func(pb *planpb.Communication) string { return choice[c.keys[pb]] })
}

// play is how long the step takes where each communication runs on its backend.
func (c *chooser) play(backend func(*planpb.Communication) string) (int64, error) {
	if c.graph == nil {
		c.graph = sim.NewGraph(asReplayed(c.w))
	}
	run, err := c.graph.Play(func(m sim.Meeting) int64 {
		size := c.keys[m.Communication]
		if m.Transfer { // one of a batch may be smaller than what the batch is chosen by
			size = classKey{comm.Send, m.Count * plan.DType(m.Communication).Size()}
		}
		return c.cost(size, backend(m.Communication), m.Ranks, c.nodesOf(m.Rank, m.Communication)).Time
	})
	if err != nil {
		return 0, err
	}
	return run.Step, nil
}

// asReplayed is a workload without what the trace shows of its tasks: operations
// begin when what is before them has ended, as the worker begins them, and take what
// the table says. What the traced program needed to issue them is no property of a
// backend.
func asReplayed(w *planpb.Workload) *planpb.Workload {
	bare := &planpb.Workload{WorldSize: w.WorldSize, Groups: w.Groups, Step: w.Step}
	for _, p := range w.Programs {
		program := &planpb.Program{Rank: p.Rank, StartOffsetNs: p.StartOffsetNs, Streams: p.Streams}
		for _, t := range p.Tasks {
			program.Tasks = append(program.Tasks, &planpb.Task{Id: t.Id, Stream: t.Stream, Deps: t.Deps, Kind: t.Kind})
		}
		bare.Programs = append(bare.Programs, program)
	}
	return bare
}

// sum adds up what the operations of a choice cost, for steps too large to play:
// the mean over ranks, as if nothing overlapped.
func (c *chooser) sum(choice map[classKey]string) int64 {
	var ns int64
	for k, backend := range choice {
		ns += c.typical(k, backend).Time * int64(c.classes[k].count)
	}
	return (ns + c.spans) / int64(max(len(c.w.Programs), 1))
}

// cheapest takes the backend of the least cost for each class, nil when one has
// none.
func (c *chooser) cheapest() map[classKey]string {
	choice := map[classKey]string{}
	for _, k := range c.order {
		for _, b := range c.opts.Backends {
			have, ok := choice[k]
			if c.knows(k, b) && (!ok || c.typical(k, b).Time < c.typical(k, have).Time) {
				choice[k] = b
			}
		}
		if _, ok := choice[k]; !ok {
			return nil
		}
	}
	return choice
}

// all is everything on one backend.
func (c *chooser) all(backend string) map[classKey]string {
	choice := make(map[classKey]string, len(c.order))
	for _, k := range c.order {
		choice[k] = backend
	}
	return choice
}

// noise is by how much the difference of two choices may be off, as a share of the
// step of the first: the 95 % intervals of what they differ in, as they add up
// over a rank's step where classes are off independently of each other; at least
// Options.Noise.
func (c *chooser) noise(a, b map[classKey]string, step int64) float64 {
	var squares float64
	for _, k := range c.order {
		if a[k] == b[k] {
			continue
		}
		n := c.classes[k]
		each := float64(n.count) / float64(max(len(c.w.Programs), 1))
		squares += each * each * c.between(k, a[k], b[k])
	}
	return max(c.opts.Noise, math.Sqrt(squares)/float64(max(step, 1)))
}

// between is the square of half the 95 % interval of the difference of what an
// operation takes on two backends, ns^2.
func (c *chooser) between(k classKey, a, b string) float64 {
	x, y := c.typical(k, a).loose(), c.typical(k, b).loose()
	return x*x + y*y
}

// clear says whether an operation takes less on one backend than on another by more
// than the noise.
func (c *chooser) clear(k classKey, from, to string) bool {
	gain := float64(c.typical(k, from).Time - c.typical(k, to).Time)
	return gain*math.Abs(gain) > c.between(k, from, to)
}

// passes bounds how often improve goes over all classes: each pass makes the
// step shorter, and more than a few find nothing.
const passes = 4

// improve changes one class at a time while that makes the step shorter. What is
// sent point-to-point changes together, because a batch holds several sizes.
func (c *chooser) improve(choice map[classKey]string, step *int64) error {
	for range passes {
		better := false
		for _, k := range c.order {
			for _, b := range c.opts.Backends {
				if b == choice[k] || !c.knows(k, b) || !k.op.IsP2P() && !c.clear(k, choice[k], b) {
					continue
				}
				next := maps.Clone(choice)
				next[k] = b
				if k.op.IsP2P() {
					for _, other := range c.order {
						if other.op.IsP2P() {
							next[other] = b
						}
					}
				}
				took, err := c.step(next)
				if err != nil {
					return err
				}
				if took < *step {
					maps.Copy(choice, next)
					*step, better = took, true
				}
			}
		}
		if !better {
			return nil
		}
	}
	return nil
}
