package planning

import (
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
	"mixdown/replay/tune"
)

// TestCostsByMachines: an operation costs what the table says of the machines that its
// own group is on, whichever groups a step has first.
func TestCostsByMachines(t *testing.T) {
	table := &tune.Table{}
	for nodes, ns := range map[int]int64{1: 1000, 2: 9000} {
		for _, backend := range []string{"gloo", "openmpi"} {
			took := ns
			if backend == "openmpi" {
				took *= int64(nodes) // as quick as gloo within a machine, half as quick across
			}
			if err := table.Add(tune.Row{
				Contender: tune.ParseContender(backend), Op: comm.AllReduce, DType: comm.Float32, Device: tune.Host,
				Ranks: 2, Nodes: nodes, In: 4000, Out: 4000, Streams: 1, Time: took, Statistic: tune.Single, Source: "test",
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	tp, dp := &planpb.Group{Name: "tp", Ranks: []int32{0, 1}}, &planpb.Group{Name: "dp", Ranks: []int32{0, 2}}
	p := &Plans{Stand: "gloo", Costs: table.Costs(), Nodes: 2}
	for _, groups := range [][]*planpb.Group{{tp, dp}, {dp, tp}} {
		w := &planpb.Workload{WorldSize: 4, Groups: groups}
		few := &planpb.Workload{WorldSize: 4, Groups: []*planpb.Group{{Ranks: []int32{0}}, {Ranks: []int32{0}}}} // of which rank 0 is played
		for _, costs := range []*sim.Scaled{p.CostsOf(w, w), p.CostsOf(few, w)} {
			for g, group := range groups {
				c := &planpb.Communication{Group: int32(g), Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: 1000, OutCount: 1000, Backend: "openmpi"}
				got := costs.Cost(sim.Meeting{Communication: c, Ranks: 2, Traced: 500, Known: true})
				want := map[string]int64{"tp": 500, "dp": 1000}[group.Name]
				if got != want {
					t.Errorf("group %s takes %d, want %d", group.Name, got, want)
				}
			}
		}
	}
}
