package executiontrace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

func operation(op comm.Op, in, out, rf int64) comm.Operation {
	return comm.Operation{Op: op, DType: comm.Float32, SizeKnown: in >= 0, In: in, Out: out, RecordFn: rf}
}

func called(op comm.Op, in, out int64, rfs ...int64) Call {
	c := Call{Op: op, DType: comm.Float32, SizeKnown: true, In: in, Out: out, RecordFns: rfs}
	if op == comm.AllToAllV { // two members; all but one element to the other
		c.SplitsKnown, c.InSplits, c.OutSplits = true, []int64{1, in - 1}, []int64{1, out - 1}
	}
	return c
}

func TestApply(t *testing.T) {
	const a2a, a2av, ar = comm.AllToAll, comm.AllToAllV, comm.AllReduce
	for _, c := range []struct {
		name  string
		ops   []comm.Operation
		calls []Call
		known string // for each operation: op, and its splits when known
		codes string
	}{
		{"by order", []comm.Operation{operation(a2a, 8, 6, 0), operation(ar, 5, 5, 0)},
			[]Call{called(a2av, 8, 6, 1), called(ar, 5, 5, 2)}, "all_to_allv[1 7][1 5] all_reduce", ""},
		{"by order, of one step of three", []comm.Operation{operation(a2a, 8, 6, 0), operation(a2a, 8, 7, 0), operation(a2a, 8, 5, 0)},
			[]Call{called(a2av, 8, 7, 1)}, "all_to_all all_to_allv[1 7][1 6] all_to_all", "execution-trace-unmatched:2"},
		{"by order, of more steps", []comm.Operation{operation(a2a, 8, 6, 0)},
			[]Call{called(ar, 8, 8, 1), called(a2av, 8, 6, 2)}, "all_to_allv[1 7][1 5]", "execution-trace-unused:1"},
		{"by order, in two places", []comm.Operation{operation(a2a, 8, 6, 0), operation(a2a, 8, 6, 0)},
			[]Call{called(a2av, 8, 6, 1)}, "all_to_all all_to_all", "execution-trace-unmatched:2 execution-trace-unused:1"},
		{"by order, another step", []comm.Operation{operation(a2a, 8, 6, 0), operation(a2a, 8, 7, 0)},
			[]Call{called(a2av, 8, 6, 1), called(a2av, 8, 9, 2)}, "all_to_all all_to_all",
			"execution-trace-contradiction:1 execution-trace-unmatched:1 execution-trace-unused:1"},
		{"by order, another operation", []comm.Operation{operation(a2a, 8, 6, 0), operation(ar, 7, 7, 0)},
			[]Call{called(a2av, 8, 6, 1), called(comm.Broadcast, 7, 7, 2)}, "all_to_all all_reduce", "execution-trace-unmatched:2 execution-trace-unused:2"},
		{"by order, beside a batch", []comm.Operation{operation(comm.Batch, 8, 6, 0), operation(a2a, 8, 6, 0)},
			[]Call{called(comm.Send, 8, 0, 1), called(comm.Recv, 0, 6, 2), called(a2av, 8, 6, 3)}, "batch all_to_allv[1 7][1 5]",
			"execution-trace-unmatched:1 execution-trace-unused:2"},
		{"by id of any node", []comm.Operation{operation(a2a, 8, 6, 31), operation(a2a, 8, 6, 12)},
			[]Call{called(a2av, 8, 6, 10, 11, 12), {Op: a2a, DType: comm.Float32, SizeKnown: true, In: 8, Out: 6, SplitsKnown: true, RecordFns: []int64{30, 31}}},
			"all_to_all[][] all_to_allv[1 7][1 5]", ""},
		{"by id, some missing", []comm.Operation{operation(a2a, 8, 6, 5), operation(a2a, 8, 6, 10), operation(a2a, 8, 6, 0)},
			[]Call{called(a2av, 8, 6, 10), called(ar, 1, 1, 11)}, "all_to_all all_to_allv[1 7][1 5] all_to_all", "execution-trace-unmatched:2 execution-trace-unused:1"},
		{"by id, a size differs", []comm.Operation{operation(a2a, 8, 6, 1), operation(ar, 5, 5, 2), operation(ar, 5, 5, 3)},
			[]Call{called(a2av, 8, 7, 1), called(ar, 5, 5, 2), called(ar, 5, 5, 3)}, "all_to_all all_reduce all_reduce", "execution-trace-contradiction:1"},
		{"by id, another run", []comm.Operation{operation(a2a, 8, 6, 1), operation(a2a, 8, 6, 2)},
			[]Call{called(a2av, 8, 6, 1), called(ar, 5, 5, 2)}, "all_to_all all_to_all", "execution-trace-contradiction:2"},
		{"by id, twice", []comm.Operation{operation(a2a, 8, 6, 1), operation(a2a, 8, 6, 2), operation(a2a, 8, 6, 2)},
			[]Call{called(a2av, 8, 6, 1), called(a2av, 8, 6, 1), called(a2av, 8, 6, 2)}, "all_to_all all_to_all all_to_all",
			"execution-trace-unmatched:3 execution-trace-unused:3"},
		{"size and operation unknown", []comm.Operation{{Op: comm.Unknown, RecordFn: 1}, {Op: ar, RecordFn: 2}},
			[]Call{called(a2av, 8, 6, 1), called(ar, 5, 5, 2)}, "all_to_allv[1 7][1 5] all_reduce", ""},
		{"another size of group", []comm.Operation{operation(a2a, 8, 6, 1)},
			[]Call{{Op: a2av, DType: comm.Float32, SizeKnown: true, In: 8, Out: 6, SplitsKnown: true, InSplits: []int64{1, 2, 5}, OutSplits: []int64{1, 2, 3}, RecordFns: []int64{1}}},
			"all_to_all", "execution-trace-contradiction:1"},
		{"nothing in it", []comm.Operation{operation(ar, 5, 5, 0)}, nil, "all_reduce", "execution-trace-unmatched:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := &trace.Run{Ranks: []*trace.Rank{{Operations: c.ops, Groups: []comm.Group{{Stream: "7", Size: 2}}}}}
			diags := Apply(run, map[int]*Trace{0: {Calls: c.calls}})
			var known []string
			for i := range run.Ranks[0].Operations {
				op := &run.Ranks[0].Operations[i]
				s := string(op.Op)
				if op.SplitsKnown {
					s += fmt.Sprintf("%v%v", op.InSplits, op.OutSplits)
					if !op.SizeKnown || op.In == 0 {
						t.Errorf("%s has splits, but no size", s)
					}
				}
				known = append(known, s)
			}
			if got := strings.Join(known, " "); got != c.known {
				t.Errorf("got %s, want %s", got, c.known)
			}
			if got := codes(diags); got != c.codes {
				t.Errorf("got diagnostics %v, want %q", diags.List(), c.codes)
			}
		})
	}
}

func codes(diags diagnostic.Set) string {
	var list []string
	for _, d := range diags.List() {
		list = append(list, fmt.Sprintf("%s:%d", d.Code, d.Count))
	}
	return strings.Join(list, " ")
}

// What the profiler trace says stays, contradicted or not.
func TestApplyKeeps(t *testing.T) {
	known := operation(comm.AllToAllV, 8, 6, 1)
	known.SplitsKnown, known.InSplits, known.OutSplits = true, []int64{4, 4}, []int64{3, 3}
	estimated := operation(comm.AllToAllV, 8, 6, 2)
	estimated.SplitsEstimated, estimated.InSplits, estimated.OutSplits = true, []int64{4, 4}, []int64{3, 3}
	run := &trace.Run{Ranks: []*trace.Rank{{Operations: []comm.Operation{known, estimated}, Groups: make([]comm.Group, 1)}}}
	diags := Apply(run, map[int]*Trace{0: {Calls: []Call{called(comm.AllToAllV, 8, 6, 1), called(comm.AllToAllV, 8, 6, 2)}}})
	ops := run.Ranks[0].Operations
	if !slices.Equal(ops[0].InSplits, []int64{4, 4}) || codes(diags) != "execution-trace-contradiction:1" {
		t.Errorf("got %v, %v", ops[0].InSplits, diags.List())
	}
	if !slices.Equal(ops[1].InSplits, []int64{1, 7}) || ops[1].SplitsEstimated || !ops[1].SplitsKnown {
		t.Errorf("estimated splits were not replaced: %+v", ops[1])
	}
	if got := run.Ranks[0].Groups[0].Size; got != 2 {
		t.Errorf("group of %d, want 2", got)
	}
}

func TestApplyRanks(t *testing.T) {
	run := &trace.Run{Ranks: []*trace.Rank{{Rank: 1, Operations: []comm.Operation{operation(comm.AllReduce, 5, 5, 0)}, Groups: make([]comm.Group, 1)}}}
	diags := Apply(run, map[int]*Trace{0: {Source: "et_0.json", Calls: []Call{called(comm.AllReduce, 5, 5, 1)}}})
	if got := codes(diags); got != "execution-trace-unmatched:1 execution-trace-unused:1" {
		t.Errorf("got %v", diags.List())
	}
}

func TestApplyGroups(t *testing.T) {
	call := func(name string, rf int64) Call {
		c := called(comm.AllReduce, rf, rf, rf)
		c.Group = comm.Group{Name: name, Description: "d" + name, Ranks: []int{0, 1}, Size: 2}
		return c
	}
	rank := func(n int) *trace.Rank {
		return &trace.Rank{Rank: n, Groups: []comm.Group{{Stream: "7"}}, Operations: []comm.Operation{
			operation(comm.AllReduce, 1, 1, 0), operation(comm.AllReduce, 2, 2, 0), operation(comm.AllReduce, 3, 3, 0)}}
	}
	calls := []Call{call("a", 1), call("b", 2), call("a", 3)}
	run := &trace.Run{Ranks: []*trace.Rank{rank(0), rank(1)}}
	Apply(run, map[int]*Trace{0: {Calls: calls}, 1: {Calls: calls}})
	for _, r := range run.Ranks {
		var got []string
		for _, op := range r.Operations {
			g := r.Groups[op.Group]
			got = append(got, fmt.Sprintf("%s%d%v", g.Name, op.Index, g.Ranks))
		}
		if s := strings.Join(got, " "); s != "a0[0 1] b0[0 1] a1[0 1]" || len(r.Groups) != 2 {
			t.Errorf("rank %d: %s of groups %+v", r.Rank, s, r.Groups)
		}
	}
	// Names on one rank only would tear the groups apart.
	run = &trace.Run{Ranks: []*trace.Rank{rank(0), rank(1)}}
	Apply(run, map[int]*Trace{0: {Calls: calls}})
	if g := run.Ranks[0].Groups; len(g) != 1 || g[0].Name != "" {
		t.Errorf("groups were named on one rank only: %+v", g)
	}
	// A group that the run names gets what is missing.
	run = &trace.Run{Ranks: []*trace.Rank{rank(0)}}
	run.Ranks[0].Groups[0] = comm.Group{Name: "a"}
	Apply(run, map[int]*Trace{0: {Calls: calls}})
	if g := run.Ranks[0].Groups[0]; !slices.Equal(g.Ranks, []int{0, 1}) || g.Description != "da" {
		t.Errorf("got %+v", g)
	}
}

func TestSplits(t *testing.T) {
	for _, c := range []struct {
		name            string
		in, out         []int64
		tensorIn        sized
		tensorOut       sized
		wantIn, wantOut []int64
		ok              bool
	}{
		{"even", nil, nil, sized{8, 8}, sized{8, 8}, nil, nil, true},
		{"as stated", []int64{1, 3}, []int64{2, 0}, sized{8, 4}, sized{4, 2}, []int64{2, 6}, []int64{4, 0}, true},
		{"swapped", []int64{2, 0}, []int64{1, 3}, sized{8, 4}, sized{4, 2}, []int64{2, 6}, []int64{4, 0}, true},
		{"both ways add up", []int64{1, 3}, []int64{3, 1}, sized{8, 4}, sized{8, 4}, []int64{2, 6}, []int64{6, 2}, true},
		{"rows unknown", []int64{1, 3}, []int64{3, 1}, sized{8, -1}, sized{8, -1}, []int64{2, 6}, []int64{6, 2}, true},
		{"one side even", nil, []int64{1, 3}, sized{6, 6}, sized{4, 4}, []int64{3, 3}, []int64{1, 3}, true},
		{"one side even, but odd", nil, []int64{1, 3}, sized{7, 7}, sized{4, 4}, nil, nil, false},
		{"nothing sent", []int64{0, 0}, []int64{3, 1}, sized{0, 0}, sized{8, 4}, []int64{0, 0}, []int64{6, 2}, true},
		{"too little", []int64{1, 2}, []int64{3, 1}, sized{8, 4}, sized{8, 4}, nil, nil, false},
		{"negative", []int64{5, -1}, []int64{3, 1}, sized{8, 4}, sized{8, 4}, nil, nil, false},
		{"different lengths", []int64{4}, []int64{3, 1}, sized{8, 4}, sized{8, 4}, nil, nil, false},
		{"overflow", []int64{1 << 62, 1 << 62, 1 << 62}, []int64{3, 1, 0}, sized{8, -1}, sized{8, 4}, nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, out, ok := resolveSplits(splitLists{c.in, c.out}, c.tensorIn, c.tensorOut)
			if ok != c.ok || !slices.Equal(in, c.wantIn) || !slices.Equal(out, c.wantOut) {
				t.Errorf("got %v %v %v, want %v %v %v", in, out, ok, c.wantIn, c.wantOut, c.ok)
			}
		})
	}
}
