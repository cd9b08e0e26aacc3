package html_test

import (
	"bytes"
	"testing"

	"mixdown/analyze/html"
)

// FuzzResult: whatever a file holds, it is refused or makes a page; nothing
// panics, and nothing of it runs.
func FuzzResult(f *testing.F) {
	f.Add([]byte(replayJSON))
	f.Add([]byte(simulateJSON))
	f.Add([]byte(`{"schema_version":1,"run":{"world_size":3,"ranks_present":[0,2],"ranks_missing":[1],"steps":[{"name":"a","dur_ns":5},{"name":"<b>","dur_ns":-7}]},
"ranks":[{"rank":0,"device":"cpu","time":{"span_ns":-5,"idle_ns":9}},{"rank":2,"time":{"span_ns":9223372036854775807,"exposed_comm_ns":9223372036854775807}}],
"communication":[{"group":"<g>","op":"all_reduce","in_bytes":4,"total_ns":1,"exposed_ns":2,"wait_ns":3,"transfer_ns":-3,"busbw_gbps":1e300,"splits":"estimated"}],
"critical_path":{"step":"a","by_kind":[{"kind":"idle","ns":3}],"all_free":{"speedup_at_most":null},"free_by_op":[{}]},
"stragglers":{"ranks":[{"rank":7,"caused_ns":5,"inherited_ns":9}],"worst":[{}]},"breakdown":[{"group":null,"op":"x","total_ns":1}],
"steps_by_rank":[{"rank":0,"steps":[{"step":"a","dur_ns":1},{"step":"<b>"}]}],
"pipeline":[{"ranks":[],"steps":[{"bubble":0.5,"makespan_ns":null,"bubble_longest_span":2},{"bubble":null}]}],"diagnostics":[{"code":"x","rank":null}]}`))
	f.Add([]byte(drawing))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &html.Page{}
		if _, err := p.AddResult(data); err != nil {
			pic, err := html.NewPicture("x", data)
			if err != nil {
				return
			}
			p.Orders = append(p.Orders, pic)
		}
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		checkSafe(t, b.Bytes())
	})
}
