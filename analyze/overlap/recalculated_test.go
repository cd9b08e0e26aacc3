package overlap_test

import (
	"math"
	"path/filepath"
	"testing"

	"mixdown/analyze/overlap"
	"mixdown/ingest/kineto/kinetotest"
)

// recalculated holds figures of other people's traces, in us, that were worked out
// independently, in Python with float64: hence the tolerance. Computation and
// memory are not compared, because sets count as memory here.
var recalculated = []struct {
	file              string
	total, busy, comm float64
}{
	{"hta/trace_filter/sampled_rank-0.json.gz", 1222847, 547656, 396199},
	{"hta/trace_filter/sampled_rank-1.json.gz", 1231186, 580050, 379053},
	{"hta/nccl_parser_config/nccl_data.json.gz", 660551.006, 157500.078, 46876.492},
	{"hta/negative_queue_length_values_check/rank0.json.gz", 1231461, 438424, 187870},
	{"hta/trace_diff/control/control.json.gz", 464594, 388587, 163535},
	{"hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz", 8911.887, 149.042, 0},
	{"hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz", 12920244, 66141, 0},
	{"hta/critical_path/cuda_event_sync/event_sync_trace.json.gz", 263, 51, 0},
	{"hta/critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz", 19506, 372, 0},
	{"hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz", 16025575, 49758, 0},
	{"hta/trace_compare/base/base.json.gz", 274498, 1694, 0},
	{"hta/trace_compare/test/test.json.gz", 274353, 1690, 0},
	{"hta/trace_file_list/inference_rank_1.json.gz", 1629, 30, 0},
	{"hta/large_integer_trace/rank-70.Mar_25_20_48_12.2861.pt.trace.json.gz", 50, 50, 50},
	{"hta/with_gpu_user_annotation/step_based_trace_2543932.json.gz", 7737, 291, 0},
	{"hta/execution_trace/benchmark_simple_add_trace.json.gz", 108919, 16, 0},
	{"hta/call_stack/backward_thread.json", 45, 45, 0},
	{"hta/triton_example/triton_example.json.gz", 1.76, 1.76, 0},
	{"kineto/tb_samples/resnet50_list_form_2020-12/worker0.pt.trace.json.gz", 1292150, 649472, 0},
	{"kineto/tb_samples/resnet50_profiler_api_2021-01/worker0.pt.trace.json.gz", 927973, 653527, 0},
	{"kineto/tb_samples/resnet50_autograd_api_2021-01/worker0.pt.trace.json.gz", 5243667, 979604, 0},
	{"kineto/tb_samples/resnet50_2021-06/worker0.1623143566756.pt.trace.json.gz", 876066, 602145, 0},
	{"kineto/tb_samples/resnet50_workers4_2021-06/worker0.1623212756351.pt.trace.json.gz", 801550, 614413, 0},
	{"kineto/docs_traces/before_fix_trace.json", 0.02, 0.02, 0},
	{"kineto/docs_traces/after_fix_trace.json", 0.02, 0.02, 0},
	{"param/dlrm_8rank/kineto/worker0_step_12.1694128201545.pt.trace.json.gz", 13009, 6590, 5798},
	{"param/dlrm_8rank/kineto/worker1_step_12.1694128201556.pt.trace.json.gz", 18749, 12321, 11336},
	{"param/dlrm_8rank/kineto/worker2_step_12.1694128201554.pt.trace.json.gz", 11350, 4304, 3492},
	{"param/dlrm_8rank/kineto/worker3_step_12.1694128201557.pt.trace.json.gz", 18853, 10708, 9774},
	{"param/dlrm_8rank/kineto/worker4_step_12.1694128201547.pt.trace.json.gz", 16589, 7702, 6587},
	{"param/dlrm_8rank/kineto/worker5_step_12.1694128201549.pt.trace.json.gz", 16392, 7271, 6251},
	{"param/dlrm_8rank/kineto/worker6_step_12.1694128201553.pt.trace.json.gz", 11410, 4359, 3558},
	{"param/dlrm_8rank/kineto/worker7_step_12.1694128201553.pt.trace.json.gz", 10967, 2659, 1746},
	{"param/resnet_pair/resnet_kineto.json.gz", 14522911, 4733822, 0},
	{"tracelens/mi300/ddp_resnet18_no_pool/train_resnet18.json.gz", 3391349.641, 358940.402, 0},
	{"tracelens/mi300/resnet_act_checkpoint.json.gz", 86567.708, 84002.069, 71516.523},
	{"tracelens/mi210/gpu_only_trace/gpu_only_trace.json.gz", 5979.503, 5343.37, 0},
	{"tracelens/inference/vllm_decode_full/graph_execution.json.gz", 10743.182, 10717.697, 0},
	{"tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz", 473749.943, 9772.929, 0},
	{"tracelens/inference/vllm_decode_full/capture_traces/graph_capture_rank_0.1773709742341309550.pt.trace.json.gz", 57795.418, 28.829, 0},
	{"tracelens/torch_compile_triton/trace.json.gz", 12549.032, 12549.021, 0},
}

// TestRecalculatedFigures: span, busy time and communication of every trace with
// device events. Communication is compared where the other rule for names, "nccl"
// and the like, is ours too.
func TestRecalculatedFigures(t *testing.T) {
	corpus := kinetotest.Corpus(t)
	for _, want := range recalculated {
		got := overlap.Measure(kinetotest.Load(t, filepath.Join(corpus, want.file)).Ranks[0]).Times()
		for _, c := range []struct {
			name string
			got  int64
			want float64
		}{{"span", got.Span, want.total}, {"busy", got.Span - got.Idle, want.busy}, {"communication", got.Comm, want.comm}} {
			if us := float64(c.got) / 1e3; math.Abs(us-c.want) > max(0.1, 2e-5*c.want) {
				t.Errorf("%s: %s %.3f us, want %.3f", want.file, c.name, us, c.want)
			}
		}
	}
}
