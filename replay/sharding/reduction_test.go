package sharding

import (
	"fmt"
	"slices"
	"testing"

	"mixdown/replay/schedule"
)

// overlapRows is the reference's table on when a gradient may be reduced: four
// ranks, eight micro-batches, the same work per rank in v chunks.
var overlapRows = []struct {
	name, spec string
	makespan   string
	peak       int
	ready      []string // of rank 0: stage and time
}{
	{"GPipe", "gpipe:ranks=4,microbatches=8,forward=4,backward=8", "132", 8, []string{"0:132"}},
	{"1F1B", "1f1b:ranks=4,microbatches=8,forward=4,backward=8", "132", 4, []string{"0:132"}},
	{"DFS v=2", "depth-first:ranks=4,microbatches=8,loops=2,forward=2,backward=4", "114", 11, []string{"4:98", "0:114"}},
	{"BFS v=2", "breadth-first:ranks=4,microbatches=8,loops=2,forward=2,backward=4", "114", 16, []string{"4:82", "0:114"}},
	{"DFS v=4", "depth-first:ranks=4,microbatches=8,loops=4", "105", 19, []string{"12:81", "8:89", "4:97", "0:105"}},
	{"BFS v=4", "breadth-first:ranks=4,microbatches=8,loops=4", "105", 32, []string{"12:57", "8:73", "4:89", "0:105"}},
}

func evaluate(t testing.TB, spec string) *schedule.Timeline {
	t.Helper()
	s, err := schedule.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	line, err := schedule.Evaluate(order(t, "%s", spec), s.Costs)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestReady(t *testing.T) {
	for _, c := range overlapRows {
		line := evaluate(t, c.spec)
		var ready []string
		for _, r := range Reductions(line, schedule.Int(1)) { // short enough to start at once
			if r.Rank == 0 {
				ready = append(ready, fmt.Sprintf("%d:%s", r.Stage, r.Start))
			}
		}
		if !slices.Equal(ready, c.ready) || line.Makespan().String() != c.makespan || line.PeakChunks()[0] != c.peak {
			t.Errorf("%s: makespan %s, peak %d, ready %v", c.name, line.Makespan(), line.PeakChunks()[0], ready)
		}
	}
}

// TestExposed: four chunks per rank, a reduction of R for each; 1F1B's single
// stage takes four times as long.
func TestExposed(t *testing.T) {
	for each, want := range map[int64][3]string{1: {"1", "1", "4"}, 8: {"8", "8", "32"}, 16: {"16", "40", "64"}} {
		exposed := func(row int, each int64) string {
			line := evaluate(t, overlapRows[row].spec)
			return Exposed(line, Reductions(line, schedule.Int(each))).String()
		}
		if got := [3]string{exposed(5, each), exposed(4, each), exposed(1, 4*each)}; got != want {
			t.Errorf("R=%d: breadth-first, depth-first, 1f1b expose %v, want %v", each, got, want)
		}
	}
}

// TestFullyHidden: all but the last reduction is hidden while R is at most m
// backwards in breadth-first, p backwards in depth-first.
func TestFullyHidden(t *testing.T) {
	for _, c := range []struct {
		spec  string
		limit int64
	}{{overlapRows[5].spec, 8 * 2}, {overlapRows[4].spec, 4 * 2}} {
		line := evaluate(t, c.spec)
		at := func(each schedule.Rational) schedule.Rational { return Exposed(line, Reductions(line, each)) }
		if r := schedule.Int(c.limit); !at(r).Equal(r) {
			t.Errorf("%s: R=%s exposes %s", c.spec, r, at(r))
		}
		if r := schedule.Int(c.limit).Add(schedule.Ratio(1, 3)); at(r).Cmp(r) <= 0 {
			t.Errorf("%s: R=%s exposes only %s", c.spec, r, at(r))
		}
	}
}

// TestSharded plays sharded orders with collectives that take time, four ranks,
// eight micro-batches, four chunks of 1 and 2.
func TestSharded(t *testing.T) {
	step := func(spec string, v Variant, opts Options, gather, reduce int64) schedule.Rational {
		t.Helper()
		o, _, err := Shard(order(t, "%s:ranks=4,microbatches=8,loops=4", spec), v, opts)
		if err != nil {
			t.Fatal(err)
		}
		c := schedule.DefaultCosts()
		c.Gather, c.Reduce = schedule.Int(gather), schedule.Int(reduce)
		line, err := schedule.Evaluate(o, c)
		if err != nil {
			t.Fatal(err)
		}
		return line.Makespan().Add(Exposed(line, line.Collectives()))
	}
	for _, c := range []struct {
		name, spec     string
		variant        Variant
		opts           Options
		gather, reduce int64
		want           string
	}{
		{"free collectives", "breadth-first", Full, Options{}, 0, 0, "105"},
		// Reductions alone, with a buffer for each: as beside the passes.
		{"DP0", "breadth-first", None, Options{}, 0, 16, "121"},
		{"DP0", "depth-first", None, Options{}, 0, 16, "145"},
		// One buffer: each of three reductions but the last stops the passes.
		{"one gradient buffer", "breadth-first", Partial, Options{}, 0, 16, "169"},
		{"two gradient buffers", "breadth-first", Partial, Options{GradientBuffers: 2}, 0, 16, "121"},
		// One buffer: each of seven gathers is waited for, on every rank.
		{"one weight buffer", "breadth-first", Full, Options{GradientBuffers: 4}, 1, 0, "112"},
		// Two: all but the first hide behind the passes of the chunk before.
		{"two weight buffers", "breadth-first", Full, Options{WeightBuffers: 2, GradientBuffers: 4}, 1, 0, "106"},
	} {
		if got := step(c.spec, c.variant, c.opts, c.gather, c.reduce).String(); got != c.want {
			t.Errorf("%s: %s takes %s, want %s", c.name, c.spec, got, c.want)
		}
	}
	// Depth-first gathers for nearly every pass: far slower with one buffer.
	bfs, dfs := step("breadth-first", Full, Options{}, 2, 2), step("depth-first", Full, Options{}, 2, 2)
	if bfs.String() != "127" || dfs.Cmp(bfs.Add(bfs.Quo(schedule.Int(4)))) < 0 {
		t.Errorf("fully sharded: breadth-first takes %s, depth-first %s", bfs, dfs)
	}
}
