package memory

import (
	"testing"

	"mixdown/replay/schedule"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 3<<30 + 1<<27: "3.1 GiB", 100 << 30: "100 GiB", 1<<40 - 1: "1.0 TiB", 5 << 50: "5.0 PiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	before := of(t, "1f1b:ranks=4,microbatches=8", Model{})
	after := of(t, "gpipe:ranks=4,microbatches=8", Model{Activation: pointer(400 << 20)})
	want := "rank 0: 8 chunks held (+100 %), 3.1 GiB activations; rank 1: 8 chunks held (+167 %), 3.1 GiB activations; " +
		"rank 2: 8 chunks held (+300 %), 3.1 GiB activations; rank 3: 8 chunks held (+700 %), 3.1 GiB activations"
	if got := Line(after, before); got != want {
		t.Errorf("got %s", got)
	}
	dp := 8
	known := of(t, "gpipe:ranks=4,microbatches=8", Model{Activation: pointer(1 << 30), Parameters: pointer(4 << 30), DataParallel: &dp})
	if got, want := Line(known, nil), "ranks 0-3: 8 chunks held, 8.0 GiB activations, 2.0 GiB weights, 2.0 GiB gradients, 12.0 GiB optimizer, 24.0 GiB in all"; got != want {
		t.Errorf("got %s", got)
	}
	if got := Line(before, nil); got != "rank 0: 4 chunks held; rank 1: 3 chunks held; rank 2: 2 chunks held; rank 3: 1 chunk held" {
		t.Errorf("got %s", got)
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		before, after string
		model         Model
		want          string
	}{
		{"1f1b:ranks=4,microbatches=8", "gpipe:ranks=4,microbatches=8", Model{},
			"as fast, 2.0x activation memory (4 -> 8 chunks on rank 0)"},
		{"gpipe:ranks=4,microbatches=8", "1f1b:ranks=4,microbatches=8", Model{},
			"as fast, 0.50x activation memory (8 -> 4 chunks on rank 0)"},
		{"depth-first:ranks=4,microbatches=8,loops=4", "breadth-first:ranks=4,microbatches=8,loops=4", Model{},
			"as fast, 1.7x activation memory (19 -> 32 chunks on rank 0)"},
		{"1f1b:ranks=4,microbatches=8,forward=4,backward=8", "breadth-first:ranks=4,microbatches=8,loops=4", Model{},
			"1.26x faster, 2.0x activation memory (4 -> 32 chunks, each 1/4 as large, on rank 0)"},
		{"breadth-first:ranks=4,microbatches=8,loops=2", "hybrid:ranks=4,microbatches=8,loops=2,rounds=2", Model{},
			"1.16x slower, 0.50x activation memory (16 -> 8 chunks on rank 0)"},
		// Two directions: each rank holds two stages of a model cut in four.
		{"1f1b:ranks=4,microbatches=8", "dualpipe:ranks=4,microbatches=8", Model{},
			"1.27x faster, 1.3x activation memory (4 -> 5 chunks on rank 0)"},
		{"1f1b:ranks=4,microbatches=8", "zb-h1:ranks=4,microbatches=8", Model{},
			"1.22x faster, same activation memory (4 -> 4 chunks on rank 0)"},
		{"1f1b:ranks=4,microbatches=8", "gpipe:ranks=4,microbatches=8", Model{Activation: pointer(1 << 30), Parameters: pointer(4 << 30)},
			"as fast, 2.0x activation memory (4 -> 8 chunks on rank 0), 20.0 GiB -> 24.0 GiB in all"},
	} {
		outcome := func(spec string) Outcome {
			o, time := order(t, spec)
			ranks, err := Of(o, c.model)
			if err != nil {
				t.Fatal(err)
			}
			return Outcome{Time: time, Stages: o.Stages(), Ranks: ranks}
		}
		if got := Compare(outcome(c.before), outcome(c.after)); got != c.want {
			t.Errorf("%s to %s:\n got %s\nwant %s", c.before, c.after, got, c.want)
		}
	}
	if got := Compare(Outcome{}, Outcome{Time: schedule.Int(3)}); got != "speed not known" {
		t.Errorf("got %s", got)
	}
}
