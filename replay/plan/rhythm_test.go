package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/replay/plan/planpb"
)

func TestGaps(t *testing.T) {
	span := func(stream int32, ns int64, deps ...int32) *planpb.Task {
		return &planpb.Task{Stream: stream, Deps: deps, Kind: &planpb.Task_Span{Span: &planpb.Span{DurationNs: ns}}}
	}
	operation := func(stream int32, deps ...int32) *planpb.Task {
		return &planpb.Task{Stream: stream, Deps: deps, Kind: &planpb.Task_Communication{Communication: &planpb.Communication{}}}
	}
	p := &planpb.Program{StartOffsetNs: 5, Streams: []*planpb.Stream{{}, {}}, Tasks: []*planpb.Task{
		span(0, 100),
		operation(1, 0), // at 105
		span(0, 30),     // beside it, to 135
		operation(0),    // at 135
		operation(1, 3), // at once after it
		span(0, 10, 4),  // to 145
		span(1, 200),    // to 335
		operation(0, 6), // at 335
	}}
	if diff := cmp.Diff([]int64{0, 105, 0, 30, 0, 0, 0, 200}, Gaps(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
