package sim

import (
	"testing"

	"mixdown/replay/plan/planpb"
)

// One rank whose host launches a kernel, an operation that needs it, and a kernel
// that needs the operation, and then works on. Queued on streams, all of that goes on
// beside the host; else the host launches the last kernel when the operation is over.
func TestHoldHosts(t *testing.T) {
	span := func(id, stream int32, kind planpb.Span_Kind, ns int64, deps ...int32) *planpb.Task {
		return &planpb.Task{Id: id, Stream: stream, Deps: deps, Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: kind, DurationNs: ns}}}
	}
	const host, kernels, operations = 0, 1, 2
	workload := func() *planpb.Workload {
		return &planpb.Workload{
			WorldSize: 1, Groups: []*planpb.Group{{Ranks: []int32{0}}},
			Programs: []*planpb.Program{{
				Streams: []*planpb.Stream{{Name: "host"}, {Name: "device stream 7"}, {Name: "communication stream 9"}},
				Tasks: []*planpb.Task{
					span(0, host, planpb.Span_HOST, 10),
					span(1, kernels, planpb.Span_DEVICE, 100, 0), // to 110
					span(2, host, planpb.Span_HOST, 10),          // launches the operation at 20
					span(3, operations, planpb.Span_DEVICE, 5, 1, 2),
					{Id: 4, Stream: operations, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{Backend: "openmpi"}}}, // 115 to 165
					span(5, host, planpb.Span_HOST, 10), // launches the last kernel
					span(6, kernels, planpb.Span_DEVICE, 100, 4, 5),
					span(7, host, planpb.Span_HOST, 200),
				},
			}},
		}
	}
	cost := func(Meeting) int64 { return 50 }
	for _, c := range []struct {
		name    string
		ordered bool
		held    int
		step    int64 // by hand
	}{
		{"queued", true, 0, 265},          // 165 + 100; the host is done at 230
		{"holds the host", false, 1, 375}, // the host goes on at 165: 10, then 200
	} {
		w := workload()
		held := HoldHosts(w, func(string) bool { return c.ordered })
		run, err := PlayWorkload(w, cost)
		if err != nil {
			t.Fatal(err)
		}
		if held != c.held || run.Step != c.step {
			t.Errorf("%s: %d held, step %d; want %d, %d", c.name, held, run.Step, c.held, c.step)
		}
	}
}

// An operation holds up the second thread of a rank, which issued it. The program,
// which computes on a stream of its own, goes on.
func TestHoldHostsOfThreads(t *testing.T) {
	span := func(id, stream int32, kind planpb.Span_Kind, ns int64, deps ...int32) *planpb.Task {
		return &planpb.Task{Id: id, Stream: stream, Deps: deps, Kind: &planpb.Task_Span{Span: &planpb.Span{Kind: kind, DurationNs: ns}}}
	}
	const second, host, kernels, operations, others = 0, 1, 2, 3, 4
	w := &planpb.Workload{
		WorldSize: 1, Groups: []*planpb.Group{{Ranks: []int32{0}}},
		Programs: []*planpb.Program{{
			Streams: []*planpb.Stream{{Name: "host 2"}, {Name: "host"}, {Name: "device stream 7"}, {Name: "communication stream 9"}, {Name: "device stream 8"}},
			Tasks: []*planpb.Task{
				span(0, second, planpb.Span_HOST, 10), // launches the operation
				{Id: 1, Stream: operations, Deps: []int32{0}, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{Backend: "openmpi"}}}, // 10 to 60
				span(2, host, planpb.Span_HOST, 15),            // launches a kernel of its own
				span(3, others, planpb.Span_DEVICE, 20, 2),     // to 35
				span(4, second, planpb.Span_HOST, 10),          // launches what needs the operation: at 70, not at 20
				span(5, kernels, planpb.Span_DEVICE, 30, 1, 4), // to 100
				span(6, host, planpb.Span_HOST, 70, 3),         // from 35 to 105
			},
		}},
	}
	held := HoldHosts(w, func(string) bool { return false })
	run, err := PlayWorkload(w, func(Meeting) int64 { return 50 })
	if err != nil {
		t.Fatal(err)
	}
	ends := run.Ends[0]
	if held != 1 || ends[4] != 70 || ends[5] != 100 || ends[6] != 105 {
		t.Errorf("%d held, ends %v", held, ends)
	}
}
