package critical

import (
	"math/rand/v2"
	"testing"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// random makes a graph of n nodes whose edges may be circular where nodes end
// together.
func random(rng *rand.Rand, n int) *Graph {
	g := &Graph{run: &trace.Run{Ranks: []*trace.Rank{{}}}, diags: &diagnostic.Set{}}
	g.add(NodeOrigin, -1, 0, 0)
	for range n {
		end := rng.Int64N(8)
		g.add(NodeHost, 0, end, end)
	}
	for range rng.IntN(3 * n) {
		g.link(int32(rng.IntN(n+1)), int32(1+rng.IntN(n)), 1)
	}
	g.finish()
	return g
}

// longest is the end of a node by trying every path to it.
func longest(g *Graph, i int, weight []int64) int64 {
	best, any := int64(0), false
	for d, lag := range g.Deps(i) {
		if at := longest(g, d, weight) + lag; !any || at > best {
			best, any = at, true
		}
	}
	return best + weight[i]
}

func TestAgainstAllPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	circles := 0
	for range 3000 {
		g := random(rng, 1+rng.IntN(8))
		circles += g.backward
		seen := map[int32]bool{}
		for _, n := range g.order {
			for d := range g.Deps(int(n)) {
				if !seen[int32(d)] {
					t.Fatalf("node %d is placed before %d, on which it depends", n, d)
				}
			}
			seen[n] = true
		}
		if len(seen) != g.Len() {
			t.Fatalf("%d of %d nodes placed", len(seen), g.Len())
		}
		weight := make([]int64, g.Len())
		for i := range weight {
			weight[i] = g.own[i]
			if g.own[i] < 0 || longest(g, i, g.own) != g.end[i] {
				t.Fatalf("node %d: own %d, ends at %d, recorded %d", i, g.own[i], longest(g, i, g.own), g.end[i])
			}
			if rng.IntN(2) == 0 {
				weight[i] = 0
			}
		}
		end := g.Evaluate(func(n int) int64 { return weight[n] })
		for i := range end {
			if end[i] != longest(g, i, weight) || end[i] > g.end[i] {
				t.Fatalf("node %d ends at %d, by all paths at %d, recorded %d", i, end[i], longest(g, i, weight), g.end[i])
			}
		}
		var sum int64
		for _, s := range g.walk() {
			sum += s.end - s.start
		}
		if sum != g.end[last(g.end)] {
			t.Fatalf("path of %d, step of %d", sum, g.end[last(g.end)])
		}
	}
	if circles == 0 {
		t.Error("no graph had a circle: the test does not reach what breaks them")
	}
}

// TestDeepChain: no recursion.
func TestDeepChain(t *testing.T) {
	g := &Graph{diags: &diagnostic.Set{}}
	g.add(NodeOrigin, -1, 0, 0)
	const depth = 1 << 17
	for i := range int64(depth) {
		n := g.add(NodeHost, 0, i, i+1)
		g.link(n-1, n, 0)
	}
	g.finish()
	if path := g.walk(); len(path) != depth+1 || g.end[last(g.end)] != depth {
		t.Errorf("path of %d nodes", len(path))
	}
}
