package kineto_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/ingest/comm"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/trace"
)

// load reads the traces of a folder.
func load(t *testing.T, dir string) *trace.Run {
	t.Helper()
	run := kinetotest.Load(t, filepath.Join(dir, "rank*.json.gz"))
	return run
}

// truth is what the traced program itself recorded; it knows nothing of the
// profiler.
type truth struct {
	Ranks []struct {
		Rank  int
		Steps []struct {
			ProfilerStep int `json:"profiler_step"`
			Calls        []call
		}
	}
}

type call struct {
	Op        string
	Group     string
	Ranks     []int `json:"group_ranks"`
	DType     string
	In        int64   `json:"in_elements"`
	Out       int64   `json:"out_elements"`
	InSplits  []int64 `json:"in_splits"`
	OutSplits []int64 `json:"out_splits"`
	Root      *int
	Src, Dst  *int
}

// described is a communication in words that truth and trace both have.
type described struct {
	Op, DType           string
	In, Out             int64
	InSplits, OutSplits []int64
	Group               string
	Ranks               []int
	Peer                string
}

// sets are the traces of testdata that have the program's own record, and what
// about them the traces can't tell.
var sets = []struct {
	name string
	// unnamed: which group an operation belongs to is not in the trace; its
	// peer and its group's members may be unknown.
	unnamed bool
	// extra: operations of the framework that the program did not record.
	extra func(described) bool
}{
	{name: "dp_moe_4rank"},
	{name: "pipeline_1f1b_4rank"},
	{name: "fsdp1_4rank"},
	// The norm of the gradients is a functional collective.
	{name: "fsdp2_4rank", extra: func(d described) bool { return d.Op == "all_reduce" && d.In == 12 }},
	// Sends and receives of two groups look alike.
	{name: "p2p_batch_4rank", unnamed: true},
	// Lists of more than 30 splits are not written: they are unknown.
	{name: "world_36rank"},
	// Groups that are not used leave no threads, so names can't be told.
	{name: "deepspeed_zero2_2rank", unnamed: true},
	{name: "deepspeed_zero3_2rank", unnamed: true},
	{name: "deepspeed_pipe_2rank", unnamed: true},
}

// TestCommunicationIsWhatTheProgramDid compares every operation found in the
// traces with what the program recorded of its own calls: order, operation,
// group, type, sizes, splits, roots and peers. What a trace can't tell must be
// unknown, not wrong.
func TestCommunicationIsWhatTheProgramDid(t *testing.T) {
	for _, set := range sets {
		t.Run(set.name, func(t *testing.T) {
			want := readTruth(t, set.name)
			run := load(t, filepath.Join("../../testdata", set.name))
			for _, w := range want.Ranks {
				rank := run.ByRank(w.Rank)
				if rank == nil {
					t.Fatalf("rank %d was not read", w.Rank)
				}
				for _, step := range w.Steps {
					got := operationsOf(rank, step.ProfilerStep)
					if set.extra != nil {
						got = slices.DeleteFunc(got, set.extra)
					}
					var expected []described
					for i, c := range step.Calls {
						d := c.describe()
						if i < len(got) && set.unnamed {
							d.forget(got[i])
						}
						if i < len(got) && got[i].Op == "all_to_allv" && got[i].InSplits == nil && len(d.InSplits) > 30 {
							d.InSplits, d.OutSplits = nil, nil
						}
						expected = append(expected, d)
					}
					if diff := cmp.Diff(expected, got); diff != "" {
						t.Errorf("rank %d, step %d (-program +trace):\n%s", w.Rank, step.ProfilerStep, diff)
					}
				}
			}
		})
	}
}

// TestCoalescedCallsAddUp: one operation of several tensors, or several of one,
// carry the same elements.
func TestCoalescedCallsAddUp(t *testing.T) {
	type key struct{ op, group string }
	want := readTruth(t, "coalesced_4rank")
	run := load(t, "../../testdata/coalesced_4rank")
	for _, w := range want.Ranks {
		for _, step := range w.Steps {
			expected, got := map[key]int64{}, map[key]int64{}
			for _, c := range step.Calls {
				expected[key{c.Op, c.Group}] += c.In
			}
			for _, op := range []string{"all_reduce", "all_gather", "reduce_scatter"} {
				expected[key{op, "0"}] += 72 // the functional form, which the program did not record
			}
			for _, d := range operationsOf(run.ByRank(w.Rank), step.ProfilerStep) {
				got[key{d.Op, d.Group}] += d.In
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("rank %d, step %d (-program +trace):\n%s", w.Rank, step.ProfilerStep, diff)
			}
		}
	}
}

func readTruth(t *testing.T, set string) truth {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../testdata", set, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want truth
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

func (c *call) describe() described {
	d := described{Op: c.Op, DType: c.DType, In: c.In, Out: c.Out, InSplits: c.InSplits, OutSplits: c.OutSplits, Group: c.Group, Ranks: c.Ranks}
	switch {
	case c.Op == "barrier":
		d.DType = "uint8" // a barrier carries nothing; the trace's type is what carries it
	case c.Root != nil:
		d.Peer = fmt.Sprint("root ", *c.Root)
	case c.Op == "send":
		d.Peer = fmt.Sprint("to ", *c.Dst)
	case c.Op == "recv":
		d.Peer = fmt.Sprint("from ", *c.Src)
	}
	return d
}

// forget drops from d what got leaves unknown.
func (d *described) forget(got described) {
	if got.Group == "" {
		d.Group = ""
	}
	if got.Ranks == nil {
		d.Ranks, d.Peer = nil, got.Peer
		if got.Peer != "" {
			d.Peer = "a peer of an unknown group"
		}
	}
}

func operationsOf(rank *trace.Rank, step int) []described {
	var s trace.Step
	for _, have := range rank.Steps {
		if have.Number == step {
			s = have
		}
	}
	var list []described
	for i := range rank.Operations {
		op := &rank.Operations[i]
		if op.Issued < s.Start || op.Issued >= s.End {
			continue
		}
		g := rank.Groups[op.Group]
		d := described{Op: string(op.Op), DType: string(op.DType), In: op.In, Out: op.Out, InSplits: op.InSplits, OutSplits: op.OutSplits, Group: g.Name, Ranks: g.Ranks}
		if op.RootKnown {
			d.Peer = fmt.Sprint("root ", op.Root)
		}
		for _, tr := range op.Transfers {
			direction := "from "
			if tr.Send {
				direction = "to "
			}
			d.Peer = fmt.Sprint(direction, tr.Peer)
		}
		list = append(list, d)
	}
	return list
}

// corpus is the folder of other people's traces; the test is skipped without it.
// TestDLRM: a run of PyTorch before 2.2, whose records have no communication
// arguments and whose all_to_all kernels are named SendRecv.
func TestDLRM(t *testing.T) {
	run := kinetotest.Load(t, kinetotest.Corpus(t, "param/dlrm_8rank/kineto"))
	want := []struct {
		op    comm.Op
		dtype comm.DType
	}{
		{comm.AllToAll, comm.Float32}, {comm.AllToAll, comm.Int64}, {comm.AllToAll, comm.Int32}, {comm.AllToAll, comm.Int32},
		{comm.AllReduce, comm.Float32}, {comm.AllToAll, comm.Float32}, {comm.AllReduce, comm.Float32}, {comm.AllReduce, comm.Float32},
	}
	for _, rank := range run.Ranks {
		if len(rank.Operations) != len(want) {
			t.Fatalf("rank %d: %d operations, want %d", rank.Rank, len(rank.Operations), len(want))
		}
		for i, op := range rank.Operations {
			if op.Op != want[i].op || op.DType != want[i].dtype || !op.SizeKnown || op.Stream != "84" {
				t.Errorf("rank %d, operation %d: %s of %s on stream %s, size known %v; want %s of %s on stream 84",
					rank.Rank, i, op.Op, op.DType, op.Stream, op.SizeKnown, want[i].op, want[i].dtype)
			}
		}
		if got := rank.Operations[3]; got.In != 3392 && rank.Rank == 0 || got.Out == 0 {
			t.Errorf("rank %d: all_to_all 3 has %d in, %d out", rank.Rank, got.In, got.Out)
		}
		if len(rank.Waits) != 5 {
			t.Errorf("rank %d: %d waits, want 5: records of Work.wait are no collectives", rank.Rank, len(rank.Waits))
		}
	}
}

// TestArgumentsOnKernels reads a run of PyTorch 2.2 to 2.4 with communication
// arguments; the numbers are asserted by HTA's own test of this file.
func TestArgumentsOnKernels(t *testing.T) {
	run := kinetotest.Load(t, kinetotest.Corpus(t, "hta/nccl_parser_config/nccl_data.json.gz"))
	rank := run.Ranks[0]
	if len(rank.Operations) != 21 {
		t.Fatalf("%d operations, want 21", len(rank.Operations))
	}
	longest := &rank.Operations[0]
	for i := range rank.Operations {
		if rank.Operations[i].Dur() > longest.Dur() {
			longest = &rank.Operations[i]
		}
	}
	g := rank.Groups[longest.Group]
	if longest.Op != comm.AllReduce || longest.In != 2049000 || longest.Out != 2049000 || g.Name != "0" || g.Description != "default_pg" {
		t.Errorf("longest operation: %s of %d in, %d out, group %q %q", longest.Op, longest.In, longest.Out, g.Name, g.Description)
	}
	if diff := cmp.Diff([]int{0, 1}, g.Ranks); diff != "" {
		t.Errorf("ranks of its group (-want +got):\n%s", diff)
	}
}

// TestCoalescedTensors: the sizes of the tensors of a coalesced call are those that
// the program gave it, and of no other call.
func TestCoalescedTensors(t *testing.T) {
	run := load(t, "../../testdata/coalesced_4rank")
	for _, rank := range run.Ranks {
		seen := map[string]int{}
		scattered := map[int]int{} // by group
		for i := range rank.Operations {
			op := &rank.Operations[i]
			if op.Op == comm.ReduceScatter { // Gloo runs it once for each tensor, in any order
				if want := []int64{8, 24, 40}[scattered[op.Group]%3]; op.In != want || op.Tensors != nil {
					t.Errorf("rank %d: reduce_scatter of %d, tensors %v, in place %d of its group, want %d", rank.Rank, op.In, op.Tensors, scattered[op.Group], want)
				}
				scattered[op.Group]++
				continue
			}
			n := int64(1)
			if op.Op == comm.AllGather {
				n = int64(len(rank.Groups[op.Group].Ranks))
			}
			want := []comm.Tensor{{In: 8, Out: 8 * n}, {In: 24, Out: 24 * n}, {In: 40, Out: 40 * n}}
			if op.Op != comm.Barrier && op.In == 72 {
				seen[string(op.Op)]++
				if diff := cmp.Diff(want, op.Tensors); diff != "" {
					t.Errorf("rank %d, %s at byte %d (-program +trace):\n%s", rank.Rank, op.Op, op.Offset, diff)
				}
			} else if op.Tensors != nil {
				t.Errorf("rank %d: %s of %d elements has tensors %v", rank.Rank, op.Op, op.In, op.Tensors)
			}
		}
		if len(scattered) != 2 || seen["all_reduce"] < 6 || seen["all_gather"] < 3 {
			t.Errorf("rank %d: %v", rank.Rank, seen)
		}
	}
	for _, rank := range load(t, "../../testdata/coalesced_4rank_bare").Ranks {
		for i := range rank.Operations {
			if rank.Operations[i].Tensors != nil {
				t.Fatalf("rank %d: tensors without recorded shapes", rank.Rank)
			}
		}
	}
}

// TestGroupedCollectives: calls that one launch runs are its tensors.
func TestGroupedCollectives(t *testing.T) {
	call := func(ts, in int) string {
		return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":%d,"dur":5,"args":{"Collective name":"_allgather_base","dtype":"Float","In msg nelems":%d,"Out msg nelems":%d,"Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]"}},`, ts, in, 2*in)
	}
	run := one(t, "", call(10, 3)+call(20, 50)+`
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":30,"dur":3,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL(ncclDevComm*)","pid":0,"tid":20,"ts":40,"dur":7,"args":{"correlation":5,"stream":20,"device":0}}`)
	ops := run.Ranks[0].Operations
	if len(ops) != 1 || ops[0].In != 53 || ops[0].Out != 106 {
		t.Fatalf("%+v", ops)
	}
	if diff := cmp.Diff([]comm.Tensor{{In: 3, Out: 6}, {In: 50, Out: 100}}, ops[0].Tensors); diff != "" {
		t.Error(diff)
	}
}
