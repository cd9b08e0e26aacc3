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
		ns, ok, how := c.Cost(x.backend, x.op, x.bytes, x.ranks, 1)
		if !ok || ns != x.ns || how != x.how {
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
		if ns, ok, how := c.Cost(x.backend, x.op, 8, 4, 1); ok {
			t.Errorf("%s %s: %d ns (%s), want no answer", x.backend, x.op, ns, how)
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
