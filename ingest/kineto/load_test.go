package kineto_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/ingest/kineto"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// loadFiles writes files and reads them as one run.
func loadFiles(t *testing.T, files map[string]string, opts kineto.Options) (*trace.Run, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := source.Find([]string{dir}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return kineto.Load(context.Background(), found, opts)
}

// kernel is one device event with its launch, inside a record of communication.
const kernelEvents = `
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":10,"dur":20,"args":{"Collective name":"allreduce","dtype":"BFloat16","In msg nelems":1000,"Out msg nelems":1000,"Group size":2,"Process Group Name":"7","Process Group Description":"tp","Process Group Ranks":"[4, 6]"}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":15,"dur":3,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic(ncclDevComm*)","pid":0,"tid":20,"ts":30.5,"dur":7.25,"args":{"correlation":5,"stream":20,"device":0}}`

func traceOf(head, events string) string {
	return `{` + head + `"traceEvents":[` + events + `]}`
}

func TestRankComesFromTheFile(t *testing.T) {
	run, err := loadFiles(t, map[string]string{
		"a.json":            traceOf(`"distributedInfo":{"rank":4,"world_size":8,"backend":"nccl"},`, kernelEvents),
		"rank-6.json":       traceOf(``, kernelEvents),
		"host_4711.17.json": traceOf(`"distributedInfo":{"rank":5},`, kernelEvents),
	}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range run.Ranks {
		got = append(got, fmt.Sprint(r.Rank, " by ", r.RankFrom))
	}
	want := "4 by distributedInfo, 5 by distributedInfo, 6 by file name"
	if strings.Join(got, ", ") != want {
		t.Errorf("ranks %v, want %s", got, want)
	}
	if fmt.Sprint(run.Missing()) != "[0 1 2 3 7]" {
		t.Errorf("missing %v of a world of 8", run.Missing())
	}
}

func TestRankIsNeverASilentZero(t *testing.T) {
	unknown := traceOf(``, kernelEvents)
	run, err := loadFiles(t, map[string]string{"host_4711.json": unknown}, kineto.Options{})
	if err != nil || run.Ranks[0].Rank != 0 || !has(run, "rank-assumed") {
		t.Errorf("one file without a rank: %v; want rank 0 with a diagnostic", err)
	}
	run, err = loadFiles(t, map[string]string{"host_4711.json": unknown, "rank3.json": unknown}, kineto.Options{})
	if err != nil || len(run.Ranks) != 1 || run.Ranks[0].Rank != 3 || !has(run, "rank-unknown") {
		t.Errorf("a file without a rank among others: %v; want it left out with a diagnostic", err)
	}
	_, err = loadFiles(t, map[string]string{"host_4711.json": unknown, "host_4712.json": unknown}, kineto.Options{})
	if !errors.Is(err, kineto.ErrNoRank) || !strings.Contains(err.Error(), "--ranks-from") {
		t.Errorf("no rank at all: %v; want an error that names --ranks-from", err)
	}
}

func TestTwoFilesOfOneRank(t *testing.T) {
	_, err := loadFiles(t, map[string]string{"rank3.json": traceOf(``, kernelEvents), "x.json": traceOf(`"distributedInfo":{"rank":3},`, kernelEvents)}, kineto.Options{})
	if !errors.Is(err, kineto.ErrDuplicateRank) {
		t.Fatalf("error %v, want ErrDuplicateRank", err)
	}
	for _, part := range []string{"rank 3", "rank3.json", "x.json"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not name %s", err, part)
		}
	}
}

func TestTruncatedGzipGivesTheEventsBeforeTheCut(t *testing.T) {
	var events []string
	for i := range 2000 {
		events = append(events, fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k%d","pid":0,"tid":7,"ts":%d,"dur":5,"args":{"stream":7,"correlation":%d}}`, i*i, 10*i, i))
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, traceOf(`"distributedInfo":{"rank":0},`, strings.Join(events, ",\n")))
	z.Close()
	run, err := loadFiles(t, map[string]string{"rank0.json.gz": packed.String()[:packed.Len()/2]}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := run.Ranks[0].Events.Len()
	if n < 100 || n >= 2000 {
		t.Errorf("%d events of 2000 before the cut in the middle", n)
	}
	if !run.Ranks[0].Truncated || !has(run, "truncated-rank") {
		t.Error("the cut is not reported")
	}
}

func TestGenericKernelIsWhatItsRecordSays(t *testing.T) {
	run, err := loadFiles(t, map[string]string{"rank4.json": traceOf(`"baseTimeNanoseconds":1000000,`, kernelEvents)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rank := run.Ranks[0]
	if len(rank.Operations) != 1 {
		t.Fatalf("%d operations, want 1", len(rank.Operations))
	}
	op := rank.Operations[0]
	g := rank.Groups[op.Group]
	if op.Op != comm.AllReduce || op.DType != comm.BFloat16 || op.InBytes() != 2000 || fmt.Sprint(g.Ranks) != "[4 6]" || g.Description != "tp" {
		t.Errorf("got %s of %d bytes %s in group %v %q", op.Op, op.InBytes(), op.DType, g.Ranks, g.Description)
	}
	if op.Start != 1030500 || op.End != 1037750 || op.Issued != 1015000 {
		t.Errorf("issued at %d, ran %d to %d ns; want exact ns after the base time", op.Issued, op.Start, op.End)
	}
}

// TestBatchedSendsShareOneKernel: batch_isend_irecv launches one kernel at the
// end of the group, outside of the calls it carries (pytorch#194693).
func TestBatchedSendsShareOneKernel(t *testing.T) {
	run, err := loadFiles(t, map[string]string{"rank4.json": traceOf(``, `
{"ph":"X","cat":"user_annotation","name":"nccl:coalesced","pid":1,"tid":2,"ts":5,"dur":60},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":10,"dur":5,"args":{"Collective name":"send","dtype":"Float","In msg nelems":100,"Out msg nelems":100,"Group size":2,"Process Group Name":"7","Process Group Ranks":"[4, 6]","Src Rank":4,"Dst Rank":6}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":20,"dur":5,"args":{"Collective name":"recv","dtype":"Float","In msg nelems":50,"Out msg nelems":50,"Group size":2,"Process Group Name":"7","Process Group Ranks":"[4, 6]","Src Rank":6,"Dst Rank":4}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernelExC","pid":1,"tid":2,"ts":40,"dur":3,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)","pid":0,"tid":20,"ts":50,"dur":9,"args":{"correlation":5,"stream":20,"device":0}}`)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ops := run.Ranks[0].Operations
	if len(ops) != 1 || ops[0].Op != comm.Batch || len(ops[0].Transfers) != 2 {
		t.Fatalf("got %+v, want one batch of two transfers", ops)
	}
	if s, r := ops[0].Transfers[0], ops[0].Transfers[1]; !s.Send || s.Peer != 6 || s.Count != 100 || r.Send || r.Peer != 6 || r.Count != 50 {
		t.Errorf("transfers %+v", ops[0].Transfers)
	}
}

// TestSplitsOfMatrices: the record counts rows, the sizes are elements.
func TestSplitsOfMatrices(t *testing.T) {
	run, err := loadFiles(t, map[string]string{"rank3.json": traceOf(``, `
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":10,"dur":15,"args":{"Collective name":"all_to_allv","dtype":"Half","In msg nelems":24,"Out msg nelems":40,"In split size":"[1, 2]","Out split size":"[5, 0]","Group size":2,"Process Group Name":"2","Process Group Ranks":"[1, 3]"}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":15,"dur":3,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":20,"ts":30,"dur":7,"args":{"correlation":5,"stream":20}}`)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	op := run.Ranks[0].Operations[0]
	if op.Op != comm.AllToAllV || fmt.Sprint(op.InSplits, op.OutSplits) != "[8 16] [40 0]" {
		t.Errorf("got %s with splits %v and %v, want elements", op.Op, op.InSplits, op.OutSplits)
	}
}

// TestPeerInGroupRanks: before Src Rank and Dst Rank, Rank was the peer's
// position in the group (pytorch#153819).
func TestPeerInGroupRanks(t *testing.T) {
	run, err := loadFiles(t, map[string]string{"rank3.json": traceOf(``, `
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":10,"dur":15,"args":{"Collective name":"recv","dtype":"Half","In msg nelems":8,"Out msg nelems":8,"Process Group Name":"2","Process Group Ranks":"[1, 3]","Rank":0}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":15,"dur":3,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":20,"ts":30,"dur":7,"args":{"correlation":5,"stream":20}}`)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	op := run.Ranks[0].Operations[0]
	if op.Op != comm.Recv || len(op.Transfers) != 1 || op.Transfers[0].Peer != 1 {
		t.Errorf("got %s with %+v, want a recv from global rank 1", op.Op, op.Transfers)
	}
}

// TestCutListOfRanksIsUnknown: lists of more than 30 ranks are cut by the
// profiler; half a list is no list.
func TestCutListOfRanksIsUnknown(t *testing.T) {
	cut := strings.Replace(kernelEvents, `"[4, 6]"`, `"[4, 6, ...]"`, 1)
	run, err := loadFiles(t, map[string]string{"rank4.json": traceOf(``, cut)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if g := run.Ranks[0].Groups[0]; g.Ranks != nil || g.Size != 2 {
		t.Errorf("ranks %v, size %d; want unknown ranks and the size", g.Ranks, g.Size)
	}
	whole := `"distributedInfo":{"rank":4,"pg_config":[{"pg_name":"7","ranks":[4,6],"pg_size":2}]},`
	run, err = loadFiles(t, map[string]string{"rank4.json": traceOf(whole, cut)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if g := run.Ranks[0].Groups[0]; fmt.Sprint(g.Ranks) != "[4 6]" {
		t.Errorf("ranks %v, want those of the file's list of groups", g.Ranks)
	}
}

// TestCommunicationWithoutItsOtherHalf: a kernel launched before the window has
// no record, a call whose kernel ran after it has no kernel.
func TestCommunicationWithoutItsOtherHalf(t *testing.T) {
	run, err := loadFiles(t, map[string]string{"rank4.json": traceOf(``, `
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)","pid":0,"tid":20,"ts":1,"dur":7,"args":{"correlation":1,"stream":20}},
{"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)","pid":0,"tid":20,"ts":9,"dur":7,"args":{"correlation":2,"stream":20}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":10,"dur":20,"args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":1,"Out msg nelems":1}}`)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ops := run.Ranks[0].Operations
	if len(ops) != 2 || ops[0].Op != comm.AllGather || ops[1].Op != comm.Unknown || ops[0].SizeKnown {
		t.Errorf("got %+v; want an all_gather by the new kernel's name, and the old kernel's name not trusted", ops)
	}
	if !has(run, "communication-without-record") || !has(run, "communication-without-kernel") {
		t.Error("missing halves are not reported")
	}
}

// TestSameDiagnosticsEveryTime: of faults on several threads the example is that
// of the same one in every run.
func TestSameDiagnosticsEveryTime(t *testing.T) {
	events := kernelEvents
	for thread := range 8 {
		events += fmt.Sprintf(`,
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":%d,"ts":10,"dur":20,"args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":1,"Out msg nelems":1}}`, 50+thread)
	}
	first := ""
	for range 20 {
		run, err := loadFiles(t, map[string]string{"rank4.json": traceOf(``, events)}, kineto.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(run.Diagnostics.List())
		if !has(run, "communication-without-kernel") {
			t.Fatalf("the calls have no kernels, and the diagnostics are %s", got)
		}
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatalf("%s\nand\n%s", first, got)
		}
	}
}

func has(run *trace.Run, code string) bool {
	for _, d := range run.Diagnostics.List() {
		if d.Code == code {
			return true
		}
	}
	return false
}

// Sends and receives run on the program's thread, which serves no one group: where
// all groups but those of one rank have the same members, theirs are known.
func TestMembersOfPointToPoint(t *testing.T) {
	run := kinetotest.Load(t, "../../testdata/pipeline_sched_p4_1f1b")
	for _, rank := range run.Ranks {
		for _, op := range rank.Operations {
			if !op.Op.IsP2P() {
				continue
			}
			if g := rank.Groups[op.Group]; g.Size != 4 || len(g.Ranks) != 4 {
				t.Fatalf("rank %d: %s in a group of %v", rank.Rank, op.Op, g.Ranks)
			}
			if len(op.Transfers) != 1 || op.Transfers[0].Peer == rank.Rank {
				t.Fatalf("rank %d: %s with %+v", rank.Rank, op.Op, op.Transfers)
			}
		}
	}
	// With two pipelines they could be those of either.
	for _, rank := range kinetotest.Load(t, "../../testdata/pipeline_sched_p2dp2_1f1b").Ranks {
		for _, op := range rank.Operations {
			if op.Op.IsP2P() && len(rank.Groups[op.Group].Ranks) > 0 {
				t.Fatalf("rank %d: %s in a group of %v, which nothing tells", rank.Rank, op.Op, rank.Groups[op.Group].Ranks)
			}
		}
	}
}
