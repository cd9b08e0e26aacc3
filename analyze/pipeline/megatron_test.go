package pipeline

import (
	"math"
	"slices"
	"strings"
	"testing"

	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/megatron"
	"mixdown/ingest/source"
)

// TestMegatronApp: p = 4, v = 4, m = 8 in two runs, depth-first and breadth-first;
// of the second, the last rank alternates in its last chunk, and
// reference/pipeline_schedules.md, 4.2, has its span and bubble.
func TestMegatronApp(t *testing.T) {
	files, err := source.Find([]string{kinetotest.Corpus(t, "megatronapp", "merged_trace.json.gz")}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := files[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read, err := megatron.Read(f, files[0].Name, megatron.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res := FromMegatron(read)
	if len(res.Pipelines) != 2 || len(res.Diagnostics.List()) > 0 {
		t.Fatalf("%d pipelines, diagnostics %v", len(res.Pipelines), res.Diagnostics.List())
	}
	for _, p := range res.Pipelines {
		s := &p.Steps[0]
		if p.Loops != 4 || p.Microbatches != 8 || p.Stages() != 16 || len(p.Steps) != 1 || s.Number != 10 || !s.Complete {
			t.Errorf("%s: loops %d, micro-batches %d, steps %d", p.Evidence, p.Loops, p.Microbatches, len(p.Steps))
		}
	}
	if got, want := res.Pipelines[0].Steps[0].Compact(1), "1F0..1F3 5F0..5F3 9F0..9F3 13F0..13F3 (1F4 13B0)..(1F7 13B3) (5F4 9B0)..(5F7 9B3) "+
		"(9F4 5B0)..(9F7 5B3) (13F4 1B0)..(13F7 1B3) 13B4..13B7 9B4..9B7 5B4..5B7 1B4..1B7"; got != want {
		t.Errorf("first run, place 1:\n got %s\nwant %s", got, want)
	}
	second := &res.Pipelines[1].Steps[0]
	for place := range res.Pipelines[1].Ranks {
		if got, want := second.Text(place), breadthFirst(place, place == 3); !slices.Equal(got, want) {
			t.Errorf("second run, place %d:\n got %v\nwant %v", place, got, want)
		}
	}
	b := second.Bubbles()
	if share, ok := b.Share(); b.Makespan != 933_770_000 || !ok || math.Abs(share-.483) > 5e-4 {
		t.Errorf("makespan %d, bubble %v", b.Makespan, share)
	}
}

func breadthFirst(place int, alternate bool) []string {
	var list []string
	add := func(phase Phase, chunk, mb int) {
		list = append(list, (&Task{Phase: phase, Stage: 4*chunk + place, Microbatch: mb}).String())
	}
	for chunk := range 4 {
		for mb := range 8 {
			add(Forward, chunk, mb)
			if alternate && chunk == 3 {
				add(Backward, chunk, mb)
			}
		}
	}
	for chunk := 3; chunk >= 0; chunk-- {
		for mb := range 8 {
			if !alternate || chunk < 3 {
				add(Backward, chunk, mb)
			}
		}
	}
	return list
}

// TestMegatronOdd: spans without stage or micro-batch, and numbers that no job
// has, are counted and left out.
func TestMegatronOdd(t *testing.T) {
	text := `[{"ph":"X","name":"forward","pid":0,"tid":1,"ts":1,"dur":2,"args":{"microbatch":0,"pp_rank":0}},
	{"ph":"X","name":"forward","pid":1,"tid":1,"ts":4,"dur":2,"args":{"microbatch":0,"pp_rank":1}},
	{"ph":"X","name":"forward","pid":1,"tid":1,"ts":7,"dur":2,"args":{"pp_rank":1}},
	{"ph":"X","name":"forward","pid":1,"tid":1,"ts":9,"dur":2,"args":{"microbatch":99999999,"pp_rank":1}}]`
	read, err := megatron.Read(strings.NewReader(text), "odd", megatron.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res := FromMegatron(read)
	if got := codes(res); !slices.Equal(got, []string{CodeUnnumbered}) || res.Diagnostics.List()[0].Count != 2 {
		t.Errorf("diagnostics %v", res.Diagnostics.List())
	}
	if len(res.Pipelines) != 1 || text0(res, 1) != "1F0" {
		t.Errorf("%d pipelines", len(res.Pipelines))
	}
}

func text0(res *Result, place int) string {
	return strings.Join(res.Pipelines[0].Steps[0].Text(place), " ")
}
