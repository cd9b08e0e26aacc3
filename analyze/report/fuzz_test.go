package report_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/report"
	"mixdown/ingest/kineto"
	"mixdown/ingest/source"
)

// FuzzAnalyze: whatever two files hold, they are analysed or refused; nothing
// panics, and no figure is impossible.
func FuzzAnalyze(f *testing.F) {
	const kernel = `{"distributedInfo":{"rank":0,"world_size":2,"backend":"nccl","pg_config":[{"pg_name":"0","ranks":[0,1],"pg_size":2}]},"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":2,"ts":0,"dur":100},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":2,"ts":10,"dur":20,"args":{"Collective name":"all_to_allv","dtype":"Float","In msg nelems":10,"Out msg nelems":10,"In split size":"[4, 6]","Out split size":"[4, 6]","Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]","Seq":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":15,"dur":3,"args":{"correlation":5}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":20,"ts":30.5,"dur":7.25,"args":{"correlation":5,"stream":20,"device":0}},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":1,"tid":2,"ts":40,"dur":30,"args":{"stream":20}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":35,"dur":7,"args":{"stream":7}}]}`
	const host = `{"distributedInfo":{"rank":1,"world_size":2,"backend":"gloo"},"baseTimeNanoseconds":1700000000000000000,"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"c10d::send","pid":1,"tid":2,"ts":1,"dur":2,"args":{"Concrete Inputs":["","","0","0"],"Input Dims":[[[4]]],"Input type":["TensorList"]}},
{"ph":"X","cat":"user_annotation","name":"gloo:send","pid":1,"tid":2,"ts":2,"dur":9,"args":{"Input Dims":[[4]],"Input type":["float"]}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":12,"dur":-9223372036854775808},
{"ph":"B","name":"x","pid":1,"tid":3,"ts":9e99},{"ph":"E","pid":1,"tid":3,"ts":-4}]}`
	f.Add([]byte(kernel), []byte(host))
	f.Add([]byte(host), []byte(kernel))
	f.Add([]byte(kernel), []byte(`[{"ph":"X","cat":"kernel","name":"nccl","pid":0,"tid":7,"ts":9223372036854775,"dur":9223372036854775,"args":{"correlation":-1}}]`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		dir := t.TempDir()
		for name, data := range map[string][]byte{"rank0.json": a, "rank1.json": b} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		files, err := source.Find([]string{dir}, source.Options{})
		if err != nil {
			return
		}
		run, err := kineto.Load(context.Background(), files, kineto.Options{})
		if err != nil {
			return
		}
		m := collective.Match(run)
		clocks := align.Estimate(run, m)
		align.Apply(run, clocks)
		align.UpdateArrivals(run, m)
		analysis, err := report.Analyze(run, m, report.Options{Clocks: clocks, Critical: true})
		if err != nil {
			return
		}
		if err := analysis.WriteText(io.Discard, report.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(analysis); err != nil { // NaN has no JSON
			t.Fatal(err)
		}
		for _, r := range analysis.Ranks {
			if r.Time.Exposed < 0 || r.Time.Exposed > r.Time.Comm || r.Time.Hidden != r.Time.Comm-r.Time.Exposed {
				t.Errorf("rank %d: %+v", r.Rank, r.Time)
			}
		}
	})
}
