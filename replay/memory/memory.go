package memory

import (
	"fmt"
	"maps"
	"slices"

	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
)

// Model is what is known of a model and of how it is trained. A nil is unknown.
type Model struct {
	// Parameters of all stages together, those of one tensor-parallel rank.
	// They are spread evenly over the stages that StageParameters leaves out.
	Parameters      *int64
	StageParameters map[int]int64

	// Activation is what one chunk keeps for one micro-batch from its forward
	// to its backward, in bytes; StageActivation is for stages that differ.
	Activation      *int64
	StageActivation map[int]int64

	Optimizer    Optimizer // the first of Optimizers if its Name is empty
	DataParallel *int      // ranks that hold the same stages, at least 1
	Sharding     sharding.Variant
	Buffers      sharding.Options
}

// Checkpoint is what a chunk of transformer layers keeps of one micro-batch when
// it recomputes everything within each layer, in bytes: one activation of two
// bytes an element for each layer.
func Checkpoint(hidden, sequence, microbatchSize, layers, tensorParallel int64) int64 {
	return 2 * hidden * sequence * microbatchSize * layers / max(1, tensorParallel)
}

// Rank is what one rank holds at most. Fields are bytes unless they say
// otherwise, and nil where unknown.
type Rank struct {
	Rank        int    `json:"rank"`
	Chunks      int    `json:"chunks"` // micro-batches times chunks held at once
	Stages      int    `json:"stages"` // number of them
	Parameters  *int64 `json:"parameters"`
	Weights     *int64 `json:"weights_bytes"`
	Gradients   *int64 `json:"gradients_bytes"`
	Optimizer   *int64 `json:"optimizer_bytes"`
	Buffers     *int64 `json:"buffers_bytes"` // gathered weights and gradients of a stage, when sharded
	Activations *int64 `json:"activations_bytes"`
	Total       *int64 `json:"total_bytes"`
}

// Of is what an order makes each rank hold.
func Of(o schedule.Order, m Model) ([]Rank, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	stages := o.Stages()
	chunks := o.PeakChunks()
	activations := m.activations(o)
	ranks := make([]Rank, len(o))
	for r, row := range o {
		held := stagesOf(row)
		ranks[r] = Rank{Rank: r, Chunks: chunks[r], Stages: len(held), Activations: activations[r]}
		m.state(&ranks[r], held, stages)
		ranks[r].Total = sum(ranks[r].Weights, ranks[r].Gradients, ranks[r].Optimizer, ranks[r].Buffers, ranks[r].Activations)
	}
	return ranks, nil
}

// Limits that keep sums within 64 bits: those of parameters, and those of
// activations over the longest order, of 2^24 actions.
const (
	mostParameters = int64(1) << 53
	mostActivation = int64(1) << 38
)

func (m Model) check() error {
	within := func(what string, n, most int64) error {
		if n < 0 || n > most {
			return fmt.Errorf("%w: %s: %d is not between 0 and %d", ErrModel, what, n, most)
		}
		return nil
	}
	if m.Parameters != nil {
		if err := within("parameters", *m.Parameters, mostParameters); err != nil {
			return err
		}
	}
	if m.Activation != nil {
		if err := within("activation bytes", *m.Activation, mostActivation); err != nil {
			return err
		}
	}
	for _, s := range slices.Sorted(maps.Keys(m.StageParameters)) {
		if err := within(fmt.Sprintf("parameters of stage %d", s), m.StageParameters[s], mostParameters); err != nil {
			return err
		}
	}
	for _, s := range slices.Sorted(maps.Keys(m.StageActivation)) {
		if err := within(fmt.Sprintf("activation bytes of stage %d", s), m.StageActivation[s], mostActivation); err != nil {
			return err
		}
	}
	if m.DataParallel != nil && *m.DataParallel < 1 {
		return fmt.Errorf("%w: %d data-parallel ranks", ErrModel, *m.DataParallel)
	}
	return nil
}

// activations is the largest sum of what chunks keep, by rank; nil where the
// activation of a stage isn't known.
func (m Model) activations(o schedule.Order) []*int64 {
	list := make([]*int64, len(o))
	peaks := o.PeakHeld(func(stage int) int64 {
		if n, ok := m.StageActivation[stage]; ok {
			return n
		}
		if m.Activation != nil {
			return *m.Activation
		}
		return 0
	})
	for r, row := range o {
		known := true
		for _, s := range stagesOf(row) {
			_, own := m.StageActivation[s]
			known = known && (own || m.Activation != nil)
		}
		if known {
			list[r] = &peaks[r]
		}
	}
	return list
}

// state fills in what follows from a rank's parameters.
func (m Model) state(r *Rank, held []int, stages int) {
	total, largest := int64(0), int64(0)
	for _, s := range held {
		n := m.parameters(s, stages)
		if n == nil {
			return
		}
		total += *n
		largest = max(largest, *n)
	}
	r.Parameters = &total

	opt := m.Optimizer
	if opt.Name == "" {
		opt = Optimizers()[0]
	}
	shared := func(bytes int64, sharded bool) *int64 {
		if !sharded {
			return pointer(bytes)
		}
		if m.DataParallel == nil {
			return nil
		}
		n := int64(*m.DataParallel)
		return pointer((bytes + n - 1) / n)
	}
	full, partial := m.Sharding == sharding.Full, m.Sharding != sharding.None
	r.Weights = shared(opt.Weight*total, full)
	r.Gradients = shared(opt.Gradient*total, partial)
	r.Optimizer = shared(opt.State*total, partial)
	buffers := int64(0)
	if partial {
		buffers += opt.Gradient * largest * int64(min(len(held), max(1, m.Buffers.GradientBuffers)))
	}
	if full {
		buffers += opt.Weight * largest * int64(min(len(held), max(1, m.Buffers.WeightBuffers)))
	}
	r.Buffers = &buffers
}

// parameters are those of one stage, nil if not known.
func (m Model) parameters(stage, stages int) *int64 {
	if n, ok := m.StageParameters[stage]; ok {
		return &n
	}
	if m.Parameters == nil {
		return nil
	}
	left, others := *m.Parameters, int64(stages)
	for s, n := range m.StageParameters {
		if s < stages {
			left -= n
			others--
		}
	}
	return pointer((max(0, left) + others - 1) / others)
}

// stagesOf are the stages that a row computes, each once.
func stagesOf(row []schedule.Action) []int {
	var held []int
	seen := map[int32]bool{}
	for _, a := range row {
		if a.Kind.Computes() && !seen[a.Stage] {
			seen[a.Stage] = true
			held = append(held, int(a.Stage))
		}
	}
	return held
}

func pointer(n int64) *int64 { return &n }

// sum is nil if any part is.
func sum(parts ...*int64) *int64 {
	all := int64(0)
	for _, p := range parts {
		if p == nil {
			return nil
		}
		all += *p
	}
	return &all
}
