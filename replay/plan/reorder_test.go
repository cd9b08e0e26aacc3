package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/pipeline"
	"mixdown/ingest/comm"
	"mixdown/ingest/trace"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/schedule"
	"mixdown/replay/sim"
)

// traced is a pipeline as the command line has it.
type traced struct {
	run   *trace.Run
	match *collective.Matching
	opts  plan.Options
	pipes []*pipeline.Pipeline
}

func loadPipeline(t *testing.T, set string) traced {
	t.Helper()
	run, match := load(t, "../../testdata/"+set)
	return findPipeline(t, run, match)
}

func findPipeline(t *testing.T, run *trace.Run, match *collective.Matching) traced {
	t.Helper()
	clocks := align.Estimate(run, match)
	align.Apply(run, clocks)
	align.UpdateArrivals(run, match)
	found, err := pipeline.Find(run, match, pipeline.Options{Clocks: clocks})
	if err != nil || len(found.Pipelines) == 0 {
		t.Fatalf("%d pipelines: %v", len(found.Pipelines), err)
	}
	name := found.Pipelines[0].Steps[0].Name
	return traced{run, match, plan.Options{Step: name, Clocks: clocks}, found.Pipelines}
}

// reordering predicts a schedule from the first step.
func (p traced) reordering(t *testing.T, text string, early bool) (plan.Reordering, *sim.Prediction) {
	t.Helper()
	spec, err := schedule.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	to := plan.Reordering{Pipelines: p.pipes, EarlyReductions: early}
	var first *sim.Prediction
	for _, pipe := range p.pipes {
		m, err := sim.Calibrate(pipe, []int{0})
		if err != nil {
			t.Fatal(err)
		}
		played, err := m.Predict(spec, sim.Shape{}, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = played
		}
		to.Order, to.Spans = played.Order, append(to.Spans, played.Run.Spans)
	}
	return to, first
}

// end is one side of a transfer.
type end struct {
	group    int32
	from, to int32
	match    int64
}

// playAll runs the programs of all ranks against each other: a transfer and a
// collective take no time once all its sides are there. It returns when the
// last task ends, and fails if some can't.
func playAll(t *testing.T, w *planpb.Workload) int64 {
	t.Helper()
	type task struct{ rank, id int }
	started := map[task]int64{} // communication that was reached
	ends := map[task]int64{}
	sides := map[string][]task{}
	want := map[string]int{}
	keys := func(rank int32, c *planpb.Communication) []string {
		if len(c.Transfers) == 0 {
			return []string{fmt.Sprint("collective ", c.Group, " ", c.Seq)}
		}
		var list []string
		for _, x := range c.Transfers {
			e := end{c.Group, x.Peer, rank, x.Match}
			if x.Send {
				e = end{c.Group, rank, x.Peer, x.Match}
			}
			list = append(list, fmt.Sprint(e))
		}
		return list
	}
	for r, p := range w.Programs {
		for _, tk := range p.Tasks {
			if c := tk.GetCommunication(); c != nil {
				for _, k := range keys(p.Rank, c) {
					sides[k] = append(sides[k], task{r, int(tk.Id)})
					want[k] = 2
					if len(c.Transfers) == 0 {
						want[k] = len(w.Groups[c.Group].Ranks)
					}
				}
			}
		}
	}
	for k, list := range sides {
		if len(list) != want[k] {
			t.Fatalf("%s has %d of %d sides", k, len(list), want[k])
		}
	}
	var last int64
	total, done := 0, -1
	for done != len(ends) {
		done = len(ends)
		total = 0
		for r, p := range w.Programs {
			stream := map[int32]int64{}
			blocked := map[int32]bool{}
			for _, tk := range p.Tasks {
				total++
				at, ok := stream[tk.Stream], !blocked[tk.Stream]
				for _, d := range tk.Deps {
					e, there := ends[task{r, int(d)}]
					at, ok = max(at, e), ok && there
				}
				if !ok {
					blocked[tk.Stream] = true
					continue
				}
				me := task{r, int(tk.Id)}
				if c := tk.GetCommunication(); c != nil {
					started[me] = at
					for _, k := range keys(p.Rank, c) {
						for _, side := range sides[k] {
							s, there := started[side]
							at, ok = max(at, s), ok && there
						}
					}
				}
				if !ok {
					blocked[tk.Stream] = true
					continue
				}
				at += tk.GetSpan().GetDurationNs()
				ends[me], stream[tk.Stream] = at, at
				last = max(last, at)
			}
		}
	}
	if len(ends) < total {
		t.Fatalf("%d of %d tasks never end", total-len(ends), total)
	}
	return last
}

func TestReorder(t *testing.T) {
	p := loadPipeline(t, "pipeline_1f1b_4rank")
	for _, text := range []string{"1f1b", "gpipe", "breadth-first:loops=2", "breadth-first:loops=4,backward-order=lifo", "depth-first:loops=2", "zb-h1", "zbv", "chimera"} {
		to, predicted := p.reordering(t, text, false)
		w, diags, err := plan.Reorder(p.run, p.match, p.opts, to)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, d := range diags.List() {
			if d.Code != "communication-not-replayed" {
				t.Errorf("%s: %s", text, d)
			}
		}
		sends, collectives := 0, 0
		for r, program := range w.Programs {
			var spans int64
			for _, task := range program.Tasks {
				c := task.GetCommunication()
				switch {
				case c == nil:
					spans += task.GetSpan().GetDurationNs()
				case c.Op == planpb.Op_OP_SEND:
					sends++
				case c.Op != planpb.Op_OP_RECV:
					collectives++
				}
			}
			var tasks int64
			for _, ns := range to.Spans[0][r] {
				tasks += ns
			}
			if spans < tasks {
				t.Errorf("%s: rank %d works %d ns, its tasks alone are %d", text, r, spans, tasks)
			}
		}
		if sends != predicted.Messages {
			t.Errorf("%s: %d messages, want %d", text, sends, predicted.Messages)
		}
		if collectives != len(w.Programs) {
			t.Errorf("%s: %d collectives, want one all_reduce on each rank", text, collectives)
		}
		// Without hops the step is shorter than predicted, by a few of them.
		step := playAll(t, w)
		if step > predicted.Run.Step*101/100 || step < predicted.Run.Step*93/100 {
			t.Errorf("%s: takes %d ns, predicted %d", text, step, predicted.Run.Step)
		}
	}
}

// withGroups loads a run of two pipelines and tells it what its Gloo traces don't:
// which group an operation belongs to, and so who is whose peer.
func withGroups(t *testing.T, set string) traced {
	t.Helper()
	run, _ := load(t, "../../testdata/"+set)
	for _, rank := range run.Ranks {
		r := rank.Rank
		pair, replica := []int{r % 2, r%2 + 2}, []int{r / 2 * 2, r/2*2 + 1}
		rank.Groups = []comm.Group{
			{Name: fmt.Sprint("pp", r%2), Ranks: pair, Size: 2}, {Name: fmt.Sprint("dp", r/2), Ranks: replica, Size: 2},
			{Name: "world", Ranks: []int{0, 1, 2, 3}, Size: 4},
		}
		for i := range rank.Operations {
			op := &rank.Operations[i]
			switch {
			case op.Op.IsP2P():
				op.Group = 0
				op.Transfers = []comm.Transfer{{Send: op.Op == comm.Send, Peer: r ^ 2, Count: max(op.In, op.Out)}}
			case op.In > 1:
				op.Group = 1
			default:
				op.Group = 2
			}
		}
	}
	return findPipeline(t, run, collective.Match(run))
}

// A gradient that is reduced early goes in parts, in the same order on all.
func TestReorderEarlyReductions(t *testing.T) {
	p := withGroups(t, "pipeline_sched_p2dp2_1f1b")
	if len(p.pipes) != 2 {
		t.Fatalf("%d pipelines, want 2 replicas", len(p.pipes))
	}
	count := func(early bool) (int, int64) {
		to, _ := p.reordering(t, "breadth-first:loops=2", early)
		w, _, err := plan.Reorder(p.run, p.match, p.opts, to)
		if err != nil {
			t.Fatal(err)
		}
		playAll(t, w)
		var n int
		var elements int64
		for _, program := range w.Programs {
			for _, task := range program.Tasks {
				if c := task.GetCommunication(); c != nil && c.Op == planpb.Op_OP_ALL_REDUCE && c.InCount > 1 {
					n++
					elements += c.InCount
				}
			}
		}
		return n, elements
	}
	late, all := count(false)
	early, parts := count(true)
	if early != 2*4 || parts != all || late == 0 {
		t.Errorf("%d reductions of %d elements, early %d of %d: want one for each of 2 chunks on 4 ranks, of the same size together", late, all, early, parts)
	}
}

func TestReorderRefuses(t *testing.T) {
	p := loadPipeline(t, "pipeline_1f1b_4rank")
	to, _ := p.reordering(t, "gpipe", false)
	short := to
	short.Order = slices.Clone(to.Order)[:2]
	if _, _, err := plan.Reorder(p.run, p.match, p.opts, short); !errors.Is(err, plan.ErrReorder) {
		t.Errorf("an order for fewer ranks: %v", err)
	}
	none := to
	none.Pipelines, none.Spans = nil, nil
	if _, _, err := plan.Reorder(p.run, p.match, p.opts, none); !errors.Is(err, plan.ErrReorder) {
		t.Errorf("ranks outside of pipelines: %v", err)
	}
}

// TestReorderWithoutWhatIsLeftOut: what ranks waited for operations that are left out is
// no part of another order, in which they come at other times. In these sets every rank
// ends its step in an all_reduce whose group is not known.
func TestReorderWithoutWhatIsLeftOut(t *testing.T) {
	for _, set := range []string{"pipeline_sched_p4_1f1b", "pipeline_sched_p2_1f1b"} {
		p := loadPipeline(t, set)
		for _, text := range []string{"breadth-first:loops=2", "gpipe", "1f1b"} {
			to, predicted := p.reordering(t, text, false)
			w, _, err := plan.Reorder(p.run, p.match, p.opts, to)
			if err != nil {
				t.Fatal(err)
			}
			// Without hops the step is shorter than predicted, by a few of them.
			if step := playAll(t, w); step > predicted.Run.Step*101/100 || step < predicted.Run.Step*93/100 {
				t.Errorf("%s, %s: takes %d ns, predicted %d", set, text, step, predicted.Run.Step)
			}
		}
		kept := p.opts
		kept.Simulate = true
		w, _, err := plan.Build(p.run, p.match, kept)
		if err != nil {
			t.Fatal(err)
		}
		if w.Dependencies.FixedWaitNs == 0 {
			t.Errorf("%s: no rank waits for what is left out: this set shows nothing", set)
		}
	}
}
