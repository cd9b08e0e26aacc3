// Package searching searches the pipeline orders that fit a job, with every mix and
// sharding, within the limits of memory, for every verb that wants the best of them.
package searching

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"mixdown/analyze/pipeline"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/sizing"
	"mixdown/replay/memory"
	"mixdown/replay/sharding"
	"mixdown/replay/sim"
)

// Options are the flags of a search, and those of predicting orders.
type Options struct {
	Pipeline    int
	Sends       string
	WeightShare float64
	Sizes       sizing.Options

	Loops       []int
	MaxMemory   float64
	MemoryLimit string

	// Microbatches are those that the search tries, nil for the traced number. Not a
	// flag here: a replay has the traced ones.
	Microbatches []int
}

// AddFlags declares the flags.
func (o *Options) AddFlags(cmd *cobra.Command) {
	o.Sizes.AddFlags(cmd)
	f := cmd.Flags()
	f.IntVar(&o.Pipeline, "pipeline", 0, "which pipeline of the input, from 0: with data parallelism there is one for each copy of the model")
	f.StringVar(&o.Sends, "sends", "", "how the program sends: running (receives are posted ahead) or blocking (a send holds the sender until it is received); default what the trace shows")
	f.Float64Var(&o.WeightShare, "weight-share", 0, "part of a backward that makes the weights' gradient, for zero-bubble orders; default a half where the trace does not tell")
	f.IntSliceVar(&o.Loops, "loops", nil, "chunks per rank that the search tries; default 1,2,4")
	f.Float64Var(&o.MaxMemory, "max-memory", 0, "leave out what holds more than so many times the traced activations on its fullest rank")
	f.StringVar(&o.MemoryLimit, "memory-limit", "", "leave out of the search what holds more than `SIZE` on any rank, such as 80GiB; needs --params and --activation-bytes")
}

// Check finds mistakes in the flags, before anything is read.
func (o *Options) Check() error {
	if _, ok := sim.ParseSends(o.Sends); o.Sends != "" && !ok {
		return fmt.Errorf("%w: --sends %q: known are running, blocking", cli.ErrUsage, o.Sends)
	}
	if !(o.WeightShare >= 0 && o.WeightShare <= 1) {
		return fmt.Errorf("%w: --weight-share %v: expected a part from 0 to 1", cli.ErrUsage, o.WeightShare)
	}
	if !(o.MaxMemory >= 0) {
		return fmt.Errorf("%w: --max-memory %v: expected a multiple of the traced memory, such as 1.5", cli.ErrUsage, o.MaxMemory)
	}
	for flag, list := range map[string][]int{"--loops": o.Loops, "--microbatches": o.Microbatches} {
		for _, n := range list {
			if n < 1 {
				return fmt.Errorf("%w: %s %d: expected at least 1", cli.ErrUsage, flag, n)
			}
		}
	}
	return nil
}

// Model finds the pipeline that was asked for and what its tasks take, of a step, or of
// all where none is named.
func (o *Options) Model(found *pipeline.Result, step string) (*pipeline.Pipeline, *sim.Model, error) {
	if len(found.Pipelines) == 0 {
		return nil, nil, fmt.Errorf("%w: no pipeline was recognised in these traces (\"mixdown analyze\" lists their diagnostics)", sim.ErrNoPipeline)
	}
	if o.Pipeline < 0 || o.Pipeline >= len(found.Pipelines) {
		return nil, nil, fmt.Errorf("%w: --pipeline %d: the input has %d, counted from 0", cli.ErrUsage, o.Pipeline, len(found.Pipelines))
	}
	p := found.Pipelines[o.Pipeline]
	var steps []int
	if step != "" && step != "all" {
		for i := range p.Steps {
			if p.Steps[i].Name == step || strconv.Itoa(p.Steps[i].Number) == step {
				steps = append(steps, i)
			}
		}
		if steps == nil {
			return nil, nil, fmt.Errorf("%w: --step %s: the pipeline was not recognised in such a step", cli.ErrUsage, step)
		}
	}
	m, err := sim.Calibrate(p, steps)
	if mode, ok := sim.ParseSends(o.Sends); ok && err == nil {
		m.Sends = mode
	}
	return p, m, err
}

// limit reads --memory-limit, in bytes, 0 where it was not given.
func (o *Options) limit(size *memory.Model) (int64, error) {
	if o.MemoryLimit == "" {
		return 0, nil
	}
	limit, err := sizing.ParseBytes(o.MemoryLimit)
	if err != nil || limit < 1 {
		return 0, fmt.Errorf("%w: --memory-limit %q: expected a size such as 80GiB", cli.ErrUsage, o.MemoryLimit)
	}
	if size == nil || size.Parameters == nil || size.Activation == nil {
		return 0, fmt.Errorf("%w: --memory-limit: what a rank holds is not known: give --params and --activation-bytes", cli.ErrUsage)
	}
	return limit, nil
}

// Holding is what the flags say of the model that a pipeline trains.
func (o *Options) Holding(m *sim.Model, variant sharding.Variant, buffers sharding.Options) (sizing.Holding, error) {
	size, err := o.Sizes.Model(variant, buffers)
	return sizing.Holding{Model: size, Stages: m.Stages, Microbatches: m.Microbatches}, err
}
