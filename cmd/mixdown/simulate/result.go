package simulate

import (
	"cmp"
	"fmt"
	"os"

	"mixdown/analyze/pipeline"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/cmd/mixdown/planning"
	"mixdown/cmd/mixdown/searching"
	"mixdown/cmd/mixdown/sizing"
	"mixdown/ingest/diagnostic"
	"mixdown/replay/gantt"
	"mixdown/replay/memory"
	"mixdown/replay/mix"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
	"mixdown/replay/whatif"
)

// Result is what "mixdown simulate --format json" prints.
type Result struct {
	SchemaVersion int    `json:"schema_version"`
	Device        string `json:"device"` // "none": nothing ran
	WorldSize     int    `json:"world_size"`
	Pipelines     int    `json:"pipelines"` // of the input
	Ranks         []int  `json:"ranks"`     // of the one that was played
	Microbatches  int    `json:"microbatches"`
	Stages        int    `json:"stages"`

	// Unchanged is null where nothing joins the ranks of the run.
	Unchanged *Unchanged `json:"unchanged"`
	// Contention is what communication makes of kernels beside it; null where no rank
	// has a device.
	Contention *planning.Contention `json:"contention"`
	Baseline   *Baseline            `json:"baseline"` // null: no order was asked for
	Workload   *Workload            `json:"workload"` // null: no mix, and no what-if of all ranks
	Variants   []Variant            `json:"variants"`
	Searched   int                  `json:"searched"` // candidates of the search within the limits, all of them
	Diags      []report.Diagnostic  `json:"diagnostics"`

	diags diagnostic.Set // of simulating

	pipe *pipeline.Pipeline
	step int // of the pipeline, which is drawn
	base *sim.Prediction
	size sizing.Holding
	list []*sim.Prediction
}

// Baseline is the traced order, played.
type Baseline struct {
	*Order
	Name     string   `json:"name"` // "traced"
	Schedule string   `json:"schedule"`
	Fidelity Fidelity `json:"fidelity"`
}

// Fidelity says how close playing the traced order comes to the trace.
type Fidelity struct {
	TraceStep     int64   `json:"trace_step_ns"`
	SimulatedStep int64   `json:"simulated_step_ns"`
	Ratio         float64 `json:"ratio"`
}

// Order is what an order was predicted to cost.
type Order struct {
	Step              int64   `json:"step_ns"`
	Bubble            float64 `json:"bubble"`
	BubbleLongestSpan float64 `json:"bubble_longest_span"`
	PeakChunks        []int   `json:"peak_chunks"`
	// Memory is the activations of the fullest rank, in multiples of the traced order's;
	// null: not known.
	Memory   *float64 `json:"activation_memory"`
	Messages int      `json:"messages"`
	Copies   int      `json:"weight_copies"` // ranks that hold each stage: 2 in both directions
	// Ranks is what each rank holds, null where nothing is said of the model.
	Ranks []memory.Rank `json:"memory"`
}

// Variant is another order.
type Variant struct {
	*Order            // nil of a mix
	Name      string  `json:"name"`
	Schedule  string  `json:"schedule"`
	Mix       string  `json:"mix"`
	Predicted float64 `json:"predicted_speedup"` // against the played traced order
	// WithinError: the predicted effect is smaller than the simulation's own error
	// on what did not change, or a gain in some of the traced steps and a loss in
	// others.
	WithinError bool `json:"within_error"`
	// Range is the least and the largest speedup predicted of any of the traced
	// steps; null with one step, and of an order.
	Range *[2]float64 `json:"predicted_range"`
	// Slowed is the least and the largest speedup over the interval of how much
	// communication slows kernels; null where it does not, and of an order.
	Slowed      *[2]float64 `json:"contention_range"`
	Pareto      *bool       `json:"pareto"` // of a search: nothing else is as fast and as small
	Sharding    *Sharding   `json:"sharding"`
	Assumptions []string    `json:"assumptions"`
	// MixStep is the step of all ranks with a mix, or with what-ifs asked of them, ns;
	// null of an order. Reasons say why each rule
	// stands in a mix that was chosen.
	MixStep *int64   `json:"mix_step_ns"`
	Reasons []string `json:"reasons"`
	// WhatIfs are what was supposed, null where nothing was; Fills is what fits into
	// bubbles, where that was asked.
	WhatIfs []WhatIf      `json:"what_ifs"`
	Fills   []whatif.Fill `json:"fills"`
	// Apply is the command that writes the order as PyTorch loads it.
	Apply string `json:"apply"`
}

// Sharding is the data-parallel collectives of each rank in one step.
type Sharding struct {
	Variant    string `json:"variant"`
	Gathers    []int  `json:"gathers"`
	Reductions []int  `json:"reductions"`
}

// begin takes what was recorded and how well it is simulated.
func (r *Result) begin(p *pipeline.Pipeline, m *sim.Model, base *sim.Prediction, f sim.Fidelity) {
	r.Ranks, r.Microbatches, r.Stages = p.Ranks, m.Microbatches, m.Stages
	r.pipe, r.step, r.base = p, m.Steps[0], base
	r.Baseline = &Baseline{
		Name: "traced", Schedule: input.NameSchedule(&p.Steps[m.Steps[0]]).Text, Order: r.describe(base, 1),
		Fidelity: Fidelity{TraceStep: f.Measured, SimulatedStep: f.Simulated, Ratio: f.Ratio},
	}
}

func (r *Result) describe(p *sim.Prediction, memory float64) *Order {
	return &Order{
		Step: p.Run.Step, Bubble: p.Bubble(), BubbleLongestSpan: p.BubbleLongestSpan(), PeakChunks: p.PeakChunks,
		Memory: &memory, Messages: p.Messages, Copies: p.Copies,
	}
}

// add adds a prediction that was asked for.
func (r *Result) add(c sim.Candidate) error {
	v := Variant{
		Order: r.describe(c.Prediction, c.Held), Name: c.Schedule, Schedule: c.Schedule, Mix: mix.Traced,
		Predicted: float64(r.base.Run.Step) / float64(c.Run.Step), Assumptions: []string{},
	}
	v.Assumptions = append(v.Assumptions, c.Assumptions...)
	off := r.Baseline.Fidelity.Ratio - 1
	effect := v.Predicted - 1
	v.WithinError = effect*effect < off*off
	if c.Sharding != nil {
		v.Sharding = &Sharding{Variant: c.Sharding.Variant.String(), Gathers: c.Sharding.Gathers, Reductions: c.Sharding.Reductions}
	}
	if spec, err := schedule.Parse(c.Schedule); err == nil && !spec.IsTraced() && c.Copies == 1 {
		full := spec.Fill(len(r.Ranks), r.Microbatches, c.Order.Loops())
		v.Apply = "mixdown schedule " + full.String() + " --format torch-csv"
	}
	var err error
	if v.Ranks, err = r.size.OfCandidate(c); err != nil {
		return fmt.Errorf("%s: %w", v.Name, err)
	}
	r.Variants = append(r.Variants, v)
	r.list = append(r.list, c.Prediction)
	return nil
}

// searched adds the best of a search.
func (r *Result) searched(list []searching.Found, top int) error {
	r.Searched = len(list)
	if top >= 0 {
		list = list[:min(top, len(list))]
	}
	shardings := map[string]bool{}
	for i := range list {
		if s := list[i].Sharding; s != nil {
			shardings[s.Variant.String()] = true
		}
	}
	for i := range list {
		if err := r.add(list[i].Candidate); err != nil {
			return err
		}
		v := &r.Variants[len(r.Variants)-1]
		v.Name, v.Pareto, v.Mix = list[i].Name(), &list[i].Pareto, list[i].Rules
		if len(shardings) > 1 && v.Sharding != nil {
			v.Name += ", sharding " + v.Sharding.Variant
		}
	}
	return nil
}

// collect adds the faults of the input.
func (r *Result) collect(job *input.Job) {
	r.WorldSize, r.Pipelines = job.Run.WorldSize(), len(job.Found.Pipelines)
	var diags diagnostic.Set
	for _, set := range []*diagnostic.Set{&job.Run.Diagnostics, &job.Match.Diagnostics, &job.Clocks.Diagnostics, &job.Found.Diagnostics, &r.diags} {
		diags.Merge(set)
	}
	r.Diags = report.Diagnostics(&diags)
}

// figure draws the traced order and all others.
func (r *Result) figure() gantt.Figure {
	f := gantt.Figure{Title: "Pipeline orders", Unit: "ms"}
	step := &r.pipe.Steps[r.step]
	f.Charts = append(f.Charts,
		gantt.FromStep("as traced in "+cmp.Or(step.Name, "the whole trace")+": "+r.Baseline.Schedule, r.pipe, step),
		gantt.FromRun("the same, simulated", r.base.Run, r.Ranks))
	for i, p := range r.list {
		f.Charts = append(f.Charts, gantt.FromRun(fmt.Sprintf("%s: predicted %.2fx", r.Variants[i].Name, r.Variants[i].Predicted), p.Run, r.Ranks))
	}
	return f
}

func (o *Options) draw(r *Result) error {
	if o.SVG == "" {
		return nil
	}
	if r.Baseline == nil {
		return fmt.Errorf("%w: --svg draws orders: name one with --schedule", cli.ErrUsage)
	}
	f, err := os.Create(o.SVG)
	if err != nil {
		return fmt.Errorf("%w: --svg: %w", cli.ErrUsage, err)
	}
	if err := r.figure().SVG(f); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", o.SVG, err)
	}
	return f.Close()
}
