package main

import (
	"math"
	"testing"

	"mixdown/replay/auto"
	"mixdown/replay/mix"
)

// The job that is measured is one that can run, and the answer that the benchmark
// asks for is that of a small one, whose step is played.
func TestJob(t *testing.T) {
	w := job(16, 500)
	p, err := mix.Decide(w, mix.Of(mix.Rule{Max: math.MaxInt64, Backend: "gloo"}), "gloo", "gloo")
	if err != nil {
		t.Fatal(err)
	}
	if err := mix.Check(p); err != nil {
		t.Error(err)
	}
	table, err := costs(16)
	if err != nil {
		t.Fatal(err)
	}
	c, err := auto.Choose(w, table.Costs(), auto.Options{Backends: []string{"gloo", "mpich", "openmpi"}, Exclusive: []string{"mpich", "openmpi"}, Traced: "gloo"})
	if err != nil || !c.Played {
		t.Fatalf("%v, played %v", err, c.Played)
	}
	if err := check(c.Mix); err != nil {
		t.Error(err)
	}
}
