package plan_test

import (
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// TestEveryOperationWithSizesIsReplayed: gathers and scatters, even and not, in
// every way in which a trace may write the side that has no part in it.
func TestEveryOperationWithSizesIsReplayed(t *testing.T) {
	for _, c := range []struct {
		name   string
		a, b   comm.Operation // rank 0 is the root
		want   planpb.Op
		counts [4]int64 // in and out of rank 0, of rank 1
	}{
		{"gather", sized(comm.Gather, 4, 8), sized(comm.Gather, 4, 8), planpb.Op_OP_GATHER, [4]int64{4, 8, 4, 0}},
		{"gather, root alone has the output", sized(comm.Gather, 4, 8), sized(comm.Gather, 4, 0), planpb.Op_OP_GATHER, [4]int64{4, 8, 4, 0}},
		{"gatherv", sized(comm.Gather, 4, 9), sized(comm.Gather, 5, 0), planpb.Op_OP_GATHERV, [4]int64{4, 9, 5, 0}},
		{"scatter", sized(comm.Scatter, 8, 4), sized(comm.Scatter, 8, 4), planpb.Op_OP_SCATTER, [4]int64{8, 4, 0, 4}},
		{"scatterv", sized(comm.Scatter, 9, 4), sized(comm.Scatter, 0, 5), planpb.Op_OP_SCATTERV, [4]int64{9, 4, 0, 5}},
		{"all_gather", sized(comm.AllGather, 4, 8), sized(comm.AllGather, 4, 8), planpb.Op_OP_ALL_GATHER, [4]int64{4, 8, 4, 8}},
		{"all_gatherv", sized(comm.AllGatherV, 4, 9), sized(comm.AllGatherV, 5, 9), planpb.Op_OP_ALL_GATHERV, [4]int64{4, 9, 5, 9}},
		{"all_gather of uneven parts, as profilers write it", sized(comm.AllGather, 4, 8), sized(comm.AllGather, 5, 10), planpb.Op_OP_ALL_GATHERV, [4]int64{4, 9, 5, 9}},
		{"reduce_scatter of uneven parts, as profilers write it", sized(comm.ReduceScatter, 8, 4), sized(comm.ReduceScatter, 10, 5), planpb.Op_OP_REDUCE_SCATTERV, [4]int64{9, 4, 9, 5}},
		{"reduce_scatterv", sized(comm.ReduceScatterV, 9, 4), sized(comm.ReduceScatterV, 9, 5), planpb.Op_OP_REDUCE_SCATTERV, [4]int64{9, 4, 9, 5}},
		{"reduce", sized(comm.Reduce, 4, 4), sized(comm.Reduce, 4, 4), planpb.Op_OP_REDUCE, [4]int64{4, 4, 4, 4}},
	} {
		run, m := synthetic([]comm.Operation{c.a}, []comm.Operation{c.b})
		w, diags, err := plan.Build(run, m, plan.Options{Step: "all"})
		if err != nil {
			t.Errorf("%s: %v: %v", c.name, err, diags.List())
			continue
		}
		var counts []int64
		for _, p := range w.Programs {
			for _, task := range p.Tasks {
				if x := task.GetCommunication(); x != nil {
					counts = append(counts, x.InCount, x.OutCount)
					if x.Op != c.want {
						t.Errorf("%s: rank %d replays %v, want %v", c.name, p.Rank, x.Op, c.want)
					}
				}
			}
		}
		if len(counts) != 4 || [4]int64(counts) != c.counts {
			t.Errorf("%s: counts %v, want %v", c.name, counts, c.counts)
		}
	}
}

// TestFloat8IsMovedAndNeverReduced: as libraries have it.
func TestFloat8IsMovedAndNeverReduced(t *testing.T) {
	float8 := func(op comm.Op, in, out int64) comm.Operation {
		x := sized(op, in, out)
		x.DType = comm.Float8E4M3FN
		return x
	}
	run, m := synthetic(
		[]comm.Operation{float8(comm.AllGather, 4, 8), float8(comm.AllReduce, 4, 4)},
		[]comm.Operation{float8(comm.AllGather, 4, 8), float8(comm.AllReduce, 4, 4)})
	w, diags, err := plan.Build(run, m, plan.Options{Step: "all"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range w.Programs {
		for _, task := range p.Tasks {
			if x := task.GetCommunication(); x != nil && (x.Op != planpb.Op_OP_ALL_GATHER || x.Dtype != planpb.DType_DTYPE_FLOAT8_E4M3FN) {
				t.Errorf("rank %d replays %v of %v", p.Rank, x.Op, x.Dtype)
			}
		}
	}
	if !has(diags, "communication-not-replayed") {
		t.Errorf("nothing said of the all_reduce: %v", diags.List())
	}
}

// TestCoalescedCollectivesKeepTheirTensors: where all members have them and they
// fit, else the sum remains.
func TestCoalescedCollectivesKeepTheirTensors(t *testing.T) {
	of := func(op comm.Op, tensors ...comm.Tensor) comm.Operation {
		x := sized(op, 0, 0)
		x.Tensors = tensors
		for _, tensor := range tensors {
			x.In, x.Out = x.In+tensor.In, x.Out+tensor.Out
		}
		return x
	}
	for _, c := range []struct {
		name  string
		a, b  comm.Operation
		parts int
	}{
		{"all_reduce", of(comm.AllReduce, comm.Tensor{In: 4, Out: 4}, comm.Tensor{In: 8, Out: 8}), of(comm.AllReduce, comm.Tensor{In: 4, Out: 4}, comm.Tensor{In: 8, Out: 8}), 2},
		{"all_gather", of(comm.AllGather, comm.Tensor{In: 4, Out: 8}, comm.Tensor{In: 1, Out: 2}), of(comm.AllGather, comm.Tensor{In: 4, Out: 8}, comm.Tensor{In: 1, Out: 2}), 2},
		{"reduce_scatter", of(comm.ReduceScatter, comm.Tensor{In: 8, Out: 4}, comm.Tensor{In: 2, Out: 1}), of(comm.ReduceScatter, comm.Tensor{In: 8, Out: 4}, comm.Tensor{In: 2, Out: 1}), 2},
		{"another order on the other rank", of(comm.AllReduce, comm.Tensor{In: 4, Out: 4}, comm.Tensor{In: 8, Out: 8}), of(comm.AllReduce, comm.Tensor{In: 8, Out: 8}, comm.Tensor{In: 4, Out: 4}), 0},
		{"one rank alone has them", of(comm.AllReduce, comm.Tensor{In: 4, Out: 4}, comm.Tensor{In: 8, Out: 8}), sized(comm.AllReduce, 12, 12), 0},
	} {
		run, m := synthetic([]comm.Operation{c.a}, []comm.Operation{c.b})
		w, diags, err := plan.Build(run, m, plan.Options{Step: "all"})
		if err != nil {
			t.Errorf("%s: %v: %v", c.name, err, diags.List())
			continue
		}
		for r, p := range w.Programs {
			for _, task := range p.Tasks {
				x := task.GetCommunication()
				if x == nil {
					continue
				}
				if len(x.Parts) != c.parts {
					t.Errorf("%s: rank %d has parts %v, want %d", c.name, r, x.Parts, c.parts)
				}
				for i, part := range x.Parts {
					if want := c.a.Tensors[i]; part.InCount != want.In || part.OutCount != want.Out {
						t.Errorf("%s: rank %d, part %d is %v, want %+v", c.name, r, i, part, want)
					}
				}
			}
		}
	}
}
