package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/ingest/comm"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
)

// stepOfTwo is two ranks that compute, reduce, compute on, exchange messages and
// reduce again.
func stepOfTwo() *planpb.Workload {
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Ranks: []int32{0, 1}}}}
	for r := range int32(2) {
		p := &planpb.Program{Rank: r, StartOffsetNs: int64(10 * r), Streams: []*planpb.Stream{{Name: "host"}, {Name: "beside"}}}
		add := func(t *planpb.Task) {
			t.Id = int32(len(p.Tasks))
			p.Tasks = append(p.Tasks, t)
		}
		span := func(ns int64) {
			add(&planpb.Task{Kind: &planpb.Task_Span{Span: &planpb.Span{DurationNs: ns}}})
		}
		reduce := func(stream int32, seq int64, deps ...int32) {
			add(&planpb.Task{Stream: stream, Deps: deps, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{
				Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_FLOAT32, ReduceOp: planpb.ReduceOp_REDUCE_OP_SUM, InCount: 25, OutCount: 25, Seq: seq,
			}}})
		}
		span(100 + 50*int64(r))
		reduce(1, 0, 0)
		span(40)
		add(&planpb.Task{Kind: &planpb.Task_Communication{Communication: &planpb.Communication{
			Op: planpb.Op_OP_BATCH, Dtype: planpb.DType_DTYPE_UINT8, Transfers: []*planpb.Transfer{
				{Send: r == 0, Peer: 1 - r, Count: 7, Match: 1}, {Send: r == 1, Peer: 1 - r, Count: 9, Match: 2},
			},
		}}})
		reduce(0, 1, 1)
		w.Programs = append(w.Programs, p)
	}
	return w
}

func TestStep(t *testing.T) {
	s := newStep(stepOfTwo())
	// Gaps: the first reduction comes after 100 and 160 ns, the second at once after
	// the batch; the batch 40 ns after the first reduction.
	want := []moment{
		{Point{Op: comm.AllReduce, DType: comm.Float32, Bytes: 100, Ranks: 2, Streams: 1}, 50},
		{Point{Op: comm.Send, DType: comm.Uint8, Bytes: 7, Ranks: 2, Streams: 1}, 40},
		{Point{Op: comm.Send, DType: comm.Uint8, Bytes: 9, Ranks: 2, Streams: 1}, 40},
	}
	if diff := cmp.Diff(want, s.moments, cmp.AllowUnexported(moment{})); diff != "" {
		t.Errorf("moments (-want +got)\n%s", diff)
	}
	for _, m := range s.moments {
		r := m.row(tune.Contender{Backend: "gloo"}, tune.Host)
		r.Time = 1
		if err := r.Check(); err != nil || !r.InStep || r.Gap != m.gap || r.Size() != m.Bytes {
			t.Errorf("row %+v: %v", r, err)
		}
	}
	p, err := s.plan("gloo")
	if err != nil || p.Workload.Programs[1].Tasks[3].GetCommunication().Backend != "gloo" || s.workload.Programs[1].Tasks[3].GetCommunication().Backend != "" {
		t.Errorf("plan: %v", err)
	}
}

// TestTimesInStep: an operation lasts from when its last member should have come.
func TestTimesInStep(t *testing.T) {
	s := newStep(stepOfTwo())
	// Rank 1 starts 10 ns later and computes for 150 ns: it should come at 1160. It
	// came later, whatever the reason was: the operation ends at 1200 on rank 0, at
	// 1230 on rank 1. Computation beside it should end at 1140 and 1200, the batch
	// ends at 1300 and 1290, the last operation at 1301 and 1350.
	records := []*record{
		{start: 1000, ends: []int64{1111, 1200, 1177, 1300, 1301}},
		{start: 1000, ends: []int64{1171, 1230, 1222, 1290, 1350}},
	}
	if diff := cmp.Diff([]int64{1230 - 1160, 1300 - 1200, 1300 - 1200, 1350 - 1300}, s.times(records)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([][]int64{{70, 50}, {100}, {100}}, s.byMoment(s.times(records))); diff != "" {
		t.Errorf("by moment (-want +got)\n%s", diff)
	}
	records[1].ends[4] = 0
	if got := s.times(records); got != nil {
		t.Errorf("an iteration that a rank did not finish: %v", got)
	}
	if got := s.times([]*record{records[0], nil}); got != nil {
		t.Errorf("an iteration that a rank did not begin: %v", got)
	}
	// Two times of one operation count by their mean, not their median.
	var x series
	x.addMean([]int64{1, 2, 9})
	if x.medians[0] != 4 || len(x.all) != 3 {
		t.Errorf("%+v", x)
	}
}
