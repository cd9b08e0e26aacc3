package whatif

import (
	"errors"
	"testing"

	"mixdown/replay/fold"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

// work is a span on the stream.
func work(stream int32, ns int64, deps ...int32) *planpb.Task {
	return &planpb.Task{Stream: stream, Deps: deps, Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: planpb.Span_HOST, DurationNs: ns}}}
}

// reduction is an all_reduce of float32 on stream 1.
func reduction(seq, count int64, deps ...int32) *planpb.Task {
	return &planpb.Task{Stream: 1, Deps: deps, Origin: &planpb.Origin{Offset: 1000 + seq}, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{
		Seq: seq, Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: count, OutCount: count,
	}}}
}

func programOf(rank int32, tasks ...*planpb.Task) *planpb.Program {
	for i, t := range tasks {
		t.Id = int32(i)
	}
	return &planpb.Program{Rank: rank, Streams: []*planpb.Stream{{Name: "host"}, {Name: "group 0"}}, Tasks: tasks}
}

// twoRanks: 100 and 200 of work, an all_reduce of 4000 bytes that takes 40, and 50
// of work that needs it. The step takes 200 + 40 + 50.
func twoRanks() Step {
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Name: "0", Description: "dp", Ranks: []int32{0, 1}}}}
	for r, ns := range []int64{100, 200} {
		w.Programs = append(w.Programs, programOf(int32(r), work(0, ns), reduction(0, 1000, 0), work(0, 50, 1)))
	}
	return Step{Workload: w, Costs: costing(map[int64]int64{1000: 40})}
}

// costing says what an all_reduce of so many elements takes.
func costing(ns map[int64]int64) func(*planpb.Workload) sim.CommunicationCost {
	return func(*planpb.Workload) sim.CommunicationCost {
		return func(m sim.Meeting) int64 { return ns[m.Communication.InCount] }
	}
}

func ask(t *testing.T, s Step, text string) (int64, error) {
	t.Helper()
	q, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	a, err := q.Step(s)
	if err != nil {
		return 0, err
	}
	return a.Run.Step, nil
}

// TestStep: answers worked out by hand.
func TestStep(t *testing.T) {
	half := twoRanks()
	half.Fixed = func(sim.Meeting) (float64, bool) { return 0.5, true }
	machines := twoRanks()
	machines.Machines = plan.NewMachines(machines.Workload, 2)
	together := twoRanks()
	together.Machines = plan.NewMachines(together.Workload, 1)
	for _, c := range []struct {
		name string
		step Step
		text string
		want int64
	}{
		{"as it ran", twoRanks(), "latency=+0s", 290},
		{"free", twoRanks(), "free=all_reduce", 250},
		{"free by group", twoRanks(), "free=*@group:dp", 250},
		{"twice the bandwidth", twoRanks(), "bandwidth=x2", 270},
		{"half of the time is latency: 40 (1/2 + 1/4)", half, "bandwidth=x2", 280},
		{"links between machines", machines, "bandwidth=inter:0.5x", 330},
		{"longer", twoRanks(), "latency=+10ns", 300},
		{"no less than nothing", twoRanks(), "latency=-1ms", 250},
		{"both: 40/2 + 10", twoRanks(), "bandwidth=x2,latency=+10ns", 280},
		{"in any order", twoRanks(), "latency=+10ns,bandwidth=x2", 280},
		{"twice, as x4: 40 (1/2 + 1/8)", half, "bandwidth=x2,bandwidth=x2", 275},
		{"free, whatever else", twoRanks(), "free=*,latency=+10ns,bandwidth=x2", 250},
		{"a slow link paces the collective", twoRanks(), "link=0-1:0.5x", 330},
		{"rank 0 has 300, then 150", twoRanks(), "slow=0:3", 490},
		{"rank 1 is brought down to 100", twoRanks(), "straggler=heal", 190},
		{"40/2 on the wire, 4000 bytes at 8 a ns in and out", twoRanks(), "compress=2x:8GB/s", 200 + 20 + 500 + 500 + 50},
		{"the decoder is twice as quick", twoRanks(), "compress=all_reduce:2x:8GB/s:16GB/s", 200 + 20 + 500 + 250 + 50},
		{"nothing waits: rank 1 computes 250, the reduction ends at 240", twoRanks(), "overlap=full", 250},
	} {
		got, err := ask(t, c.step, c.text)
		if err != nil || got != c.want {
			t.Errorf("%s: %s takes %d (%v), want %d", c.name, c.text, got, err, c.want)
		}
	}
	for _, c := range []struct {
		step Step
		text string
	}{
		{twoRanks(), "free=all_gather"},
		{twoRanks(), "free=*@group:tp"},
		{twoRanks(), "bandwidth=inter:x2"}, // nobody said how many machines
		{together, "bandwidth=inter:x2"},
		{twoRanks(), "link=0-1:x2"}, // others may be as slow as it was
		{twoRanks(), "link=0-7:0.5x"},
		{twoRanks(), "slow=2:2"},
		{twoRanks(), "overlap=none"}, // it waits already
		{twoRanks(), "buckets=1GiB"},
		{twoRanks(), "repartition"},
	} {
		if got, err := ask(t, c.step, c.text); !errors.Is(err, ErrNotApplicable) {
			t.Errorf("%s: %d, %v, want a refusal", c.text, got, err)
		}
	}
}

// fourRanks on two machines: each works 100, then reduces over the tensor-parallel group
// within its machine, 40, and over replicas across machines, 60. The step takes 200.
func fourRanks() Step {
	w := &planpb.Workload{WorldSize: 4, Groups: []*planpb.Group{
		{Name: "tp0", Ranks: []int32{0, 1}}, {Name: "dp0", Ranks: []int32{0, 2}}, {Name: "tp1", Ranks: []int32{2, 3}}, {Name: "dp1", Ranks: []int32{1, 3}},
	}}
	for r := range int32(4) {
		within, across := reduction(0, 1000, 0), reduction(0, 2000, 1)
		within.GetCommunication().Group = 2 * (r / 2)
		across.GetCommunication().Group = 1 + 2*(r%2)
		w.Programs = append(w.Programs, programOf(r, work(0, 100), within, across))
	}
	return Step{Workload: w, Machines: plan.NewMachines(w, 2), Costs: costing(map[int64]int64{1000: 40, 2000: 60})}
}

// TestLinks: links between machines concern the groups whose own members are on several,
// and no others, also where those who are on other machines are not played.
func TestLinks(t *testing.T) {
	folded := fourRanks()
	small, err := fold.Keep(folded.Workload, []int32{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	folded.Workload = small.Workload
	each := fourRanks()
	each.Machines = plan.NewMachines(each.Workload, 4)
	for _, c := range []struct {
		name string
		step Step
		text string
		want int64
	}{
		{"as it ran", fourRanks(), "latency=+0s", 200},
		{"links between machines", fourRanks(), "bandwidth=inter:0.5x", 100 + 40 + 120},
		{"links within", fourRanks(), "bandwidth=intra:0.5x", 100 + 80 + 60},
		{"all links", fourRanks(), "bandwidth=0.5x", 100 + 80 + 120},
		{"longer between", fourRanks(), "latency=inter:+10ns", 210},
		{"free between", fourRanks(), "free=inter", 140},
		{"free within", fourRanks(), "free=intra", 160},
		{"a machine for each rank", each, "bandwidth=inter:0.5x", 300},
		{"one machine's ranks stand for all, between", folded, "bandwidth=inter:0.5x", 100 + 40 + 120},
		{"one machine's ranks stand for all, within", folded, "free=intra", 160},
	} {
		got, err := ask(t, c.step, c.text)
		if err != nil || got != c.want {
			t.Errorf("%s: %s takes %d (%v), want %d", c.name, c.text, got, err, c.want)
		}
	}
	if got, err := ask(t, each, "bandwidth=intra:0.5x"); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("links within machines of one rank: %d, %v", got, err)
	}
}

// beside: work of 100, an all_reduce of 60 issued after it, 100 of work beside it,
// 10 that need it.
func beside() Step {
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Name: "0", Ranks: []int32{0, 1}}}}
	for r := range int32(2) {
		w.Programs = append(w.Programs, programOf(r, work(0, 100), reduction(0, 1000, 0), work(0, 100), work(0, 10, 1)))
	}
	return Step{Workload: w, Costs: costing(map[int64]int64{1000: 60})}
}

func TestOverlap(t *testing.T) {
	for text, want := range map[string]int64{"latency=+0s": 210, "overlap=none": 270, "overlap=full": 210, "overlap=none,bandwidth=x2": 240} {
		if got, err := ask(t, beside(), text); err != nil || got != want {
			t.Errorf("%s takes %d (%v), want %d", text, got, err, want)
		}
	}
}

// atHost: work of 100, an all_reduce of 60 issued after it, 100 and 10 of work, the
// latter needing it. The program lists the all_reduce where it began to run, after the
// work that the host went on with.
func atHost() Step {
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Name: "0", Ranks: []int32{0, 1}}}}
	for r := range int32(2) {
		w.Programs = append(w.Programs, programOf(r, work(0, 100), work(0, 100), reduction(0, 1000, 0), work(0, 10, 2)))
	}
	return Step{Workload: w, Costs: costing(map[int64]int64{1000: 60})}
}

func TestOverlapAtHost(t *testing.T) {
	for text, want := range map[string]int64{"latency=+0s": 210, "overlap=none": 270} {
		if got, err := ask(t, atHost(), text); err != nil || got != want {
			t.Errorf("%s takes %d (%v), want %d", text, got, err, want)
		}
	}
}

const ms = 1_000_000

// atOnceInTrace: each rank works until 100 ms, issues an all_reduce, works until 140, and
// issues another one of the same size. Alone each takes 60 ms; they shared a link,
// so the first ran from 100 to 180 and the second from 140 to 220. Queued is how much
// later the second one began to run than it was issued.
func atOnceInTrace(queued int64) Step {
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Name: "0", Ranks: []int32{0, 1}}}}
	for r := range int32(2) {
		first, second := reduction(0, 1000, 0), reduction(1, 1000, 2)
		first.Origin = &planpb.Origin{Rank: r, Issued: 1100 * ms, Ts: 1100 * ms, Dur: 80 * ms}
		second.Origin = &planpb.Origin{Rank: r, Issued: 1140*ms - queued, Ts: 1140 * ms, Dur: 80 * ms}
		w.Programs = append(w.Programs, programOf(r, work(0, 100*ms), first, work(0, 40*ms-queued), second))
	}
	return Step{Workload: w, Costs: sim.TracedCosts}
}

// TestSequence: what shared a link in the trace goes on sharing it.
func TestSequence(t *testing.T) {
	for text, want := range map[string]int64{
		"latency=+0s":    220,
		"free=*":         140,
		"bandwidth=x2":   170, // 30 each, the second from 140
		"bandwidth=0.5x": 340, // 120 each, one after the other
		"overlap=none":   260, // 100 + 60 + 40 + 60
	} {
		if got, err := ask(t, atOnceInTrace(0), text); err != nil || got != ms*want {
			t.Errorf("%s takes %d ns (%v), want %d ms", text, got, err, want)
		}
	}
	// A third of the bytes: of 40 ms that both ran it had 10, and the last 40 alone.
	uneven := atOnceInTrace(0)
	for _, program := range uneven.Workload.Programs {
		program.Tasks[1].GetCommunication().InCount, program.Tasks[1].GetCommunication().OutCount = 3000, 3000
	}
	// 40 + 30 ms, and 10 + 40: all twice as long, 100 + 140 + 100.
	if got, err := ask(t, uneven, "bandwidth=0.5x"); err != nil || got != 340*ms {
		t.Errorf("%d ns (%v)", got, err)
	}
	// 35 ms from 100, then 25 from 140.
	if got, err := ask(t, uneven, "bandwidth=x2"); err != nil || got != 165*ms {
		t.Errorf("%d ns (%v)", got, err)
	}
	// Issued at 120, the second one had to wait for a thread until 140: there is one once
	// the first is over.
	if got, err := ask(t, atOnceInTrace(20*ms), "free=*"); err != nil || got != 120*ms {
		t.Errorf("%d ns (%v)", got, err)
	}
}

// reductions: two all_reduces of 4000 and 8000 bytes that take 100 and 150: 50, and
// 12.5 for each 1000 bytes. Before each is work of 200; nothing waits for them.
func reductions() Step {
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Name: "0", Ranks: []int32{0, 1}}}}
	for r := range int32(2) {
		w.Programs = append(w.Programs, programOf(r, work(0, 200), reduction(0, 1000, 0), work(0, 200), reduction(1, 2000, 2)))
	}
	return Step{Workload: w, Costs: costing(map[int64]int64{1000: 100, 2000: 150})}
}

func TestBuckets(t *testing.T) {
	for text, want := range map[string]int64{
		"latency=+0s": 550,
		// One of 12000 bytes, after all work: 50 + 150.
		"buckets=12000B": 600,
		// The second in halves of 4000 bytes, 100 each: the first may start at 300.
		"buckets=4000B": 500,
		// Parts of 2000 bytes take 75. The first's two run from 100 and 200, to 275. The
		// second's four could start at 250, 300, 350 and 400, but one runs at a time:
		// 275 + 4 x 75.
		"buckets=2000B": 575,
	} {
		if got, err := ask(t, reductions(), text); err != nil || got != want {
			t.Errorf("%s takes %d (%v), want %d", text, got, err, want)
		}
	}
	// One size alone says nothing about others.
	s := twoRanks()
	if got, err := ask(t, s, "buckets=2000B"); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("%d, %v", got, err)
	}
}

// TestWorldSize: an all_reduce of 2 ranks moves 2 x 1/2 of its bytes, one of 8 2 x 7/8:
// 40 become 70.
func TestWorldSize(t *testing.T) {
	if got, err := ask(t, twoRanks(), "world-size=8"); err != nil || got != 200+70+50 {
		t.Errorf("%d (%v)", got, err)
	}
	table := twoRanks()
	table.Ratio = func(_ sim.Meeting, _, times int) (float64, bool) { return float64(times), true }
	if got, err := ask(t, table, "world-size=8"); err != nil || got != 200+160+50 {
		t.Errorf("by a table: %d (%v)", got, err)
	}
	// The group has four ranks in the job, two of which stand for all: 40 x 7/8 over 3/4.
	few := twoRanks()
	few.Workload.WorldSize = 4
	few.Sizes = func(int32) int { return 4 }
	if got, err := ask(t, few, "world-size=8"); err != nil || got != 200+46+50 {
		t.Errorf("folded: %d (%v)", got, err)
	}
	// A group of a part of the ranks is over replicas when its description says so.
	part := twoRanks()
	part.Workload.WorldSize = 4
	if got, err := ask(t, part, "world-size=16"); err != nil || got != 200+70+50 {
		t.Errorf("%q: %d (%v)", part.Workload.Groups[0].Description, got, err)
	}
	part.Workload.Groups[0].Description = "tensor"
	for _, text := range []string{"world-size=16", "world-size=16:nobody", "world-size=6"} {
		if got, err := ask(t, part, text); !errors.Is(err, ErrNotApplicable) {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	if got, err := ask(t, part, "world-size=16:tensor"); err != nil || got != 200+70+50 {
		t.Errorf("named: %d (%v)", got, err)
	}
}

// TestQuestionLeavesTheStep: what is asked doesn't change what ran.
func TestQuestionLeavesTheStep(t *testing.T) {
	s := twoRanks()
	for _, text := range []string{"slow=1:3", "straggler=heal", "overlap=full", "free=*"} {
		if _, err := ask(t, s, text); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ask(t, s, "latency=+0s"); err != nil || got != 290 {
		t.Errorf("the step takes %d (%v) after other questions, want 290", got, err)
	}
}

// TestParse: every example is read, and mistakes are refused.
func TestParse(t *testing.T) {
	for _, k := range Known() {
		q, err := Parse(k.Example)
		if err != nil || len(q.Kinds()) != 1 || q.Kinds()[0].Name != k.Name {
			t.Errorf("%s: %v, %v", k.Example, q, err)
		}
		for what, text := range map[string]string{"summary": k.Summary, "formula": k.Formula, "source": k.Source, "cost": k.Cost, "what is not modelled": k.NotModeled} {
			if text == "" {
				t.Errorf("%s: no %s", k.Name, what)
			}
		}
		for _, p := range q.parts {
			_, step := p.change.(stepChange)
			_, order := p.change.(orderChange)
			if step != k.Step || order != k.Order {
				t.Errorf("%s says step %t, order %t, but can %t, %t", k.Name, k.Step, k.Order, step, order)
			}
		}
	}
	for _, text := range []string{
		"", "nothing", "free", "free=", "free=alltoall", "free=all_reduce@>=big", "bandwidth=2", "bandwidth=x0", "bandwidth=xNaN", "bandwidth=x-1", "bandwidth=xInf",
		"latency=5", "latency=", "slow=1", "slow=a:2", "slow=1:0", "straggler", "straggler=help", "overlap=some", "buckets=0", "buckets=-1", "compress=4x",
		"compress=4x:fast", "compress=4:1GB/s", "slices=0", "link=1:x2", "link=1-1:x2", "link=1-2:2", "link=1-a:x2", "reshard=0", "reshard=2:0", "slices=2:2", "recompute=2", "recompute=1:0", "offload=25", "offload=25GB/s:x", "local-learning=-1",
		"world-size=x", "world-size=0", "lost=x", "lost=1:1", "fill=0ms", "fill=1ms:1GiB:2GiB:3", "repartition=2", "free=*,repartition,straggler=heal", "free=*,,slow=1:2", "free=*,",
		"link=0-00:x2", "link=4294967296-1:x0.5", "slow=0:xx2", "slow=0:x2x", "slow=4294967296:2", "bandwidth=x2x", "bandwidth=x0x1p3", "bandwidth=x1_0",
		"straggler=heal,straggler=heal", "overlap=none,overlap=full", "buckets=1KiB,buckets=2KiB", "world-size=4,world-size=8", "slices=2,slices=2",
		"repartition,repartition", "reshard=2,reshard=4", "offload=1GB/s,offload=2GB/s", "fill=1ms,fill=2ms", "local-learning,local-learning=1",
	} {
		if _, err := Parse(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, want it refused", text, err)
		}
	}
}

// Two threads of each rank issue an operation each, on one rank the one first and on
// the other the other. Without overlap each waits for its own: a thread that waited
// for both would wait for ever, as the other rank's does.
func TestNoOverlapOfTwoThreads(t *testing.T) {
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Ranks: []int32{0, 1}}, {Ranks: []int32{0, 1}}}}
	for r, host := range []int32{0, 2} {
		issue := func(host, before int32) *planpb.Task {
			c := reduction(0, 1000, before)
			c.Stream = host + 1
			c.GetCommunication().Group = host / 2
			return c
		}
		other := 2 - host
		p := programOf(int32(r), work(host, 10), issue(host, 0), work(other, 20), issue(other, 2), work(host, 50), work(other, 60))
		p.Streams = []*planpb.Stream{{Name: "host"}, {Name: "group 0"}, {Name: "host 2"}, {Name: "group 1"}}
		w.Programs = append(w.Programs, p)
	}
	s := Step{Workload: w, Costs: costing(map[int64]int64{1000: 40})}
	// Both operations run from 20 to 60. With overlap the work that follows does not wait.
	for text, want := range map[string]int64{"latency=+0s": 80, "overlap=none": 120} {
		got, err := ask(t, s, text)
		if err != nil || got != want {
			t.Errorf("%s: %d, want %d (%v)", text, got, want, err)
		}
	}
}
