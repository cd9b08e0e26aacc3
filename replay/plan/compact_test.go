package plan

import (
	"math/rand/v2"
	"testing"
)

// TestRunsEndWhenTheirKernelsWould: one or two spans end exactly when the last
// of the kernels they stand for would, however late the run may begin.
func TestRunsEndWhenTheirKernelsWould(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	two := 0
	for range 5000 {
		n := 1 + rng.IntN(12)
		dep := &item{stream: 2, end: rng.Int64N(300)} // what the first kernel waits for
		previous := rng.Int64N(200)                   // the kernel before the run
		launch := rng.Int64N(100)
		own := make([]int64, n)
		l := &line{stream: 1, items: []*item{{stream: 1, end: previous, launched: true}}}
		end := max(previous, dep.end)
		for k := range n {
			launch += rng.Int64N(60)
			gap, dur := rng.Int64N(5), rng.Int64N(50)
			own[k] = gap + dur
			end = max(end, launch)
			it := &item{stream: 1, launched: true, launch: launch, start: end + gap, end: end + gap + dur, position: k + 1, operation: -1, computes: k%3 > 0}
			if k == 0 {
				it.deps = []*item{dep}
			}
			end = it.end
			l.items = append(l.items, it)
		}
		d := &deviceRank{}
		run := d.makeRun(l, l.items[1:])
		var kernels, tail int64
		for k, it := range run.items {
			if it.computes {
				kernels += it.end - it.start
				if k >= run.critical {
					tail += it.end - it.start
				}
			}
		}
		if run.kernels != kernels || run.critical > 0 && run.tailKernels != tail {
			t.Fatalf("%d kernels compute %d, %d of them after %d, not %d and %d", n, run.kernels, run.tailKernels, run.critical, kernels, tail)
		}
		if run.critical > 0 {
			two++
		}
		for range 5 {
			depEnd, previousEnd := rng.Int64N(600), rng.Int64N(600) // as a replay may turn out
			want := max(depEnd, previousEnd)
			for k, it := range l.items[1:] {
				want = max(want, it.launch) + own[k]
			}
			got := max(depEnd, previousEnd, run.items[0].launch)
			if run.critical > 0 {
				got += run.total - run.tail
				got = max(got, run.items[run.critical].launch) + run.tail
			} else {
				got += run.total
			}
			if got != want {
				t.Fatalf("%d kernels: spans end at %d, kernels at %d (critical %d of total %d, tail %d)", n, got, want, run.critical, run.total, run.tail)
			}
		}
	}
	if two < 1000 {
		t.Errorf("only %d runs needed two spans: launches hardly mattered", two)
	}
}

// TestLaunchLatencyIsPaidOnce: kernels that the host launched well before they can
// run follow each other closely; else spans end no more than one latency late.
func TestLaunchLatencyIsPaidOnce(t *testing.T) {
	const latency = 4
	rng := rand.New(rand.NewPCG(11, 12))
	for range 5000 {
		n := 2 + rng.IntN(12)
		l := &line{stream: 1}
		launch, end := int64(100), int64(0)
		durs := make([]int64, n)
		for k := range n {
			durs[k] = 1 + rng.Int64N(12)
			start := max(end, launch+latency)
			end = start + durs[k]
			l.items = append(l.items, &item{stream: 1, launched: true, launch: launch, start: start, end: end, position: k, operation: -1})
			launch += 1 + rng.Int64N(20)
		}
		d := &deviceRank{latency: latency}
		run := d.makeRun(l, l.items)
		for _, held := range []int64{0, rng.Int64N(300), 1000} { // until when something holds up the first kernel
			want := held
			for k, it := range l.items {
				want = max(want, it.launch+latency) + durs[k]
			}
			got := max(held, run.items[0].launch)
			if run.critical > 0 {
				got += run.total - run.tail
				got = max(got, run.items[run.critical].launch) + run.tail
			} else {
				got += run.total
			}
			if got < want || got > want+2*latency {
				t.Fatalf("%d kernels, held up until %d: spans end at %d, kernels at %d", n, held, got, want)
			}
		}
	}
}
