package exports_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/ingest/comm"
	"mixdown/replay/plan/planpb"
	"mixdown/replay/tune"
	"mixdown/replay/tune/exports"
)

// measured makes a table: for each contender its time at 64 B, 64 KiB and 16 MiB of
// an operation, so that who wins changes where the times say.
func measured(t *testing.T, op comm.Op, ranks, nodes int, times map[string][3]int64) *tune.Table {
	t.Helper()
	x := &tune.Table{}
	for who, list := range times {
		for i, ns := range list {
			size := int64(64) << (i * 9)
			r := tune.Row{
				Contender: tune.ParseContender(who), Op: op, DType: comm.Float32, Device: tune.GPU, Ranks: ranks, Nodes: nodes,
				In: size, Out: size, Streams: 1, Time: ns, Statistic: tune.Median, Source: "test",
			}
			if err := x.Add(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return x
}

// merged puts tables together.
func merged(t *testing.T, list ...*tune.Table) *tune.Table {
	t.Helper()
	x := &tune.Table{}
	for _, o := range list {
		if err := x.Merge(o); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func write(t *testing.T, format string, in exports.Input) *exports.Output {
	t.Helper()
	out, err := exports.Write(format, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Apply) == 0 || len(out.Proof) == 0 {
		t.Errorf("%s: it does not say how to apply it and how to see that it took effect", format)
	}
	return out
}

func text(o *exports.Output) string { return string(o.Files[0].Data) }

// crossing is where the straight lines through both contenders' logarithms meet,
// between 64 B x 512^k and the next.
func crossing(a0, b0, a1, b1 int64, k int) int64 {
	d0, d1 := math.Log(float64(b0)/float64(a0)), math.Log(float64(b1)/float64(a1))
	lower := math.Log(64) + float64(k)*math.Log(512)
	return int64(math.Ceil(math.Exp(lower + math.Log(512)*d0/(d0-d1))))
}

var ncclTimes = map[string][3]int64{"nccl:tree/ll/ch=4": {10, 100, 9000}, "nccl:ring/simple/ch=16": {20, 60, 1000}}

func TestNCCLTuner(t *testing.T) {
	x := merged(t, measured(t, comm.AllReduce, 8, 1, ncclTimes), measured(t, comm.AllToAll, 8, 1, map[string][3]int64{"nccl:ring/ll/ch=2": {1, 2, 3}}))
	out := write(t, "nccl-tuner", exports.Input{Table: x})
	cut := crossing(10, 20, 100, 60, 0)
	for _, c := range []struct {
		collective   string
		bytes        uint64
		nodes, ranks int
		want         string
	}{
		{"allreduce", 0, 1, 8, "tree/ll/4"}, {"allreduce", uint64(cut - 1), 1, 8, "tree/ll/4"}, {"allreduce", uint64(cut), 1, 8, "ring/simple/16"},
		{"allreduce", math.MaxUint64, 1, 8, "ring/simple/16"}, {"allreduce", 64, 2, 16, "ring/simple/16"}, {"broadcast", 64, 1, 8, "ring/simple/16"},
		{"reduce", 64, 1, 2, "ring/simple/16"}, {"allgather", 1 << 40, 3, 24, "ring/simple/16"}, {"reducescatter", 1, 1, 1, "ring/simple/16"},
	} {
		if got := tunerLookup(t, text(out), c.collective, c.bytes, c.nodes, c.ranks); got != c.want {
			t.Errorf("%s of %d bytes on %d ranks: %s, want %s", c.collective, c.bytes, c.ranks, got, c.want)
		}
	}
	if len(out.Warnings) != 3 {
		t.Errorf("warnings %v: want one about sizes, one about all_to_all and one about the rest", out.Warnings)
	}
}

func TestNCCLEnv(t *testing.T) {
	x := merged(t, measured(t, comm.AllReduce, 8, 1, ncclTimes), measured(t, comm.AllGather, 8, 1, map[string][3]int64{"nccl:collnet_direct/simple/ch=2": {1, 2, 3}}))
	got := shellVariables(t, text(write(t, "nccl-env", exports.Input{Table: x})))
	want := map[string]string{"NCCL_ALGO": "allgather:collnetdirect;allreduce:tree,ring", "NCCL_PROTO": "allgather:simple;allreduce:ll,simple"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

var openMPITimes = map[string][3]int64{"openmpi:recursive_doubling": {10, 100, 9000}, "openmpi:ring": {20, 60, 1000}, "openmpi": {15, 90, 2000}}

func TestOpenMPIRules(t *testing.T) {
	x := merged(t, measured(t, comm.AllReduce, 4, 1, openMPITimes), measured(t, comm.AllReduce, 5, 1, map[string][3]int64{"openmpi:ring": {1, 1, 1}}),
		measured(t, comm.ReduceScatter, 8, 2, map[string][3]int64{"openmpi:butterfly": {1, 1, 1}}))
	for version, format := range map[int]string{1: "openmpi-rules-v1", 2: "openmpi-rules"} {
		rules := parseRules(t, text(write(t, format, exports.Input{Table: x})), version)
		for _, c := range []struct {
			id, ranks int
			bytes     int64
			want      int
		}{
			{2, 4, 0, 3}, {2, 4, 64, 3}, {2, 4, 64 << 9, 4}, {2, 4, 1 << 40, 4},
			{2, 5, 8, 4}, {2, 6, 8, 0}, {2, 3, 8, 0}, {2, 2, 8, 0}, {2, 64, 8, 0},
			{13, 8, 8, 4}, {13, 9, 8, 0}, {13, 7, 8, 0},
		} {
			if got := rules.lookup(c.id, c.ranks, c.bytes); got != c.want {
				t.Errorf("version %d: collective %d, %d ranks, %d bytes: algorithm %d, want %d", version, c.id, c.ranks, c.bytes, got, c.want)
			}
		}
	}
}

// Persistent collectives win everywhere, and no file can say so: the best of the
// others is exported, and a warning says what was left out.
func TestPersistentIsLeftOut(t *testing.T) {
	with := map[string][3]int64{"openmpi:persistent": {1, 1, 1}, "mpich:persistent": {1, 1, 1}}
	for who, times := range openMPITimes {
		with[who] = times
	}
	for _, format := range []string{"openmpi-rules-v1", "openmpi-json"} {
		want := write(t, format, exports.Input{Table: merged(t, measured(t, comm.AllReduce, 4, 1, openMPITimes))})
		got := write(t, format, exports.Input{Table: merged(t, measured(t, comm.AllReduce, 4, 1, with))})
		if text(got) != text(want) {
			t.Errorf("%s:\n%s\nwithout persistent ones:\n%s", format, text(got), text(want))
		}
		if w := fmt.Sprint(got.Warnings); !strings.Contains(w, "openmpi:persistent is left out") || strings.Contains(w, "mpich:persistent") {
			t.Errorf("%s: warnings %s", format, w)
		}
	}
}

func TestOpenMPIJSON(t *testing.T) {
	x := merged(t, measured(t, comm.AllReduce, 4, 1, openMPITimes), measured(t, comm.ReduceScatterV, 8, 8, map[string][3]int64{"openmpi:ring": {1, 1, 1}}))
	data := text(write(t, "openmpi-json", exports.Input{Table: x}))
	for _, c := range []struct {
		collective, distribution string
		ranks                    int
		bytes                    int64
		want                     string
	}{
		{"allreduce", "single-node", 4, 64, "recursive_doubling"}, {"allreduce", "single-node", 4, 1 << 40, "ring"},
		{"allreduce", "any", 4, 64, ""}, {"allreduce", "single-node", 5, 64, ""}, {"reduce_scatter", "one-per-node", 8, 64, "ring"},
	} {
		if got := jsonLookup(t, data, c.collective, c.distribution, c.ranks, c.bytes); got != c.want {
			t.Errorf("%s on %d ranks (%s), %d bytes: %q, want %q", c.collective, c.ranks, c.distribution, c.bytes, got, c.want)
		}
	}
}

func TestUCC(t *testing.T) {
	x := merged(t, measured(t, comm.AllReduce, 8, 1, map[string][3]int64{"ucc:ucp/knomial": {10, 100, 9000}, "ucc:nccl": {20, 60, 1000}}),
		measured(t, comm.ReduceScatter, 8, 1, map[string][3]int64{"ucc:ucp/ring": {10, 100, 9000}, "ucc:cuda/linear": {20, 60, 1000}}))
	vars := shellVariables(t, text(write(t, "ucc", exports.Input{Table: x})))
	cut := crossing(10, 20, 100, 60, 0)
	for _, c := range []struct {
		collective string
		bytes      int64 // as UCC counts
		want       string
	}{
		{"allreduce", 8, "UCP/knomial"}, {"allreduce", cut - 1, "UCP/knomial"}, {"allreduce", cut, "NCCL/"}, {"allreduce", 1 << 40, "NCCL/"},
		{"reduce_scatter", (cut - 1) / 8, "UCP/ring"}, {"reduce_scatter", cut/8 + 1, "CUDA/linear"},
	} {
		if got := uccLookup(t, vars, c.collective, "cuda", 8, c.bytes); got != c.want {
			t.Errorf("%s of %d bytes: %s, want %s (%v)", c.collective, c.bytes, got, c.want, vars)
		}
	}
	if got := uccLookup(t, vars, "allreduce", "cuda", 4, 8); got != "" {
		t.Errorf("4 ranks were not measured, and get %s", got)
	}
}

func TestMPICH(t *testing.T) {
	base, err := os.ReadFile("testdata/generic.json")
	if err != nil {
		t.Fatal(err)
	}
	x := merged(t, measured(t, comm.AllReduce, 4, 1, map[string][3]int64{"mpich:recursive_doubling": {10, 100, 9000}, "mpich:reduce_scatter_allgather": {20, 60, 1000}}),
		measured(t, comm.AllToAll, 8, 1, map[string][3]int64{"mpich:brucks": {10, 100, 9000}, "mpich:pairwise": {20, 60, 1000}}),
		measured(t, comm.AllReduce, 6, 1, map[string][3]int64{"mpich": {1, 1, 1}}))
	cut := crossing(10, 20, 100, 60, 0)
	for name, base := range map[string][]byte{
		"JSON":    base,
		"library": append(append([]byte("\x7fELF...{\"collective=bcast\":{\"composition=x\":{}}}\x00"), compact(t, base)...), 0, 1, 2),
	} {
		tree := parseSelection(t, text(write(t, "mpich", exports.Input{Table: x, Base: base})))
		builtin := parseSelection(t, string(compact(t, base[bytesStart(base):])))
		for _, c := range []struct {
			collective string
			ranks      int
			bytes      int64 // as MPICH counts: to one peer of an alltoall
			count      int64
			want       string // "" as built in
		}{
			{"allreduce", 4, 8, 2, "MPIR_Allreduce_intra_recursive_doubling"}, {"allreduce", 4, cut - 1, 99, "MPIR_Allreduce_intra_recursive_doubling"},
			{"allreduce", 4, cut, 99, "MPIR_Allreduce_intra_reduce_scatter_allgather"},
			{"allreduce", 4, cut, 2, ""}, // fewer elements than ranks
			{"allreduce", 3, 8, 2, ""}, {"allreduce", 5, 1 << 20, 1 << 18, ""}, {"allreduce", 6, 8, 8, ""},
			{"alltoall", 8, (cut - 1) / 8, 9, "MPIR_Alltoall_intra_brucks"}, {"alltoall", 8, cut, 9, "MPIR_Alltoall_intra_pairwise"}, {"alltoall", 7, 8, 9, ""},
			{"barrier", 4, 0, 0, ""},
		} {
			want := c.want
			if want == "" {
				want = builtin.lookup(t, c.collective, c.ranks, c.bytes, c.count)
			}
			if got := tree.lookup(t, c.collective, c.ranks, c.bytes, c.count); got != want {
				t.Errorf("%s: %s on %d ranks, %d bytes, %d elements: %s, want %s", name, c.collective, c.ranks, c.bytes, c.count, got, want)
			}
		}
	}
}

// compact takes the blanks out of JSON; of a library it is left as it is.
func compact(t *testing.T, data []byte) []byte {
	t.Helper()
	return []byte(strings.Join(strings.Fields(string(data)), ""))
}

// bytesStart is where the tree begins in a library, 0 in JSON.
func bytesStart(data []byte) int {
	if data[0] == '{' {
		return 0
	}
	return strings.Index(string(data), `{"collective=bcast":{"comm`)
}

func TestMSCCLPP(t *testing.T) {
	x := merged(t, measured(t, comm.AllReduce, 8, 1, map[string][3]int64{"mscclpp": {1, 1, 9}, "nccl": {2, 2, 2}}),
		measured(t, comm.AllGather, 8, 1, map[string][3]int64{"mscclpp": {9, 9, 9}, "nccl": {2, 2, 2}}),
		measured(t, comm.Broadcast, 8, 1, map[string][3]int64{"mscclpp": {1, 1, 1}, "nccl": {2, 2, 2}}))
	out := write(t, "mscclpp", exports.Input{Table: x})
	want := map[string]string{"MSCCLPP_ENABLE_NCCL_FALLBACK": "TRUE", "MSCCLPP_FORCE_NCCL_FALLBACK_OPERATION": "allreduce,allgather"}
	if diff := cmp.Diff(want, shellVariables(t, text(out))); diff != "" || len(out.Warnings) != 2 {
		t.Errorf("warnings %v, (-want +got)\n%s", out.Warnings, diff)
	}
}

func TestNCCLTestsCommands(t *testing.T) {
	got := text(write(t, "nccl-tests", exports.Input{Table: measured(t, comm.AllReduce, 8, 1, ncclTimes)}))
	cut := crossing(10, 20, 100, 60, 0)
	want := []string{
		fmt.Sprintf("NCCL_ALGO=tree NCCL_PROTO=ll NCCL_MIN_NCHANNELS=4 NCCL_MAX_NCHANNELS=4 mpirun -np 8 all_reduce_perf -b 64 -e %d -f 2 -g 1 -a 3 -c 1", cut-1),
		fmt.Sprintf("NCCL_ALGO=ring NCCL_PROTO=simple NCCL_MIN_NCHANNELS=16 NCCL_MAX_NCHANNELS=16 mpirun -np 8 all_reduce_perf -b %d -e %d -f 2 -g 1 -a 3 -c 1", cut, 64<<18),
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if diff := cmp.Diff(want, lines[len(lines)-2:]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// uneven is a plan of two ranks with an all_to_allv, a broadcast, a batch and a send.
func uneven() *planpb.Plan {
	task := func(c *planpb.Communication) *planpb.Task {
		return &planpb.Task{Kind: &planpb.Task_Communication{Communication: c}, Origin: &planpb.Origin{Ts: 77}}
	}
	program := func(rank int32, splits, back []int64) *planpb.Program {
		peer := 1 - rank
		return &planpb.Program{Rank: rank, Tasks: []*planpb.Task{
			task(&planpb.Communication{Op: planpb.Op_OP_ALL_TO_ALLV, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: splits[0] + splits[1], OutCount: back[0] + back[1], InSplits: splits, OutSplits: back}),
			task(&planpb.Communication{Op: planpb.Op_OP_BROADCAST, Dtype: planpb.DType_DTYPE_BFLOAT16, InCount: 8, OutCount: 8, Root: 1, Seq: 1}),
			task(&planpb.Communication{Op: planpb.Op_OP_BATCH, Dtype: planpb.DType_DTYPE_FLOAT32, Transfers: []*planpb.Transfer{{Send: true, Peer: peer, Count: 3}, {Peer: peer, Count: 3}}}),
			task(&planpb.Communication{Op: planpb.Op_OP_BARRIER, Dtype: planpb.DType_DTYPE_FLOAT32, Seq: 2}),
		}}
	}
	return &planpb.Plan{Workload: &planpb.Workload{
		Groups:   []*planpb.Group{{Name: "0", Ranks: []int32{0, 1}}},
		Programs: []*planpb.Program{program(0, []int64{4, 5}, []int64{4, 8}), program(1, []int64{8, 12}, []int64{5, 12})},
	}}
}

func TestMatrix(t *testing.T) {
	out := write(t, "nccl-tests-matrix", exports.Input{Plan: uneven()})
	if got := text(out); got != "16 32\n32 48\n" || !strings.Contains(out.Apply[0], "-b 80 -e 80") || len(out.Warnings) != 1 {
		t.Errorf("matrix %q, %v, %v", got, out.Apply, out.Warnings)
	}
}

func TestPARAM(t *testing.T) {
	out := write(t, "param", exports.Input{Plan: uneven()})
	if len(out.Files) != 2 || out.Files[1].Name != "1.json" {
		t.Fatalf("files %v", out.Files)
	}
	want := []string{
		"init pg=0 ranks=[0 1]", "all_to_allv float in=20 out=17 [8 12] [5 12]", "broadcast bfloat16 in=8 out=8 root=1",
		"isend float in=3 out=3 1->0 batch", "irecv float in=3 out=3 0->1 batch", "batch_isend_irecv", "barrier",
	}
	if diff := cmp.Diff(want, parseBasicTrace(t, out.Files[1].Data)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestFromMix: the first rule that matches decides, and every range has its end.
func TestFromMix(t *testing.T) {
	m, err := exports.ParseMix("all_reduce@>=1MiB=nccl:ring/simple/ch=8,all_reduce@4KiB-64KiB=gloo,*=nccl:ring/ll/ch=2")
	if err != nil {
		t.Fatal(err)
	}
	list, err := exports.FromMix(m, []comm.Op{comm.AllReduce, comm.Broadcast})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list {
		got = append(got, fmt.Sprintf("%s %d-%d %s", d.Op, d.Min, d.Max, d.Contender))
	}
	want := []string{
		"all_reduce 0-4095 nccl:ring/ll/ch=2", "all_reduce 4096-65536 gloo", "all_reduce 65537-1048575 nccl:ring/ll/ch=2",
		"all_reduce 1048576-9223372036854775807 nccl:ring/simple/ch=8", "broadcast 0-9223372036854775807 nccl:ring/ll/ch=2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestWhatALibraryWouldMisreadIsRefused, and what there is nothing of.
func TestWhatALibraryWouldMisreadIsRefused(t *testing.T) {
	one := func(op comm.Op, who string) exports.Input {
		return exports.Input{Table: measured(t, op, 8, 1, map[string][3]int64{who: {1, 1, 1}})}
	}
	base, err := os.ReadFile("testdata/generic.json")
	if err != nil {
		t.Fatal(err)
	}
	with := func(in exports.Input, base []byte) exports.Input { in.Base = base; return in }
	group, err := exports.ParseMix("all_reduce@group:tp=nccl:ring/ll/ch=2,*=gloo")
	if err != nil {
		t.Fatal(err)
	}
	own, err := exports.ParseMix("*=nccl")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		format string
		in     exports.Input
		want   error
		says   string
	}{
		{"nccl-tuner", one(comm.AllReduce, "nccl:rign/ll/ch=2"), exports.ErrInexpressible, "rign"},
		{"nccl-tuner", one(comm.Broadcast, "nccl:tree/ll/ch=2"), exports.ErrInexpressible, "no algorithm tree for broadcast"},
		{"nccl-tuner", one(comm.AllReduce, "nccl:nvls/ll/ch=2"), exports.ErrInexpressible, "simple only"},
		{"nccl-tuner", one(comm.AllReduce, "nccl:ring/ll"), exports.ErrInexpressible, "--channels"},
		{"nccl-tuner", one(comm.AllReduce, "nccl"), exports.ErrNothing, "settings"},
		{"nccl-tuner", exports.Input{Mix: &own}, exports.ErrInexpressible, "own choice"},
		{"ucc", one(comm.AllReduce, "ucc"), exports.ErrNothing, "settings"},
		{"nccl-tuner", one(comm.AllToAll, "nccl:ring/ll/ch=2"), exports.ErrNothing, "collective"},
		{"nccl-tuner", one(comm.AllReduce, "gloo"), exports.ErrNothing, "nccl"},
		{"nccl-tuner", exports.Input{Mix: &group}, exports.ErrInexpressible, "tp"},
		{"nccl-env", one(comm.AllReduce, "nccl:ring/lll"), exports.ErrInexpressible, "lll"},
		{"openmpi-rules", one(comm.AllReduce, "openmpi:rign"), exports.ErrInexpressible, "rign"},
		{"openmpi-json", one(comm.AllReduce, "openmpi:rign"), exports.ErrInexpressible, "rign"},
		{"openmpi-json", one(comm.AllReduce, "openmpi"), exports.ErrNothing, "algorithm"},
		{"ucc", one(comm.AllReduce, "ucc:ucpp"), exports.ErrInexpressible, "ucpp"},
		{"ucc", one(comm.AllReduce, "ucc:ucp/rign"), exports.ErrInexpressible, "rign"},
		{"mpich", one(comm.AllReduce, "mpich:ring"), exports.ErrInexpressible, "--base"},
		{"mpich", with(one(comm.AllReduce, "mpich:ring"), base), exports.ErrInexpressible, "ring"},
		{"mpich", with(one(comm.AllReduce, "mpich"), base), exports.ErrNothing, "algorithm"},
		{"mpich", with(one(comm.AllReduce, "mpich:recursive_doubling"), []byte("{}")), exports.ErrInexpressible, "--base"},
		{"mpich", with(one(comm.AllReduce, "mpich:recursive_doubling"), []byte("\x7fELF")), exports.ErrInexpressible, "--base"},
		{"param", one(comm.AllReduce, "gloo"), exports.ErrNothing, "plan"},
		{"mscclpp", one(comm.AllToAll, "nccl"), exports.ErrNothing, "mscclpp"},
		{"vtune", exports.Input{}, exports.ErrUnknownFormat, "nccl-tuner"},
	} {
		out, err := exports.Write(c.format, c.in)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v; want %v that says %q", c.format, out, err, c.want, c.says)
		}
	}
}

// shellVariables reads NAME='VALUE' lines.
func shellVariables(t *testing.T, text string) map[string]string {
	t.Helper()
	vars := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.ContainsAny(name, " '#;") {
			t.Fatalf("line %q is no assignment", line)
		}
		if strings.ContainsAny(value, ";#[ ") && !strings.HasPrefix(value, "'") {
			t.Errorf("a shell would not read %q as it is", line)
		}
		vars[name] = strings.Trim(value, "'")
	}
	return vars
}

// parseBasicTrace reads a trace as _parseBasicTrace of commsTraceParser.py does:
// which keys an operation must have depends on it.
func parseBasicTrace(t *testing.T, data []byte) []string {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		must := func(key string) any {
			v, ok := r[key]
			if !ok {
				t.Fatalf("%v has no %s", r, key)
			}
			return v
		}
		name := must("comms").(string)
		s := name
		must("pg_id")
		must("world_size")
		if name == "init" {
			s += fmt.Sprintf(" pg=%v ranks=%v", must("pg_id"), must("global_ranks"))
		}
		if !slices.Contains([]string{"wait", "barrier", "init", "batch_isend_irecv"}, name) {
			s += fmt.Sprintf(" %v in=%v out=%v", must("dtype"), must("in_msg_size"), must("out_msg_size"))
		}
		if name == "all_to_allv" {
			s += fmt.Sprintf(" %v %v", must("in_split"), must("out_split"))
		}
		if slices.Contains([]string{"send", "recv", "isend", "irecv"}, name) {
			s += fmt.Sprintf(" %v->%v", must("src_rank"), must("dst_rank"))
			if must("use_batch").(bool) {
				s += " batch"
			}
		}
		if root, ok := r["root"]; ok {
			s += fmt.Sprintf(" root=%v", root)
		}
		out = append(out, s)
	}
	return out
}
