package fold

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"mixdown/replay/plan/planpb"
	"mixdown/replay/sim"
)

func span(ns int64) *planpb.Task {
	return &planpb.Task{Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: planpb.Span_HOST, DurationNs: ns}}}
}

func task(c *planpb.Communication) *planpb.Task {
	return &planpb.Task{Kind: &planpb.Task_Communication{Communication: c}}
}

func collective(group int32, seq int64, op planpb.Op, in, out int64) *planpb.Task {
	return task(&planpb.Communication{Group: group, Seq: seq, Op: op, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: in, OutCount: out})
}

func transfer(send bool, peer int32, count, match int64) *planpb.Task {
	op := planpb.Op_OP_RECV
	if send {
		op = planpb.Op_OP_SEND
	}
	return task(&planpb.Communication{Op: op, Dtype: planpb.DType_DTYPE_FLOAT32, Transfers: []*planpb.Transfer{{Send: send, Peer: peer, Count: count, Match: match}}})
}

// grid is a job of pipelines x stages: rank r·stages + s sends an activation to the
// next stage, computes s + 1 units (the last pipeline one more), and reduces its
// gradient with the same stage of the others. Group 0 is the world, group s + 1
// stage s.
func grid(pipelines, stages int) *planpb.Workload {
	w := &planpb.Workload{WorldSize: int32(pipelines * stages), Groups: make([]*planpb.Group, stages+1)}
	for g := range w.Groups {
		w.Groups[g] = &planpb.Group{}
	}
	for r := range pipelines {
		for s := range stages {
			rank := int32(r*stages + s)
			w.Groups[0].Ranks = append(w.Groups[0].Ranks, rank)
			w.Groups[s+1].Ranks = append(w.Groups[s+1].Ranks, rank)
			p := &planpb.Program{Rank: rank, Streams: []*planpb.Stream{{}}}
			if s > 0 {
				p.Tasks = append(p.Tasks, transfer(false, rank-1, 10, 1))
			}
			ns := int64(1000 * (s + 1))
			if r == pipelines-1 {
				ns += 500
			}
			p.Tasks = append(p.Tasks, span(ns))
			if s+1 < stages {
				p.Tasks = append(p.Tasks, transfer(true, rank+1, 10, 1))
			}
			p.Tasks = append(p.Tasks, collective(int32(s+1), 0, planpb.Op_OP_ALL_REDUCE, 100, 100))
			for i, t := range p.Tasks {
				t.Id = int32(i)
			}
			w.Programs = append(w.Programs, p)
		}
	}
	return w
}

func ranks(w *planpb.Workload) []int32 {
	var list []int32
	for _, p := range w.Programs {
		list = append(list, p.Rank)
	}
	return list
}

// byRanks is a cost that goes with the size of the group, so that a fold that lost it
// would show.
func byRanks(m sim.Meeting) int64 { return 10 * int64(m.Ranks) }

// TestFoldedStepIsTheWholeOne: with the slowest kept, the folded step takes what the
// whole one does.
func TestFoldedStepIsTheWholeOne(t *testing.T) {
	for _, c := range []struct {
		pipelines, stages, keep int
		kept                    []int32
	}{
		{16, 4, 4, []int32{60, 61, 62, 63}},
		{16, 4, 7, []int32{60, 61, 62, 63}}, // no room for a second pipeline
		{16, 4, 9, []int32{0, 1, 2, 3, 60, 61, 62, 63}},
		{512, 1, 8, nil},
		{2, 3, 100, []int32{0, 1, 2, 3, 4, 5}},
	} {
		w := grid(c.pipelines, c.stages)
		whole, err := sim.PlayWorkload(w, byRanks)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Fold(w, c.keep)
		if err != nil {
			t.Fatal(err)
		}
		if got := ranks(f.Workload); c.kept != nil && !slices.Equal(got, c.kept) || len(got) > c.keep {
			t.Errorf("%+v keeps %v", c, got)
		}
		small, err := sim.PlayWorkload(f.Workload, f.Cost(byRanks))
		if err != nil {
			t.Fatal(err)
		}
		if small.Step != whole.Step {
			t.Errorf("%+v: folded %d, whole %d", c, small.Step, whole.Step)
		}
		if len(f.Classes) != 1 || f.Classes[0].Ranks != c.pipelines*c.stages || f.From != c.pipelines*c.stages {
			t.Errorf("%+v: classes %+v of %d", c, f.Classes, f.From)
		}
	}
}

// TestUnlikeRanksAreKept: a rank that does something else stands for itself.
func TestUnlikeRanksAreKept(t *testing.T) {
	w := grid(8, 2)
	// Rank 6 reduces once more with rank 7, which its peers don't.
	w.Groups = append(w.Groups, &planpb.Group{Ranks: []int32{6, 7}})
	for _, r := range []int{6, 7} {
		w.Programs[r].Tasks = append(w.Programs[r].Tasks, collective(3, 0, planpb.Op_OP_ALL_REDUCE, 5, 5))
	}
	if _, err := Fold(w, 3); !errors.Is(err, ErrCannotFold) {
		t.Errorf("two pipelines on 3 ranks: %v", err)
	}
	f, err := Fold(w, 4)
	if err != nil {
		t.Fatal(err)
	}
	got := ranks(f.Workload)
	if len(got) != 4 || !slices.Contains(got, 6) || !slices.Contains(got, 7) {
		t.Errorf("kept %v", got)
	}
	if len(f.Classes) != 2 || f.Classes[0].Ranks != 14 || f.Classes[1].Ranks != 2 {
		t.Errorf("classes %+v", f.Classes)
	}
	// 500 of the 2500 that the slowest rank of the 14 works: not known of those left out.
	if s := f.Classes[0].Spread; s != 0.2 {
		t.Errorf("spread %v", s)
	}
}

func TestAlike(t *testing.T) {
	sets := Alike(grid(3, 2))
	if len(sets) != 2 || !slices.Equal(sets[0], []int{0, 2, 4}) || !slices.Equal(sets[1], []int{1, 3, 5}) {
		t.Errorf("%v", sets)
	}
}

// TestShrink: what workers would run has counts that fit its groups.
func TestShrink(t *testing.T) {
	const n = 6
	all := []int32{0, 1, 2, 3, 4, 5}
	w := &planpb.Workload{WorldSize: n, Groups: []*planpb.Group{{Ranks: all}}}
	for r := range int32(n) {
		even := func(in, out int64) (int64, int64) { return in, out }
		p := &planpb.Program{Rank: r, Streams: []*planpb.Stream{{}}, Tasks: []*planpb.Task{span(100 - int64(r))}}
		seq := int64(0)
		add := func(op planpb.Op, in, out int64) *planpb.Communication {
			in, out = even(in, out)
			t := collective(0, seq, op, in, out)
			seq++
			p.Tasks = append(p.Tasks, t)
			return t.GetCommunication()
		}
		add(planpb.Op_OP_ALL_REDUCE, 7, 7)
		add(planpb.Op_OP_ALL_GATHER, 7, 7*n)
		add(planpb.Op_OP_REDUCE_SCATTER, 7*n, 7)
		add(planpb.Op_OP_ALL_TO_ALL, 7*n, 7*n)
		add(planpb.Op_OP_BROADCAST, 7, 7).Root = 5
		v := add(planpb.Op_OP_ALL_TO_ALLV, 0, 0)
		for other := range int64(n) {
			v.InSplits = append(v.InSplits, int64(r)+other)
			v.OutSplits = append(v.OutSplits, int64(r)+other)
			v.InCount += int64(r) + other
			v.OutCount += int64(r) + other
		}
		for i, t := range p.Tasks {
			t.Id = int32(i)
		}
		w.Programs = append(w.Programs, p)
	}
	f, err := Fold(w, 4)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ranks(f.Workload), []int32{0, 1, 2, 3}) { // the slowest
		t.Fatalf("kept %v", ranks(f.Workload))
	}
	small, count := f.Shrink(byRanks)
	if count.Resized != 4*6 || count.Alone != 0 {
		t.Errorf("%+v", count)
	}
	for _, p := range small.Programs {
		var got [][2]int64
		for _, t := range p.Tasks[1:] {
			c := t.GetCommunication()
			got = append(got, [2]int64{c.InCount, c.OutCount})
		}
		r := int64(p.Rank)
		// 42 elements in parts of 11, so 44.
		want := [][2]int64{{7, 7}, {11, 44}, {44, 11}, {44, 44}, {7, 7}, {4*r + 6, 4*r + 6}}
		if !slices.Equal(got, want) {
			t.Errorf("rank %d: %v, want %v", r, got, want)
		}
		if root := p.Tasks[5].GetCommunication().Root; root != 0 {
			t.Errorf("rank %d: root %d is not kept", r, root)
		}
		if v := p.Tasks[6].GetCommunication(); !slices.Equal(v.InSplits, []int64{r, r + 1, r + 2, r + 3}) {
			t.Errorf("rank %d: splits %v", r, v.InSplits)
		}
	}
	if c := w.Programs[0].Tasks[2].GetCommunication(); c.InCount != 7 || len(w.Groups[0].Ranks) != n {
		t.Error("the workload that was folded has changed")
	}
	// A single rank: everything is time.
	one, err := Fold(w, 1)
	if err != nil {
		t.Fatal(err)
	}
	alone, count := one.Shrink(byRanks)
	if count.Alone != 6 || count.Resized != 0 {
		t.Errorf("%+v", count)
	}
	for _, task := range alone.Programs[0].Tasks[1:] {
		if task.GetSpan().GetDurationNs() != 60 {
			t.Errorf("%v, want 60 ns", task)
		}
	}
}

// TestShrinkDropsEmptyGroups: of two pairs one is kept, and is group 0 then.
func TestShrinkDropsEmptyGroups(t *testing.T) {
	w := &planpb.Workload{WorldSize: 4, Groups: []*planpb.Group{{Ranks: []int32{0, 1}}, {Ranks: []int32{2, 3}}}}
	for r := range int32(4) {
		op := collective(r/2, 0, planpb.Op_OP_ALL_REDUCE, 3, 3)
		op.Id = 1
		w.Programs = append(w.Programs, &planpb.Program{Rank: r, Streams: []*planpb.Stream{{}}, Tasks: []*planpb.Task{span(int64(r) * 10), op}})
	}
	f, err := Fold(w, 2)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.Kept(), []int32{2, 3}) { // the slowest, and the one that shares its group
		t.Fatalf("kept %v", f.Kept())
	}
	small, count := f.Shrink(byRanks)
	if len(small.Groups) != 1 || small.Programs[0].Tasks[1].GetCommunication().GetGroup() != 0 || count != (Shrunk{}) {
		t.Errorf("%v, %+v", small.Groups, count)
	}
}

// TestKeepWholeUnits: whom a kept rank talks to must be kept.
func TestKeepWholeUnits(t *testing.T) {
	if _, err := Keep(grid(2, 3), []int32{0, 1}); !errors.Is(err, ErrCannotFold) {
		t.Errorf("%v", err)
	}
}

// TestTracedTimeOfAllMembers: what an operation took is told by all its members: the
// kept one came at 100 and waited for the last, which came at 900; all left at 1000.
func TestTracedTimeOfAllMembers(t *testing.T) {
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Ranks: []int32{0, 1}}}}
	for r, ts := range []int64{100, 900} {
		op := collective(0, 0, planpb.Op_OP_ALL_REDUCE, 3, 3)
		op.Id, op.Origin = 1, &planpb.Origin{Rank: int32(r), Ts: ts, Dur: 1000 - ts}
		w.Programs = append(w.Programs, &planpb.Program{Rank: int32(r), Streams: []*planpb.Stream{{}}, Tasks: []*planpb.Task{span(ts), op}})
	}
	f, err := Keep(w, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	run, err := f.Play(sim.TracedCosts(w))
	if err != nil || run.Step != 1000 {
		t.Errorf("%v, %v, want 1000 as in the trace", run, err)
	}
	// Half of the transfer, not of the waiting: 100 + 800 + 50.
	run, err = f.Play(func(m sim.Meeting) int64 { return m.Traced / 2 })
	if err != nil || run.Step != 950 {
		t.Errorf("%v, %v, want 950", run, err)
	}
}

// Ranks that communicate alike are alike, though the threads of one overlap, so that
// it has a host stream more, and those of the other do not.
func TestAlikeWhateverTheHosts(t *testing.T) {
	w := grid(3, 2)
	whole := Alike(w)
	for _, p := range w.Programs[2:4] {
		p.Streams = append([]*planpb.Stream{{Name: "host 2"}}, p.Streams...)
		for _, task := range p.Tasks {
			task.Stream++
		}
	}
	if got := Alike(w); !reflect.DeepEqual(got, whole) || len(whole) != 2 {
		t.Errorf("%v, were %v", got, whole)
	}
}
