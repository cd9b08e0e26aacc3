package megatron

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mixdown/ingest/source"
)

// TestMegatronApp reproduces the sums of the MegatronApp trace that
// reference/ground_truth.md, 4.2, gives.
func TestMegatronApp(t *testing.T) {
	root := os.Getenv("MIXDOWN_CORPUS")
	if root == "" {
		t.Skip("MIXDOWN_CORPUS is not set: the real traces are not read")
	}
	files, err := source.Find([]string{filepath.Join(root, "megatronapp", "merged_trace.json.gz")}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := files[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := Read(f, files[0].Name, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Diagnostics.List(); len(d) > 0 || p.Truncated {
		t.Errorf("diagnostics %v, truncated %v", d, p.Truncated)
	}
	type key struct {
		run   string
		kind  Kind
		stage int
	}
	sums, counts := map[key]int64{}, map[key]int{}
	orders := map[key][]int{} // chunks in the order they run
	seen := map[string]int{}
	for i := range p.Spans {
		s := &p.Spans[i]
		if !s.Stage.Known || !s.Chunk.Known || !s.Microbatch.Known || s.Iteration != (Index{10, true}) || s.Kind == Other {
			t.Errorf("span %+v", s)
		}
		k := key{s.Run, s.Kind, s.Stage.N}
		sums[k] += s.Dur
		counts[k]++
		orders[k] = append(orders[k], s.Chunk.N)
		seen[fmt.Sprint(k, s.Chunk.N, s.Microbatch.N)]++
	}
	for _, want := range []struct {
		run    string
		kind   Kind
		stages [4]int64 // us
	}{
		{"1", Forward, [4]int64{254906, 181970, 151092, 272174}},
		{"1", Backward, [4]int64{226670, 216076, 257927, 369132}},
		{"0", Forward, [4]int64{113815, 106247, 106357, 222313}},
		{"0", Backward, [4]int64{222307, 215584, 220469, 314763}},
	} {
		for stage, us := range want.stages {
			k := key{want.run, want.kind, stage}
			if sums[k] != us*1000 || counts[k] != 32 {
				t.Errorf("run %s, %s, stage %d: %d spans of %d ns, want 32 of %d us", want.run, want.kind, stage, counts[k], sums[k], us)
			}
		}
	}
	// 8 micro-batches x 4 chunks, each once for each run, stage and kind.
	if len(seen) != 2*2*4*8*4 {
		t.Errorf("%d different spans, want 512", len(seen))
	}
	for what, n := range seen {
		if n != 1 {
			t.Errorf("%s: %d times", what, n)
		}
	}
	// Chunks come in groups of 8 micro-batches in run 1, of 4 in run 0.
	group := func(run string, stage int) int {
		order := orders[key{run, Forward, stage}]
		return slices.IndexFunc(order, func(c int) bool { return c != order[0] })
	}
	if g1, g0 := group("1", 0), group("0", 0); g1 != 8 || g0 != 4 {
		t.Errorf("groups of %d and %d, want 8 and 4", g1, g0)
	}
	checkMarks(t, p)
}

func checkMarks(t *testing.T, p *Pipeline) {
	t.Helper()
	first, last := p.Marks[0].TS, p.Marks[len(p.Marks)-1].TS
	if first != 0 || last != 970439_000 {
		t.Errorf("marks from %d to %d ns, want 0 to 970439 us", first, last)
	}
	ends := []int64{}
	names := map[string]int{}
	for _, m := range p.Marks {
		names[m.Name]++
		if m.Name == "iteration end" && m.Run == "1" {
			ends = append(ends, m.TS)
		}
	}
	if len(ends) != 4 || ends[0] != 970080_000 || ends[3] != 970439_000 {
		t.Errorf("ends of iterations in run 1: %d", ends)
	}
	if names["iteration begin"] != 8 || names["iteration end"] != 8 || names["reduce"] != 8 {
		t.Errorf("marks %v", names)
	}
	if runs := p.Runs(); len(runs) != 2 {
		t.Errorf("runs %v", runs)
	}
}
