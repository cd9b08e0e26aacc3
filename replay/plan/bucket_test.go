package plan

import (
	"slices"
	"testing"

	"mixdown/replay/plan/planpb"
)

// TestBucketCuts: an all_reduce of 10 elements in buckets of 4: three parts, which
// start as the span before them goes on. What waited for it waits for the last.
func TestBucketCuts(t *testing.T) {
	w := &planpb.Workload{Groups: []*planpb.Group{{Ranks: []int32{0, 1}}}}
	for r := range int32(2) {
		c := &planpb.Communication{Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_UINT8, InCount: 10, OutCount: 10, InBuffer: 7}
		w.Programs = append(w.Programs, &planpb.Program{
			Rank: r, Streams: []*planpb.Stream{{}, {}},
			Communicators: []*planpb.CommunicatorEvent{{Before: 0}, {Before: 1}, {Before: 3}},
			Tasks: []*planpb.Task{
				{Kind: &planpb.Task_Span{Span: &planpb.Span{DurationNs: 100}}},
				{Id: 1, Stream: 1, Deps: []int32{0}, Origin: &planpb.Origin{}, Kind: &planpb.Task_Communication{Communication: c}},
				{Id: 2, Deps: []int32{1}, Kind: &planpb.Task_Wait{Wait: &planpb.Wait{}}},
			},
		})
	}
	got, fused, cut := Bucket(w, 4)
	if fused != 0 || cut != 1 {
		t.Fatalf("%d fused, %d cut", fused, cut)
	}
	for _, p := range got.Programs {
		var spans, counts, seqs []int64
		var deps [][]int32
		for i, task := range p.Tasks {
			if int(task.Id) != i {
				t.Errorf("task %d has id %d", i, task.Id)
			}
			if s := task.GetSpan(); s != nil {
				spans = append(spans, s.DurationNs)
			}
			if c := task.GetCommunication(); c != nil {
				counts, seqs, deps = append(counts, c.InCount), append(seqs, c.Seq), append(deps, task.Deps)
				if task.Origin != nil || c.InBuffer != 0 {
					t.Errorf("a part says it is in the trace: %v", task)
				}
			}
		}
		if !slices.Equal(spans, []int64{33, 33, 34}) || !slices.Equal(counts, []int64{3, 3, 4}) || !slices.Equal(seqs, []int64{0, 1, 2}) {
			t.Errorf("spans %v, counts %v, numbers %v", spans, counts, seqs)
		}
		for i, d := range deps {
			if !slices.Equal(d, []int32{int32(i)}) {
				t.Errorf("part %d waits for %v", i, d)
			}
		}
		if last := p.Tasks[6]; last.GetWait() == nil || !slices.Equal(last.Deps, []int32{5}) {
			t.Errorf("the last task is %v", last)
		}
		var before []int32
		for _, e := range p.Communicators {
			before = append(before, e.Before)
		}
		if !slices.Equal(before, []int32{0, 3, 7}) {
			t.Errorf("communicators before %v", before)
		}
	}
	if len(w.Programs[0].Tasks) != 3 {
		t.Error("the workload that was cut has changed")
	}
}
