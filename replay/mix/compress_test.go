package mix

import (
	"errors"
	"strings"
	"testing"

	"mixdown/replay/plan/planpb"
)

func TestParseCompression(t *testing.T) {
	c, err := ParseCompression(" all_reduce@>=16MiB@group:dp=zfp:rate=8.25, all_to_all=fp8,*@<4KiB=fp8:e5m2,send=bf16 ")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range c.Rules {
		names = append(names, CodecName(r.Codec))
	}
	if got := strings.Join(names, " "); got != "zfp:rate=8.25 fp8:e4m3 fp8:e5m2 bf16" {
		t.Errorf("codecs %s", got)
	}
	if r := c.Rules[0]; r.Min != 16<<20 || r.Group != "dp" || r.Op != "all_reduce" || r.Codec.Rate != 8.25 {
		t.Errorf("%+v", r)
	}
	for text, want := range map[string]string{
		"":                             "expected OPERATION=CODEC",
		"all_reduce":                   "expected OPERATION=CODEC",
		"all_reduce=":                  "known are",
		"all_reduce=lz4":               "known are",
		"all_reduce=fp8:e3m4":          "known are",
		"all_reduce=zfp":               "size depends on the data",
		"all_reduce=zfp:accuracy=1e-3": "size depends on the data",
		"all_reduce=zfp:rate=2":        "from 3 to 63.75",
		"all_reduce=zfp:rate=64":       "from 3 to 63.75",
		"all_reduce=zfp:rate=8.1":      "multiple of 1/4",
		"all_reduce=zfp:rate=NaN":      "multiple of 1/4",
		"all_reduce=zfp:rate=1e300":    "multiple of 1/4",
		"reduceall=fp8":                "unknown operation",
		"all_reduce@big=fp8":           "condition",
		"@>=1MiB=fp8":                  "an operation or * is missing",
	} {
		if _, err := ParseCompression(text); !errors.Is(err, ErrCompressionSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// compressible is an all_reduce of 1 MiB of two ranks, an all_to_all of integers, a
// barrier, and a message that one side sends in a batch.
func compressible() *planpb.Workload {
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Name: "dp", Ranks: []int32{0, 1}}}}
	for rank := range int32(2) {
		p := &planpb.Program{Rank: rank, Streams: []*planpb.Stream{{}}}
		message := &planpb.Communication{Op: planpb.Op_OP_BATCH, Dtype: planpb.DType_DTYPE_FLOAT16, Transfers: []*planpb.Transfer{{Send: true, Peer: 1, Count: 64}}}
		if rank == 1 {
			message = &planpb.Communication{Op: planpb.Op_OP_RECV, Dtype: planpb.DType_DTYPE_FLOAT16, Transfers: []*planpb.Transfer{{Peer: 0, Count: 64}}}
		}
		for _, c := range []*planpb.Communication{
			{Op: planpb.Op_OP_ALL_REDUCE, Dtype: planpb.DType_DTYPE_FLOAT32, ReduceOp: planpb.ReduceOp_REDUCE_OP_SUM, InCount: 1 << 18, OutCount: 1 << 18},
			{Op: planpb.Op_OP_ALL_TO_ALL, Seq: 1, Dtype: planpb.DType_DTYPE_INT32, InCount: 2, OutCount: 2},
			{Op: planpb.Op_OP_BARRIER, Seq: 2},
			message,
		} {
			c.Backend = "gloo"
			p.Tasks = append(p.Tasks, &planpb.Task{Id: int32(len(p.Tasks)), Kind: &planpb.Task_Communication{Communication: c}})
		}
		w.Programs = append(w.Programs, p)
	}
	return w
}

func TestCompress(t *testing.T) {
	for _, test := range []struct {
		rules   string
		applied int
		left    int64
		names   [4]string // of rank 1
	}{
		{"*=fp8", 4, 2, [4]string{"fp8:e4m3", "", "", "fp8:e4m3"}},
		{"*=bf16", 2, 4, [4]string{"bf16", "", "", ""}}, // float16 would not become smaller
		{"all_reduce@>=1MiB=zfp:rate=8", 2, 0, [4]string{"zfp:rate=8", "", "", ""}},
		{"all_reduce@>1MiB=zfp:rate=8", 0, 0, [4]string{}},
		{"send=fp8:e5m2", 2, 0, [4]string{"", "", "", "fp8:e5m2"}}, // and what the batch of the other side is
		{"*@group:tp=fp8", 0, 0, [4]string{}},
	} {
		c, err := ParseCompression(test.rules)
		if err != nil {
			t.Fatal(err)
		}
		before := compressible()
		w, applied, diags := Compress(before, c)
		left := int64(0)
		for _, d := range diags.List() {
			left += d.Count
		}
		if applied != test.applied || left != test.left {
			t.Errorf("%s: %d compressed, %d left; want %d, %d", test.rules, applied, left, test.applied, test.left)
		}
		for i, task := range w.Programs[1].Tasks {
			if got := CodecName(task.GetCommunication().Compression); got != test.names[i] {
				t.Errorf("%s: task %d has %q, want %q", test.rules, i, got, test.names[i])
			}
			if before.Programs[1].Tasks[i].GetCommunication().Compression != nil {
				t.Errorf("%s: the workload was changed", test.rules)
			}
		}
		if err := Check(&planpb.Plan{Workload: w}); err != nil {
			t.Errorf("%s: %v", test.rules, err)
		}
	}
}

// TestCheckCompression: what can't be, or members do not agree on, is refused.
func TestCheckCompression(t *testing.T) {
	bf16 := &planpb.Compression{Codec: planpb.Compression_BFLOAT16}
	fp8 := &planpb.Compression{Codec: planpb.Compression_FLOAT8_E5M2}
	for _, test := range []struct {
		want   string
		change func(rank int, c []*planpb.Task)
	}{
		{"compression none, bf16", func(rank int, c []*planpb.Task) {
			if rank == 1 {
				c[0].GetCommunication().Compression = bf16
			}
		}},
		{"sent with compression fp8:e5m2 and received with none", func(rank int, c []*planpb.Task) {
			if rank == 0 {
				c[3].GetCommunication().Compression = fp8
			}
		}},
		{"only floats", func(_ int, c []*planpb.Task) { c[1].GetCommunication().Compression = fp8 }},
		{"bf16 does not make float16 smaller", func(_ int, c []*planpb.Task) { c[3].GetCommunication().Compression = bf16 }},
		{"no known codec", func(_ int, c []*planpb.Task) { c[0].GetCommunication().Compression = &planpb.Compression{} }},
		{"device memory", func(_ int, c []*planpb.Task) {
			c[0].GetCommunication().Compression, c[0].GetCommunication().Backend = bf16, "nccl:ring"
		}},
	} {
		w := compressible()
		for r, p := range w.Programs {
			test.change(r, p.Tasks)
		}
		if err := Check(&planpb.Plan{Workload: w}); !errors.Is(err, ErrInvalidPlan) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}
