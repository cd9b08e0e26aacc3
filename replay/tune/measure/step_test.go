package measure

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/ingest/comm"
	"mixdown/replay/launch"
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
	// Rank 1 starts 10 ns later and computes for 150 ns: it should come at 160. It
	// came later, whatever the reason was: the operation ends at 200 on rank 0, at
	// 230 on rank 1. Computation beside it should end at 140 and 200, the batch ends
	// at 300 and 290, the last operation at 301 and 350.
	records := []*record{
		{ends: []int64{111, 200, 177, 300, 301}},
		{ends: []int64{171, 230, 222, 290, 350}},
	}
	times, length := s.times(records)
	if diff := cmp.Diff([]int64{230 - 160, 300 - 200, 300 - 200, 350 - 300}, times); diff != "" || length != 350 {
		t.Errorf("a step of %d ns (-want +got)\n%s", length, diff)
	}
	if diff := cmp.Diff([][]int64{{70, 50}, {100}, {100}}, s.byMoment(times)); diff != "" {
		t.Errorf("by moment (-want +got)\n%s", diff)
	}
	records[1].ends[4] = 0
	if got, _ := s.times(records); got != nil {
		t.Errorf("an iteration that a rank did not finish: %v", got)
	}
	if got, _ := s.times([]*record{records[0], nil}); got != nil {
		t.Errorf("an iteration that a rank did not begin: %v", got)
	}
	// Two times of one operation count by their mean, not their median.
	var x series
	x.addMean([]int64{1, 2, 9}, 20)
	if x.medians[0] != 4 || len(x.all) != 3 {
		t.Errorf("%+v", x)
	}
}

// TestUneven: what operations take that are short mostly and long at times adds up to
// what the step takes. An iteration in which all stood still counts for nothing.
func TestUneven(t *testing.T) {
	const operations, iterations = 10, 40
	all := make([]series, operations)
	var steps []int64
	for i := range iterations {
		var step int64
		times := make([]int64, operations)
		for k := range times {
			if times[k] = 100; (i+k)%5 == 0 { // each is long one time in five
				times[k] = 1000
			}
			if i == 7 {
				times[k] += 1e6
			}
			step += times[k]
		}
		for k := range all {
			all[k].addMean(times[k:k+1], step)
		}
		steps = append(steps, step)
	}
	var sum int64
	for k := range all {
		r := moment{Point: Point{Op: comm.AllReduce, DType: comm.Float32, Bytes: 8, Ranks: 2, Streams: 1}}.row(tune.Contender{Backend: "gloo"}, tune.Host)
		all[k].fill(&r)
		if r.CILow >= r.Time || r.CIHigh <= r.Time || r.N != iterations || r.Statistic != tune.Mean {
			t.Errorf("%+v", r)
		}
		sum += r.Time
	}
	if want := middle(steps); sum < want*97/100 || sum > want*103/100 {
		t.Errorf("the operations add up to %d ns, the step takes %d", sum, want)
	}
}

// anywhere stands for workers on other hosts.
type anywhere struct{ launch.Starter }

// Rows of a job on several machines say on how many of them the members were.
func TestSpans(t *testing.T) {
	s := newStep(stepOfTwo())
	two := &launch.Results{Hosts: []launch.Host{{Workers: []int{0}}, {Workers: []int{1}}}}
	one := &launch.Results{Hosts: []launch.Host{{Workers: []int{0, 1}}}}
	here, there := &campaign{}, &campaign{Options: Options{Starter: anywhere{}}}
	for _, x := range []struct {
		c       *campaign
		results *launch.Results
		want    int
	}{{here, nil, 1}, {here, &launch.Results{}, 1}, {there, one, 1}, {there, two, 2}, {there, nil, 0}} {
		if got := x.c.spans(s, x.results); !slices.Equal(got, []int{x.want, x.want, x.want}) {
			t.Errorf("%+v: %v machines, want %d", x.results, got, x.want)
		}
		if got := x.c.nodes(x.results); got != x.want {
			t.Errorf("%+v: %d machines, want %d", x.results, got, x.want)
		}
	}
}
