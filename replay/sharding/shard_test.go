package sharding

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mixdown/replay/schedule"
)

func order(t testing.TB, spec string, args ...any) schedule.Order {
	t.Helper()
	s, err := schedule.Parse(fmt.Sprintf(spec, args...))
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Order()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func counts(t testing.TB, o schedule.Order, v Variant, opts Options) Counts {
	t.Helper()
	_, c, err := Shard(o, v, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func same(n, ranks int) []int { return slices.Repeat([]int{n}, ranks) }

// TestFullTable is the reference's table of collectives per step with one buffer
// of each kind.
func TestFullTable(t *testing.T) {
	for _, c := range []struct {
		p, m, v                int
		bfsGathers, bfsReduce  int
		dfsGathers             []int
		dfsReduce              int
		hybridGathers, hybridR int
	}{
		{4, 8, 4, 7, 4, []int{31, 39, 33, 25}, 8, 13, 8},
		{4, 16, 4, 7, 4, []int{75, 99, 85, 61}, 16, 25, 16},
		{8, 32, 4, 7, 4, []int{123, 147, 171, 195, 181, 157, 133, 109}, 16, 25, 16},
		{4, 8, 2, 3, 2, []int{11, 19, 13, 5}, 4, 5, 4},
	} {
		for _, row := range []struct {
			spec    string
			gathers []int
			reduce  int
		}{
			{"breadth-first", same(c.bfsGathers, c.p), c.bfsReduce},
			{"breadth-first:backward-order=lifo", same(c.bfsGathers, c.p), c.bfsReduce},
			{"depth-first", c.dfsGathers, c.dfsReduce},
			{fmt.Sprintf("hybrid:rounds=%d", c.m/c.p), same(c.hybridGathers, c.p), c.hybridR},
		} {
			name, own, _ := strings.Cut(row.spec, ":")
			if own != "" {
				own = "," + own
			}
			o := order(t, "%s:ranks=%d,microbatches=%d,loops=%d%s", name, c.p, c.m, c.v, own)
			got := counts(t, o, Full, Options{})
			if !slices.Equal(got.Gathers, row.gathers) || !slices.Equal(got.Reductions, same(row.reduce, c.p)) {
				t.Errorf("p%d m%d v%d %s: %v gathers, %v reductions; want %v, %d", c.p, c.m, c.v, row.spec, got.Gathers, got.Reductions, row.gathers, row.reduce)
			}
		}
	}
}

// TestClosedForms: breadth-first needs 2v-1 gathers and v reductions for any
// number of micro-batches, depth-first v·m/p reductions.
func TestClosedForms(t *testing.T) {
	for p := 1; p <= 5; p++ {
		for v := 1; v <= 4; v++ {
			for m := 1; m <= 12; m++ {
				got := counts(t, order(t, "breadth-first:ranks=%d,microbatches=%d,loops=%d", p, m, v), Full, Options{})
				if !slices.Equal(got.Gathers, same(2*v-1, p)) || !slices.Equal(got.Reductions, same(v, p)) {
					t.Errorf("breadth-first p%d m%d v%d: %+v", p, m, v, got)
				}
				if v == 1 || m%p != 0 {
					continue
				}
				got = counts(t, order(t, "depth-first:ranks=%d,microbatches=%d,loops=%d", p, m, v), Full, Options{})
				if !slices.Equal(got.Reductions, same(v*m/p, p)) {
					t.Errorf("depth-first p%d m%d v%d: %+v", p, m, v, got)
				}
			}
		}
	}
}

func TestVariantsAndBuffers(t *testing.T) {
	bfs := order(t, "breadth-first:ranks=4,microbatches=8,loops=4")
	dfs := order(t, "depth-first:ranks=4,microbatches=8,loops=4")
	for _, c := range []struct {
		name                string
		order               schedule.Order
		variant             Variant
		opts                Options
		gathers, reductions int // of rank 0
		bytes               int64
	}{
		{"BFS none", bfs, None, Options{}, 0, 4, 32},
		{"DFS none", dfs, None, Options{}, 0, 4, 32},
		{"BFS partial", bfs, Partial, Options{}, 4, 4, 32},
		{"DFS partial", dfs, Partial, Options{}, 4, 8, 48},
		{"DFS partial, a buffer for each", dfs, Partial, Options{GradientBuffers: 4}, 4, 4, 32},
		{"BFS full", bfs, Full, Options{}, 7, 4, 44},
		{"BFS full, two buffers", bfs, Full, Options{WeightBuffers: 2, GradientBuffers: 2}, 6, 4, 40},
		{"BFS full, a buffer for each", bfs, Full, Options{WeightBuffers: 9, GradientBuffers: 9}, 4, 4, 32},
		{"1F1B full", order(t, "1f1b:ranks=4,microbatches=8"), Full, Options{}, 1, 1, 8},
		{"inference full", order(t, "inference:ranks=4,microbatches=8,loops=2"), Full, Options{}, 2, 0, 8},
	} {
		got := counts(t, c.order, c.variant, c.opts)
		if got.Gathers[0] != c.gathers || got.Reductions[0] != c.reductions || got.Bytes(0, 1) != c.bytes {
			t.Errorf("%s: %d gathers, %d reductions, %d bytes", c.name, got.Gathers[0], got.Reductions[0], got.Bytes(0, 1))
		}
	}
}

func TestShardPlaces(t *testing.T) {
	for _, c := range []struct {
		spec    string
		variant Variant
		opts    Options
		want    string // rank 0
	}{
		{"gpipe:ranks=2,microbatches=2", None, Options{}, "0F0 0F1 0B0 0B1 0REDUCE_GRAD"},
		{"breadth-first:ranks=1,microbatches=2,loops=2", Full, Options{},
			"0UNSHARD 0F0 0F1 0RESHARD 1UNSHARD 1F0 1F1 1B0 1B1 1REDUCE_GRAD 1RESHARD 0UNSHARD 1WAIT_REDUCE_GRAD 0B0 0B1 0REDUCE_GRAD 0RESHARD"},
		{"breadth-first:ranks=1,microbatches=1,loops=3", Full, Options{WeightBuffers: 2},
			"0UNSHARD 1UNSHARD 0F0 0RESHARD 2UNSHARD 1F0 2F0 2B0 2REDUCE_GRAD 2RESHARD 0UNSHARD 2WAIT_REDUCE_GRAD 1B0 1REDUCE_GRAD 1RESHARD 1WAIT_REDUCE_GRAD 0B0 0REDUCE_GRAD 0RESHARD"},
		{"breadth-first:ranks=1,microbatches=2,loops=2", Partial, Options{},
			"0UNSHARD 1UNSHARD 0F0 0F1 1F0 1F1 1B0 1B1 1REDUCE_GRAD 1WAIT_REDUCE_GRAD 0B0 0B1 0REDUCE_GRAD"},
		{"zb-h1:ranks=1,microbatches=2", None, Options{}, "0F0 0I0 0W0 0F1 0I1 0W1 0REDUCE_GRAD"},
		{"dualpipev:ranks=1,microbatches=2", Full, Options{WeightBuffers: 2, GradientBuffers: 2},
			"0UNSHARD 1UNSHARD 0F0 1F0 0F1 1B0 (1F1;0B0)OVERLAP_F_B 1B1 1REDUCE_GRAD 1RESHARD 0I1 0W1 0REDUCE_GRAD 0RESHARD"},
	} {
		o, _, err := Shard(order(t, "%s", c.spec), c.variant, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(o.Cells(0), " "); got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.spec, c.variant, got, c.want)
		}
		if _, err := schedule.Evaluate(o, schedule.DefaultCosts()); err != nil {
			t.Errorf("%s %s: %v", c.spec, c.variant, err)
		}
	}
}

func TestShardErrors(t *testing.T) {
	o := order(t, "dualpipev:ranks=2,microbatches=4")
	if _, _, err := Shard(o, Full, Options{}); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "share one of 1 weight buffers: use 2 or more") {
		t.Errorf("got %v", err)
	}
	if _, _, err := Shard(o, Full, Options{WeightBuffers: -1}); !errors.Is(err, ErrOptions) {
		t.Errorf("got %v", err)
	}
	if _, _, err := Shard(schedule.Order{}, Full, Options{}); !errors.Is(err, schedule.ErrOrder) {
		t.Errorf("got %v", err)
	}
	again, _, err := Shard(o, None, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Shard(again, None, Options{}); !errors.Is(err, schedule.ErrOrder) || !strings.Contains(err.Error(), "REDUCE_GRAD already") {
		t.Errorf("got %v", err)
	}
	for _, v := range Variants() {
		if got, err := Parse(v.String()); err != nil || got != v {
			t.Errorf("%s: %v, %v", v, got, err)
		}
	}
	if _, err := Parse("zero3"); !errors.Is(err, ErrOptions) {
		t.Errorf("got %v", err)
	}
}
