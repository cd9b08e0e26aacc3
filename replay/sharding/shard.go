package sharding

import (
	"errors"
	"fmt"
	"slices"

	"mixdown/replay/schedule"
)

// ErrOptions: an order can't be sharded as asked for.
var ErrOptions = errors.New("invalid sharding")

// Variant is what of a stage is sharded over data-parallel ranks.
type Variant uint8

const (
	None    Variant = iota // DP0: nothing
	Partial                // DP_PS: gradients and optimizer state (ZeRO 2)
	Full                   // DP_FS: weights as well (ZeRO 3, FSDP)
)

// Variants lists all, in order.
func Variants() []Variant { return []Variant{None, Partial, Full} }

// String is "none", "partial" or "full".
func (v Variant) String() string {
	switch v {
	case Partial:
		return "partial"
	case Full:
		return "full"
	}
	return "none"
}

// Parse reads what String writes.
func Parse(text string) (Variant, error) {
	for _, v := range Variants() {
		if v.String() == text {
			return v, nil
		}
	}
	return None, fmt.Errorf("%w: %q is not none, partial or full", ErrOptions, text)
}

// Options are the buffers that a rank has for stages. The stages of a rank share
// them in turn: its i-th stage has buffer i mod n.
type Options struct {
	WeightBuffers   int // for gathered weights, Full only; 0 is 1
	GradientBuffers int // for gradients, Partial and Full only; 0 is 1
}

// Counts is how many collectives each rank takes part in during one step.
type Counts struct {
	Variant    Variant
	Gathers    []int // all-gathers of one stage's weights, by rank
	Reductions []int // of one stage's gradients, by rank: reduce-scatters, all-reduces with None
}

// Bytes is what a rank sends and receives for them in bytes, in and out counted,
// when a stage has so many parameters, weights and gradients take 2 bytes each
// and the collectives run in a ring over many ranks: 4 bytes per parameter for a
// gather or a reduce-scatter, 8 for an all-reduce.
func (c Counts) Bytes(rank int, stageParameters int64) int64 {
	reduction := int64(4)
	if c.Variant == None {
		reduction = 8
	}
	return stageParameters * (4*int64(c.Gathers[rank]) + reduction*int64(c.Reductions[rank]))
}

// Shard is the order with UNSHARD, RESHARD and REDUCE_GRAD added, and their
// number; WAIT_REDUCE_GRAD stands before a backward whose gradient's buffer is
// still being reduced for another stage. The error is ErrOptions, or schedule.ErrOrder if the order is
// incomplete or has such actions already.
func Shard(o schedule.Order, v Variant, opts Options) (schedule.Order, Counts, error) {
	if err := o.Validate(); err != nil {
		return nil, Counts{}, err
	}
	if opts.WeightBuffers < 0 || opts.GradientBuffers < 0 {
		return nil, Counts{}, fmt.Errorf("%w: a negative number of buffers", ErrOptions)
	}
	counts := Counts{Variant: v, Gathers: make([]int, len(o)), Reductions: make([]int, len(o))}
	sharded := make(schedule.Order, len(o))
	for r, row := range o {
		s := newRow(row, v, opts)
		if err := s.walk(); err != nil {
			return nil, Counts{}, fmt.Errorf("rank %d: %w", r, err)
		}
		counts.Gathers[r], counts.Reductions[r] = s.gathers, s.reductions
		sharded[r] = s.row()
	}
	return sharded, counts, nil
}

// rowSharding adds collectives to one rank's order.
type rowSharding struct {
	actions             []schedule.Action
	variant             Variant
	stages              []int32 // of the rank, ascending
	weights             buffers
	gradients           buffers
	after               [][]schedule.Action // by place: added behind the action before it
	gathers, reductions int
}

// buffers is what n buffers hold.
type buffers struct {
	n    int
	held []int32 // by buffer: the stage in it, none if empty
	last []int   // by buffer: the place behind its last use
}

const none = -1

func newBuffers(n int) buffers {
	b := buffers{n: n, held: make([]int32, n), last: make([]int, n)}
	for i := range b.held {
		b.held[i] = none
	}
	return b
}

func newRow(row []schedule.Action, v Variant, opts Options) *rowSharding {
	s := &rowSharding{actions: row, variant: v, after: make([][]schedule.Action, len(row)+1)}
	for _, a := range row {
		if a.Kind.Computes() && !slices.Contains(s.stages, a.Stage) {
			s.stages = append(s.stages, a.Stage)
		}
	}
	slices.Sort(s.stages)
	whole := max(1, len(s.stages))
	weights, gradients := whole, whole
	if v == Full {
		weights = min(whole, max(1, opts.WeightBuffers))
	}
	if v != None {
		gradients = min(whole, max(1, opts.GradientBuffers))
	}
	s.weights, s.gradients = newBuffers(weights), newBuffers(gradients)
	return s
}

// walk goes through the order, an overlapped pair at once.
func (s *rowSharding) walk() error {
	for i := 0; i < len(s.actions); {
		next := i + 1
		if s.actions[i].Overlap && next < len(s.actions) {
			next++
		}
		cell := s.actions[i:next]
		if len(cell) == 2 && s.variant == Full && cell[0].Stage != cell[1].Stage && s.buffer(s.weights, cell[0]) == s.buffer(s.weights, cell[1]) {
			return fmt.Errorf("%w: %s and %s overlap, but their stages share one of %d weight buffers: use 2 or more", ErrOptions, cell[0], cell[1], s.weights.n)
		}
		for _, a := range cell {
			switch {
			case a.Kind == schedule.Unshard || a.Kind == schedule.Reshard || a.Kind == schedule.ReduceGradient || a.Kind == schedule.WaitReduceGradient:
				return fmt.Errorf("%w: it has %s already", schedule.ErrOrder, a)
			case a.Kind.Computes():
				s.use(a, i, next)
			}
		}
		i = next
	}
	for b, stage := range s.gradients.held {
		if stage != none {
			s.reduce(b)
		}
	}
	for b, stage := range s.weights.held {
		if stage != none && s.variant == Full {
			s.add(s.weights.last[b], schedule.Reshard, stage)
		}
	}
	return nil
}

// use is one pass, of the cell between two places.
func (s *rowSharding) use(a schedule.Action, before, behind int) {
	b := s.buffer(s.weights, a)
	if s.weights.held[b] != a.Stage && s.variant != None {
		if s.weights.held[b] != none {
			s.add(s.weights.last[b], schedule.Reshard, s.weights.held[b])
		}
		s.add(s.weights.last[b], schedule.Unshard, a.Stage)
		s.gathers++
		s.weights.held[b] = a.Stage
	}
	s.weights.last[b] = behind

	if a.Kind != schedule.Backward && a.Kind != schedule.Weight {
		return
	}
	b = s.buffer(s.gradients, a)
	if held := s.gradients.held[b]; held != none && held != a.Stage {
		s.reduce(b)
		s.add(before, schedule.WaitReduceGradient, held)
	}
	s.gradients.held[b], s.gradients.last[b] = a.Stage, behind
}

// reduce reduces the gradient in a buffer, behind the last pass that added to it.
func (s *rowSharding) reduce(b int) {
	s.add(s.gradients.last[b], schedule.ReduceGradient, s.gradients.held[b])
	s.reductions++
}

func (s *rowSharding) buffer(b buffers, a schedule.Action) int {
	local, _ := slices.BinarySearch(s.stages, a.Stage)
	return local % b.n
}

func (s *rowSharding) add(place int, kind schedule.Kind, stage int32) {
	s.after[place] = append(s.after[place], schedule.Action{Stage: stage, Kind: kind, Microbatch: schedule.NoMicrobatch})
}

// row is the order with what was added: at each place reductions first, whose
// gradients are ready, then what makes room, then gathers, then waits.
func (s *rowSharding) row() []schedule.Action {
	turn := map[schedule.Kind]int{schedule.ReduceGradient: 0, schedule.Reshard: 1, schedule.Unshard: 2, schedule.WaitReduceGradient: 3}
	row := make([]schedule.Action, 0, len(s.actions)+2*len(s.stages))
	for place, added := range s.after {
		slices.SortStableFunc(added, func(a, b schedule.Action) int { return turn[a.Kind] - turn[b.Kind] })
		row = append(row, added...)
		if place < len(s.actions) {
			row = append(row, s.actions[place])
		}
	}
	return row
}
