package planning

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"mixdown/analyze/slowdown"
	"mixdown/ingest/trace"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
	"mixdown/replay/tune"
)

// Contention is how many times as long kernels take beside communication, as
// simulations take it.
type Contention struct {
	Traced Slowdown   `json:"traced"` // of the trace's backend
	Others []Slowdown `json:"others"` // of backends of which a table knows it

	stand string // what the trace's backend is called in plans
}

// Slowdown is that of one backend.
type Slowdown struct {
	Backend string      `json:"backend"`
	Factor  *float64    `json:"factor"` // null: not known, kernels take what they took
	CI95    *[2]float64 `json:"ci95"`
	Kernels int64       `json:"kernels"` // that it was measured from
	From    *string     `json:"from"`    // "traces", "table"; null: not known
	Why     *string     `json:"why"`     // it is not known, in words; null: it is
}

// Where a slowdown is from.
const (
	fromTraces = "traces"
	fromTable  = "table"
)

// FindContention measures what the traces show, and takes what a table knows, nil for
// none, of other backends. The traced backend is called by its name, and by that of
// what stands in for it in plans. It is nil where no rank has a device.
func FindContention(run *trace.Run, table *tune.Table, traced, stand string, others []string) (*Contention, error) {
	if !slices.ContainsFunc(run.Ranks, func(r *trace.Rank) bool { return !r.CPUOnly }) {
		return nil, nil
	}
	r, err := slowdown.Measure(run)
	if err != nil {
		return nil, err
	}
	c := &Contention{Traced: Slowdown{Backend: traced, Kernels: int64(r.Kernels)}, Others: []Slowdown{}, stand: stand}
	if table == nil {
		table = &tune.Table{}
	}
	if r.Known {
		c.Traced.Factor, c.Traced.CI95, c.Traced.From = &r.Factor, &[2]float64{r.Low, r.High}, proto.String(fromTraces)
	} else if of, ok := table.Contention(tune.ParseContender(traced)); ok {
		c.Traced = tabled(traced, of)
	} else {
		c.Traced.Why = &r.Why
	}
	others = slices.Clone(others)
	for i := range table.Rows {
		others = append(others, table.Rows[i].Contender.String())
	}
	slices.Sort(others)
	for _, name := range slices.Compact(others) {
		if of, ok := table.Contention(tune.ParseContender(name)); ok && name != traced && name != stand {
			c.Others = append(c.Others, tabled(name, of))
		}
	}
	return c, nil
}

func tabled(name string, of tune.Contention) Slowdown {
	return Slowdown{Backend: name, Factor: &of.Factor, CI95: &[2]float64{of.CILow, of.CIHigh}, Kernels: of.N, From: proto.String(fromTable)}
}

// Apply lets communication slow the kernels of a workload that is as it was traced.
// A workload that can't be played is left to whoever plays it.
func (c *Contention) Apply(w *planpb.Workload) {
	if c == nil {
		return
	}
	list := []*planpb.Slowdown{{Factor: 1}}
	if c.Traced.Factor != nil {
		list[0].Factor = *c.Traced.Factor
		list = append(list, &planpb.Slowdown{Backend: c.stand, Factor: *c.Traced.Factor})
	}
	for _, o := range c.Others {
		list = append(list, &planpb.Slowdown{Backend: o.Backend, Factor: *o.Factor})
	}
	_ = sim.Contend(w, list)
}

// Between asks a question of a workload with all factors at the lower ends of their
// intervals, then at the upper ends, and gives the lesser and the larger answer. It is
// nil where nothing is slowed.
func (c *Contention) Between(w *planpb.Workload, ask func() (float64, error)) (*[2]float64, error) {
	if c == nil || len(w.Slowdowns) == 0 {
		return nil, nil
	}
	known := map[string]*[2]float64{"": c.Traced.CI95, c.stand: c.Traced.CI95}
	for _, o := range c.Others {
		known[o.Backend] = o.CI95
	}
	kept := make([]float64, len(w.Slowdowns))
	for i, s := range w.Slowdowns {
		kept[i] = s.Factor
	}
	defer func() {
		for i, s := range w.Slowdowns {
			s.Factor = kept[i]
		}
	}()
	var out [2]float64
	for end := range out {
		for _, s := range w.Slowdowns {
			if ci := known[s.Backend]; ci != nil {
				s.Factor = ci[end]
			}
		}
		var err error
		if out[end], err = ask(); err != nil {
			return nil, err
		}
	}
	slices.Sort(out[:])
	return &out, nil
}

// Assumed says what is taken for granted of the backends of a plan, for people; none
// where nothing is slowed.
func (c *Contention) Assumed(p *planpb.Plan) []string {
	if c == nil || len(p.Workload.Slowdowns) == 0 {
		return nil
	}
	var list []string
	for _, name := range mix.Backends(p) {
		if name == c.stand || name == c.Traced.Backend {
			continue
		}
		i := slices.IndexFunc(c.Others, func(s Slowdown) bool { return s.Backend == name })
		switch {
		case i >= 0:
			list = append(list, fmt.Sprintf("kernels beside communication on %s take %.2f times as long, as the table has it", name, *c.Others[i].Factor))
		case c.Traced.Factor != nil:
			list = append(list, fmt.Sprintf("kernels beside communication on %s take %.2f times as long, as beside %s: the table does not know what %s makes of them",
				name, *c.Traced.Factor, cmp.Or(c.Traced.Backend, "the traced backend"), name))
		}
	}
	return list
}
