package auto_test

import (
	"errors"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/auto"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
)

// table is costs in ns: a start and a price per KiB, by backend and operation.
type table map[string]map[comm.Op][2]int64

func (t table) Estimate(q tune.Query) (tune.Estimate, bool) {
	line, ok := t[q.Backend][q.Op]
	return tune.Estimate{Time: line[0] + line[1]*q.Bytes/1024, How: tune.Measured}, ok
}

// job is ranks that compute and then communicate, step by step, the host waiting
// for everything.
func job(ranks int32, ops ...*planpb.Communication) *planpb.Workload {
	w := &planpb.Workload{WorldSize: ranks, Groups: []*planpb.Group{{Name: "world"}}}
	for r := range ranks {
		w.Groups[0].Ranks = append(w.Groups[0].Ranks, r)
		p := &planpb.Program{Rank: r, Streams: []*planpb.Stream{{Name: "host"}}}
		for i, op := range ops {
			c := &planpb.Communication{Op: op.Op, Dtype: planpb.DType_DTYPE_UINT8, InCount: op.InCount, OutCount: op.InCount, Seq: int64(i)}
			if op.Op == planpb.Op_OP_ALL_REDUCE {
				c.ReduceOp = planpb.ReduceOp_REDUCE_OP_SUM
			}
			p.Tasks = append(p.Tasks,
				&planpb.Task{Id: int32(2 * i), Kind: &planpb.Task_Span{Span: &planpb.Span{DurationNs: 1000}}},
				&planpb.Task{Id: int32(2*i + 1), Kind: &planpb.Task_Communication{Communication: c}})
		}
		w.Programs = append(w.Programs, p)
	}
	return w
}

func reduce(bytes int64) *planpb.Communication {
	return &planpb.Communication{Op: planpb.Op_OP_ALL_REDUCE, InCount: bytes}
}

func exchange(bytes int64) *planpb.Communication {
	return &planpb.Communication{Op: planpb.Op_OP_ALL_TO_ALL, InCount: bytes}
}

func choose(t *testing.T, w *planpb.Workload, costs auto.Costs, opts auto.Options) *auto.Choice {
	t.Helper()
	c, err := auto.Choose(w, costs, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Reasons) != len(c.Mix.Rules) {
		t.Errorf("%d reasons for %d rules", len(c.Reasons), len(c.Mix.Rules))
	}
	p, err := mix.Decide(w, c.Mix, "auto", opts.Traced)
	if err != nil {
		t.Fatalf("%s: %v", c.Mix.Text, err)
	}
	if err := mix.Check(p); err != nil {
		t.Errorf("%s: %v", c.Mix.Text, err)
	}
	return c
}

var both = auto.Options{Backends: []string{"gloo", "openmpi"}, Traced: "gloo"}

// One library is quick to start, the other moves faster.
func TestSizesAreSplit(t *testing.T) {
	costs := table{
		"gloo":    {comm.AllReduce: {100, 1000}, comm.AllToAll: {100, 10}},
		"openmpi": {comm.AllReduce: {5000, 10}, comm.AllToAll: {5000, 1000}},
	}
	c := choose(t, job(4, reduce(1024), reduce(2048), reduce(64<<10), exchange(1<<20)), costs, both)
	if want := "all_reduce@>=64KiB=openmpi,*=gloo"; c.Mix.Text != want {
		t.Errorf("mix %s, want %s", c.Mix.Text, want)
	}
	if c.Speedup < 1.2 || !c.Played {
		t.Errorf("speedup %.2f", c.Speedup)
	}
	if !strings.Contains(c.Reasons[0].Text, "65536 bytes on 4 ranks") || !strings.Contains(c.Reasons[0].Text, "on gloo") {
		t.Errorf("reason %q", c.Reasons[0].Text)
	}
	if c.Singles["gloo"] != c.Traced || c.Singles["openmpi"] <= c.Step {
		t.Errorf("singles %v, step %d", c.Singles, c.Step)
	}
}

// What hides behind computation is not worth a change, however much faster.
func TestHiddenCommunicationStays(t *testing.T) {
	w := job(2, reduce(1<<20))
	for _, p := range w.Programs {
		p.Streams = append(p.Streams, &planpb.Stream{})
		p.Tasks[1].Stream = 1
		p.Tasks = append(p.Tasks, &planpb.Task{Id: 2, Kind: &planpb.Task_Span{Span: &planpb.Span{DurationNs: 1e9}}})
	}
	costs := table{"gloo": {comm.AllReduce: {1e6, 0}}, "openmpi": {comm.AllReduce: {10, 0}}}
	c := choose(t, w, costs, both)
	if c.Mix.Text != "*=gloo" || c.Speedup != 1 {
		t.Errorf("mix %s, speedup %.3f", c.Mix.Text, c.Speedup)
	}
	if !strings.Contains(c.Reasons[0].Text, "noise") {
		t.Errorf("reason %q", c.Reasons[0].Text)
	}
}

// A gain within the noise is none.
func TestGainWithinNoise(t *testing.T) {
	costs := table{"gloo": {comm.AllReduce: {1000, 0}}, "openmpi": {comm.AllReduce: {970, 0}}}
	if c := choose(t, job(2, reduce(8)), costs, both); c.Mix.Text != "*=gloo" {
		t.Errorf("a gain of 1.5 %% of the step: %s", c.Mix.Text)
	}
	loud := both
	loud.Noise = 0.2
	costs["openmpi"][comm.AllReduce] = [2]int64{700, 0}
	if c := choose(t, job(2, reduce(8)), costs, loud); c.Mix.Text != "*=gloo" {
		t.Errorf("a gain of 18 %% where the noise is 20 %%: %s", c.Mix.Text)
	}
	if c := choose(t, job(2, reduce(8)), costs, both); c.Mix.Text != "*=openmpi" {
		t.Errorf("a gain of 18 %%: %s", c.Mix.Text)
	}
}

// A process can load one MPI: the mix has one, whatever each is best at.
func TestExclusiveBackends(t *testing.T) {
	costs := table{
		"gloo":    {comm.AllReduce: {9000, 0}, comm.AllToAll: {9000, 0}},
		"openmpi": {comm.AllReduce: {100, 0}, comm.AllToAll: {5000, 0}},
		"mpich":   {comm.AllReduce: {4000, 0}, comm.AllToAll: {100, 0}},
	}
	opts := auto.Options{Backends: []string{"gloo", "openmpi", "mpich"}, Traced: "gloo", Exclusive: []string{"openmpi", "mpich"}}
	c := choose(t, job(2, reduce(8), exchange(8)), costs, opts)
	if c.Mix.Text != "*=mpich" || len(c.Singles) != 3 {
		t.Errorf("mix %s, singles %v", c.Mix.Text, c.Singles)
	}
	opts.Exclusive = nil
	if c, err := auto.Choose(job(2, reduce(8), exchange(8)), costs, opts); err != nil || len(c.Mix.Backends()) != 2 {
		t.Errorf("without the limit: %v, %v", c.Mix.Text, err)
	}
	opts.Exclusive, opts.Traced = []string{"openmpi", "mpich"}, "openmpi"
	if c := choose(t, job(2, reduce(8), exchange(8)), costs, opts); c.Mix.Text != "*=openmpi" {
		t.Errorf("a job on one MPI stays with it: %s", c.Mix.Text)
	}
}

// perNode is costs that depend on how many machines a group is on.
type perNode struct{ table }

func (p perNode) Estimate(q tune.Query) (tune.Estimate, bool) {
	e, ok := p.table.Estimate(q)
	if q.Backend == "gloo" {
		e.Time *= int64(max(q.Nodes, 1)) * 10
	}
	return e, ok
}

// Groups within a machine are judged by what was measured within one, though the job
// has several.
func TestMachines(t *testing.T) {
	costs := perNode{table{
		"gloo":    {comm.AllReduce: {100, 0}, comm.Send: {100, 0}},
		"openmpi": {comm.AllReduce: {1500, 0}, comm.Send: {1500, 0}},
	}}
	w := job(4, reduce(8))
	opts := both
	for nodes, want := range map[int]string{0: "*=gloo", 1: "*=gloo", 2: "*=openmpi"} {
		opts.Nodes = nodes
		if c := choose(t, w, costs, opts); c.Mix.Text != want {
			t.Errorf("on %d machines: %s, want %s", nodes, c.Mix.Text, want)
		}
	}
	// The same in groups of two: each is on one machine of two.
	w.Groups = []*planpb.Group{{Name: "a", Ranks: []int32{0, 1}}, {Name: "b", Ranks: []int32{2, 3}}}
	for r, p := range w.Programs {
		p.Tasks[1].GetCommunication().Group = int32(r / 2)
	}
	opts.Nodes = 2
	if c := choose(t, w, costs, opts); c.Mix.Text != "*=gloo" {
		t.Errorf("within a machine: %s", c.Mix.Text)
	}
}

// Only what is known is chosen, and what is not is said.
func TestCostsThatAreMissing(t *testing.T) {
	w := job(2, reduce(8), exchange(8))
	if _, err := auto.Choose(w, table{}, both); !errors.Is(err, auto.ErrNoCosts) {
		t.Errorf("an empty table: %v", err)
	}
	// The traced backend was not measured: no speedup is claimed.
	c := choose(t, w, table{"openmpi": {comm.AllReduce: {10, 0}, comm.AllToAll: {10, 0}}}, both)
	if c.Mix.Text != "*=openmpi" || c.Speedup != 0 || c.Traced != 0 {
		t.Errorf("mix %s, speedup %v, traced %d", c.Mix.Text, c.Speedup, c.Traced)
	}
	// Each was measured for one operation only.
	c = choose(t, w, table{"gloo": {comm.AllReduce: {10, 0}}, "openmpi": {comm.AllToAll: {10, 0}}}, both)
	if c.Mix.Text != "all_to_all=openmpi,*=gloo" || len(c.Singles) != 0 || c.Unknown != 0 {
		t.Errorf("mix %s, singles %v, unknown %d", c.Mix.Text, c.Singles, c.Unknown)
	}
}

// Steps too large to play are added up; the mix is the same where nothing
// overlaps.
func TestLargeSteps(t *testing.T) {
	costs := table{
		"gloo":    {comm.AllReduce: {100, 1000}, comm.AllToAll: {100, 10}},
		"openmpi": {comm.AllReduce: {5000, 10}, comm.AllToAll: {5000, 1000}},
	}
	opts := both
	opts.MaxPlayed = 1
	c := choose(t, job(4, reduce(1024), reduce(64<<10), exchange(1<<20)), costs, opts)
	if want := "all_reduce@>=64KiB=openmpi,*=gloo"; c.Mix.Text != want || c.Played {
		t.Errorf("mix %s, want %s; played %v", c.Mix.Text, want, c.Played)
	}
}

// A thousand ranks with a thousand operations each, of fifty sizes.
func BenchmarkChoose(b *testing.B) {
	var ops []*planpb.Communication
	for i := range int64(1000) {
		ops = append(ops, reduce((i%50+1)<<12))
	}
	w := job(1000, ops...)
	costs := table{"gloo": {comm.AllReduce: {100, 100}}, "openmpi": {comm.AllReduce: {5000, 10}}, "mpich": {comm.AllReduce: {3000, 50}}}
	opts := auto.Options{Backends: []string{"gloo", "openmpi", "mpich"}, Traced: "gloo"}
	for b.Loop() {
		if _, err := auto.Choose(w, costs, opts); err != nil {
			b.Fatal(err)
		}
	}
}
