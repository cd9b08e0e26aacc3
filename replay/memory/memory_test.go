package memory

import (
	"errors"
	"strings"
	"testing"

	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
)

func order(t testing.TB, spec string) (schedule.Order, schedule.Rational) {
	t.Helper()
	s, err := schedule.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Order()
	if err != nil {
		t.Fatal(err)
	}
	line, err := schedule.Evaluate(o, s.Costs)
	if err != nil {
		t.Fatal(err)
	}
	return o, line.Makespan()
}

func of(t testing.TB, spec string, m Model) []Rank {
	t.Helper()
	o, _ := order(t, spec)
	ranks, err := Of(o, m)
	if err != nil {
		t.Fatal(err)
	}
	return ranks
}

// TestState holds the reference's formulas, P parameters on each of 4 ranks and
// N = 8 data-parallel ranks: 16·P, (2 + 14/N)·P and 16·P/N, and the buffers.
func TestState(t *testing.T) {
	const p = 1_000_000 // per rank
	for _, c := range []struct {
		name, optimizer, spec                string
		variant                              sharding.Variant
		buffers                              sharding.Options
		weights, gradients, optimizr, buffer int64
	}{
		{"DP0", "adam", "breadth-first:ranks=4,microbatches=8,loops=4", sharding.None, sharding.Options{}, 2 * p, 2 * p, 12 * p, 0},
		{"DP0, fp32 gradients", "adam-fp32-gradients", "1f1b:ranks=4,microbatches=8", sharding.None, sharding.Options{}, 2 * p, 4 * p, 12 * p, 0},
		{"DP_PS", "adam", "breadth-first:ranks=4,microbatches=8,loops=4", sharding.Partial, sharding.Options{}, 2 * p, p / 4, 12 * p / 8, 2 * p / 4},
		{"DP_PS, two buffers", "adam", "breadth-first:ranks=4,microbatches=8,loops=4", sharding.Partial, sharding.Options{GradientBuffers: 2}, 2 * p, p / 4, 12 * p / 8, 2 * 2 * p / 4},
		{"DP_FS", "adam", "breadth-first:ranks=4,microbatches=8,loops=4", sharding.Full, sharding.Options{}, p / 4, p / 4, 12 * p / 8, 2 * 2 * p / 4},
		{"DP_FS, two buffers", "adam", "breadth-first:ranks=4,microbatches=8,loops=4", sharding.Full, sharding.Options{WeightBuffers: 2, GradientBuffers: 2}, p / 4, p / 4, 12 * p / 8, 2 * 4 * p / 4},
		{"DP_FS, one chunk", "adam", "1f1b:ranks=4,microbatches=8", sharding.Full, sharding.Options{WeightBuffers: 2}, p / 4, p / 4, 12 * p / 8, 4 * p},
		{"SGD", "sgd", "1f1b:ranks=4,microbatches=8", sharding.None, sharding.Options{}, 4 * p, 4 * p, 0, 0},
		{"momentum", "sgd-momentum", "1f1b:ranks=4,microbatches=8", sharding.None, sharding.Options{}, 4 * p, 4 * p, 4 * p, 0},
		{"Adam fp32", "adam-fp32", "1f1b:ranks=4,microbatches=8", sharding.None, sharding.Options{}, 4 * p, 4 * p, 8 * p, 0},
		// Two directions hold every stage twice.
		{"DualPipe", "adam", "dualpipe:ranks=4,microbatches=8", sharding.None, sharding.Options{}, 4 * p, 4 * p, 24 * p, 0},
	} {
		opt, err := FindOptimizer(c.optimizer)
		if err != nil {
			t.Fatal(err)
		}
		dp := 8
		for _, r := range of(t, c.spec, Model{Parameters: pointer(4 * p), Activation: pointer(0), Optimizer: opt, DataParallel: &dp, Sharding: c.variant, Buffers: c.buffers}) {
			if *r.Weights != c.weights || *r.Gradients != c.gradients || *r.Optimizer != c.optimizr || *r.Buffers != c.buffer {
				t.Errorf("%s, rank %d: %d %d %d %d", c.name, r.Rank, *r.Weights, *r.Gradients, *r.Optimizer, *r.Buffers)
			}
			if want := c.weights + c.gradients + c.optimizr + c.buffer; *r.Total != want {
				t.Errorf("%s, rank %d: %d in all, want %d", c.name, r.Rank, *r.Total, want)
			}
		}
	}
}

// TestActivations: bytes of a chunk times the peaks of the reference's table.
func TestActivations(t *testing.T) {
	const layer = 2 * 8192 * 1024 // hidden 8192, sequence 1024
	if got := Checkpoint(8192, 1024, 1, 4, 8); got != layer*4/8 {
		t.Errorf("a checkpoint of 4 layers over 8 ranks takes %d", got)
	}
	for spec, peaks := range map[string][]int64{
		"gpipe:ranks=4,microbatches=8":                 {8, 8, 8, 8},
		"1f1b:ranks=4,microbatches=8":                  {4, 3, 2, 1},
		"depth-first:ranks=4,microbatches=8,loops=4":   {19, 17, 15, 13},
		"breadth-first:ranks=4,microbatches=8,loops=4": {32, 32, 32, 32},
		"zb-h1:ranks=4,microbatches=8":                 {4, 4, 4, 4},
		"inference:ranks=2,microbatches=8,loops=2":     {1, 1},
	} {
		for r, rank := range of(t, spec, Model{Activation: pointer(Checkpoint(8192, 1024, 1, 16, 1))}) {
			if want := peaks[r] * 16 * layer; *rank.Activations != want || int64(rank.Chunks) != peaks[r] {
				t.Errorf("%s rank %d: %d chunks, %d bytes", spec, r, rank.Chunks, *rank.Activations)
			}
			if rank.Total != nil || rank.Weights != nil {
				t.Errorf("%s: what is not known was made up: %+v", spec, rank)
			}
		}
	}
	// A stage that keeps ten times as much weighs in the peak.
	ranks := of(t, "1f1b:ranks=2,microbatches=4", Model{Activation: pointer(10), StageActivation: map[int]int64{1: 100}})
	if *ranks[0].Activations != 20 || *ranks[1].Activations != 100 {
		t.Errorf("got %d and %d", *ranks[0].Activations, *ranks[1].Activations)
	}
}

func TestUnknown(t *testing.T) {
	for _, r := range of(t, "1f1b:ranks=2,microbatches=4", Model{Parameters: pointer(100), Sharding: sharding.Partial}) {
		if r.Weights == nil || r.Gradients != nil || r.Optimizer != nil || r.Activations != nil || r.Total != nil {
			t.Errorf("without the number of data-parallel ranks: %+v", r)
		}
	}
	ranks := of(t, "1f1b:ranks=2,microbatches=4", Model{StageParameters: map[int]int64{0: 100}, StageActivation: map[int]int64{1: 5}})
	if *ranks[0].Parameters != 100 || ranks[1].Parameters != nil || ranks[0].Activations != nil || *ranks[1].Activations != 5 {
		t.Errorf("got %+v", ranks)
	}
	// What is left over is spread over the others.
	ranks = of(t, "1f1b:ranks=3,microbatches=4", Model{Parameters: pointer(100), StageParameters: map[int]int64{0: 40}})
	if *ranks[0].Parameters != 40 || *ranks[1].Parameters != 30 || *ranks[2].Parameters != 30 {
		t.Errorf("got %+v", ranks)
	}
}

func TestErrors(t *testing.T) {
	o, _ := order(t, "1f1b:ranks=2,microbatches=4")
	zero := 0
	for want, m := range map[string]Model{
		"parameters: -1":                   {Parameters: pointer(-1)},
		"activation bytes: -5":             {Activation: pointer(-5)},
		"activation bytes of stage 3: 1":   {StageActivation: map[int]int64{3: 1 << 40}},
		"parameters of stage 2: -7 is not": {StageParameters: map[int]int64{2: -7}},
		"0 data-parallel ranks":            {DataParallel: &zero},
	} {
		if _, err := Of(o, m); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ...%s...", err, want)
		}
	}
	if _, err := Of(schedule.Order{}, Model{}); !errors.Is(err, schedule.ErrOrder) {
		t.Errorf("got %v", err)
	}
	if _, err := FindOptimizer("adamw8"); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), "known: adam ") {
		t.Errorf("got %v", err)
	}
}
