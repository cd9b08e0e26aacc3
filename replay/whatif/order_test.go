package whatif

import (
	"errors"
	"math"
	"slices"
	"testing"

	"mixdown/analyze/pipeline"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

// Units of the pipeline below, ns.
const (
	forward  = 1000
	backward = 2000
)

// recorded is the model of a pipeline that ran GPipe, with messages that take no
// time and no gaps. A stage takes so many times forward and backward; layerShare is
// which part of it each of its layers takes, nil for none seen.
func recorded(t *testing.T, places, microbatches int, layerShare [][]float64, stage func(int) float64) *sim.Model {
	t.Helper()
	p := &pipeline.Pipeline{Loops: 1, Microbatches: microbatches}
	step := pipeline.Step{Comparable: true, Name: "step"}
	f := func(s int) int64 { return int64(forward * stage(s)) }
	b := func(s int) int64 { return int64(backward * stage(s)) }
	fEnd := make([][]int64, places)
	for s := range places {
		p.Ranks = append(p.Ranks, s)
		p.Index = append(p.Index, s)
		p.StagePlace = append(p.StagePlace, s)
		step.Tasks = append(step.Tasks, nil)
		at := int64(0)
		for mb := range microbatches {
			if s > 0 {
				at = max(at, fEnd[s-1][mb])
			}
			step.Tasks[s] = append(step.Tasks[s], pipeline.Task{Phase: pipeline.Forward, Stage: s, Microbatch: mb, Start: at, End: at + f(s), Arrived: pipeline.Unknown})
			at += f(s)
			fEnd[s] = append(fEnd[s], at)
		}
	}
	bEnd := make([][]int64, places)
	var end int64
	for s := places - 1; s >= 0; s-- {
		at := fEnd[s][microbatches-1]
		for mb := range microbatches {
			if s+1 < places {
				at = max(at, bEnd[s+1][mb])
			}
			step.Tasks[s] = append(step.Tasks[s], pipeline.Task{Phase: pipeline.Backward, Stage: s, Microbatch: mb, Start: at, End: at + b(s), Arrived: pipeline.Unknown})
			at += b(s)
			bEnd[s] = append(bEnd[s], at)
		}
		end = max(end, at)
	}
	for range places {
		step.Start = append(step.Start, 0)
		step.End = append(step.End, end)
	}
	p.Steps = []pipeline.Step{step}
	if layerShare != nil {
		p.Layers = &pipeline.Layers{Count: len(layerShare[0])}
		for k := range p.Layers.Share {
			p.Layers.Share[k] = layerShare
		}
	}
	m, err := sim.Calibrate(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func even(int) float64 { return 1 }

func orderOf(m *sim.Model) Order {
	o := Order{Model: m, Order: m.Recorded(), Name: schedule.Traced}
	for place := range m.Places {
		o.Ranks = append(o.Ranks, place)
	}
	return o
}

func suppose(t *testing.T, o Order, text string) (*OrderAnswer, error) {
	t.Helper()
	q, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return q.Order(o)
}

// TestOrder: GPipe of p places and m micro-batches takes (m + p - 1)(F + B).
func TestOrder(t *testing.T) {
	const p, m = 4, 8
	o := orderOf(recorded(t, p, m, nil, even))
	o.Replicas = 3
	for _, c := range []struct {
		text string
		want int64
		held float64 // micro-batches on the fullest place; NaN: not known
	}{
		{"latency=+0s", (m + p - 1) * (forward + backward), m},
		{"latency=+100ns", (m+p-1)*(forward+backward) + 2*(p-1)*100, m},
		// k slices: (mk + p - 1)(F + B)/k.
		{"slices=4", (4*m + p - 1) * (forward + backward) / 4, m},
		{"slices=1", (m + p - 1) * (forward + backward), m},
		{"recompute=1:0.25", (m + p - 1) * (2*forward + backward), m / 4.},
		{"recompute=0.5:0.5", (m + p - 1) * (forward*3/2 + backward), m / 2.},
		{"recompute", (m + p - 1) * (2*forward + backward), math.NaN()},
		// Each place takes F + B a micro-batch, and is handed one as often; the last begins
		// after p - 1 forwards.
		{"local-learning", (p-1)*forward + m*(forward+backward), 1},
		{"local-learning=0.5", (p-1)*forward*3/2 + m*(forward+backward)*3/2, 1},
	} {
		a, err := suppose(t, o, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if a.Run.Step != c.want {
			t.Errorf("%s takes %d, want %d", c.text, a.Run.Step, c.want)
		}
		if known := a.Held != nil; known == math.IsNaN(c.held) || known && math.Abs(*a.Held-c.held) > 1e-9 {
			t.Errorf("%s holds %v, want %v", c.text, a.Held, c.held)
		}
	}
}

// TestSlowPlace: of GPipe the slowest place paces each half: (p - 1) tasks of the
// others and m of its own, forward and backward.
func TestSlowPlace(t *testing.T) {
	const p, m = 4, 8
	o := orderOf(recorded(t, p, m, nil, even))
	want := int64((p - 1 + 2*m) * (forward + backward))
	for _, text := range []string{"slow=0:2", "slow=1:2", "slow=3:2", "lost=2:2"} {
		a, err := suppose(t, o, text)
		if err != nil || a.Run.Step != want {
			t.Errorf("%s: %v, %v, want %d", text, a, err, want)
		}
	}
	if _, err := suppose(t, o, "lost=2"); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("a single pipeline loses a rank: %v", err)
	}
	if _, err := suppose(t, o, "slow=9:2"); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("a rank that isn't there: %v", err)
	}
}

func TestRepartition(t *testing.T) {
	const m = 6
	// Stage 0 takes three times as long as stage 1, each in two layers of equal length:
	// layers of 3/2, 3/2, 1/2, 1/2. Cut after the first: 3/2 and 5/2.
	half := [][]float64{{0.5, 0.5}, {0.5, 0.5}}
	o := orderOf(recorded(t, 2, m, half, func(s int) float64 { return []float64{3, 1}[s] }))
	before, err := suppose(t, o, "latency=+0s")
	if err != nil {
		t.Fatal(err)
	}
	// Two places: the slow one paces, the other adds one task each way.
	if want := int64((3*m + 1) * (forward + backward)); before.Run.Step != want {
		t.Fatalf("before: %d, want %d", before.Run.Step, want)
	}
	a, err := suppose(t, o, "repartition")
	if err != nil {
		t.Fatal(err)
	}
	if want := int64((2.5*m + 1.5) * (forward + backward)); a.Run.Step != want {
		t.Errorf("after: %d, want %d", a.Run.Step, want)
	}
	// The second stage has 3 of 4 layers now: of m micro-batches, 3/2 recorded stages.
	if a.Held == nil || *a.Held != 1.5*m {
		t.Errorf("held %v, want %v", a.Held, 1.5*m)
	}
	if _, err := suppose(t, orderOf(recorded(t, 2, m, nil, even)), "repartition"); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("without layers: %v", err)
	}
}

// TestBalance compares with all partitions.
func TestBalance(t *testing.T) {
	for _, c := range []struct {
		times  []float64
		stages int
	}{
		{[]float64{1, 1, 1, 1}, 2}, {[]float64{5, 1, 1, 1, 1}, 3}, {[]float64{1, 2, 3, 4, 5, 6, 7}, 3}, {[]float64{7, 1, 1, 1, 1, 1, 7}, 4}, {[]float64{2, 2}, 2}, {[]float64{3}, 1},
	} {
		best := math.Inf(1)
		var all func(from, stages int, longest float64)
		all = func(from, stages int, longest float64) {
			if stages == 0 {
				if from == len(c.times) {
					best = min(best, longest)
				}
				return
			}
			sum := 0.0
			for end := from; end < len(c.times); end++ {
				sum += c.times[end]
				all(end+1, stages-1, max(longest, sum))
			}
		}
		all(0, c.stages, 0)
		cut, longest := Balance(c.times, c.stages)
		if longest != best || len(cut) != c.stages || cut[0] != 0 || !slices.IsSorted(cut) {
			t.Errorf("%v in %d: %v, %v, want %v", c.times, c.stages, cut, longest, best)
		}
	}
}

// TestOffload: copies that are quick enough cost nothing; slow ones pace the step.
func TestOffload(t *testing.T) {
	const p, m = 1, 4
	o := orderOf(recorded(t, p, m, nil, even))
	quick, err := suppose(t, o, "offload=1000000GB/s:1B")
	if err != nil || quick.Run.Step != m*(forward+backward) {
		t.Fatalf("%v, %v", quick, err)
	}
	// 4000 bytes at 1 a ns: forwards end at 1000 to 4000, what they keep has left at 5000,
	// 9000, 13000 and 17000. The backwards of 0 and 1 follow when the task before
	// begins: at 3000 nothing has left, so it stays; the second begins at 6000, the task
	// before it at 4000: stays too; and so on. Nothing is gained, nothing lost.
	slow, err := suppose(t, o, "offload=1GB/s:4000B")
	if err != nil || slow.Run.Step != m*(forward+backward) {
		t.Errorf("%v, %v", slow, err)
	}
	// 900 bytes: left at 1900, 2900, 3900, 4900. Backward 0, after the forward that
	// begins at 3000, is fetched from 3000 to 3900 and starts at 4000; backward 1 is
	// fetched from 4000 while it runs, and so on: no time lost, and 2 held at most: a
	// forward begins at 1000 while the one before it leaves until 1900.
	fits, err := suppose(t, o, "offload=1GB/s:900B")
	if err != nil || fits.Run.Step != m*(forward+backward) || fits.Held == nil || *fits.Held >= m {
		t.Errorf("%v, %v", fits, err)
	}
	// 1500 bytes: left at 2500, 4000, 5500, 7000. Backward 0 is fetched from 3000 to 4500,
	// 500 after it could have started; the others arrive while the one before runs.
	late, err := suppose(t, o, "offload=1GB/s:1500B")
	if err != nil || late.Run.Step != m*(forward+backward)+500 {
		t.Errorf("%v, %v", late, err)
	}
	if _, err := suppose(t, o, "offload=1GB/s"); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("of unknown size: %v", err)
	}
}

// TestFill: of 2 places and 1 micro-batch each place waits.
func TestFill(t *testing.T) {
	o := orderOf(recorded(t, 2, 1, nil, even))
	// Place 0 waits from 1000 to 4000, place 1 from 0 to 1000 and from 4000 to 6000.
	a, err := suppose(t, o, "fill=700ns")
	if err != nil {
		t.Fatal(err)
	}
	four, three := 4, 3
	want := []Fill{
		{Rank: 0, Idle: 3000, Gaps: 1, Longest: 3000, Fits: &four, Used: 2800},
		{Rank: 1, Idle: 3000, Gaps: 2, Longest: 2000, Fits: &three, Used: 2100},
	}
	for i, f := range a.Fills {
		if f.Fits == nil || *f.Fits != *want[i].Fits {
			t.Errorf("rank %d: fits %v, want %d", i, f.Fits, *want[i].Fits)
		}
		f.Fits, want[i].Fits = nil, nil
		if f != want[i] {
			t.Errorf("rank %d: %+v, want %+v", i, f, want[i])
		}
	}
	// With memory: rank 0 holds too much, of rank 1 nothing is known.
	ten := int64(10)
	o.Total = func(schedule.Order) ([]*int64, error) { return []*int64{&ten, nil}, nil }
	a, err = suppose(t, o, "fill=700ns:6B:15B")
	if err != nil || len(a.Fills) != 2 {
		t.Fatal(err)
	}
	if f := a.Fills[0]; f.Fits == nil || *f.Fits != 0 || f.Free == nil || *f.Free != 5 {
		t.Errorf("rank 0: %+v", f)
	}
	if f := a.Fills[1]; f.Fits != nil || f.Free != nil {
		t.Errorf("rank 1: %+v", f)
	}
}
