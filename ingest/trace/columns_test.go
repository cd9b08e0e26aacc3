package trace

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestAppendRows: many at once are the same as one by one.
func TestAppendRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var one, many Events
	for range 200 {
		rows := make([]Row, rng.IntN(30))
		for i := range rows {
			rows[i] = Row{
				Name: NameID(rng.Uint32()), Category: Category(rng.IntN(9)), Thread: ThreadID(rng.IntN(9)), TS: rng.Int64(), Dur: rng.Int64(),
				Offset: rng.Int64(), Correlation: rng.Int64(), Stream: rng.Int64(), Device: rng.Int32(), Phase: Phase(rng.IntN(5)),
			}
			one.Append(rows[i])
		}
		if rng.IntN(20) == 0 {
			many.Grow(many.Len() + rng.IntN(400))
		}
		many.AppendRows(rows)
	}
	if !reflect.DeepEqual(one, many) {
		t.Error("the columns differ")
	}
}

// TestLaunches: numbers close to each other and far apart join alike.
func TestLaunches(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, spread := range []int64{50, 1 << 50} {
		rank := &Rank{Threads: []Thread{{PID: "1"}, {PID: "1"}, {PID: "2"}}}
		first, several := map[int64]int{}, map[int64]bool{}
		for i := range 100 {
			c := rng.Int64N(50) * (spread / 50) * (1 - 2*rng.Int64N(2))
			thread := ThreadID(rng.IntN(3))
			rank.Events.Append(Row{Category: Runtime, Thread: thread, Correlation: c})
			if f, ok := first[c]; !ok {
				first[c] = i
			} else if rank.Threads[rank.Events.Thread[f]].PID != rank.Threads[thread].PID {
				several[c] = true
			}
		}
		rank.Events.Append(Row{Category: Kernel, Correlation: 7})
		rank.Events.Append(Row{Category: Runtime, Correlation: NoID})
		l, _ := JoinLaunches(rank)
		for c := range first {
			if i, ok := l.Of(c); ok == several[c] || ok && i != first[c] {
				t.Errorf("spread %d, correlation %d: event %d, %v; first is %d, several processes: %v", spread, c, i, ok, first[c], several[c])
			}
		}
		for _, c := range []int64{NoID, spread + 1, -spread - 1} {
			if i, ok := l.Of(c); ok {
				t.Errorf("spread %d: correlation %d of nothing joins event %d", spread, c, i)
			}
		}
	}
}
