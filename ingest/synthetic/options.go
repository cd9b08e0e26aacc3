package synthetic

import (
	"errors"
	"fmt"
	"slices"

	"mixdown/ingest/comm"
)

// ErrOptions means that the options describe no run.
var ErrOptions = errors.New("no such synthetic run")

// Scope says which ranks take part in a communication.
type Scope uint8

// The scopes. Tensor groups are neighbouring ranks, TensorParallel of them; Data
// groups are the ranks in the same place of all tensor groups. Forward and
// Backward are for comm.Send: every rank receives from the rank before (after)
// it, then sends to the next (previous), as a pipeline does.
const (
	World Scope = iota
	Tensor
	Data
	Forward
	Backward
	other // of the second thread: all ranks, in a group of their own
	numScopes
)

// Generation is what the profiler writes about communication.
type Generation uint8

// The generations.
const (
	// CommArgs: PyTorch 2.4 to 2.10. record_param_comms and kernels say group,
	// sizes and type.
	CommArgs Generation = iota
	// CommSeq: PyTorch 2.11 and later, which add the sequence number.
	CommSeq
	// NoCommArgs: before 2.2. The annotation around the launch has the tensor's
	// dimensions; nothing names a group.
	NoCommArgs
)

// Collective is a communication of every step.
type Collective struct {
	Op       comm.Op // all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, barrier, send
	Scope    Scope
	Elements int64 // float32, of the smaller of input and output
	Async    bool  // the computation after it does not wait for it
	Free     bool  // its transfer takes no time
}

// Beside is a second thread of each rank, which works while the program does: one
// that loads data, or keeps another model up to date. The program starts it with
// each step, and at the end of the step waits for it.
type Beside struct {
	Rounds int       // of each step; default 4
	WorkNs int64     // of each round on the CPU; default 150,000
	CopyNs int64     // then a copy to the device, on a stream of its own, which it waits for; 0: none
	Pace   []float64 // by rank: how many times as long its work on the CPU takes
	// Collective ends each round: an all_reduce of so many elements among all ranks,
	// in a group of their own, which it waits for; 0: none.
	Collective int64
	Free       bool // the transfer of its collectives takes no time
}

// Clock is how a rank's clock differs from true time.
type Clock struct {
	Offset   int64 // ns at the start of the run
	DriftPPB int64 // ns gained in a second
}

// Straggler makes one rank late for one communication.
type Straggler struct {
	Rank, Step int
	Collective int   // index into Options.Collectives
	Delay      int64 // ns of additional computation before it
}

// Options describe a run. Zero values mean the defaults given.
type Options struct {
	Ranks, Steps   int // default 2 and 3
	TensorParallel int // ranks of a tensor group; default 2
	// Collectives of each step in order; nil: two of the tensor group, two of the
	// data group and two of all, different in each group, so that the order tells
	// which is which even when some are dropped.
	Collectives []Collective
	Kernels     int       // computations in each step, spread around the communication; default 8
	KernelNs    int64     // mean length of one; default 100,000
	LaunchNs    int64     // what one launch costs the program; default 6,000
	Contention  float64   // how many times as long a device's kernels take while communication runs on it; 1 or more, which writes their grids too; default: none, and no grids
	BytesPerNs  float64   // of communication; default 100
	Pace        []float64 // by rank: how many times as long its computation takes; ranks beyond its end 1

	Clocks     []Clock // by rank; ranks beyond its end have true clocks
	Stragglers []Straggler
	DropShare  float64 // of the members' events
	Noise      float64 // standard deviation of computation and transfer, relative to the mean
	EndSkewNs  int64   // largest skew of ends; default 3,000, negative: none

	Engine     bool // from the middle of each step on another thread works for the program, which sleeps
	Beside     *Beside
	Host       bool // Gloo on the CPU, no device
	Generation Generation
	Events     bool  // of a device: the profiler saw streams wait for each other's events
	Start      int64 // true Unix ns; default in 2026
	Seed       uint64
}

// defaultStart lies well within one of Kineto's quarter years, so that offsets
// of seconds do not change baseTimeNanoseconds.
const defaultStart = 1_791_000_000_000_000_000

func (o Options) withDefaults() Options {
	set := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	set64 := func(n *int64, to int64) {
		if *n == 0 {
			*n = to
		}
	}
	set(&o.Ranks, 2)
	set(&o.Steps, 3)
	set(&o.TensorParallel, 2)
	set(&o.Kernels, 8)
	set64(&o.KernelNs, 100_000)
	set64(&o.LaunchNs, 6_000)
	set64(&o.EndSkewNs, 3_000)
	set64(&o.Start, defaultStart)
	if o.BytesPerNs == 0 {
		o.BytesPerNs = 100
	}
	o.EndSkewNs = max(o.EndSkewNs, 0)
	if o.Beside != nil {
		b := *o.Beside
		set(&b.Rounds, 4)
		set64(&b.WorkNs, 150_000)
		o.Beside = &b
	}
	if o.Collectives == nil {
		o.Collectives = []Collective{
			{Op: comm.AllGather, Scope: Tensor, Elements: 1 << 16},
			{Op: comm.ReduceScatter, Scope: Tensor, Elements: 1 << 16},
			{Op: comm.AllReduce, Scope: Data, Elements: 1 << 20},
			{Op: comm.AllReduce, Scope: Data, Elements: 1 << 12},
			{Op: comm.AllToAll, Scope: World, Elements: 1 << 15},
			{Op: comm.AllReduce, Scope: World, Elements: 1 << 18},
		}
	}
	return o
}

func (o Options) check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
	}
	if o.Ranks < 0 || o.Steps < 0 || o.Kernels < 0 || o.TensorParallel < 1 || o.KernelNs < 1 || o.LaunchNs < 1 {
		return fail("counts and lengths must not be negative")
	}
	if o.DropShare < 0 || o.DropShare > 1 || o.Noise < 0 {
		return fail("a share of %g or noise of %g", o.DropShare, o.Noise)
	}
	if o.Contention != 0 && !(o.Contention >= 1 && o.Contention <= 1000) || !(o.BytesPerNs > 0) {
		return fail("contention of %g or %g bytes a ns", o.Contention, o.BytesPerNs)
	}
	groups, transfers := false, false
	for _, c := range o.Collectives {
		p2p := c.Scope == Forward || c.Scope == Backward
		if _, known := spellings[c.Op]; !known || c.Scope >= other || p2p != (c.Op == comm.Send) || c.Op == comm.Recv {
			return fail("%s in scope %d", c.Op, c.Scope)
		}
		groups = groups || c.Scope == Tensor || c.Scope == Data
		transfers = transfers || p2p
	}
	if transfers && (o.Generation == NoCommArgs && !o.Host || o.Host && groups) {
		return fail("its trace would not say who sends to whom")
	}
	paces := o.Pace
	if b := o.Beside; b != nil {
		if b.Rounds < 0 || b.WorkNs < 1 || b.CopyNs < 0 || b.Collective < 0 || b.CopyNs > 0 && o.Host {
			return fail("a second thread %+v", *b)
		}
		paces = slices.Concat(paces, b.Pace)
	}
	for _, p := range paces {
		if !(p > 0 && p < 1e6) {
			return fail("computation that takes %g times as long", p)
		}
	}
	for _, s := range o.Stragglers {
		if s.Rank < 0 || s.Rank >= o.Ranks || s.Step < 0 || s.Step >= o.Steps || s.Collective < 0 || s.Collective >= len(o.Collectives) || s.Delay < 0 {
			return fail("straggler %+v", s)
		}
	}
	return nil
}
