package overlap_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/analyze/overlap"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/trace"
)

// painted marks every ns of a short time line: an oracle that knows nothing of
// merging intervals.
func painted(list []overlap.Interval) (p [64]bool) {
	for _, iv := range list {
		for t := max(iv.Start, 0); t < min(iv.End, 64); t++ {
			p[t] = true
		}
	}
	return p
}

func TestSetsAgainstPaintedTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() []overlap.Interval {
		var list []overlap.Interval
		for range rng.IntN(8) {
			start := rng.Int64N(56)
			list = append(list, overlap.Interval{Start: start, End: start + rng.Int64N(8)})
		}
		return list
	}
	for range 5000 {
		a, b := random(), random()
		pa, pb := painted(a), painted(b)
		sa, sb := overlap.Union(a), overlap.Union(b)
		var onlyA, either int64
		for i := range pa {
			if pa[i] && !pb[i] {
				onlyA++
			}
			if pa[i] || pb[i] {
				either++
			}
		}
		if painted(sa) != pa {
			t.Fatalf("union %v paints %v", sa, a)
		}
		for i := 1; i < len(sa); i++ {
			if sa[i].Start <= sa[i-1].End {
				t.Fatalf("union %v: intervals touch", sa)
			}
		}
		if got := sa.Subtract(sb).Length(); got != onlyA {
			t.Fatalf("%v less %v: %d ns, want %d", sa, sb, got, onlyA)
		}
		if got := sa.Plus(sb).Length(); got != either {
			t.Fatalf("%v plus %v: %d ns, want %d", sa, sb, got, either)
		}
	}
}

// TestDLRM holds all ranks of a real run against a recalculation in Python,
// with mixdown's own rule that sets are memory.
func TestDLRM(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	want := []overlap.Times{
		{Span: 13009, Compute: 1034, Comm: 5798, Exposed: 5537, Memory: 19, Idle: 6419},
		{Span: 18749, Compute: 1246, Comm: 11336, Exposed: 11056, Memory: 19, Idle: 6428},
		{Span: 11350, Compute: 1068, Comm: 3492, Exposed: 3217, Memory: 19, Idle: 7046},
		{Span: 18853, Compute: 1240, Comm: 9774, Exposed: 9450, Memory: 28, Idle: 8145},
		{Span: 16589, Compute: 1126, Comm: 6587, Exposed: 6550, Memory: 26, Idle: 8887},
		{Span: 16392, Compute: 1041, Comm: 6251, Exposed: 6211, Memory: 19, Idle: 9121},
		{Span: 11410, Compute: 1051, Comm: 3558, Exposed: 3289, Memory: 19, Idle: 7051},
		{Span: 10967, Compute: 1059, Comm: 1746, Exposed: 1580, Memory: 20, Idle: 8308},
	}
	for _, rank := range kinetotest.Load(t, filepath.Join(corpus, "param/dlrm_8rank/kineto")).Ranks {
		w := want[rank.Rank]
		w.Hidden = w.Comm - w.Exposed
		for _, us := range []*int64{&w.Span, &w.Compute, &w.Comm, &w.Exposed, &w.Hidden, &w.Memory, &w.Idle} {
			*us *= 1000
		}
		if diff := cmp.Diff(w, overlap.Measure(rank).Times()); diff != "" {
			t.Errorf("rank %d (-want +got):\n%s", rank.Rank, diff)
		}
	}
}

// TestExactNanoseconds: sub-microsecond times of a real file, recalculated with
// decimals.
func TestExactNanoseconds(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	got := overlap.Measure(kinetotest.Load(t, filepath.Join(corpus, "hta/nccl_parser_config/nccl_data.json.gz")).Ranks[0]).Times()
	if busy := got.Span - got.Idle; got.Span != 660551005 || got.Comm != 46876493 || busy != 157500014 {
		t.Errorf("span %d, comm %d, busy %d; want 660551005, 46876493, 157500014", got.Span, got.Comm, busy)
	}
}

// TestInvariants: what must hold for any trace.
func TestInvariants(t *testing.T) {
	for _, set := range []string{"dp_moe_4rank", "pipeline_1f1b_4rank"} {
		for _, rank := range kinetotest.Load(t, filepath.Join("../../testdata", set)).Ranks {
			a := overlap.Measure(rank)
			got := a.Times()
			if !rank.CPUOnly {
				t.Errorf("%s rank %d: taken for a run on a device", set, rank.Rank)
			}
			if got.Hidden+got.Exposed != got.Comm || got.Exposed > got.Comm || got.Idle < 0 || got.Compute+got.Comm+got.Idle < got.Span {
				t.Errorf("%s rank %d: impossible decomposition %+v", set, rank.Rank, got)
			}
			if rest := a.Compute.Length() - a.Compute.Subtract(a.Waiting).Length(); rest != 0 {
				t.Errorf("%s rank %d: %d ns of computation while waiting", set, rank.Rank, rest)
			}
		}
	}
}

// TestIdleIsExplained: the parts add up to the idle time, and a gap before a
// kernel is blamed on what the host did in it.
func TestIdleIsExplained(t *testing.T) {
	rank := &trace.Rank{Names: trace.NewStrings(), Threads: []trace.Thread{{}}}
	add := func(c trace.Category, name string, start, end, correlation int64) {
		rank.Events.Append(trace.Row{Category: c, Name: rank.Names.Intern([]byte(name)), TS: start, Dur: end - start, Correlation: correlation, Stream: 7})
	}
	add(trace.Kernel, "a", 0, 10, trace.NoID)
	add(trace.Runtime, "cudaLaunchKernel", 25, 26, 1)
	add(trace.Kernel, "late launch", 30, 40, 1) // 20 ns idle: launched 15 after the device ran dry
	add(trace.Runtime, "cudaStreamSynchronize", 35, 47, trace.NoID)
	add(trace.Runtime, "cudaLaunchKernel", 55, 56, 2)
	add(trace.Kernel, "after a sync", 60, 70, 2) // 20 idle: 7 until the host was free, then 13
	add(trace.Runtime, "cudaLaunchKernel", 60, 61, 3)
	add(trace.Kernel, "waits for an event", 90, 100, 3) // 20 idle although launched
	a := overlap.Measure(rank)
	if got, want := a.Idle(rank), (overlap.Idle{Launch: 20 + 13, Sync: 7, Other: 20}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if idle := a.Idle(rank); idle.Launch+idle.Sync+idle.Other != a.Times().Idle {
		t.Errorf("parts %+v of %d ns", idle, a.Times().Idle)
	}
}
