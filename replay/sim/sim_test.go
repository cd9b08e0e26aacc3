package sim

import (
	"errors"
	"math/rand/v2"
	"testing"

	"mixdown/analyze/pipeline"
	"mixdown/replay/schedule"
	"mixdown/replay/sharding"
)

// specs are schedules of every kind, without their shapes.
var specs = []string{
	"gpipe", "1f1b", "eager-1f1b", "depth-first:loops=2", "breadth-first:loops=2", "breadth-first:loops=4,backward-order=lifo",
	"hybrid:loops=2,rounds=2", "zb-h1", "zb-h2", "zbv", "dualpipev", "dualpipe", "chimera", "bitpipe",
}

func order(t testing.TB, text string, ranks, microbatches int) schedule.Order {
	t.Helper()
	spec, err := schedule.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	o, err := spec.Fill(ranks, microbatches, 1).Order()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// uniform is costs that are the same for every stage, as package schedule has
// them.
func uniform(o schedule.Order, forward, input, weight, hop int64) *Costs {
	c := &Costs{stages: o.Stages(), microbatches: o.Microbatches(), hops: func(int, int, bool) Hop { return Hop{Latency: hop} }}
	for k, ns := range [4]int64{forward, input + weight, input, weight} {
		c.task[k] = make([]int64, c.stages*c.microbatches)
		for i := range c.task[k] {
			c.task[k][i] = ns
		}
	}
	return c
}

// Package schedule's evaluator is exact and written independently: with equal
// tasks and no gaps both say the same.
func TestPlayAgreesWithEvaluate(t *testing.T) {
	for _, text := range specs {
		for _, shape := range [][2]int{{2, 4}, {4, 8}, {4, 16}} {
			o := order(t, text, shape[0], shape[1])
			for _, ns := range [][4]int64{{1, 1, 1, 0}, {2, 3, 1, 0}, {10, 12, 8, 3}} {
				run, err := Play(o, uniform(o, ns[0], ns[1], ns[2], ns[3]), Options{})
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				costs := schedule.Costs{
					StageCosts: schedule.StageCosts{Forward: schedule.Int(ns[0]), Backward: schedule.Int(ns[1] + ns[2]), Weight: schedule.Int(ns[2])},
					Hop:        schedule.Int(ns[3]),
				}
				line, err := schedule.Evaluate(o, costs)
				if err != nil {
					t.Fatal(err)
				}
				if want, _ := line.Makespan().Int64(); run.Step != want || run.Makespan() != want {
					t.Errorf("%s, %d ranks, %d micro-batches, times %v: step %d, makespan %d, want %d", text, shape[0], shape[1], ns, run.Step, run.Makespan(), want)
				}
				for r := range o {
					for i := range o[r] {
						if want, _ := line.Start(r, i).Int64(); run.Moments[r][i].Start != want {
							t.Fatalf("%s: rank %d action %d (%s) starts at %d, want %d", text, r, i, o[r][i], run.Moments[r][i].Start, want)
						}
					}
				}
			}
		}
	}
}

// recorded is a pipeline as a trace would show an order that was played with
// random durations.
func recorded(t testing.TB, text string, ranks, microbatches int, jitter int64) *pipeline.Pipeline {
	t.Helper()
	o := order(t, text, ranks, microbatches)
	rng := rand.New(rand.NewPCG(1, 2))
	c := uniform(o, 1000, 900, 1100, 50)
	for k := range c.task {
		for i := range c.task[k] {
			c.task[k][i] += rng.Int64N(jitter + 1)
		}
	}
	c.gaps[Running] = make([]gapTable, ranks)
	for place := range c.gaps[Running] {
		for b := range c.gaps[Running][place] {
			for k := range c.gaps[Running][place][b] {
				c.gaps[Running][place][b][k] = [2]int64{7, 7}
			}
		}
	}
	c.Tail = 500
	run, err := Play(o, c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &pipeline.Pipeline{Loops: o.Loops(), Microbatches: microbatches, StagePlace: make([]int, o.Stages())}
	s := pipeline.Step{Name: "ProfilerStep#1"}
	for r, row := range o {
		p.Ranks = append(p.Ranks, r)
		s.Start, s.End = append(s.Start, 0), append(s.End, run.Step)
		var tasks []pipeline.Task
		for i, a := range row {
			p.StagePlace[a.Stage] = r
			tasks = append(tasks, pipeline.Task{
				Phase: pipeline.Phase(a.Kind), Stage: int(a.Stage), Microbatch: int(a.Microbatch),
				Start: run.Moments[r][i].Start, End: run.Moments[r][i].End, Arrived: pipeline.Unknown,
			})
		}
		s.Tasks = append(s.Tasks, tasks)
	}
	for from, row := range o {
		for i, a := range row {
			next := int(a.Stage) + 1
			if a.Kind != schedule.Forward {
				next = int(a.Stage) - 1
			}
			if a.Kind == schedule.Weight || next < 0 || next >= o.Stages() || p.StagePlace[next] == from {
				continue
			}
			sent := run.Moments[from][i].End
			phase := pipeline.Forward
			if a.Kind != schedule.Forward {
				phase = pipeline.Backward
			}
			s.Transfers = append(s.Transfers, pipeline.Transfer{
				Phase: phase, Stage: int(a.Stage), Microbatch: int(a.Microbatch), From: from, To: p.StagePlace[next],
				Sent: sent, Posted: sent, Done: sent + 50, Timed: true,
			})
		}
	}
	p.Steps = []pipeline.Step{s}
	return p
}

// A model of a recorded step plays it as it was.
func TestFidelityOfCleanRecording(t *testing.T) {
	for _, text := range []string{"1f1b", "gpipe", "depth-first:loops=2", "breadth-first:loops=4", "zb-h1", "zbv"} {
		m, err := Calibrate(recorded(t, text, 4, 8, 300), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, f, err := m.Baseline()
		if err != nil {
			t.Fatal(err)
		}
		// Gaps and the first task's are means in whole ns.
		if d := f.Simulated - f.Measured; d < -20 || d > 20 {
			t.Errorf("%s: simulated %d, measured %d", text, f.Simulated, f.Measured)
		}
	}
}

// What a trace of one order says of another one is what the other really takes.
func TestPredictionOfAnotherOrder(t *testing.T) {
	m, err := Calibrate(recorded(t, "1f1b", 4, 8, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"gpipe", "eager-1f1b", "1f1b"} {
		truth := recorded(t, text, 4, 8, 0)
		o := order(t, text, 4, 8)
		run, err := Play(o, m.Costs(o, Shape{}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := truth.Steps[0].End[0]; run.Step < want-20 || run.Step > want+20 {
			t.Errorf("%s: predicted %d, is %d", text, run.Step, want)
		}
	}
}

// Cutting stages keeps the total.
func TestStagesCutDifferently(t *testing.T) {
	m, err := Calibrate(recorded(t, "1f1b", 4, 8, 500), nil)
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	for _, ns := range m.task[schedule.Forward] {
		want += int64(ns)
	}
	for _, loops := range []string{"1", "2", "3", "4"} {
		o := order(t, "breadth-first:loops="+loops, 4, 8)
		c := m.Costs(o, Shape{})
		var total int64
		for _, ns := range c.task[schedule.Forward] {
			total += ns
		}
		if d := total - want; d < -200 || d > 200 {
			t.Errorf("loops=%s: all forwards take %d, recorded %d", loops, total, want)
		}
	}
	// 6 stages made of 4: the second takes a third of recorded 0 and of recorded 1.
	got := m.share(schedule.Forward, m.task[schedule.Forward], 1, 6, 0, nil)
	f := m.task[schedule.Forward]
	if want := f[0]/3 + f[m.Microbatches]/3; got < want-1 || got > want+1 {
		t.Errorf("second of 6 stages takes %v, want %v", got, want)
	}
}

// Where sends block, an order can stop that runs to its end where they don't.
func TestBlockingSendsInACycle(t *testing.T) {
	// Rank 0 runs all forwards before it asks for a gradient. Rank 1 does not go on
	// before its first gradient is taken, and so never asks for the third forward.
	o := schedule.Order{}
	if err := o.UnmarshalJSON([]byte(`[["0F0","0F1","0F2","0F3","0B0","0B1","0B2","0B3"],["1F0","1B0","1F1","1B1","1F2","1B2","1F3","1B3"]]`)); err != nil {
		t.Fatal(err)
	}
	c := uniform(o, 10, 10, 10, 1)
	if _, err := Play(o, c, Options{}); err != nil {
		t.Errorf("with sends that don't block: %v", err)
	}
	if _, err := Play(o, c, Options{Sends: Blocking}); !errors.Is(err, ErrBlocked) {
		t.Errorf("with blocking sends: %v, want ErrBlocked", err)
	}
}

func TestReductionsBesideTasks(t *testing.T) {
	o := schedule.Order{}
	if err := o.UnmarshalJSON([]byte(`[["0F0","1F0","1B0","1REDUCE_GRAD","0B0","0REDUCE_GRAD"]]`)); err != nil {
		t.Fatal(err)
	}
	c := uniform(o, 10, 10, 10, 0)
	c.Reduce = perStage{15, 15}
	run, err := Play(o, c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Tasks end at 10+10+20+20 = 60; the first reduction hides, the second does not.
	if run.Step != 75 {
		t.Errorf("step %d, want 75", run.Step)
	}
	c.Reduce = perStage{15, 30}
	if run, _ = Play(o, c, Options{}); run.Step != 85 {
		t.Errorf("a long first reduction: step %d, want 40+30+15", run.Step)
	}
}

func BenchmarkPlay64x512x8(b *testing.B) {
	o := order(b, "breadth-first:loops=8", 64, 512)
	c := uniform(o, 1000, 1000, 1000, 10)
	for b.Loop() {
		if _, err := Play(o, c, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestSearch(t *testing.T) {
	m, err := Calibrate(recorded(t, "1f1b", 4, 8, 100), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := m.Search(SearchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := m.Baseline()
	names := map[string]Candidate{}
	for i, c := range all {
		names[c.Schedule] = c
		if i > 0 && c.Run.Step < all[i-1].Run.Step {
			t.Errorf("%s is faster than what stands before it", c.Schedule)
		}
	}
	if c := names["1f1b:loops=1"]; c.Prediction == nil || c.Run.Step != base.Run.Step || c.Held != 1 {
		t.Errorf("1f1b itself: %+v", c)
	}
	for _, text := range []string{"gpipe:loops=1", "breadth-first:loops=2", "breadth-first:loops=4", "depth-first:loops=2", "zbv:loops=2", "chimera:loops=2"} {
		if names[text].Prediction == nil {
			t.Errorf("%s is missing of %d", text, len(all))
		}
	}
	if !all[0].Pareto {
		t.Error("the fastest is on the front")
	}
	small, err := m.Search(SearchOptions{MaxHeld: 1})
	if err != nil || len(small) == 0 || len(small) >= len(all) {
		t.Errorf("a limit leaves %d of %d: %v", len(small), len(all), err)
	}
	for _, c := range small {
		if c.Held > 1.0001 {
			t.Errorf("%s holds %.2f times what was recorded", c.Schedule, c.Held)
		}
	}
	// More micro-batches of the same batch: less bubble, the same work.
	more, err := m.Search(SearchOptions{Schedules: []string{"1f1b"}, Microbatches: []int{8, 32}})
	if err != nil || len(more) != 2 || more[0].Order.Microbatches() != 32 {
		t.Errorf("32 micro-batches should be faster than 8: %v", err)
	}
}

// With one reduction a chunk beside the tasks, breadth-first hides all but the
// last where its cover is long enough, and 1F1B none: the exposed reductions of
// the reference, section 1.1.
func TestExposedReductions(t *testing.T) {
	m, err := Calibrate(recorded(t, "1f1b", 4, 8, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := m.Baseline()
	if err != nil {
		t.Fatal(err)
	}
	m.SetReduction(1600)
	if after, err := m.PredictOrder("traced", m.order, Shape{}, before.Options); err != nil || after.Run.Step != before.Run.Step+1600 {
		t.Errorf("the recorded order reduces after its tasks: %v", err)
	}
	buffers := sharding.Options{}
	step := func(text string, v *sharding.Variant) int64 {
		spec, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := m.Candidate(m.Fill(spec), v, Shape{Buffers: buffers})
		if err != nil {
			t.Fatal(err)
		}
		return c.Run.Step
	}
	none, full := sharding.None, sharding.Full
	for _, c := range []struct {
		text   string
		hidden int64 // of 1600
	}{{"1f1b", 0}, {"breadth-first:loops=4", 1200}, {"breadth-first:loops=2", 800}} {
		if got := step(c.text, nil) - step(c.text, &none); got != c.hidden {
			t.Errorf("%s hides %d ns of the reduction, want %d", c.text, got, c.hidden)
		}
	}
	// With one buffer a stage's weights are gathered when the one before is done, 7
	// times; with two, while it runs.
	one := step("breadth-first:loops=4", &full)
	buffers = sharding.Options{WeightBuffers: 2}
	if two := step("breadth-first:loops=4", &full); one-two < 4*200 || one-two > 10*200 {
		t.Errorf("fully sharded with one buffer %d, with two %d", one, two)
	}
}
