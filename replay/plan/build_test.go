package plan_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"mixdown/analyze/collective"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/trace"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

func load(t *testing.T, path string) (*trace.Run, *collective.Matching) {
	t.Helper()
	run := kinetotest.Load(t, path)
	return run, collective.Match(run)
}

// play executes a program with every communication as long as in the trace, and
// returns when its last task ends, ns after its start.
func play(t *testing.T, p *planpb.Program) int64 {
	t.Helper()
	end := make([]int64, len(p.Tasks))
	stream := make([]int64, len(p.Streams))
	var last int64
	for i, task := range p.Tasks {
		at := stream[task.Stream]
		for _, d := range task.Deps {
			if d >= task.Id {
				t.Fatalf("rank %d: task %d depends on %d, which comes later", p.Rank, i, d)
			}
			at = max(at, end[d])
		}
		switch {
		case task.GetSpan() != nil:
			if task.GetSpan().DurationNs < 0 {
				t.Fatalf("rank %d: task %d lasts %d ns", p.Rank, i, task.GetSpan().DurationNs)
			}
			at += task.GetSpan().DurationNs
		case task.GetCommunication() != nil:
			at += task.Origin.Dur
		}
		end[i] = at
		stream[task.Stream] = at
		last = max(last, at)
	}
	return last
}

// TestPlanWithTracedTimesTakesAsLongAsTheTrace: where communication takes what
// it took, the program ends when the traced step did. So nothing of the step is
// lost or counted twice.
func TestPlanWithTracedTimesTakesAsLongAsTheTrace(t *testing.T) {
	for _, c := range []struct {
		path      string
		tolerance float64
	}{
		{"param/dlrm_8rank/kineto", 0.01},
		// On a rank without a device the trace shows one of two overlapping
		// sends and receives as waiting for the other.
		{"../../testdata/pipeline_1f1b_4rank", 0.03},
	} {
		t.Run(filepath.Base(filepath.Dir(c.path)), func(t *testing.T) {
			path := c.path
			if path[0] != '.' {
				path = kinetotest.Corpus(t, path)
			}
			run, m := load(t, path)
			w, _, err := plan.Build(run, m, plan.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range w.Programs {
				var want int64
				for _, s := range run.Ranks[i].Steps {
					if s.Name == w.Step {
						want = s.End - s.Start
					}
				}
				got := play(t, p)
				if off := float64(got)/float64(want) - 1; off < -c.tolerance || off > c.tolerance {
					t.Errorf("rank %d: the program takes %.3f ms, the traced step %.3f ms", p.Rank, float64(got)/1e6, float64(want)/1e6)
				}
			}
		})
	}
}

// TestMembersAgree: on all members the same collectives in the same order, with
// sizes that fit each other.
func TestMembersAgree(t *testing.T) {
	for _, path := range []string{"../../testdata/dp_moe_4rank", "../../testdata/pipeline_1f1b_4rank"} {
		run, m := load(t, path)
		for _, step := range []string{"", "3", "4", "ProfilerStep#5", "all"} {
			w, _, err := plan.Build(run, m, plan.Options{Step: step})
			if err != nil {
				t.Fatal(err)
			}
			checkMembers(t, w)
		}
	}
}

func checkMembers(t *testing.T, w *planpb.Workload) {
	t.Helper()
	type key struct {
		group int32
		seq   int64
	}
	parts := map[key]map[int32]*planpb.Communication{}
	for _, p := range w.Programs {
		next := map[int32]int64{}
		for _, task := range p.Tasks {
			c := task.GetCommunication()
			if c == nil || plan.Op(c).IsP2P() {
				continue
			}
			if c.Seq != next[c.Group] {
				t.Errorf("rank %d: sequence number %d in group %d, want %d", p.Rank, c.Seq, c.Group, next[c.Group])
			}
			next[c.Group]++
			k := key{c.Group, c.Seq}
			if parts[k] == nil {
				parts[k] = map[int32]*planpb.Communication{}
			}
			parts[k][p.Rank] = c
		}
	}
	for k, members := range parts {
		ranks := w.Groups[k.group].Ranks
		for _, r := range ranks {
			if members[r] == nil {
				t.Fatalf("group %v, operation %d: rank %d has no part in it", ranks, k.seq, r)
			}
		}
		for i, r := range ranks {
			for j, q := range ranks {
				a, b := members[r], members[q]
				if a.Op != b.Op || a.Dtype != b.Dtype || a.Root != b.Root {
					t.Errorf("group %v, operation %d: rank %d and %d disagree", ranks, k.seq, r, q)
				}
				if a.Op == planpb.Op_OP_ALL_TO_ALLV && a.InSplits[j] != b.OutSplits[i] {
					t.Errorf("group %v, operation %d: rank %d sends %d to %d, which receives %d", ranks, k.seq, r, a.InSplits[j], q, b.OutSplits[i])
				}
			}
		}
	}
}

func TestOverlapOfTheTraceIsInThePlan(t *testing.T) {
	run, m := load(t, "../../testdata/dp_moe_4rank")
	w, _, err := plan.Build(run, m, plan.Options{Step: "4"})
	if err != nil {
		t.Fatal(err)
	}
	// The first bucket's all_reduce runs beside the backward pass: its stream is
	// not the host's, and the host works and issues more before it waits for it.
	for _, p := range w.Programs {
		bucket := slices.IndexFunc(p.Tasks, func(t *planpb.Task) bool { return t.GetCommunication().GetInCount() == 131584 })
		if bucket < 0 {
			t.Fatalf("rank %d: no all_reduce of the first bucket", p.Rank)
		}
		var hidden int64
		for _, task := range p.Tasks[bucket+1:] {
			if slices.Contains(task.Deps, int32(bucket)) {
				break
			}
			hidden += task.GetSpan().GetDurationNs()
		}
		if hidden < 1_000_000 {
			t.Errorf("rank %d: only %d ns of work beside the all_reduce", p.Rank, hidden)
		}
	}
}

func TestStepThatIsNotThere(t *testing.T) {
	run, m := load(t, "../../testdata/dp_moe_4rank")
	if _, _, err := plan.Build(run, m, plan.Options{Step: "9"}); !errors.Is(err, trace.ErrNoStep) {
		t.Errorf("error %v, want ErrNoStep", err)
	}
}

// synthetic makes a run of two ranks with the given operations, all issued at 0.
func synthetic(ops ...[]comm.Operation) (*trace.Run, *collective.Matching) {
	run := &trace.Run{}
	for rank, list := range ops {
		one := &trace.Rank{Rank: rank, Names: trace.NewStrings(), Threads: []trace.Thread{{PID: "1", TID: "1"}}, CPUOnly: true,
			Groups: []comm.Group{{Name: "0", Ranks: []int{0, 1}, Size: 2}}}
		for i := range list {
			list[i].Event = one.Events.Append(trace.Row{Category: trace.UserAnnotation, TS: int64(100 * i), Dur: 50, Stream: trace.NoStream})
			list[i].Start, list[i].End, list[i].Issued, list[i].Index = int64(100*i), int64(100*i+50), int64(100*i), i
			one.Operations = append(one.Operations, list[i])
		}
		run.Ranks = append(run.Ranks, one)
	}
	return run, collective.Match(run)
}

func sized(op comm.Op, in, out int64) comm.Operation {
	return comm.Operation{Op: op, DType: comm.Float32, SizeKnown: true, In: in, Out: out}
}

// TestWhatIsNotKnownIsLeftOutOnAllMembers: and the rest keeps its order.
func TestWhatIsNotKnownIsLeftOutOnAllMembers(t *testing.T) {
	unsized := comm.Operation{Op: comm.AllReduce}
	for _, c := range []struct {
		name string
		a, b comm.Operation
		code string
	}{
		{"no size", unsized, unsized, "size-unknown"},
		{"no operation", sized(comm.Unknown, 4, 4), sized(comm.Unknown, 4, 4), "operation-unknown"},
		{"gathers what is not contributed", sized(comm.AllGather, 4, 9), sized(comm.AllGather, 4, 9), "size-mismatch"},
		{"sends more than is received", sized(comm.AllToAll, 4, 9), sized(comm.AllToAll, 4, 4), "size-mismatch"},
	} {
		run, m := synthetic([]comm.Operation{c.a, sized(comm.AllReduce, 8, 8)}, []comm.Operation{c.b, sized(comm.AllReduce, 8, 8)})
		w, diags, err := plan.Build(run, m, plan.Options{Step: "all"})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		checkMembers(t, w)
		for _, p := range w.Programs {
			n := 0
			for _, task := range p.Tasks {
				if task.GetCommunication() != nil {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s: rank %d replays %d operations, want 1", c.name, p.Rank, n)
			}
		}
		if !has(diags, c.code) {
			t.Errorf("%s: no diagnostic %s in %v", c.name, c.code, diags.List())
		}
	}
}

func TestSplitsAreExactOrMarked(t *testing.T) {
	exact := func(in, out []int64) comm.Operation {
		op := sized(comm.AllToAllV, in[0]+in[1], out[0]+out[1])
		op.InSplits, op.OutSplits, op.SplitsKnown = in, out, true
		return op
	}
	even := sized(comm.AllToAll, 8, 8)
	even.SplitsKnown = true
	for _, c := range []struct {
		name      string
		a, b      comm.Operation
		op        planpb.Op
		splits    string // of rank 0
		estimated bool
	}{
		{"exact", exact([]int64{1, 2}, []int64{1, 5}), exact([]int64{5, 6}, []int64{2, 6}), planpb.Op_OP_ALL_TO_ALLV, "[1 2]", false},
		{"even by the trace", even, even, planpb.Op_OP_ALL_TO_ALL, "[]", false},
		{"totals only", sized(comm.AllToAll, 6, 4), sized(comm.AllToAll, 6, 8), planpb.Op_OP_ALL_TO_ALLV, "[2 4]", true},
		{"equal totals are not known to be even", sized(comm.AllToAll, 8, 8), sized(comm.AllToAll, 8, 8), planpb.Op_OP_ALL_TO_ALLV, "[4 4]", true},
	} {
		run, m := synthetic([]comm.Operation{c.a}, []comm.Operation{c.b})
		w, diags, err := plan.Build(run, m, plan.Options{Step: "all"})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		checkMembers(t, w)
		for _, task := range w.Programs[0].Tasks {
			if x := task.GetCommunication(); x != nil && (x.Op != c.op || fmt.Sprint(x.InSplits) != c.splits || x.SplitsEstimated != c.estimated) {
				t.Errorf("%s: %s with splits %v, estimated %v", c.name, x.Op, x.InSplits, x.SplitsEstimated)
			}
		}
		if has(diags, "splits-estimated") != c.estimated {
			t.Errorf("%s: diagnostics %v", c.name, diags.List())
		}
	}
	run, m := synthetic([]comm.Operation{exact([]int64{1, 2}, []int64{1, 5})}, []comm.Operation{exact([]int64{5, 6}, []int64{1, 7})})
	if _, _, err := plan.Build(run, m, plan.Options{Step: "all"}); !errors.Is(err, plan.ErrNothingToReplay) {
		t.Errorf("splits that contradict each other: %v, want ErrNothingToReplay", err)
	}
}

func has(set *diagnostic.Set, code string) bool {
	return slices.ContainsFunc(set.List(), func(d diagnostic.Diagnostic) bool { return d.Code == code })
}
