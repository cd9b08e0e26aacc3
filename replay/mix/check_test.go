package mix_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

var (
	both = [][]int32{{0, 1}, {0, 1}}
	ring = [][]int32{{0, 1}, {1, 2}, {2, 0}}
)

// capabilities reads backends in JSON.
func capabilities(t *testing.T, backends string) *mix.Capabilities {
	t.Helper()
	c, err := mix.ParseCapabilities(strings.NewReader(`{"schema_version":1,"sms":132,"backends":[` + backends + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// changed applies a change to a plan.
func changed(p *planpb.Plan, change func(*planpb.Plan)) *planpb.Plan {
	change(p)
	return p
}

// communication is a rank's task i.
func communication(p *planpb.Plan, rank, i int) *planpb.Communication {
	return p.Workload.Programs[rank].Tasks[i].GetCommunication()
}

const (
	gpuAwareMPI  = `{"name":"openmpi","device":"gpu","family":"mpi"}`
	pinningMPI   = `{"name":"openmpi","family":"mpi","allocates":true}`
	gpuUCC       = `{"name":"ucc","device":"gpu","stream_ordered":true}`
	twelveOf132  = `{"name":"nccl","device":"gpu","stream_ordered":true,"untagged":true,"channels":12}`
	oneThread    = `{"name":"openmpi","threads":"single"}`
	oneAtATime   = `{"name":"openmpi","threads":"serialized"}`
	sideBySide   = `{"name":"nccl","device":"gpu","stream_ordered":true,"untagged":true,"concurrent":true}`
	onlyReduces  = `{"name":"scclx","ops":["all_reduce"],"dtypes":["float16"]}`
	smallCounts  = `{"name":"openmpi","max_count":100}`
	blockingGloo = `{"name":"gloo","blocks_host":true}`
	measuredGloo = `{"name":"gloo","measured":[{"op":"all_reduce","min_bytes":4096,"max_bytes":1048576,"min_ranks":2,"max_ranks":8}]}`
	copyEngine   = `{"name":"gloo","sm_free":true}`
)

// TestCauses: for each cause of a deadlock that the literature knows (numbers as
// in help deadlocks), a plan that has it is refused for the right reason, and
// the plan that does it right is not.
func TestCauses(t *testing.T) {
	caught := map[string]bool{}
	for _, c := range []struct {
		name     string
		plan     *planpb.Plan
		caps     string
		code     string // "" for a plan without errors and warnings but W4
		says     string
		deadlock bool
	}{
		{name: "D1 two members submit in different orders", plan: write(t, both, "g0#0 g0#1", "g0#1 g0#0"), code: "E1", says: "different orders", deadlock: true},
		{name: "D1 and so their operations differ", plan: write(t, both, "g0 g0=broadcast", "g0=broadcast g0"), code: "E1", says: "operation all_reduce, broadcast"},
		{name: "D1 done right", plan: write(t, both, "g0 g0=broadcast", "g0 g0=broadcast")},
		{name: "D2 a ring of three groups", plan: write(t, ring, "g0 g2", "g1 g0", "g2 g1"), code: "E3", says: "3 operations wait for each other in a circle", deadlock: true},
		{name: "D2 done right", plan: write(t, ring, "g0 g2", "g0 g1", "g1 g2")},
		{name: "D3 two groups on one GPU in opposite order", plan: write(t, both, "g0@nccl/0 g1@nccl/1", "g1@nccl/1 g0@nccl/0"), code: "E4", says: "nothing orders", deadlock: true},
		{name: "D3 the order is explicit, and opposite", plan: write(t, both, "g0@nccl/0 g1@nccl/1<0", "g1@nccl/1 g0@nccl/0<0"), code: "E3", says: "circle", deadlock: true},
		{name: "D3 done right", plan: write(t, both, "g0@nccl/0 g1@nccl/1<0", "g0@nccl/0 g1@nccl/1<0")},
		{name: "D4 kernels of three groups that share SMs", plan: write(t, ring, "g0@nccl/0 g2@nccl/1", "g0@nccl/0 g1@nccl/1", "g1@nccl/0 g2@nccl/1"), code: "E4", says: "share its GPU", deadlock: true},
		{name: "D5 streams promise no progress", plan: write(t, both, "g0@nccl/0 g1@nccl/1", "g0@nccl/0 g1@nccl/1"), code: "E4", says: "may differ between ranks", deadlock: true},
		{name: "D6 a library allocates while a kernel waits", plan: write(t, both, "g0@nccl/0 g1@openmpi/1", "g0@nccl/0 g1@openmpi/1"), caps: pinningMPI, code: "W2", says: "allocate, register or connect"},
		{name: "D6 done right", plan: write(t, both, "g0@nccl/0 g1@openmpi/1<0", "g0@nccl/0 g1@openmpi/1<0"), caps: pinningMPI},
		{name: "D7 CUDA-aware MPI beside NCCL", plan: write(t, both, "g0@nccl/0 g1@openmpi/1", "g0@nccl/0 g1@openmpi/1"), caps: gpuAwareMPI, code: "E4", says: "nccl and openmpi know nothing of each other", deadlock: true},
		{name: "D7 done right", plan: write(t, both, "g0@nccl w g1@openmpi", "g0@nccl w g1@openmpi"), caps: gpuAwareMPI},
		{name: "D8 one waits in MPI, the other in NCCL", plan: write(t, both, "g0@nccl g1@openmpi", "g1@openmpi g0@nccl"), code: "E3", says: "openmpi", deadlock: true},
		{name: "D9 threads race", plan: write(t, [][]int32{{0, 1, 2}, {0, 1, 2}}, "h g0@nccl/1<0 g1@nccl/2<0", "h g0@nccl/1<0 g1@nccl/2<0", "h g0@nccl/1<0 g1@nccl/2<0"), code: "E4", says: "ranks 0-2", deadlock: true},
		{name: "D10 both send before they receive", plan: write(t, both, "s1 r1", "s0 r0"), code: "E3", says: "send to rank 1", deadlock: true},
		{name: "D10 done right, grouped", plan: write(t, both, "x1", "x0")},
		{name: "D10 done right, one receives first", plan: write(t, both, "s1 r1", "r0 s0")},
		{name: "D11 only some members come to the first use", plan: changed(write(t, [][]int32{{0, 1, 2}}, "g0", "g0", "g0"), func(p *planpb.Plan) { p.Workload.Programs = p.Workload.Programs[:2] }), code: "E7", says: "rank 2 of its 3 members do not run"},
		{name: "D12 ranks with different tuning files", plan: environments(write(t, [][]int32{{0, 1, 2}}, "g0@nccl", "g0@nccl", "g0@nccl"), "a1", "b2", "a1"), code: "E9", says: "ranks 0, 2 and rank 1 have different tuning files or environments (a1, b2)", deadlock: true},
		{name: "D12 done right", plan: environments(write(t, both, "g0@nccl", "g0@nccl"), "a1", "a1")},
		{name: "D13 two teams of UCC on GPUs", plan: write(t, both, "g0@ucc/0 g1@ucc/1", "g0@ucc/0 g1@ucc/1"), caps: gpuUCC, code: "E4", says: "ucc", deadlock: true},
		{name: "D14 the members chose different libraries", plan: write(t, both, "g0@gloo", "g0@mpich"), code: "E5", says: "on gloo for rank 0 and on mpich for rank 1"},
		{name: "D14 the ends of a transfer chose different libraries", plan: write(t, both, "s1@gloo", "r0@mpich"), code: "E5", says: "sent on gloo and received on mpich"},
		{name: "D15 MPI reads what a kernel still writes", plan: write(t, both, "c g0@openmpi", "c g0@openmpi"), caps: gpuAwareMPI, code: "E6", says: "before it is filled"},
		{name: "D15 done right", plan: write(t, both, "c w g0@openmpi", "c w g0@openmpi"), caps: gpuAwareMPI},
		{name: "D16 communicators destroyed in different orders", plan: lives(write(t, both, "g0 g1", "g0 g1"), "-0@2 -1@2", "-1@2 -0@2"), code: "E7",
			says: `rank 0 destroys the communicator of group "0" before it destroys the communicator of group "1"; rank 1 destroys the communicator of group "1" before`, deadlock: true},
		{name: "D16 made in different orders, in a circle of three", plan: lives(write(t, ring, "g0 g2", "g0 g1", "g1 g2"), "+0@0 +2@0", "+1@0 +0@0", "+2@0 +1@0"), code: "E7", says: "communicators wait for each other", deadlock: true},
		{name: "D16 one member never destroys it", plan: lives(write(t, both, "g0 g1", "g0 g1"), "-0@2 -1@2", "-1@2"), code: "E7", says: `rank 0 destroys the communicator of group "0", and rank 1 never`, deadlock: true},
		{name: "D16 destroyed before its last use", plan: lives(write(t, both, "g0 g0", "g0 g0"), "-0@1", "-0@1"), code: "E7", says: "all_reduce 1 of group \"0\" on rank 0 has no communicator"},
		{name: "D16 done right", plan: lives(write(t, ring, "g0 g2", "g0 g1", "g1 g2"), "+0@0 +2@0 -0@2 -2@2", "+0@0 +1@0 -0@2 -1@2", "+1@0 +2@0 -1@2 -2@2")},
		{name: "D16 made anew", plan: lives(write(t, both, "g0 g0", "g0 g0"), "-0@1 +0@1", "-0@1 +0@1")},
		{name: "D17 an all_gatherv is a batch on some ranks", plan: write(t, both, "g0=all_gatherv g0", "x0 g0"), code: "E1", says: "operation all_gatherv, all_reduce"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := mix.CheckOptions{}
			if c.caps != "" {
				opts.Capabilities = capabilities(t, c.caps)
			}
			cause, _, _ := strings.Cut(c.name, " ")
			caught[cause] = caught[cause] || c.code != ""
			expect(t, mix.Inspect(c.plan, opts), c.code, c.says)
			if err := mix.Inspect(c.plan, opts).Err(); errors.Is(err, mix.ErrDeadlock) != c.deadlock {
				t.Errorf("error %v: a deadlock: %v", err, c.deadlock)
			}
		})
	}
	for d := 1; d <= 17; d++ {
		if !caught[fmt.Sprint("D", d)] {
			t.Errorf("no plan has cause D%d", d)
		}
	}
}

// expect looks for a finding of the code, the first of its kind of list, with
// some words in it.
func expect(t *testing.T, r *mix.Report, code, says string) {
	t.Helper()
	var codes []string
	for _, f := range slices.Concat(r.Errors, r.Warnings) {
		codes = append(codes, f.Code)
		if f.Code != code {
			continue
		}
		text := f.Message
		for _, s := range f.Cycle {
			text += "; " + s.String()
		}
		if !strings.Contains(text, says) {
			t.Errorf("%q does not mention %q", text, says)
		}
		if f.Advice == "" || f.Name == "" || len(f.Ranks) == 0 && code != "E0" && !strings.Contains(says, "MPI library") && code != "W4" {
			t.Errorf("finding without advice, name or ranks: %+v", f)
		}
		return
	}
	if code != "" || len(codes) > 0 {
		t.Errorf("found %v, want %q: %v", codes, code, r.Err())
	}
}

// TestChecks: what is not a cause in TestCauses.
func TestChecks(t *testing.T) {
	alone := [][]int32{{0, 1}, {1, 2}}
	for _, c := range []struct {
		name, code, says string
		plan             *planpb.Plan
		caps             string
	}{
		{name: "two groups in one order", plan: write(t, both, "g0 g1@openmpi g0", "g0 g1@openmpi g0")},
		{name: "two groups in opposite order", plan: write(t, both, "g0 g1", "g1 g0"), code: "E3", says: `both are on stream "host"`},
		{name: "a circle through dependencies", plan: write(t, both, "g0/0 h/1<0 g1/1", "g1/0 g0/1<0"), code: "E3", says: "by way of tasks 0, 1"},
		{name: "streams take turns on a communicator", plan: write(t, both, "g0/0 g0/1", "g0#1/1 g0#0/0")},
		{name: "a stream waits for a turn that never comes", plan: write(t, both, "g0#0/0 g1/1 g0#1/0", "g0#1/0 g1/1 g0#0/1<0"), code: "E1", says: "it depends on task 0"},
		{name: "one group on two libraries has two orders", plan: write(t, both, "g0#0@gloo g0#1@openmpi", "g0#1@openmpi g0#0@gloo"), code: "E3", says: "openmpi"},
		{name: "a batch that waits for two ranks", plan: write(t, both, "bs1s2", "r0 s2", "r1 r0"), code: "", says: ""},
		{name: "a batch in a circle", plan: write(t, both, "g0 bs1s2", "r0 g0", "r0"), code: "E3", says: "batch to ranks 1, 2"},
		{name: "a member is missing", plan: write(t, both, "g0 g0", "g0"), code: "E1", says: "rank 1 never run it"},
		{name: "a member twice", plan: write(t, both, "g0#0 g0#0", "g0"), code: "E1", says: "twice"},
		{name: "types differ", plan: changed(write(t, both, "g0", "g0"), func(p *planpb.Plan) { communication(p, 1, 0).Dtype = planpb.DType_DTYPE_INT8 }), code: "E1", says: "element type float32, int8"},
		{name: "reductions differ", plan: changed(write(t, both, "g0", "g0"), func(p *planpb.Plan) { communication(p, 1, 0).ReduceOp = planpb.ReduceOp_REDUCE_OP_MAX }), code: "E1", says: "reduction"},
		{name: "roots differ", plan: changed(write(t, both, "g0=broadcast", "g0=broadcast"), func(p *planpb.Plan) { communication(p, 1, 0).Root = 1 }), code: "E1", says: "root 0, 1"},
		{name: "counts differ", plan: changed(write(t, both, "g0", "g0"), func(p *planpb.Plan) { communication(p, 1, 0).InCount, communication(p, 1, 0).OutCount = 8, 8 }), code: "E1", says: "count 256, 8"},
		{name: "a count that can't be", plan: write(t, both, "g0=all_gather", "g0=all_gather"), code: "E1", says: "256 in and 256 out are not those of all_gather in a group of 2"},
		{name: "parts seen from both sides", plan: splits(write(t, both, "g0=all_to_allv", "g0=all_to_allv"), 7), code: "E1", says: "rank 0 says 7 elements"},
		{name: "parts that fit", plan: splits(write(t, both, "g0=all_to_allv", "g0=all_to_allv"), 9)},
		{name: "a send that nobody receives", plan: write(t, both, "s1", ""), code: "E2", says: "never receives"},
		{name: "a receive that nobody sends", plan: write(t, both, "", "r0"), code: "E2", says: "never sends"},
		{name: "ends of different size", plan: changed(write(t, both, "s1", "r0"), func(p *planpb.Plan) { communication(p, 1, 0).Transfers[0].Count = 3 }), code: "E2", says: "16 elements"},
		{name: "sent twice", plan: changed(write(t, both, "s1 s1", "r0"), func(p *planpb.Plan) { communication(p, 0, 1).Transfers[0].Match = 1 }), code: "E2", says: "2 times on one side"},
		{name: "another order without tags", plan: swapped(write(t, both, "bs1s1@nccl", "br0r0@nccl")), code: "E2", says: "no tags"},
		{name: "another order with tags", plan: swapped(write(t, both, "bs1s1", "br0r0"))},
		{name: "two transfers on one GPU that nothing orders", plan: write(t, both, "s1@nccl/0 s1@nccl/1", "r0@nccl/0 r0@nccl/1"), code: "E4", says: "send to rank 1"},
		{name: "groups that wait for each other by way of another rank", plan: write(t, [][]int32{{0, 1}, {1, 2}, {2, 0}}, "g0@nccl g2", "g0@nccl/1 g1@nccl/2", "g1@nccl g2"), code: "E4", says: "nothing orders"},
		{name: "kernels that can't block each other", plan: write(t, alone, "g0@nccl", "g0@nccl/0 g1@nccl/1", "g1@nccl"), code: "W1", says: "how many SMs they hold is not known"},
		{name: "W1 kernels that fit, as the trace has them", plan: held(write(t, alone, "g0@nccl", "g0@nccl/0 g1@nccl/1", "g1@nccl"), 24, 132)},
		{name: "W1 kernels that do not, as the trace has them", plan: held(write(t, alone, "g0@nccl", "g0@nccl/0 g1@nccl/1", "g1@nccl"), 48, 132), code: "W1", says: "up to 96 of 132 SMs"},
		{name: "E6 a buffer that is received into while it is sent", plan: buffers(write(t, both, "g0=broadcast/0 g1/1", "g0=broadcast/0 g1/1"), "7:8 7:7"), code: "E6", says: "broadcast 0 of group \"0\" and all_reduce 0 of group \"1\" use buffer 7 on rank 0, and nothing orders them"},
		{name: "E6 one behind the other", plan: buffers(write(t, both, "g0=broadcast/0 g1/1<0", "g0=broadcast/0 g1/1<0"), "7:8 7:7")},
		{name: "E6 both only read it", plan: buffers(write(t, both, "g0=broadcast/0 g1/1", "g0=broadcast/0 g1/1"), "7:8 7:9")},
		{name: "E6 two readers and a writer that waits for one of them", plan: buffers(write(t, both, "g0/0 g1/1 g0#1/2<0", "g0/0 g1/1 g0#1/2<0"), "7:8 7:9 5:7"), code: "E6", says: "all_reduce 0 of group \"1\" and all_reduce 1 of group \"0\" use buffer 7"},
		{name: "E6 turns order it against the plan", plan: buffers(write(t, both, "g0#1/0 g0#0/1", "g0#1/0 g0#0/1"), "7:7 7:8")},
		{name: "E6 two messages of a batch into one buffer", plan: changed(write(t, both, "br1r1", "bs0s0"), func(p *planpb.Plan) {
			for _, tr := range communication(p, 0, 0).Transfers {
				tr.Buffer = 3
			}
		}), code: "E6", says: "uses buffer 3 twice"},
		{name: "W1 kernels that fit", plan: write(t, alone, "g0@nccl", "g0@nccl/0 g1@nccl/1", "g1@nccl"), caps: twelveOf132},
		{name: "W1 kernels that do not fit", plan: write(t, alone, "g0@nccl", "g0@nccl/0 g1@nccl/1", "g1@nccl"), caps: strings.Replace(twelveOf132, "12", "60", 1), code: "W1", says: "up to 120 of 132 SMs"},
		{name: "kernels that the user vouches for", plan: write(t, both, "g0@nccl/0 g1@nccl/1", "g0@nccl/0 g1@nccl/1"), caps: sideBySide, code: "W1", says: "may wait at once"},
		{name: "NCCL beside Gloo", plan: write(t, both, "g0@nccl/0 g1@gloo/1", "g0@nccl/0 g1@gloo/1")},
		{name: "no backend", plan: write(t, both, "g0@", "g0@"), code: "E5", says: "no backend is chosen"},
		{name: "two MPI libraries", plan: write(t, both, "g0@openmpi g1@mpich", "g0@openmpi g1@mpich"), code: "E5", says: "can load one MPI library only"},
		{name: "an operation it does not have", plan: write(t, both, "g0=barrier@scclx", "g0=barrier@scclx"), caps: onlyReduces, code: "E5", says: "does not have this operation"},
		{name: "a type it does not have", plan: write(t, both, "g0@scclx", "g0@scclx"), caps: onlyReduces, code: "E5", says: "has no float32"},
		{name: "more than it can count", plan: write(t, both, "g0@openmpi", "g0@openmpi"), caps: smallCounts, code: "E5", says: "256 elements in one operation, at most 100"},
		{name: "an average of integers", plan: changed(write(t, both, "g0@nccl", "g0@nccl"), func(p *planpb.Plan) {
			for r := range 2 {
				communication(p, r, 0).Dtype, communication(p, r, 0).ReduceOp = planpb.DType_DTYPE_INT32, planpb.ReduceOp_REDUCE_OP_AVG
			}
		}), code: "E5", says: "can't average int32"},
		{name: "threads that a library does not allow", plan: write(t, both, "g0@openmpi/0 g1@openmpi/1", "g0@openmpi/0 g1@openmpi/1"), caps: oneAtATime, code: "E8", says: "one thread at a time"},
		{name: "one after the other", plan: write(t, both, "g0@openmpi/0 g1@openmpi/1<0", "g0@openmpi/0 g1@openmpi/1<0"), caps: oneAtATime},
		{name: "but not by one thread", plan: write(t, both, "g0@openmpi/0 g1@openmpi/1<0", "g0@openmpi/0 g1@openmpi/1<0"), caps: oneThread, code: "E8", says: "one thread only"},
		{name: "W3 many changes", plan: write(t, both, strings.Repeat("g0@gloo g1@openmpi ", 17), strings.Repeat("g0@gloo g1@openmpi ", 17)), code: "W3", says: "33 times"},
		{name: "W3 not so many", plan: write(t, both, strings.Repeat("g0@gloo g1@openmpi ", 16), strings.Repeat("g0@gloo g1@openmpi ", 16))},
		{name: "W4 ranks are missing", plan: changed(write(t, both, "g0", "g0"), func(p *planpb.Plan) { p.Workload.WorldSize = 5 }), code: "W4", says: "3 of 5 ranks are not in the plan (ranks 2-4)"},
		{name: "W4 a group named by a hash", plan: changed(write(t, both, "g0", "g0"), func(p *planpb.Plan) { p.Workload.Groups[0].Name = "1f4b2c9e07d35a68" }), code: "W4", says: "hash"},
		{name: "W4 estimated parts", plan: changed(splits(write(t, both, "g0=all_to_allv", "g0=all_to_allv"), 9), func(p *planpb.Plan) { communication(p, 0, 0).SplitsEstimated = true }), code: "W4", says: "estimated"},
		{name: "W5 a size that was not measured", plan: write(t, both, "g0", "g0"), caps: measuredGloo, code: "W5", says: "not measured for all_reduce of 1 KiB on 2 ranks"},
		{name: "W5 one that was", plan: changed(write(t, both, "g0", "g0"), func(p *planpb.Plan) {
			for r := range 2 {
				communication(p, r, 0).InCount, communication(p, r, 0).OutCount = 2048, 2048
			}
		}), caps: measuredGloo},
		{name: "W6 overlap that is lost", plan: write(t, both, "g0/1 h/0", "g0/1 h/0"), caps: blockingGloo, code: "W6", says: "runs beside computation"},
		{name: "W6 none to lose", plan: write(t, both, "g0/1 h/0<0", "g0/1 h/0<0"), caps: blockingGloo},
		{name: "W7 a slow library bounds the step", plan: write(t, both, "g0 h", "g0 h"), caps: copyEngine, code: "W7", says: "bounds the step"},
		{name: "W7 one that is hidden", plan: changed(write(t, both, "g0/1 h/0", "g0/1 h/0"), func(p *planpb.Plan) {
			for _, program := range p.Workload.Programs {
				program.Tasks[1].GetSpan().DurationNs = 1e9
			}
		}), caps: copyEngine},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := mix.CheckOptions{}
			if c.caps != "" {
				opts.Capabilities = capabilities(t, c.caps)
			}
			expect(t, mix.Inspect(c.plan, opts), c.code, c.says)
		})
	}
}

// environments gives each rank the hash of its environment.
func environments(p *planpb.Plan, hashes ...string) *planpb.Plan {
	for r, hash := range hashes {
		p.Workload.Programs[r].Place = &planpb.Place{Environment: hash}
	}
	return p
}

// lives says when each rank makes (+) and destroys (-) the communicator of a group
// and before which task: "+0@0 -0@5".
func lives(p *planpb.Plan, ranks ...string) *planpb.Plan {
	for r, text := range ranks {
		for _, word := range strings.Fields(text) {
			e := &planpb.CommunicatorEvent{Kind: planpb.CommunicatorEvent_MADE, Group: int32(word[1] - '0'), Before: int32(word[3] - '0')}
			if word[0] == '-' {
				e.Kind = planpb.CommunicatorEvent_DESTROYED
			}
			p.Workload.Programs[r].Communicators = append(p.Workload.Programs[r].Communicators, e)
		}
	}
	return p
}

// held gives all operations of all ranks a number of channels, and their GPUs SMs.
func held(p *planpb.Plan, channels, sms int32) *planpb.Plan {
	for _, program := range p.Workload.Programs {
		program.Place = &planpb.Place{Sms: sms}
		for _, task := range program.Tasks {
			task.GetCommunication().Channels = channels
		}
	}
	return p
}

// buffers says what the tasks of every rank read and write: "7:8" reads 7 and
// writes 8.
func buffers(p *planpb.Plan, text string) *planpb.Plan {
	for r := range p.Workload.Programs {
		for i, word := range strings.Fields(text) {
			c := communication(p, r, i)
			c.InBuffer, c.OutBuffer = int64(word[0]-'0'), int64(word[2]-'0')
		}
	}
	return p
}

// splits gives an all_to_allv of two ranks its parts; rank 0 sends n to rank 1,
// which expects 9.
func splits(p *planpb.Plan, n int64) *planpb.Plan {
	a, b := communication(p, 0, 0), communication(p, 1, 0)
	a.InSplits, a.OutSplits, a.InCount, a.OutCount = []int64{1, n}, []int64{1, 2}, 1+n, 3
	b.InSplits, b.OutSplits, b.InCount, b.OutCount = []int64{2, 5}, []int64{9, 5}, 7, 14
	return p
}

// swapped exchanges the two receives of rank 1.
func swapped(p *planpb.Plan) *planpb.Plan {
	list := communication(p, 1, 0).Transfers
	list[0].Match, list[1].Match = list[1].Match, list[0].Match
	return p
}

// TestMalformedPlans: whatever a file holds, there is an answer.
func TestMalformedPlans(t *testing.T) {
	for name, change := range map[string]func(*planpb.Plan){
		"no workload":      func(p *planpb.Plan) { p.Workload = nil },
		"backend":          func(p *planpb.Plan) { communication(p, 0, 0).Backend = "gl\x1b[2Joo" },
		"group":            func(p *planpb.Plan) { communication(p, 0, 0).Group = 9 },
		"negative group":   func(p *planpb.Plan) { communication(p, 0, 0).Group = -1 },
		"stream":           func(p *planpb.Plan) { p.Workload.Programs[0].Tasks[0].Stream = 3 },
		"dependency":       func(p *planpb.Plan) { p.Workload.Programs[0].Tasks[0].Deps = []int32{0} },
		"operation":        func(p *planpb.Plan) { communication(p, 0, 0).Op = 99 },
		"rank order":       func(p *planpb.Plan) { p.Workload.Programs[1].Rank = 0 },
		"rank outside":     func(p *planpb.Plan) { p.Workload.Programs[1].Rank = 7 },
		"member twice":     func(p *planpb.Plan) { p.Workload.Groups[0].Ranks = []int32{0, 0} },
		"member outside":   func(p *planpb.Plan) { p.Workload.Groups[0].Ranks = []int32{0, 5} },
		"no member":        func(p *planpb.Plan) { p.Workload.Groups[0].Ranks = []int32{1} },
		"peer":             func(p *planpb.Plan) { communication(p, 0, 1).Transfers[0].Peer = 8 },
		"no transfer":      func(p *planpb.Plan) { communication(p, 0, 1).Transfers = nil },
		"two transfers":    func(p *planpb.Plan) { c := communication(p, 0, 1); c.Transfers = append(c.Transfers, c.Transfers[0]) },
		"event of a group": func(p *planpb.Plan) { lives(p, "+9@0") },
		"event too late":   func(p *planpb.Plan) { lives(p, "+0@3") },
		"events backwards": func(p *planpb.Plan) { lives(p, "+0@1 -0@0") },
		"event of a member": func(p *planpb.Plan) {
			p.Workload.Groups[0].Ranks = []int32{1}
			p.Workload.Programs[0].Tasks = nil
			lives(p, "+0@0")
		},
		"event of no kind":  func(p *planpb.Plan) { p.Workload.Programs[0].Communicators = []*planpb.CommunicatorEvent{{}} },
		"buffer":            func(p *planpb.Plan) { communication(p, 0, 0).InBuffer = -1 },
		"transfer's buffer": func(p *planpb.Plan) { communication(p, 0, 1).Transfers[0].Buffer = -1 },
		"channels":          func(p *planpb.Plan) { communication(p, 0, 0).Channels = -1 },
		"transfer of group": func(p *planpb.Plan) { communication(p, 0, 0).Transfers = communication(p, 0, 1).Transfers },
	} {
		p := write(t, both, "g0 s1", "g0 r0")
		change(p)
		r := mix.Inspect(p, mix.CheckOptions{})
		if len(r.Errors) != 1 || r.Errors[0].Code != "E0" || !errors.Is(mix.Check(p), mix.ErrInvalidPlan) {
			t.Errorf("%s: %v, want E0", name, r.Err())
		}
	}
	if r := mix.Inspect(&planpb.Plan{Workload: &planpb.Workload{}}, mix.CheckOptions{}); r.Err() != nil {
		t.Errorf("an empty plan: %v", r.Err())
	}
}

// TestBatchesAreDecidedAlike: a batch has one backend, and so have all that it is
// tied to, whatever their own sizes.
func TestBatchesAreDecidedAlike(t *testing.T) {
	p := write(t, nil, "bs1s2", "r0", "br0s3", "r2 s4", "r3")
	communication(p, 0, 0).Transfers[0].Count = 1 << 20 // to rank 1
	communication(p, 1, 0).Transfers[0].Count = 1 << 20
	m, err := mix.Parse("*@>=1MiB=openmpi,*=gloo")
	if err != nil {
		t.Fatal(err)
	}
	decided, err := mix.Decide(p.Workload, m, "x", "gloo")
	if err != nil {
		t.Fatal(err)
	}
	if err := mix.Check(decided); err != nil {
		t.Error(err)
	}
	if got := communication(decided, 2, 0).Backend + " " + communication(decided, 3, 1).Backend; got != "openmpi gloo" {
		t.Errorf("the batch of rank 2 and the send of rank 3 that nothing ties to it: %s", got)
	}
}

func TestBadCapabilitiesSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "EOF",
		`{}`:                                   "schema_version is 0",
		`{"schema_version":1,"what":1}`:        "unknown field",
		`{"schema_version":1,"sms":-1}`:        "sms is -1",
		`{"schema_version":1,"backends":[{}]}`: "no name",
		`{"schema_version":1,"backends":[{"name":"x","device":"tpu"}]}`:        "known are host, gpu",
		`{"schema_version":1,"backends":[{"name":"x","threads":"many"}]}`:      "known are multiple, serialized, single",
		`{"schema_version":1,"backends":[{"name":"x","stream_ordered":true}]}`: "needs device gpu",
		`{"schema_version":1,"backends":[{"name":"x","max_count":-5}]}`:        "negative",
	} {
		_, err := mix.ParseCapabilities(strings.NewReader(text))
		if !errors.Is(err, mix.ErrCapabilities) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}

func TestPlanFiles(t *testing.T) {
	p := write(t, both, "g0 s1", "g0 r0")
	data, err := mix.Encode(p, p)
	if err != nil {
		t.Fatal(err)
	}
	exp, err := mix.Decode(data)
	if err != nil || len(exp.Plans) != 2 || exp.Plans[1].Workload.WorldSize != 2 {
		t.Errorf("read back: %v, %v", exp, err)
	}
	text, err := protojson.Marshal(exp)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := mix.Decode(text); err != nil || !proto.Equal(exp, again) {
		t.Errorf("read back from JSON: %v", err)
	}
	for name, bad := range map[string][]byte{"empty": nil, "a trace": []byte(`{"traceEvents":[]}`), "another version": {8, 2}, "cut off": data[:len(data)-3], "without plans": {8, 1}} {
		if _, err := mix.Decode(bad); !errors.Is(err, mix.ErrNotPlan) {
			t.Errorf("%s: %v, want ErrNotPlan", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	data, err := mix.Encode(write(f, both, "g0/1 s1 x1 h", "g0 r0 x0 w<0"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		exp, err := mix.Decode(data)
		if err != nil {
			return
		}
		for _, p := range exp.Plans {
			r := mix.Inspect(p, mix.CheckOptions{})
			_ = r.Err()
			if err := r.WriteText(&strings.Builder{}); err != nil {
				t.Error(err)
			}
		}
	})
}
