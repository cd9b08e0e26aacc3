package align_test
import ("testing";"math/rand/v2";"mixdown/analyze/align";"mixdown/ingest/synthetic")
func TestTmp(t *testing.T){
	for _, scale := range []int64{60_000, 300_000, 5_000_000} {
	var mx int64; bad,flags,un,tot:=0,0,0,0
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 5))
		o := synthetic.Options{Ranks: 2 + rng.IntN(14), Steps: 2 + rng.IntN(25), TensorParallel: 1 + rng.IntN(4), KernelNs: 20_000 + rng.Int64N(1_000_000), Noise: 0.3 * rng.Float64() + 0.02, DropShare: 0.04 * rng.Float64(), Seed: seed, Host: rng.IntN(3) == 0, Generation: synthetic.Generation(rng.IntN(2))}
		o.Clocks = make([]synthetic.Clock, o.Ranks)
		for i := range o.Clocks { o.Clocks[i] = synthetic.Clock{Offset: rng.Int64N(2*scale)-scale, DriftPPB: rng.Int64N(100001)-50000} }
		run, m, truth := load(t, o)
		res := align.Estimate(run, m)
		w := worst(res, truth); tot++
		if w > mx { mx = w }
		if w > 5000 { bad++ ; t.Log(seed, w, res.Reason, len(res.Impossible), len(m.Collectives), o.Host, o.KernelNs)}
		if !res.Applied { un++ }
		wrong,_ := wrongMatches(run, m, truth)
		if len(wrong) != len(res.Impossible) { flags++ ; t.Log("flags", seed, len(wrong), len(res.Impossible))}
	}
	t.Logf("scale %d: max %d bad %d flags %d untouched %d of %d", scale, mx, bad, flags, un, tot)
	}
}
