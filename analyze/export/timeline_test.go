package export

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"mixdown/analyze/overlap"
)

// TestLanesNest: whatever overlaps, the slices of a lane lie inside each other or
// apart, and none is lost.
func TestLanesNest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var list []slice
		for range r.IntN(40) {
			start := r.Int64N(50)
			list = append(list, slice{start: start, end: start + r.Int64N(20)})
		}
		slices.SortStableFunc(list, func(p, q slice) int { return cmp.Or(cmp.Compare(p.start, q.start), cmp.Compare(q.end, p.end)) })
		n := 0
		for _, lane := range lanes(list) {
			n += len(lane)
			for i, a := range lane {
				for _, b := range lane[i+1:] {
					if b.start < a.start || b.start < a.end && b.end > a.end {
						t.Fatalf("%v and %v are on one lane", a, b)
					}
				}
			}
		}
		if n != len(list) {
			t.Fatalf("%d slices on lanes, of %d", n, len(list))
		}
	}
}

func TestExposedShares(t *testing.T) {
	const ms = 1_000_000
	list := exposedShares(overlap.Activity{
		Start: 0, End: 500 * ms,
		Comm:    overlap.Set{{Start: 0, End: 2*ms + ms/2}, {Start: 499 * ms, End: 500 * ms}},
		Compute: overlap.Set{{Start: ms, End: 2 * ms}},
	})
	if len(list) != shareWindows+1 {
		t.Fatalf("%d windows", len(list))
	}
	for i, want := range map[int]float64{0: 100, 1: 0, 2: 50, 3: 0, 498: 0, 499: 100, 500: 0} {
		if list[i].percent != want || list[i].ts != int64(i)*ms {
			t.Errorf("window %d: %v, want %v %%", i, list[i], want)
		}
	}
}

func TestSizeClass(t *testing.T) {
	for n, want := range map[int64]string{
		0: "<1KiB", 1023: "<1KiB", 1024: ">=1KiB <4KiB", 4095: ">=1KiB <4KiB", 4096: ">=4KiB <16KiB",
		1 << 20: ">=1MiB <4MiB", 1<<30 - 1: ">=256MiB <1GiB", 1 << 30: ">=1GiB <4GiB", 1 << 62: ">=1PiB <4PiB",
	} {
		if got := sizeClass(n); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}

func TestMicrosAreExact(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0.000", 1: "0.001", 999: "0.999", -1: "-0.001", -1500: "-1.500", 1796027856500455779: "1796027856500455.779",
		-1 << 63: "-9223372036854775.808",
	} {
		if got := string(appendMicros(nil, ns)); got != want {
			t.Errorf("%d ns: %s, want %s", ns, got, want)
		}
	}
}
