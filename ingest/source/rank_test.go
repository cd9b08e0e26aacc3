package source

import (
	"regexp"
	"testing"
)

func TestRankFromName(t *testing.T) {
	tests := []struct {
		name    string
		rank    int // -1: none
		pattern string
	}{
		// Megatron-LM, HTA, torchtitan, DeepSpeed users
		{"rank-3.json.gz", 3, PatternRank},
		{"rank-70.Mar_25_20_48_12.2861.pt.trace.json.gz", 70, PatternRank},
		{"iteration_100/rank3_trace.json", 3, PatternRank},
		{"iteration_100/rank12_trace.json.gz", 12, PatternRank},
		{"rank0.json.gz", 0, PatternRank},
		{"inference_rank_1.json.gz", 1, PatternRank},
		{"sampled_rank-0.json.gz", 0, PatternRank},
		{"trace_rank_3.json", 3, PatternRank},
		{"trace_rank3.json", 3, PatternRank},
		{"rank[3].json", 3, PatternRank},
		{"[rank3].json", 3, PatternRank},
		{"trace-rank=3.json", 3, PatternRank},
		{"rank_00003.json", 3, PatternRank},
		{"rank3of8.json", 3, PatternRank},
		{"rank_3_of_8.json", 3, PatternRank},
		{"global_rank_3.json", 3, PatternRank},
		{"globalrank3.json", 3, PatternRank},
		{"Rank3.json", 3, PatternRank},
		{"RANK_3.JSON", 3, PatternRank},
		{"graph_capture_rank_0.1773709742341309550.pt.trace.json.gz", 0, PatternRank},
		{"rank0_iter16_18.json", 0, PatternRank},
		{"node0_local_rank_1_global_rank_9.json", 9, PatternRank},
		{"rank3_local_rank_1.json", 3, PatternRank},
		{"rank_4_rank_4.json", 4, PatternRank},
		{"profile_rank3_step10.json", 3, PatternRank},
		{"a.zip!rank5.json", 5, PatternRank},
		{`C:\traces\rank5.json`, 5, PatternRank},
		// torch.profiler with a worker name, TensorBoard
		{"worker0.pt.trace.json.gz", 0, PatternWorker},
		{"worker0_step_12.1694128201545.pt.trace.json.gz", 0, PatternWorker},
		{"d/worker7.1623143566756.pt.trace.json", 7, PatternWorker},
		// folders
		{"rank_3/host_1234.1694128201545.pt.trace.json", 3, PatternFolder},
		{"run/rank3/step5/trace.json", 3, PatternFolder},
		{"rank3/rank4.json", 4, PatternRank},
		// traps
		{"host_1234.1694128201545.pt.trace.json", -1, ""},
		{"host1_1234.1694128201545.pt.trace.json", -1, ""},
		{"worker-0_1234.1694128201545.pt.trace.json", -1, ""},
		{"worker0_1234.1694128201545.pt.trace.json", -1, ""},
		{"dataloader_worker_3.json", -1, ""},
		{"id-TP-0-DP-1-PP-0-EP-0.trace.json.gz", -1, ""},
		{"tp_rank_0.json", -1, ""},
		{"tp_rank_0_pp_rank_1.json", -1, ""},
		{"mp_rank_00_model_states.json", -1, ""},
		{"local_rank_3.json", -1, ""},
		{"localrank3.json", -1, ""},
		{"rank0-rank7.json", -1, ""},
		{"rank_0_rank_1.json", -1, ""},
		{"libkineto_activities_2543932.json", -1, ""},
		{"benchmark_result_493459_1694039959_trace.json.gz", -1, ""},
		{"step_based_trace_2543932.json.gz", -1, ""},
		{"nccl_trace_rank_container-node02_5", -1, ""},
		{"rank_non_gpu.json", -1, ""},
		{"lowrank4.json", -1, ""},
		{"rank1694128201545.json", -1, ""},
		{"rank2vec.json", -1, ""},
		{"rank.json", -1, ""},
		{"trace_rank_0_to_7/x.json", -1, ""},
		{"dlrm_eg_3.json", -1, ""},
		{"chakra.3.et", -1, ""},
		{"trace.json", -1, ""},
		{"", -1, ""},
		{"-", -1, ""},
	}
	for _, tt := range tests {
		rank, pattern, ok := RankFromName(tt.name)
		if !ok {
			rank = -1
		}
		if rank != tt.rank || pattern != tt.pattern {
			t.Errorf("%s: %d by %q, want %d by %q", tt.name, rank, pattern, tt.rank, tt.pattern)
		}
	}
}

func TestRankFromExecutionTraceName(t *testing.T) {
	for name, want := range map[string]int{
		"dlrm_eg_3.json.gz": 3, "et.7": 7, "trace.et.7.json": 7, "chakra.0.json": 0, "chakra.12.et": 12,
		"rank-4.json.gz": 4, "a/b/et_2.json": 2,
		"linear_et.json.gz": -1, "1.0.2-chakra.0.0.4.json.gz": -1, "pt2_et.json": -1, "reset_3.json": -1, "hf_GPT2_et.json.gz": -1,
	} {
		rank, ok := RankFromExecutionTraceName(name)
		if !ok {
			rank = -1
		}
		if rank != want {
			t.Errorf("%s: %d, want %d", name, rank, want)
		}
	}
}

// TestReport73 is about names that hold host and rank.
func TestReport73(t *testing.T) {
	name := "nccl_trace_rank_container-node02_5"
	for expr, want := range map[string]int{
		`_(?P<rank>\d+)$`:            5,
		`node(\d+)_`:                 2,
		`node(\d+)_(?P<rank>\d+)`:    5,
		`node(?P<host>\d+)_(?:\d+)$`: 2,
		`host(\d+)`:                  -1,
		`(container)`:                -1,
	} {
		re, err := CompileRankRegexp(expr)
		if err != nil {
			t.Fatal(err)
		}
		rank, ok := RankFromRegexp(re, name)
		if !ok {
			rank = -1
		}
		if rank != want {
			t.Errorf("%s: %d, want %d", expr, rank, want)
		}
	}
	for _, expr := range []string{`rank\d+`, `(`} {
		if _, err := CompileRankRegexp(expr); err == nil {
			t.Errorf("%s: no error", expr)
		}
	}
	if _, ok := RankFromRegexp(regexp.MustCompile(`rank\d+`), "rank3"); ok {
		t.Error("rank without a group")
	}
}
