package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protodelim"

	"mixdown/ingest/comm"
	"mixdown/replay/launch"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
	"mixdown/replay/tune/algorithms"
)

// TestProgramsCanRun: the generated plans pass the check that runs before every
// start, for every operation.
func TestProgramsCanRun(t *testing.T) {
	for _, op := range Ops() {
		for _, ranks := range []int{1, 2, 3, 4, 8} {
			for _, streams := range []int{1, 2} {
				p, ok := (Point{op, comm.BFloat16, 100, ranks, streams}).Normal()
				if !ok {
					t.Fatalf("%s on %d ranks can't be measured", op, ranks)
				}
				g := newProgram("x", p, "gloo")
				if err := mix.Check(g.plan); err != nil {
					t.Errorf("%s: %v", p, err)
				}
				in, out := p.InOut()
				r := p.row(tune.Contender{Backend: "gloo"}, tune.Host)
				r.Time = 1
				if err := r.Check(); err != nil || in > p.Bytes || out > p.Bytes || max(in, out) != p.Bytes {
					t.Errorf("%s: %d in, %d out, %v", p, in, out, err)
				}
				if len(g.steps) != streams || len(g.steps[0]) != repetitions(p) {
					t.Errorf("%s: %d streams of %d steps", p, len(g.steps), len(g.steps[0]))
				}
			}
		}
	}
}

func TestNormal(t *testing.T) {
	for _, c := range []struct {
		in   Point
		want int64
		ok   bool
	}{
		{Point{comm.AllReduce, comm.Float32, 1, 4, 1}, 4, true},
		{Point{comm.AllGather, comm.Float32, 8, 4, 1}, 16, true},
		{Point{comm.AllToAll, comm.Float16, 33, 4, 1}, 32, true},
		{Point{comm.Barrier, comm.Float32, 33, 4, 1}, 0, true},
		{Point{comm.AllReduce, comm.Float32, 1 << 40, 4, 1}, 1 << 40, false},
		{Point{comm.AllReduce, "", 8, 4, 1}, 8, false},
		{Point{comm.Recv, comm.Float32, 8, 4, 1}, 8, false},
	} {
		got, ok := c.in.Normal()
		if got.Bytes != c.want || ok != c.ok {
			t.Errorf("%+v: %d, %v; want %d, %v", c.in, got.Bytes, ok, c.want, c.ok)
		}
		if again, _ := got.Normal(); ok && again != got {
			t.Errorf("%+v: the normal form of %+v is %+v", c.in, got, again)
		}
	}
}

// TestTimes: a step lasts from the last rank's end of the one before to its own
// last rank's end.
func TestTimes(t *testing.T) {
	p, _ := (Point{comm.AllReduce, comm.Float32, 2 << 20, 2, 1}).Normal()
	g := newProgram("x", p, "gloo")
	records := []*record{{ends: []int64{10, 25, 40, 70, 71}}, {ends: []int64{12, 20, 45, 50, 90}}}
	if diff := cmp.Diff([]int64{13, 20, 25, 20}, g.times(records)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	records[1].ends[4] = 0 // this rank did not get there
	if got := g.times(records); got != nil {
		t.Errorf("an iteration that one rank did not finish: %v", got)
	}
	p.Op = comm.Broadcast
	records[1].ends[4] = 90
	if diff := cmp.Diff([]int64{(90 - 12) / 4}, newProgram("x", p, "gloo").times(records)); diff != "" {
		t.Errorf("with a root (-want +got)\n%s", diff)
	}
}

// TestReadOutcomes reads what a run leaves, also when it was killed in the middle
// of a record.
func TestReadOutcomes(t *testing.T) {
	p, _ := (Point{comm.AllReduce, comm.Float32, 2 << 20, 2, 1}).Normal()
	g := newProgram("x", p, "gloo")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		var b bytes.Buffer
		write := func(r *planpb.Record) {
			if _, err := protodelim.MarshalTo(&b, r); err != nil {
				t.Fatal(err)
			}
		}
		write(&planpb.Record{Kind: &planpb.Record_Verification{Verification: &planpb.Verification{Operations: 5}}})
		for i := range 3 - rank { // rank 1 was killed in its third
			it := &planpb.Iteration{Iteration: int32(i), StartNs: int64(1000 * i)}
			for task := range 5 {
				it.Tasks = append(it.Tasks, &planpb.TaskTime{Task: int32(task), EndNs: int64(1000*i + 10*(task+1) + rank)})
			}
			write(&planpb.Record{Kind: &planpb.Record_Iteration{Iteration: it}})
		}
		data := b.Bytes()
		if rank == 1 {
			data = append(data, 200, 1, 5)
		}
		if err := os.WriteFile(filepath.Join(dir, "run-1", fmt.Sprintf("result.%d.pb", rank)), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readOutcomes(dir, []*program{g})
	if err != nil || len(got) != 1 || len(got[0].iterations) != 2 || got[0].checked != 2 || !slices.Equal(got[0].iterations[1], []int64{10, 10, 10, 10}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestInterval holds the interval against tables of the sign test.
func TestInterval(t *testing.T) {
	for _, c := range []struct{ n, lo, hi int }{{6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {10, 2, 9}, {20, 6, 15}, {30, 10, 21}, {100, 40, 61}} {
		var values []int64
		for i := range c.n {
			values = append(values, int64(c.n-i))
		}
		if lo, hi, ok := interval(values); !ok || lo != int64(c.lo) || hi != int64(c.hi) {
			t.Errorf("n=%d: %d to %d, %v; want %d to %d", c.n, lo, hi, ok, c.lo, c.hi)
		}
	}
	if _, _, ok := interval([]int64{1, 2, 3, 4, 5}); ok {
		t.Error("five values give an interval")
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string][]int64{
		"8:4KiB": {8, 64, 512, 4096}, "8:100:2": {8, 16, 32, 64, 100}, "1KiB,8": {8, 1024}, "64:64": {64},
	} {
		if got, err := ParseSizes(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "8:4", "0:8", "8:64:1", "x", "8:16:2:2", "-4"} {
		if got, err := ParseSizes(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

// TestRefine: the next sizes are between neighbours where the winner changes, and
// there is an end to it.
func TestRefine(t *testing.T) {
	a, b := tune.Contender{Backend: "a"}, tune.Contender{Backend: "b"}
	var x tune.Table
	var known []Point
	add := func(sizes ...int64) {
		for _, s := range sizes {
			p, _ := (Point{comm.AllReduce, comm.Float32, s, 4, 1}).Normal()
			known = append(known, p)
			for who, ns := range map[tune.Contender]int64{a: 1000 + 10*s, b: 60000 + 5*s} { // they meet at 11800
				r := p.row(who, tune.Host)
				r.Time = ns
				if err := x.Add(r); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	add(8, 1024, 131072)
	rounds := 0
	for more := refine(&x, known, []tune.Contender{a, b}); len(more) > 0; more = refine(&x, known, []tune.Contender{a, b}) {
		if rounds++; rounds > 10 || len(more) != 1 {
			t.Fatalf("round %d wants %v", rounds, more)
		}
		add(more[0].Bytes)
	}
	c := tune.Compare(&x, nil)[0].Crossings[0]
	if c.Lower > 11800 || c.Higher < 11800 || float64(c.Higher) > near*float64(c.Lower) {
		t.Errorf("after %d rounds the crossing is between %d and %d", rounds, c.Lower, c.Higher)
	}
}

func TestFromWorkload(t *testing.T) {
	group := []*planpb.Group{{Ranks: []int32{0, 1, 2, 3}}}
	task := func(c *planpb.Communication) *planpb.Task {
		return &planpb.Task{Kind: &planpb.Task_Communication{Communication: c}}
	}
	program := func(out int64) *planpb.Program {
		return &planpb.Program{Tasks: []*planpb.Task{
			task(&planpb.Communication{Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_BFLOAT16, InCount: 100, OutCount: 100}),
			task(&planpb.Communication{Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_BFLOAT16, InCount: 100, OutCount: 100, Seq: 1}),
			task(&planpb.Communication{Op: planpb.Op_OP_ALL_TO_ALLV, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: 40, OutCount: out, Seq: 2}),
			task(&planpb.Communication{Op: planpb.Op_OP_SEND, Dtype: planpb.DType_DTYPE_FLOAT32, Transfers: []*planpb.Transfer{{Send: true, Count: 7}}}),
		}}
	}
	got := FromWorkload(&planpb.Workload{Groups: group, Programs: []*planpb.Program{program(8), program(80)}})
	want := []Point{{comm.AllReduce, comm.BFloat16, 200, 4, 1}, {comm.AllToAllV, comm.Float32, 320, 4, 1}, {comm.Send, comm.Float32, 28, 2, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	many := &planpb.Workload{Groups: group, Programs: []*planpb.Program{{}}}
	for i := range 1000 {
		many.Programs[0].Tasks = append(many.Programs[0].Tasks, task(&planpb.Communication{Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: int64(i + 1), OutCount: int64(i + 1), Seq: int64(i)}))
	}
	if got := FromWorkload(many); len(got) != maxSizes || got[0].Bytes != 4 || got[len(got)-1].Bytes != 4000 {
		t.Errorf("of 1000 sizes %d are left, from %d to %d", len(got), got[0].Bytes, got[len(got)-1].Bytes)
	}
}

func TestVariants(t *testing.T) {
	v := Variants{openMPI: parseOMPIInfo([]byte(`mca:coll:tuned:param:coll_tuned_allreduce_algorithm:enumerator:value:0:ignore
mca:coll:tuned:param:coll_tuned_allreduce_algorithm:enumerator:value:4:ring
mca:coll:tuned:param:coll_tuned_bcast_algorithm:enumerator:value:6:binomial
mca:coll:tuned:param:coll_tuned_priority:value:30
`))}
	ops := []comm.Op{comm.AllReduce, comm.Broadcast}
	list, err := v.Expand([]tune.Contender{{Backend: "gloo"}, {Backend: "openmpi", Variant: "*"}}, ops)
	want := []tune.Contender{{Backend: "gloo"}, {Backend: "openmpi", Variant: "binomial"}, {Backend: "openmpi", Variant: "ring"}}
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if env := v.Settings(list[2]); !slices.Contains(env, "OMPI_MCA_coll_tuned_allreduce_algorithm=4") || len(env) != 3 {
		t.Errorf("settings %v", env)
	}
	if v.Applies(list[2], Point{Op: comm.Broadcast, Ranks: 4}) || !v.Applies(list[2], Point{Op: comm.AllReduce, Ranks: 4}) {
		t.Error("ring is for all_reduce alone")
	}
	for _, c := range []tune.Contender{{Backend: "gloo", Variant: "ring"}, {Backend: "openmpi", Variant: "rign"}} {
		if _, err := v.Expand([]tune.Contender{c}, ops); err == nil {
			t.Errorf("%s: no error", c)
		}
	}
	if _, err := (Variants{}).Expand([]tune.Contender{{Backend: "openmpi", Variant: "ring"}}, ops); err == nil {
		t.Error("a variant of an Open MPI that can't be asked: no error")
	}
	rsa := tune.Contender{Backend: "mpich", Variant: "reduce_scatter_allgather"}
	if v.Applies(rsa, Point{comm.AllReduce, comm.Float32, 8, 4, 1}) || !v.Applies(rsa, Point{comm.AllReduce, comm.Float32, 16, 4, 1}) {
		t.Error("it needs an element for each rank")
	}
	if findAlgorithms(context.Background()).openMPI == nil {
		t.Log("ompi_info is not here")
	}
}

// Persistent collectives are a contender where the module has them, on the operations
// and element types that it does so.
func TestPersistentVariant(t *testing.T) {
	who := tune.Contender{Backend: "mpich", Variant: "persistent"}
	v := Variants{persistent: map[string]launch.Switch{"mpich": {Operations: []string{"all_reduce", "barrier"}, Except: []string{"float16"}}}}
	ops := []comm.Op{comm.AllReduce, comm.AllGather}
	if list, err := v.Expand([]tune.Contender{who}, ops); err != nil || len(list) != 1 || list[0] != who {
		t.Errorf("%v, %v", list, err)
	}
	if env := v.Settings(who); !slices.Equal(env, []string{"MIXDOWN_MPI_PERSISTENT=1"}) {
		t.Errorf("settings %v", env)
	}
	for op, want := range map[comm.Op]bool{comm.AllReduce: true, comm.AllGather: false, comm.Send: false} {
		if got := v.Applies(who, Point{op, comm.Float32, 8, 4, 1}); got != want {
			t.Errorf("it applies to %s: %v", op, got)
		}
	}
	if v.Applies(who, Point{comm.AllReduce, comm.Float16, 8, 4, 1}) {
		t.Error("it applies to an element type that the module leaves out")
	}
	if _, err := v.Expand([]tune.Contender{who}, []comm.Op{comm.AllGather}); !errors.Is(err, ErrVariant) {
		t.Errorf("for none of the operations: %v", err)
	}
	if _, err := v.Expand([]tune.Contender{{Backend: "openmpi", Variant: "persistent"}}, ops); !errors.Is(err, ErrVariant) {
		t.Errorf("a library without: %v", err)
	}
}

// TestWorkerWith: the variables reach the worker as they are.
func TestWorkerWith(t *testing.T) {
	if quoted("it's") != `'it'\''s'` {
		t.Errorf("quoted: %s", quoted("it's"))
	}
}

// TestInstalledOpenMPIAgrees: the algorithms of the installed Open MPI have the
// names and numbers that rule files are written with.
func TestInstalledOpenMPIAgrees(t *testing.T) {
	installed := findAlgorithms(context.Background()).openMPI
	if installed == nil {
		t.Skip("ompi_info is not here")
	}
	for _, c := range algorithms.OpenMPICollectives() {
		for name, number := range installed[c.Name] {
			if n, ok := c.Number(name); !ok || fmt.Sprint(n) != number {
				t.Errorf("%s: algorithm %s is %s here, %d (%v) in the table", c.Name, name, number, n, ok)
			}
		}
	}
}
