package html

import (
	"math/rand/v2"
	"slices"
	"testing"

	"mixdown/analyze/track"
)

// TestMergedSlicesCover: whatever is merged, every event lies within a slice of
// its kind, slices of a lane don't overlap, and none is lost.
func TestMergedSlicesCover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var list []slice
		at := int64(0)
		for range 300 {
			at += rng.Int64N(400)
			dur := rng.Int64N(1 << rng.IntN(14))
			list = append(list, slice{start: at, end: at + dur, kind: Kind(rng.IntN(3)), comm: -1, count: 1})
			at += dur
		}
		whole := slices.Clone(list)
		for ns := int64(128); ns < 1<<20; ns *= 2 {
			list = merge(list, ns)
		}
		events := 0
		for i, s := range list {
			events += s.count
			if i > 0 && list[i-1].end > s.start {
				t.Fatalf("slice %d starts at %d, before %d", i, s.start, list[i-1].end)
			}
		}
		if events != len(whole) {
			t.Fatalf("%d of %d events are left", events, len(whole))
		}
		for _, w := range whole {
			if !slices.ContainsFunc(list, func(s slice) bool { return s.kind == w.kind && s.start <= w.start && w.end <= s.end }) {
				t.Fatalf("%+v lies in no slice of its kind", w)
			}
		}
		if len(list) > len(whole) {
			t.Fatalf("%d slices of %d", len(list), len(whole))
		}
	}
}

// TestDealtSlicesDoNotOverlap: rows are filled from the top, communication always
// has one.
func TestDealtSlicesDoNotOverlap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var list []slice
		for range 100 {
			at := rng.Int64N(1000)
			s := slice{start: at, end: at + rng.Int64N(60), kind: track.CPU, comm: -1, count: 1}
			if rng.IntN(10) == 0 {
				s.kind = track.Communication
			}
			list = append(list, s)
		}
		rows, left := deal(list, 2)
		dealt := 0
		for _, row := range rows {
			dealt += len(row)
			for i := 1; i < len(row); i++ {
				if row[i-1].end > row[i].start {
					t.Fatalf("%+v and %+v overlap", row[i-1], row[i])
				}
			}
		}
		if dealt+left != len(list) {
			t.Fatalf("%d dealt, %d left of %d", dealt, left, len(list))
		}
	}
}

// TestUnbroken: figures stay with their units, words don't.
func TestUnbroken(t *testing.T) {
	if got := unbroken("8 % of 19.90 ms, 24 KiB at 2.18 GB/s; 3 steps, 2 bytes"); got != "8\u00a0% of 19.90\u00a0ms, 24\u00a0KiB at 2.18\u00a0GB/s; 3 steps, 2 bytes" {
		t.Errorf("%q", got)
	}
}
