package mix

import (
	"math/rand/v2"
	"testing"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// Sequence numbers in any order, with holes, negative and huge, hold what a map
// would.
func TestBySeq(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		got := bySeq{dense: make([][]int64, 3)}
		want := map[plan.MeetingKey]int64{}
		for range 300 {
			c := &planpb.Communication{Group: int32(rng.IntN(5) - 1), Seq: rng.Int64N(40)}
			switch rng.IntN(4) {
			case 0:
				c.Seq = rng.Int64N(5000)
			case 1:
				c.Seq = []int64{-1, 1 << 62, 5000, 1023, 1024, 2047, 2048}[rng.IntN(7)]
			}
			k := plan.CollectiveKey(c)
			if have := *got.at(c); have != want[k] {
				t.Fatalf("seed %d: %v holds %d, want %d", seed, k, have, want[k])
			}
			want[k] = max(want[k], rng.Int64N(100))
			*got.at(c) = want[k]
		}
	}
}
