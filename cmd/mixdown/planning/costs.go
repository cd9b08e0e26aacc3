package planning

import (
	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
	"mixdown/replay/tune"
)

// CostsOf is what the operations of a workload take on the backends that it names:
// as in the trace, scaled by the table. whole is the same workload with all ranks of the
// job, which tells on how many machines groups are.
func (p *Plans) CostsOf(w, whole *planpb.Workload) *sim.Scaled {
	sizes, machines := mix.SizeOf(w), plan.NewMachines(whole, p.Nodes)
	return &sim.Scaled{Traced: sim.TracedCosts(w), Old: p.Stand, Table: func(m sim.Meeting, backend string) (int64, bool) {
		bytes := m.Count * plan.DType(m.Communication).Size()
		if !m.Transfer {
			bytes = sizes(m.Rank, m.Communication)
		}
		return p.TableCost(m, backend, bytes, machines.Of(m.Rank, m.Communication))
	}}
}

// TableCost is what the table says that an operation of so many bytes between so many
// machines, 0 when not known, takes, ns; false where it says nothing.
func (p *Plans) TableCost(m sim.Meeting, backend string, bytes int64, machines int) (int64, bool) {
	e, ok := p.TableEstimate(m, backend, bytes, machines)
	return e.Time, ok
}

// TableEstimate is what the table says of an operation of so many bytes between so many
// machines, 0 when not known; false where it says nothing.
func (p *Plans) TableEstimate(m sim.Meeting, backend string, bytes int64, machines int) (tune.Estimate, bool) {
	if p.Costs == nil {
		return tune.Estimate{}, false
	}
	return p.Costs.Estimate(tune.Query{
		Contender: tune.ParseContender(backend), Op: plan.CostOp(m.Communication), DType: plan.DType(m.Communication),
		Bytes: bytes, Ranks: m.Ranks, Nodes: machines, InStep: true,
	})
}
