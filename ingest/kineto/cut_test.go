package kineto_test

import (
	"testing"

	"mixdown/ingest/kineto"
)

// TestCutOffPairs: of a file that was cut off, an annotation that began after all that is
// left of the thread of a call is not taken for that call's: what lies between may be
// lost. Of a whole file it is.
func TestCutOffPairs(t *testing.T) {
	const head = `{"distributedInfo":{"rank":0,"world_size":2,"backend":"gloo"},"traceEvents":[` +
		`{"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":1,"tid":9,"ts":5010,"dur":100,"args":{"Input Dims":[[4]],"Input type":["float"]}},` +
		`{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1000,"dur":50,"args":{}},` +
		`{"ph":"X","cat":"cpu_op","name":"c10d::allreduce_","pid":1,"tid":1,"ts":1100,"dur":20,"args":{"Input Dims":[[[4]]],"Input type":["TensorList"]}},` +
		`{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":1200,"dur":50,"args":{}}`
	for name, c := range map[string]struct {
		text   string
		issued int64 // us
	}{
		"whole": {head + `]}`, 1100},
		"cut":   {head + `,{"ph":"X","cat":"cp`, 5010},
		// The thread went on until after the annotation began: nothing between is lost.
		"cut later": {head + `,{"ph":"X","cat":"cpu_op","name":"aten::mul","pid":1,"tid":1,"ts":6000,"dur":50,"args":{}},{"ph":"X","cat":"cp`, 1100},
	} {
		run, err := loadFiles(t, map[string]string{"rank0.json": c.text}, kineto.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if ops := run.Ranks[0].Operations; len(ops) != 1 || ops[0].Issued != c.issued*1000 {
			t.Errorf("%s: %+v, want one operation issued at %d us", name, ops, c.issued)
		}
	}
}
