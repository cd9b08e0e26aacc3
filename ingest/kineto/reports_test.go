package kineto_test

import (
	"fmt"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/ingest/kineto"
	"mixdown/ingest/trace"
)

// The tests below hold inputs that broke other tools, each named after its
// number in a list of public reports. The reports are cited; every fixture was
// made for these tests.

// one reads a single file as rank 3.
func one(t *testing.T, head, events string) *trace.Run {
	t.Helper()
	run, err := loadFiles(t, map[string]string{"rank3.json": traceOf(head, events)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// device returns the events of the categories that occupy a device, as
// "name start+dur" in ns.
func device(rank *trace.Rank) string {
	var list []string
	for i := range rank.Events.Len() {
		if rank.Events.Category[i].OnDevice() {
			list = append(list, fmt.Sprintf("%s %d+%d", rank.Name(i), rank.Events.TS[i], rank.Events.Dur[i]))
		}
	}
	return strings.Join(list, ", ")
}

// HolisticTraceAnalysis#342: sub-microsecond kernels got negative durations.
func TestReport26(t *testing.T) {
	run := one(t, ``, `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":100.7,"dur":0.2,"args":{"stream":7}}`)
	if got := device(run.Ranks[0]); got != "k 100700+200" {
		t.Errorf("got %s", got)
	}
}

// pytorch#150131: an unfinished event is written with duration -1.
func TestReport28(t *testing.T) {
	run := one(t, ``, `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":100,"dur":-1,"args":{"stream":7}}`)
	if got := device(run.Ranks[0]); got != "k 100000+0" || !has(run, "negative-duration") {
		t.Errorf("got %s, diagnostics %v", got, run.Diagnostics.List())
	}
}

// kineto#109, tensorflow#20750: device events that could not be timed have zero
// times; the span of the trace must not reach back to 1970.
func TestReport29And38(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"Kernel","name":"lost","pid":0,"tid":7,"ts":0,"dur":0,"args":{"stream":7}},
{"ph":"X","cat":"Kernel","name":"lost","pid":0,"tid":7,"ts":0,"dur":0,"args":{"stream":7}},
{"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":7,"ts":1700000000000000,"dur":3,"args":{"stream":7}}`)
	if got := device(run.Ranks[0]); got != "k 1700000000000000000+3000" {
		t.Errorf("got %s", got)
	}
	if n := count(run, "untimed-device-event"); n != 2 {
		t.Errorf("%d untimed events counted, want 2", n)
	}
}

// pytorch#192021: kernels that start seconds before their own launch.
func TestReport31(t *testing.T) {
	events := `
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":5000000,"dur":4,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"early","pid":0,"tid":7,"ts":2000000,"dur":10,"args":{"stream":7,"correlation":5}},
{"ph":"X","cat":"kernel","name":"long","pid":0,"tid":7,"ts":3000000,"dur":2500000,"args":{"stream":7,"correlation":5}}`
	for fix, want := range map[kineto.Fix]string{
		kineto.FixNone:  "early 2000000000+10000, long 3000000000+2500000000",
		kineto.FixDrop:  "",
		kineto.FixClamp: "early 5000000000+0, long 5000000000+500000000",
	} {
		run, err := loadFiles(t, map[string]string{"rank3.json": traceOf(``, events)}, kineto.Options{Fix: fix})
		if err != nil {
			t.Fatal(err)
		}
		if got := device(run.Ranks[0]); got != want {
			t.Errorf("fix %s: %s, want %s", fix, got, want)
		}
		if count(run, "kernel-before-launch") != 2 || !strings.Contains(example(run, "kernel-before-launch"), "3000.000 ms") {
			t.Errorf("fix %s: diagnostics %v", fix, run.Diagnostics.List())
		}
	}
}

// perfetto#4280, janestreet/perfetto#35, perfetto#237: kernels on one stream
// that overlap (programmatic dependent launch) are both there.
func TestReport40And41And47(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":0.5,"dur":100,"args":{"stream":7}},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":80,"dur":100,"args":{"stream":7}}`)
	if got := device(run.Ranks[0]); got != "a 500+100000, b 80000+100000" {
		t.Errorf("got %s", got)
	}
}

// pytorch#174555: steps are found whatever they overlap with.
func TestReport44(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"python_function","name":"train.py(1): f","pid":1,"tid":2,"ts":10,"dur":90,"args":{}},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":1,"tid":2,"ts":99.999,"dur":50}`)
	if s := run.Ranks[0].Steps; len(s) != 1 || s[0].Number != 2 || s[0].Start != 99999 {
		t.Errorf("steps %+v", s)
	}
}

// perfetto#371: a child that stands in the file before its parent.
func TestReport46(t *testing.T) {
	inner := `{"ph":"X","cat":"user_annotation","name":"nccl:all_reduce","pid":1,"tid":2,"ts":12,"dur":10,"args":{"Input Dims":[[7]],"Input type":["float"]}}`
	outer := `{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":10,"dur":20}`
	rest := `{"ph":"X","cat":"kernel","name":"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)","pid":0,"tid":20,"ts":30,"dur":7,"args":{"correlation":5,"stream":20}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":15,"dur":3,"args":{"correlation":5}}`
	for _, order := range []string{inner + "," + outer + "," + rest, rest + "," + outer + "," + inner} {
		ops := one(t, ``, order).Ranks[0].Operations
		if len(ops) != 1 || ops[0].Op != comm.AllReduce || ops[0].In != 7 {
			t.Errorf("got %+v, want an all_reduce of 7", ops)
		}
	}
}

// pytorch#140879: ranks from a pattern of the user's.
// sgl-project/sglang#11413: "-TP-0-DP-1-" names positions, no rank.
func TestReport73And82(t *testing.T) {
	run, err := loadFiles(t, map[string]string{"x-TP-0-DP-1-PP-0-EP-0.trace.json": traceOf(``, kernelEvents), "rank2.json": traceOf(``, kernelEvents)}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Ranks) != 1 || !has(run, "rank-unknown") {
		t.Errorf("%d ranks; a name of positions must not be taken for a rank", len(run.Ranks))
	}
}

// HolisticTraceAnalysis#109, #122, #247: names of other NCCL versions.
// TraceLens#547: kernels of other libraries.
func TestReport88And89And91And103(t *testing.T) {
	for _, name := range []string{
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccldevkernel_allreduce", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)",
		"ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "ncclSymkDevKernel_AllReduce_AGxLL_R", "mscclKernel_Sum_float_Simple_false",
		"void vllm::cross_device_reduce_1stage<c10::Half, 8>(...)", "two_shot_all_reduce_kernel", "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>()",
		"deep_ep::internode::dispatch<true>", "nvshmemi_transfer_rma", "oneccl_reduce_base<float>",
	} {
		run := one(t, ``, fmt.Sprintf(`{"ph":"X","cat":"kernel","name":%q,"pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7}}`, name))
		if len(run.Ranks[0].Operations) != 1 {
			t.Errorf("%s is not taken for communication", name)
		}
	}
	for _, name := range []string{"hipblaslt_gemm", "ampere_sgemm_128x64", "void at::native::reduce_kernel<512>()", "allocate_buffers"} {
		run := one(t, ``, fmt.Sprintf(`{"ph":"X","cat":"kernel","name":%q,"pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7}}`, name))
		if len(run.Ranks[0].Operations) != 0 {
			t.Errorf("%s is taken for communication", name) // row 151: ^hip is no library of communication
		}
	}
}

// HolisticTraceAnalysis#247: only the device's annotation is in the trace.
func TestReport91Annotation(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":2,"args":{"stream":7}},
{"ph":"X","cat":"gpu_user_annotation","name":"nccl:all_reduce","pid":0,"tid":20,"ts":5,"dur":9,"args":{}}`)
	ops := run.Ranks[0].Operations
	if len(ops) != 1 || ops[0].Op != comm.AllReduce || ops[0].Dur() != 9000 || !has(run, "communication-from-annotation") {
		t.Errorf("got %+v, diagnostics %v", ops, run.Diagnostics.List())
	}
}

// roctracer#101: every collective of RCCL is the generic kernel.
// roctracer#100: its kernels have correlation 0.
func TestReport94And95(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":10,"dur":5,"args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":8,"Out msg nelems":8}},
{"ph":"X","cat":"cuda_runtime","name":"hipExtLaunchKernel","pid":1,"tid":2,"ts":12,"dur":1,"args":{"correlation":29170}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":20,"dur":5,"args":{"Collective name":"broadcast","dtype":"Half","In msg nelems":9,"Out msg nelems":9}},
{"ph":"X","cat":"cuda_runtime","name":"hipExtLaunchKernel","pid":1,"tid":2,"ts":22,"dur":1,"args":{"correlation":29171}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)","pid":0,"tid":20,"ts":30,"dur":7,"args":{"correlation":0,"stream":20}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)","pid":0,"tid":20,"ts":40,"dur":7,"args":{"correlation":0,"stream":20}}`)
	ops := run.Ranks[0].Operations
	if len(ops) != 2 || ops[0].Op != comm.AllReduce || ops[1].Op != comm.Broadcast || ops[1].In != 9 || count(run, "communication-linked-by-order") != 2 {
		t.Errorf("got %+v, diagnostics %v", ops, run.Diagnostics.List())
	}
}

// kineto#763: categories of other generations.
func TestReport100(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":1,"dur":1,"args":{"correlation":5}},
{"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 7","ts":3,"dur":2,"args":{"correlation":5,"external id":5}},
{"ph":"X","cat":"Memcpy","name":"Memcpy HtoD (Pinned -> Device)","pid":0,"tid":"stream 7","ts":6,"dur":1,"args":{}}`)
	rank := run.Ranks[0]
	if got := device(rank); got != "k 3000+2000, Memcpy HtoD (Pinned -> Device) 6000+1000" {
		t.Errorf("got %s", got)
	}
	for i := range rank.Events.Len() {
		if rank.Events.Category[i].OnDevice() && rank.Events.Stream[i] != 7 {
			t.Errorf("%s on stream %d, want 7 from its tid", rank.Name(i), rank.Events.Stream[i])
		}
	}
}

// pytorch#176613: a copy engine carries the collective, there is no kernel.
func TestReport104(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":10,"dur":15,"args":{"Collective name":"_allgather_base","dtype":"Float","In msg nelems":8,"Out msg nelems":16}},
{"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":1,"tid":2,"ts":12,"dur":1,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":1,"tid":2,"ts":14,"dur":1,"args":{"correlation":2}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy PtoP (Device -> Device)","pid":0,"tid":20,"ts":30,"dur":7,"args":{"correlation":1,"stream":20,"bytes":32}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy PtoP (Device -> Device)","pid":0,"tid":20,"ts":38,"dur":7,"args":{"correlation":2,"stream":20,"bytes":32}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoD (Device -> Device)","pid":0,"tid":7,"ts":60,"dur":7,"args":{"stream":7}}`)
	ops := run.Ranks[0].Operations
	if len(ops) != 1 || ops[0].Op != comm.AllGather || len(ops[0].Events) != 2 || ops[0].End != 45000 {
		t.Errorf("got %+v, want one all_gather of two copies", ops)
	}
}

// torch-xpu-ops#5384, pytorch#144490, kineto#1396: activities of other libraries.
func TestReport106And107(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"kernel","name":"oneccl_reduce_base<float>","pid":0,"tid":9,"ts":1,"dur":2,"args":{"sycl queue":"0x1","l0 queue":"0x2"}},
{"ph":"X","cat":"collective_comm","name":"xccl::allreduce","pid":0,"tid":9,"ts":5,"dur":2,"args":{}},
{"ph":"X","cat":"collective_comm","name":"hccl::all_to_all","pid":0,"tid":9,"ts":8,"dur":2}`)
	var got []string
	for _, op := range run.Ranks[0].Operations {
		got = append(got, string(op.Op))
	}
	if strings.Join(got, " ") != "unknown all_reduce all_to_all" {
		t.Errorf("got %v", got)
	}
}

// HolisticTraceAnalysis#219: on AMD the default stream is 0.
// kineto#1416: ids of 64 bits, several kernels with one correlation.
// HolisticTraceAnalysis#290: one graph launch for many kernels.
func TestReport112And113And116(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"cuda_runtime","name":"hipGraphLaunch","pid":1,"tid":2,"ts":1,"dur":1,"args":{"correlation":9007199254740993}},
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":0,"ts":3,"dur":2,"args":{"correlation":9007199254740993,"stream":0}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":0,"ts":6,"dur":2,"args":{"correlation":9007199254740993,"stream":140234871234560}}`)
	rank := run.Ranks[0]
	var streams []int64
	for i := range rank.Events.Len() {
		if rank.Events.Category[i].OnDevice() {
			streams = append(streams, rank.Events.Stream[i])
			if rank.Events.Correlation[i] != 9007199254740993 {
				t.Errorf("correlation %d", rank.Events.Correlation[i])
			}
		}
	}
	if fmt.Sprint(streams) != "[0 140234871234560]" || rank.Operations[0].Issued != 1000 {
		t.Errorf("streams %v, operation issued at %d", streams, rank.Operations[0].Issued)
	}
}

// TraceLens#1013: an event without a duration is an instant.
func TestReport118(t *testing.T) {
	run := one(t, ``, `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":3,"args":{"stream":7}}`)
	if got := device(run.Ranks[0]); got != "k 3000+0" || !has(run, "missing-dur") {
		t.Errorf("got %s, diagnostics %v", got, run.Diagnostics.List())
	}
}

// HolisticTraceAnalysis#271: launches have many names.
func TestReport119(t *testing.T) {
	for _, name := range []string{"cuLaunchKernelEx", "cuLaunchKernel", "cudaLaunchKernelExC", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "zeCommandListAppendLaunchKernel"} {
		category := "cuda_runtime"
		if strings.HasPrefix(name, "cu") {
			category = "cuda_driver"
		} else if strings.HasPrefix(name, "ze") {
			category = "xpu_driver"
		}
		run := one(t, ``, fmt.Sprintf(`
{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":2,"ts":1,"dur":1,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":7,"ts":3,"dur":2,"args":{"correlation":5,"stream":7}}`, category, name))
		if run.Ranks[0].Operations[0].Issued != 1000 {
			t.Errorf("%s is not joined to its kernel", name)
		}
	}
}

// HolisticTraceAnalysis#233: an execution trace instead of a profiler trace.
func TestReport124(t *testing.T) {
	_, err := loadFiles(t, map[string]string{"rank3.json": `{"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [{"id": 1, "name": "x"}]}`}, kineto.Options{})
	if err == nil || !strings.Contains(err.Error(), "execution trace") {
		t.Errorf("error %v, want one that says what the file is", err)
	}
}

// HolisticTraceAnalysis#144: a Chrome trace without PyTorch's categories still
// has a timeline.
func TestReport125(t *testing.T) {
	run := one(t, ``, `{"ph":"X","cat":"MPI","name":"MPI_Allreduce","pid":1,"tid":2,"ts":3,"dur":2}`)
	if run.Ranks[0].Read != 1 || run.Ranks[0].Events.Len() != 1 {
		t.Error("the event is lost")
	}
}

// Stream Sync events lie on tid = stream + 1000000 (kineto, 2026): the stream is
// in the arguments.
func TestReport154(t *testing.T) {
	run := one(t, ``, `{"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":1000007,"ts":3,"dur":2,"args":{"stream":7,"correlation":5}}`)
	if got := run.Ranks[0].Events.Stream[0]; got != 7 {
		t.Errorf("stream %d, want 7", got)
	}
}

// TraceLens#577: two ranks in one file with the same correlations: a kernel must
// not be given to the wrong one.
func TestReport68(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":100,"tid":2,"ts":10,"dur":5,"args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":8,"Out msg nelems":8}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":2,"ts":12,"dur":1,"args":{"correlation":17}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":200,"tid":2,"ts":13,"dur":1,"args":{"correlation":17}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":1,"tid":20,"ts":30,"dur":7,"args":{"correlation":17,"stream":20}}`)
	if op := run.Ranks[0].Operations[0]; op.Op != comm.Unknown || count(run, "ambiguous-correlation") != 2 {
		t.Errorf("got %s, diagnostics %v", op.Op, run.Diagnostics.List())
	}
}

// rocprofiler#152: times are strings, and kernels are missing.
func TestReport37(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":1,"tid":2,"ts":"10","dur":"1","args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","pid":1,"tid":2,"ts":"12","dur":"1","args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":"213757592882","dur":"143117","args":{"correlation":2,"stream":7}}`)
	if got := device(run.Ranks[0]); got != "k 213757592882000+143117000" || count(run, "launch-without-kernel") != 1 || count(run, "numeric-string") != 6 {
		t.Errorf("got %s, diagnostics %v", got, run.Diagnostics.List())
	}
}

// hw-native-sys/simpler#2099: files of one job with different base times are on
// one clock once the base is added, and only then.
func TestReport80(t *testing.T) {
	event := `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%s,"dur":1,"args":{"stream":7}}`
	run, err := loadFiles(t, map[string]string{
		"rank0.json": traceOf(`"baseTimeNanoseconds":1700000000000000000,`, fmt.Sprintf(event, "5000.001")),
		"rank1.json": `{"traceEvents":[` + fmt.Sprintf(event, "1000.002") + `],"baseTimeNanoseconds":1700000000004000000}`,
	}, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := run.Ranks[0].Events.TS[0], run.Ranks[1].Events.TS[0]; a != 1700000000005000001 || b != 1700000000005000002 {
		t.Errorf("got %d and %d ns", a, b)
	}
}

// HolisticTraceAnalysis#56: no communication at all is no error.
func TestReport92(t *testing.T) {
	run := one(t, ``, `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":{"stream":7}}`)
	if n := len(run.Ranks[0].Operations); n != 0 || len(run.Diagnostics.List()) != 0 {
		t.Errorf("%d operations, diagnostics %v", n, run.Diagnostics.List())
	}
}

// HolisticTraceAnalysis#121: "Event Sync" has stream -1, which is no stream: it
// is no device work either.
func TestReport122(t *testing.T) {
	run := one(t, ``, `
{"ph":"X","cat":"cuda_sync","name":"Event Sync","pid":0,"tid":-1,"ts":3,"dur":2,"args":{"stream":-1}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":{"stream":7}}`)
	if got := device(run.Ranks[0]); got != "k 1000+1000" {
		t.Errorf("got %s", got)
	}
}

// The profiler copies communication arguments to a kernel only when all of them
// are there; a kernel without any has them from its CPU record.
func TestReport157(t *testing.T) {
	run := one(t, ``, strings.Replace(kernelEvents, `"Collective name":"allreduce",`, `"Collective name":"allreduce","Rank":0,`, 1))
	if op := run.Ranks[0].Operations[0]; op.Op != comm.AllReduce || !op.SizeKnown {
		t.Errorf("got %+v", op)
	}
}

// HolisticTraceAnalysis, trace_parser: events written as begin and end were
// dropped without a count.
func TestReport152(t *testing.T) {
	run := one(t, ``, `
{"ph":"B","cat":"cpu_op","name":"outer","pid":1,"tid":2,"ts":10},
{"ph":"B","cat":"cpu_op","name":"inner","pid":1,"tid":2,"ts":12},
{"ph":"E","pid":1,"tid":2,"ts":15},
{"ph":"B","cat":"cpu_op","name":"elsewhere","pid":1,"tid":3,"ts":13},
{"ph":"E","pid":1,"tid":2,"ts":20},
{"ph":"E","pid":1,"tid":2,"ts":30},
{"ph":"E","pid":1,"tid":3,"ts":14.5},
{"ph":"B","cat":"cpu_op","name":"never ends","pid":1,"tid":3,"ts":40}`)
	rank := run.Ranks[0]
	want := map[string]int64{"outer": 10000, "inner": 3000, "elsewhere": 1500, "never ends": 0}
	for i := range rank.Events.Len() {
		if got := rank.Events.Dur[i]; got != want[rank.Name(i)] {
			t.Errorf("%s lasts %d ns, want %d", rank.Name(i), got, want[rank.Name(i)])
		}
	}
	if rank.Events.Len() != 4 || count(run, "unmatched-begin") != 1 || count(run, "unmatched-end") != 1 {
		t.Errorf("%d events, diagnostics %v", rank.Events.Len(), run.Diagnostics.List())
	}
}

func count(run *trace.Run, code string) int64 {
	var n int64
	for _, d := range run.Diagnostics.List() {
		if d.Code == code {
			n += d.Count
		}
	}
	return n
}

func example(run *trace.Run, code string) string {
	for _, d := range run.Diagnostics.List() {
		if d.Code == code {
			return d.Example
		}
	}
	return ""
}
