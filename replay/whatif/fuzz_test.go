package whatif

import (
	"errors"
	"testing"
)

// FuzzQuestion: whatever is written, it is refused or answered with a time that can
// be: never a panic, never less than nothing.
func FuzzQuestion(f *testing.F) {
	for _, k := range Known() {
		f.Add(k.Example)
	}
	f.Add("latency=+9000000h,slow=0:1000000")
	f.Add("bandwidth=0.000000001x,compress=1x:1B/s")
	f.Add("free=*,overlap=none,buckets=1B")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if q.OfOrder() {
			o := orderOf(recorded(t, 2, 3, [][]float64{{0.5, 0.5}, {0.25, 0.75}}, even))
			o.Replicas = 2
			a, err := q.Order(o)
			if err == nil && a.Run.Step < 0 {
				t.Fatalf("%q takes %d", text, a.Run.Step)
			}
		}
		for _, s := range []Step{twoRanks(), beside(), reductions()} {
			if !q.OfStep() {
				break
			}
			a, err := q.Step(s)
			if err == nil && a.Run.Step < 0 {
				t.Fatalf("%q takes %d", text, a.Run.Step)
			}
		}
	})
}
