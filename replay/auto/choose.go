package auto

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// ErrNoCosts: the table can't say what the job's operations cost on any backend.
var ErrNoCosts = errors.New("the table has no costs for this job")

// Costs answers what an operation costs; tune.Costs does.
type Costs interface {
	// Cost is the time of an operation in ns and how it is known, in words. Bytes
	// is the larger of what one rank contributes and receives; nodes 0 means
	// whatever was measured. It reports false where that is not known.
	Cost(backend string, op comm.Op, bytes int64, ranks, nodes int) (ns int64, ok bool, how string)
}

// Options of choosing. The zero value is ready but for Backends.
type Options struct {
	Backends []string // to choose from
	// Exclusive are backends of which a job can have one only, as a process can load
	// one MPI.
	Exclusive []string
	Traced    string // what the job runs on, or what stands in for it
	Nodes     int    // of the job, 0 when not known
	// Noise is the least share of the step that a change must gain; 0 means 3 %.
	Noise float64
	// MaxPlayed is up to how many tasks the whole step is played for every choice;
	// larger steps are judged by the sum of their operations' costs. 0 means 200,000.
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
	count int // of a step, over all ranks
	ranks int // of the largest group
}

// Choose chooses a mix for a workload: of the exclusive backends with each alone,
// and of these choices the fastest.
func Choose(w *planpb.Workload, costs Costs, opts Options) (*Choice, error) {
	var best *Choice
	var first error
	for _, set := range opts.sets() {
		opts.Backends = set
		c, err := chooseFrom(w, costs, opts)
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

// chooseFrom chooses among backends that go together.
func chooseFrom(w *planpb.Workload, costs Costs, opts Options) (*Choice, error) {
	c := newChooser(w, costs, opts)
	choice := &Choice{Singles: map[string]int64{}, Played: c.played}
	var best map[classKey]string
	for _, backend := range c.opts.Backends {
		all, known := map[classKey]string{}, true
		for _, k := range c.order {
			all[k] = backend
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
	if err := c.improve(best, &choice.Step); err != nil {
		return nil, err
	}
	if known {
		choice.Traced = traced
		choice.Speedup = float64(traced) / float64(choice.Step)
		if choice.Speedup < 1+c.opts.Noise {
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
	keys    map[*planpb.Communication]classKey
	played  bool
	spans   int64 // ns, of all ranks
	known   map[costKey]cost
}

type costKey struct {
	classKey
	backend string
	ranks   int
}

type cost struct {
	ns  int64
	ok  bool
	how string
}

func newChooser(w *planpb.Workload, costs Costs, opts Options) *chooser {
	if opts.Noise == 0 {
		opts.Noise = 0.03
	}
	if opts.MaxPlayed == 0 {
		opts.MaxPlayed = 200_000
	}
	opts.Backends = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(opts.Backends), opts.Traced))))
	c := &chooser{w: w, costs: costs, opts: opts, classes: map[classKey]*class{}, keys: map[*planpb.Communication]classKey{}, known: map[costKey]cost{}}
	c.sizeOf = mix.SizeOf(w)
	tasks := 0
	for _, program := range w.Programs {
		tasks += len(program.Tasks)
	}
	c.played = tasks <= opts.MaxPlayed
	for _, program := range w.Programs {
		for _, t := range program.Tasks {
			c.spans += t.GetSpan().GetDurationNs()
			pb := t.GetCommunication()
			if pb == nil {
				continue
			}
			k := classKey{plan.Op(pb), c.sizeOf(program.Rank, pb)}
			if c.played {
				c.keys[pb] = k
			}
			if c.classes[k] == nil {
				c.classes[k] = &class{op: k.op, size: k.size}
			}
			c.classes[k].count++
			c.classes[k].ranks = max(c.classes[k].ranks, c.ranks(pb))
		}
	}
	c.order = slices.Collect(maps.Keys(c.classes))
	weight := func(k classKey) int64 {
		var most int64
		for _, b := range c.opts.Backends {
			most = max(most, c.cost(k, b, c.classes[k].ranks).ns*int64(c.classes[k].count))
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

func (c *chooser) cost(k classKey, backend string, ranks int) cost {
	key := costKey{k, backend, ranks}
	have, ok := c.known[key]
	if !ok {
		op := k.op
		if op == comm.Batch || op == comm.Recv {
			op = comm.Send
		}
		have.ns, have.ok, have.how = c.costs.Cost(backend, op, k.size, ranks, c.opts.Nodes)
		c.known[key] = have
	}
	return have
}

func (c *chooser) knows(k classKey, backend string) bool {
	return c.cost(k, backend, c.classes[k].ranks).ok
}

// step is how long the step takes with a choice.
func (c *chooser) step(choice map[classKey]string) (int64, error) {
	if !c.played {
		return c.sum(choice), nil
	}
	run, err := sim.PlayWorkload(c.w, func(m sim.Meeting) int64 {
		k := c.keys[m.Communication]
		size := k
		if m.Transfer { // one of a batch may be smaller than what the batch is chosen by
			size = classKey{comm.Send, m.Count * plan.DType(m.Communication).Size()}
		}
		return c.cost(size, choice[k], m.Ranks).ns
	})
	if err != nil {
		return 0, err
	}
	return run.Step, nil
}

// sum adds up what the operations of a choice cost, for steps too large to play:
// the mean over ranks, as if nothing overlapped.
func (c *chooser) sum(choice map[classKey]string) int64 {
	var ns int64
	for k, backend := range choice {
		ns += c.cost(k, backend, c.classes[k].ranks).ns * int64(c.classes[k].count)
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
			if c.knows(k, b) && (!ok || c.cost(k, b, c.classes[k].ranks).ns < c.cost(k, have, c.classes[k].ranks).ns) {
				choice[k] = b
			}
		}
		if _, ok := choice[k]; !ok {
			return nil
		}
	}
	return choice
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
				if b == choice[k] || !c.knows(k, b) {
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
