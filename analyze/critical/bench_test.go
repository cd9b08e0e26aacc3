package critical_test

import (
	"math/rand/v2"
	"testing"

	"mixdown/analyze/collective"
	"mixdown/analyze/critical"
	"mixdown/ingest/trace"
)

// large makes a run of a model's step on many ranks: every layer launches
// kernels, and every few layers reduce.
func large(ranks, events int) *trace.Run {
	world := make([]int, ranks)
	for i := range world {
		world[i] = i
	}
	run := &trace.Run{}
	rng := rand.New(rand.NewPCG(1, 2))
	const perLayer = 8
	layers := events / (3*perLayer + 4)
	end := make([]int64, layers)
	parts := make([]*made, ranks)
	free := make([]int64, ranks)
	for r := range parts {
		parts[r] = newRank(r, int64(layers)*100+10, world...)
	}
	for l := range layers {
		at := int64(l) * 100
		for r, m := range parts {
			for k := range int64(perLayer) {
				m.event(trace.CPUOp, "aten::linear", 0, at+10*k, 9, trace.NoStream)
				c := m.launch(at + 10*k + 2)
				start := max(free[r]+1, at+10*k+8)
				free[r] = start + 20 + rng.Int64N(20)
				m.kernel(c, 7, start, free[r])
			}
			end[l] = max(end[l], free[r]+60)
		}
		for r, m := range parts {
			m.reduce(at+90, 20, free[r]+2, max(end[l], free[r]+40))
			if l%10 == 9 {
				m.Waits = append(m.Waits, trace.Wait{TS: (at + 92) * us})
				free[r] = end[l] + 2
			}
		}
	}
	for _, m := range parts {
		run.Ranks = append(run.Ranks, m.Rank)
	}
	return run
}

func TestLarge(t *testing.T) {
	run := large(8, 2000)
	g, _, err := critical.Build(run, collective.Match(run), critical.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := g.Analyze()
	check(t, g, r)
	if !r.ClocksAligned || r.Free.GainNS == 0 {
		t.Errorf("%+v", r.Bound)
	}
}

// BenchmarkAnalyze: 256 ranks with 20,000 events each.
func BenchmarkAnalyze(b *testing.B) {
	run := large(256, 20_000)
	match := collective.Match(run)
	events := 0
	for _, r := range run.Ranks {
		events += r.Events.Len()
	}
	b.ReportAllocs()
	for b.Loop() {
		g, _, err := critical.Build(run, match, critical.Options{})
		if err != nil {
			b.Fatal(err)
		}
		r := g.Analyze()
		b.ReportMetric(float64(g.Len()), "nodes")
		b.ReportMetric(float64(len(r.Path)), "segments")
	}
	b.ReportMetric(float64(events), "events")
}
