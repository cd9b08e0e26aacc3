package tune_test

import (
	"math"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

func TestCost(t *testing.T) {
	half := func(r *tune.Row) { r.DType = comm.BFloat16 }
	send := func(r *tune.Row) { r.Op, r.Ranks = comm.Send, 2 }
	barrier := func(r *tune.Row) { r.Op = comm.Barrier }
	c := table(t, row("gloo", 1<<10, 1000), row("gloo", 1<<20, 16000), row("gloo:x", 1<<10, 5), row("gloo", 1<<10, 700, half),
		row("gloo", 4096, 50, send), row("gloo", 0, 10, barrier)).Costs()
	for _, x := range []struct {
		backend string
		op      comm.Op
		bytes   int64
		ranks   int
		ns      int64
		how     string
	}{
		{"gloo", comm.AllReduce, 1 << 10, 4, 1000, "measured"},
		{"gloo:x", comm.AllReduce, 1 << 10, 4, 5, "measured"},
		{"gloo", comm.AllReduce, 1 << 15, 4, 4000, "interpolated; nothing was measured between 1024 and 1048576 bytes"}, // half way in both logarithms
		{"gloo", comm.AllReduce, 8, 4, 1000, "extrapolated; 8 bytes are outside the measured sizes, 1024 to 1048576"},
		{"gloo", comm.Recv, 4096, 64, 50, "measured"},
		{"gloo", comm.Batch, 4096, 64, 50, "measured; batch was not measured: the time of send"},
		{"gloo", comm.Barrier, 0, 4, 10, "measured"},
	} {
		e, ok := c.Estimate(tune.Query{Contender: tune.ParseContender(x.backend), Op: x.op, Bytes: x.bytes, Ranks: x.ranks, Nodes: 1})
		if ns, how := e.Time, e.Words(); !ok || ns != x.ns || how != x.how {
			t.Errorf("%s %s of %d bytes: %d ns, %v, %q; want %d ns, %q", x.backend, x.op, x.bytes, ns, ok, how, x.ns, x.how)
		}
	}
	if e, ok := c.Estimate(tune.Query{Contender: tune.Contender{Backend: "gloo"}, Op: comm.AllReduce, DType: comm.BFloat16, Bytes: 1 << 10, Ranks: 4}); !ok || e.Time != 700 {
		t.Errorf("bfloat16: %+v, %v", e, ok)
	}
	for _, x := range []struct {
		backend string
		op      comm.Op
	}{{"nccl", comm.AllReduce}, {"gloo", comm.Scatter}} {
		if e, ok := c.Estimate(tune.Query{Contender: tune.ParseContender(x.backend), Op: x.op, Bytes: 8, Ranks: 4, Nodes: 1}); ok {
			t.Errorf("%s %s: %d ns (%s), want no answer", x.backend, x.op, e.Time, e.Words())
		}
	}
	// 4 GiB: the fitted line goes on from the last point.
	e, ok := c.Estimate(tune.Query{Contender: tune.Contender{Backend: "gloo"}, Op: comm.AllReduce, Bytes: 4 << 30, Ranks: 4})
	if !ok || e.How != tune.Extrapolated || len(e.Warnings) == 0 || e.Fit == nil || e.Time < 40e6 || e.Time > 80e6 {
		t.Errorf("beyond the sizes: %+v, %v", e, ok)
	}
}

// TestModel: group sizes that were not measured follow from those that were, with a
// warning that says how well.
func TestModel(t *testing.T) {
	const alpha, beta = 5000, 0.25
	time := func(ranks int, bytes int64) int64 {
		return int64(alpha*math.Log2(float64(ranks)) + beta*float64(bytes)*2*float64(ranks-1)/float64(ranks))
	}
	var rows []tune.Row
	for _, ranks := range []int{2, 4, 16} {
		for bytes := int64(8); bytes <= 1<<24; bytes *= 8 {
			rows = append(rows, row("gloo", bytes, time(ranks, bytes), func(r *tune.Row) { r.Ranks = ranks }))
		}
	}
	c := table(t, rows...).Costs()
	for _, bytes := range []int64{8, 1 << 20} {
		e, ok := c.Estimate(tune.Query{Contender: tune.Contender{Backend: "gloo"}, Op: comm.AllReduce, Bytes: bytes, Ranks: 8})
		want := time(8, bytes)
		if !ok || e.How != tune.Modelled || math.Abs(float64(e.Time-want)) > 0.01*float64(want) {
			t.Errorf("%d bytes on 8 ranks: %+v, want about %d ns", bytes, e, want)
		}
		if len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0].Error(), "[2 4 16]") || e.Fit.Residual > 0.01 {
			t.Errorf("%d bytes: warnings %v, fit %+v", bytes, e.Warnings, e.Fit)
		}
	}
	if _, ok := table(t, row("gloo", 8, 100)).Costs().Estimate(tune.Query{Contender: tune.Contender{Backend: "gloo"}, Op: comm.AllReduce, Bytes: 8, Ranks: 8}); ok {
		t.Error("one point is no model")
	}
}

// What was measured within steps answers questions about steps, at the gap nearest
// to theirs; what was measured in a row answers the others, and stands in.
func TestInStep(t *testing.T) {
	within := func(gap int64) func(*tune.Row) { return func(r *tune.Row) { r.InStep, r.Gap = true, gap } }
	c := table(t, row("gloo", 1<<10, 1000), row("gloo", 1<<20, 64000), row("gloo", 1<<10, 300, within(0)), row("gloo", 1<<10, 5000, within(1e6)),
		row("gloo", 4<<10, 9000, within(5e5)), row("mpich", 1<<10, 70), row("nccl", 1<<10, 80, within(10))).Costs()
	for _, x := range []struct {
		who         string
		bytes       int64
		inStep      bool
		gap, answer int64
	}{
		{"gloo", 1 << 10, false, 0, 1000},
		{"gloo", 1 << 10, true, 0, 300},
		{"gloo", 1 << 10, true, 900, 300}, // as logarithms go it is as far from 1 ns as from 1 ms
		{"gloo", 1 << 10, true, 1100, 5000},
		{"gloo", 1 << 10, true, 2e6, 5000},
		{"gloo", 2 << 10, true, 3e6, 6708}, // between 5000 and 9000: their geometric mean
		{"gloo", 1 << 20, false, 7, 64000},
		{"mpich", 1 << 10, true, 5, 70},
		{"nccl", 1 << 10, false, 0, 80},
	} {
		e, ok := c.Estimate(tune.Query{Contender: tune.ParseContender(x.who), Op: comm.AllReduce, Bytes: x.bytes, Ranks: 4, InStep: x.inStep, Gap: x.gap})
		if !ok || e.Time != x.answer {
			t.Errorf("%s, %d bytes, in step %v, gap %d: %d ns, %v; want %d", x.who, x.bytes, x.inStep, x.gap, e.Time, ok, x.answer)
		}
	}
	if e, _ := c.Estimate(tune.Query{Contender: tune.Contender{Backend: "gloo"}, Op: comm.AllReduce, Bytes: 1 << 10, Ranks: 4}); math.Abs(e.Spread-0.01) > 1e-9 {
		t.Errorf("spread %v, want that of the row, 1 %%", e.Spread)
	}
}

// Steps and rows are different questions: neither makes crossings of the other.
func TestStepsAreQuestionsOfTheirOwn(t *testing.T) {
	within := func(r *tune.Row) { r.InStep, r.Gap = true, 5 }
	other := func(r *tune.Row) { r.InStep, r.Gap = true, 500 }
	x := table(t, row("a", 8, 100), row("b", 8, 200), row("a", 8, 900, within), row("b", 8, 300, within), row("b", 8, 500, other), row("b", 8, 100, other))
	list := tune.Compare(x, nil)
	if len(list) != 2 || list[0].InStep || !list[1].InStep || list[0].Places[0].Winner.Backend != "a" || list[1].Places[0].Winner.Backend != "b" {
		t.Fatalf("%+v", list)
	}
	if got := list[1].String(); got != "all_reduce, 4 ranks on 1 node, float, in a step" {
		t.Errorf("named %q", got)
	}
}

// Several groups at once are a measurement of their own; where there is none, that of
// one alone stands in and says so.
func TestStreams(t *testing.T) {
	two := func(r *tune.Row) { r.Streams = 2 }
	c := table(t, row("gloo", 1<<10, 1000), row("gloo", 1<<10, 1700, two), row("mpich", 1<<10, 900)).Costs()
	for _, x := range []struct {
		who     string
		streams int
		ns      int64
		warns   bool
	}{{"gloo", 0, 1000, false}, {"gloo", 1, 1000, false}, {"gloo", 2, 1700, false}, {"gloo", 3, 1000, true}, {"mpich", 2, 900, true}} {
		e, ok := c.Estimate(tune.Query{Contender: tune.Contender{Backend: x.who}, Op: comm.AllReduce, Bytes: 1 << 10, Ranks: 4, Streams: x.streams})
		if !ok || e.Time != x.ns || len(e.Warnings) > 0 != x.warns {
			t.Errorf("%s, %d at once: %d ns, %v; want %d", x.who, x.streams, e.Time, e.Warnings, x.ns)
		}
	}
}

// Groups on several machines are judged by what was measured on as many.
func TestNodes(t *testing.T) {
	on := func(nodes int) func(*tune.Row) { return func(r *tune.Row) { r.Nodes = nodes } }
	c := table(t, row("gloo", 1<<10, 100), row("gloo", 1<<10, 5000, on(2)), row("gloo", 1<<10, 9000, on(4)), row("mpich", 1<<10, 70, on(0))).Costs()
	for _, x := range []struct {
		who   string
		nodes int
		ns    int64
	}{{"gloo", 1, 100}, {"gloo", 2, 5000}, {"gloo", 4, 9000}, {"mpich", 2, 70}} {
		if e, ok := c.Estimate(tune.Query{Contender: tune.Contender{Backend: x.who}, Op: comm.AllReduce, Bytes: 1 << 10, Ranks: 4, Nodes: x.nodes}); !ok || e.Time != x.ns {
			t.Errorf("%s on %d machines: %d ns, %v; want %d", x.who, x.nodes, e.Time, ok, x.ns)
		}
	}
	if e, ok := c.Estimate(tune.Query{Contender: tune.Contender{Backend: "gloo"}, Op: comm.AllReduce, Bytes: 1 << 10, Ranks: 4, Nodes: 3}); ok {
		t.Errorf("on three machines, which were not measured: %d ns (%s)", e.Time, e.Words())
	}
}
