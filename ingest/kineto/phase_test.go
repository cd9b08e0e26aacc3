package kineto_test

import (
	"strings"
	"testing"

	"mixdown/ingest/trace"
)

// TestPhasesAndModules: work belongs to the innermost marker around its launch.
func TestPhasesAndModules(t *testing.T) {
	launch := func(ts, correlation string) string {
		return `{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":` + ts + `,"dur":1,"args":{"correlation":` + correlation + `}},
{"ph":"X","cat":"kernel","name":"k` + correlation + `","pid":0,"tid":7,"ts":` + ts + `5,"dur":2,"args":{"correlation":` + correlation + `,"stream":7}},`
	}
	run := one(t, ``, launch("5", "1")+launch("15", "2")+launch("35", "3")+launch("55", "4")+launch("75", "5")+launch("95", "6")+`
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":2,"ts":0,"dur":100},
{"ph":"X","cat":"user_annotation","name":"DistributedDataParallel.forward","pid":1,"tid":2,"ts":10,"dur":10},
{"ph":"X","cat":"user_annotation","name":"## backward ##","pid":1,"tid":2,"ts":30,"dur":40},
{"ph":"X","cat":"user_annotation","name":"## forward:recompute ##","pid":1,"tid":2,"ts":50,"dur":10},
{"ph":"X","cat":"user_annotation","name":"Optimizer.step#SGD.step","pid":1,"tid":2,"ts":70,"dur":10},
{"ph":"X","cat":"python_function","name":"nn.Module: Block_0","pid":1,"tid":2,"ts":101,"dur":50,"args":{}},
{"ph":"X","cat":"python_function","name":"nn.Module: Linear_3","pid":1,"tid":2,"ts":105,"dur":20,"args":{}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":110,"dur":5,"args":{"Collective name":"allreduce"}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":112,"dur":1,"args":{"correlation":9}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":20,"ts":120,"dur":2,"args":{"correlation":9,"stream":20}}`)
	rank := run.Ranks[0]
	want := map[string]trace.Phase{
		"k1": trace.UnknownPhase, "k2": trace.Forward, "k3": trace.Backward, "k4": trace.Forward, "k5": trace.Optimizer, "k6": trace.UnknownPhase,
	}
	seen := 0
	for i := range rank.Events.Len() {
		if w, ok := want[rank.Name(i)]; ok {
			seen++
			if got := rank.Events.Phase[i]; got != w {
				t.Errorf("%s: phase %q, want %q", rank.Name(i), got, w)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d kernels of %d", seen, len(want))
	}
	if got := rank.Operations[0].Module; got != "Linear_3" {
		t.Errorf("module %q, want the innermost", got)
	}
}

// TestAutogradThreadIsBackward: the engine's operators need no annotation.
func TestAutogradThreadIsBackward(t *testing.T) {
	for _, rank := range load(t, "../../testdata/dp_moe_4rank").Ranks {
		phases := map[trace.Phase]int{}
		for _, op := range rank.Operations {
			if op.Op == "all_to_allv" {
				phases[rank.Events.Phase[op.Event]]++
			}
		}
		// Two all_to_allv forward and their two reverses, in each of 3 steps.
		if phases[trace.Backward] != 6 || phases[trace.Forward] != 6 {
			t.Errorf("rank %d: %v, want 6 forward and 6 backward", rank.Rank, phases)
		}
	}
}

// TestCyclesStandInForSteps: training repeats its communication.
func TestCyclesStandInForSteps(t *testing.T) {
	const three = `{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":TS0,"dur":5,"args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":8,"Out msg nelems":8}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":TS2,"dur":1,"args":{"correlation":TS0}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":20,"ts":TS5,"dur":2,"args":{"correlation":TS0,"stream":20}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":TS6,"dur":3,"args":{"Collective name":"broadcast","dtype":"Float","In msg nelems":9,"Out msg nelems":9}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":TS7,"dur":1,"args":{"correlation":TS7}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_Generic","pid":0,"tid":20,"ts":TS8,"dur":1,"args":{"correlation":TS7,"stream":20}}`
	var events []string
	for _, ts := range []string{"1", "2", "3", "4"} {
		events = append(events, strings.ReplaceAll(three, "TS", ts))
	}
	run := one(t, ``, strings.Join(events, ",\n"))
	steps := run.Ranks[0].Steps
	if len(steps) != 4 || steps[1].Name != "cycle 1" || steps[1].Start != 22000 || steps[1].End != 32000 {
		t.Errorf("steps %+v, want four, each from an all_reduce to the next", steps)
	}
}
