package planning

import (
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
	"mixdown/replay/tune"
)

// CostsOf is what the operations of a workload take on the backends that it names:
// as in the trace, scaled by the table.
func (p *Plans) CostsOf(w *planpb.Workload) *sim.Scaled {
	sizes := mix.SizeOf(w)
	return &sim.Scaled{Traced: sim.TracedCosts(w), Old: p.Stand, Table: func(m sim.Meeting, backend string) (int64, bool) {
		bytes := m.Count * plan.DType(m.Communication).Size()
		if !m.Transfer {
			bytes = sizes(m.Rank, m.Communication)
		}
		return p.TableCost(m, backend, bytes)
	}}
}

// TableCost is what the table says of an operation of so many bytes, false where it
// says nothing.
func (p *Plans) TableCost(m sim.Meeting, backend string, bytes int64) (int64, bool) {
	if p.Costs == nil {
		return 0, false
	}
	e, ok := p.Costs.Estimate(tune.Query{
		Contender: tune.ParseContender(backend), Op: plan.CostOp(m.Communication), DType: plan.DType(m.Communication),
		Bytes: bytes, Ranks: m.Ranks, Nodes: p.NodesOf(m.Rank, m.Communication), InStep: true,
	})
	return e.Time, ok
}
