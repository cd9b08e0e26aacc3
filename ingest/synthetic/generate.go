package synthetic

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"

	"mixdown/ingest/comm"
)

// kernelLatency is how long, in ns, after its launch a kernel can start.
const kernelLatency = 4_000

// run is a run being simulated. Ranks are advanced together, from one
// communication to the next, and write as they go.
type run struct {
	Options
	groups  []group
	groupOf [numScopes][]int
	ranks   []*rank
	rng     *rand.Rand // of what concerns no single rank
	truth   *Truth
	delays  map[place]int64
}

// interval is true time, ns.
type interval struct{ start, end int64 }

// place is a communication as one rank sees it.
type place struct{ rank, step, collective int }

// rank is the state of one rank; times are true ns.
type rank struct {
	number  int
	out     *writer
	rng     *rand.Rand
	line                     // of the thread that is being simulated
	aside   line             // of the other one
	stream  [numScopes]int64 // the stream or worker thread of each scope is
	pending int64            // the latest end of communication not waited for
	seq     [numScopes]int64
	talk    []interval // communication on its device that is not over at compute
	ids     int64      // last correlation or record function id given out
}

// line is a thread and the stream it gives its work to.
type line struct {
	thread  int
	program int64 // the thread is free from here
	onto    int   // its stream
	compute int64 // the stream is free from here
}

// Generate simulates a run and writes the trace of rank i to files[i].
func Generate(opts Options, files []io.Writer) (*Truth, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	if len(files) != opts.Ranks {
		return nil, fmt.Errorf("%w: %d files for %d ranks", ErrOptions, len(files), opts.Ranks)
	}
	s := &run{
		Options: opts, rng: rand.New(rand.NewPCG(opts.Seed, 1<<40)), delays: map[place]int64{},
		truth: &Truth{Start: opts.Start, Clocks: make([]Clock, opts.Ranks), Stragglers: opts.Stragglers},
	}
	copy(s.truth.Clocks, opts.Clocks)
	s.groups, s.groupOf = opts.groups()
	for _, d := range opts.Stragglers {
		s.delays[place{d.Rank, d.Step, d.Collective}] += d.Delay
	}
	for n := range opts.Ranks {
		r := &rank{number: n, rng: rand.New(rand.NewPCG(opts.Seed, uint64(n)))}
		r.line = line{programThread, opts.Start, computeStream, opts.Start}
		r.aside = line{secondThread, opts.Start, copyStream, opts.Start}
		r.out = &writer{to: files[n], rank: n, clock: s.truth.Clocks[n], start: opts.Start}
		s.head(r)
		s.ranks = append(s.ranks, r)
	}
	for step := range opts.Steps {
		s.step(step)
	}
	for _, r := range s.ranks {
		if err := r.out.close(); err != nil {
			return nil, fmt.Errorf("cannot write the trace of rank %d: %w", r.number, err)
		}
	}
	return s.truth, nil
}

// step runs one step on all ranks.
func (s *run) step(step int) {
	starts := make([]int64, len(s.ranks))
	for i, r := range s.ranks {
		starts[i] = r.program
	}
	s.beside(step)
	n := len(s.Collectives)
	for i, c := range s.Collectives {
		kernels := s.Kernels*(i+1)/(n+1) - s.Kernels*i/(n+1)
		for _, r := range s.ranks {
			if s.Engine && i == n/2 {
				r.thread = engineThread
				r.program += wakeNs
			}
			s.computation(r, kernels, s.delays[place{r.number, step, i}])
		}
		switch c.Scope {
		case Forward:
			for from := 0; from+1 < len(s.ranks); from++ {
				s.transfer(step, i, from, from+1)
			}
		case Backward:
			for from := len(s.ranks) - 1; from > 0; from-- {
				s.transfer(step, i, from, from-1)
			}
		default:
			s.collective(step, i)
		}
	}
	ends := make([]int64, len(s.ranks))
	for i, r := range s.ranks {
		s.computation(r, s.Kernels-s.Kernels*n/(n+1), 0)
		if s.Engine {
			r.thread = programThread
			r.program += wakeNs
		}
		s.synchronize(r)
		s.join(r)
		r.out.span("user_annotation", "ProfilerStep#"+strconv.Itoa(step+1), programThread, starts[i], r.program, "")
		ends[i] = r.program
	}
	s.truth.StepEnds = append(s.truth.StepEnds, ends)
}

// computation runs n kernels, and one that lasts delay if it is not 0.
func (s *run) computation(r *rank, n int, delay int64) {
	for range n {
		ns := s.noisy(r.rng, s.KernelNs)
		if r.number < len(s.Pace) {
			ns = int64(float64(ns) * s.Pace[r.number])
		}
		s.kernel(r, "aten::mm", ns)
	}
	if delay > 0 {
		s.kernel(r, "aten::cumsum", delay)
	}
}

// noisy varies a length.
func (s *run) noisy(rng *rand.Rand, ns int64) int64 {
	if s.Noise == 0 {
		return ns
	}
	return max(int64(float64(ns)*(1+s.Noise*rng.NormFloat64())), 1_000)
}

// collective runs collective i of the step in all groups of its scope.
func (s *run) collective(step, i int) {
	c := s.Collectives[i]
	done := map[int]bool{}
	for _, first := range s.ranks {
		g := s.groupOf[c.Scope][first.number]
		if done[g] {
			continue
		}
		done[g] = true
		ev := Event{Step: step, Collective: i, Op: c.Op, Group: s.groups[g].name, Ranks: s.groups[g].ranks}
		parts := make([]part, len(ev.Ranks))
		for k, n := range ev.Ranks {
			parts[k] = part{r: s.ranks[n], op: c.Op, c: c, group: &s.groups[g], peer: -1}
		}
		s.together(&ev, parts)
		s.truth.Collectives = append(s.truth.Collectives, ev)
	}
}

// transfer sends from one rank to another; both are busy until it is done.
func (s *run) transfer(step, i, from, to int) {
	c := s.Collectives[i]
	g := &s.groups[s.groupOf[c.Scope][from]]
	ev := Event{Step: step, Collective: i, Op: comm.Send, Group: g.name, Ranks: []int{from, to}}
	s.together(&ev, []part{
		{r: s.ranks[from], op: comm.Send, c: c, group: g, peer: to},
		{r: s.ranks[to], op: comm.Recv, c: c, group: g, peer: from},
	})
	s.truth.Transfers = append(s.truth.Transfers, ev)
}

// part is one rank's part in a communication.
type part struct {
	r     *rank
	op    comm.Op
	c     Collective
	group *group
	peer  int // of a send or recv, else -1
	id    int64
	seq   int64
}

// together lets all members arrive, finds the end and writes it down.
func (s *run) together(ev *Event, parts []part) {
	var bytes int64
	for k := range parts {
		p := &parts[k]
		p.seq = p.r.seq[p.c.Scope]
		p.r.seq[p.c.Scope]++
		ev.Arrival = append(ev.Arrival, s.issue(p))
		in, out := p.c.sizes(p.op, len(p.group.ranks))
		bytes = max(bytes, 4*in, 4*out)
	}
	ev.Transfer = s.noisy(s.rng, 8_000+int64(float64(bytes)/s.BytesPerNs)) // 8 us, and as a rule 100 GB/s
	if parts[0].c.Free {
		ev.Transfer = 0
	}
	last := ev.LastArrival()
	for k := range parts {
		p := &parts[k]
		end := last + ev.Transfer
		if s.EndSkewNs > 0 {
			end += s.rng.Int64N(s.EndSkewNs + 1)
		}
		dropped := s.DropShare > 0 && s.rng.Float64() < s.DropShare
		if dropped {
			s.truth.Dropped = append(s.truth.Dropped, Dropped{p.r.number, ev.Step, ev.Collective})
		}
		ev.End = append(ev.End, end)
		ev.Dropped = append(ev.Dropped, dropped)
		s.finish(p, ev.Arrival[k], end, dropped)
	}
}
