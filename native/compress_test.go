// Operations whose payload is compressed.
package native_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan/planpb"
)

const (
	zfp  = planpb.Compression_ZFP
	bf16 = planpb.Compression_BFLOAT16
	e4m3 = planpb.Compression_FLOAT8_E4M3FN
	e5m2 = planpb.Compression_FLOAT8_E5M2
)

// codecs are those that can run here.
func codecs(t *testing.T) []*planpb.Compression {
	t.Helper()
	all := []*planpb.Compression{{Codec: bf16}, {Codec: e4m3}, {Codec: e5m2}}
	if out, err := exec.Command(worker(t), "--probe-codec", "zfp").CombinedOutput(); err != nil {
		t.Logf("without zfp: %s", out)
		return all
	}
	return append(all, &planpb.Compression{Codec: zfp, Rate: 8}, &planpb.Compression{Codec: zfp, Rate: 15.25})
}

// floatBits are those of the floats that a type is made of, 0 of what is no float or
// one of 8 bits.
func floatBits(d planpb.DType) float64 {
	switch d {
	case planpb.DType_DTYPE_FLOAT16, planpb.DType_DTYPE_BFLOAT16:
		return 16
	case f32, planpb.DType_DTYPE_COMPLEX64:
		return 32
	case planpb.DType_DTYPE_FLOAT64, planpb.DType_DTYPE_COMPLEX128:
		return 64
	}
	return 0
}

func codecBits(c *planpb.Compression) float64 {
	switch c.Codec {
	case zfp:
		return c.Rate
	case bf16:
		return 16
	}
	return 8
}

// compress gives every operation that can have it the codec; it returns their number
// on each rank.
func compress(w *planpb.Workload, c *planpb.Compression) []int64 {
	counts := make([]int64, len(w.Programs))
	for r, program := range w.Programs {
		for _, task := range program.Tasks {
			if comm := task.GetCommunication(); comm != nil && comm.Op != planpb.Op_OP_BARRIER && floatBits(comm.Dtype) > codecBits(c) {
				comm.Compression = proto.CloneOf(c)
				counts[r]++
			}
		}
	}
	return counts
}

// compressed are the records of a plan's codecs on a rank.
func compressed(records []*planpb.Record, plan int32) []*planpb.Compressed {
	var list []*planpb.Compressed
	for _, r := range records {
		if c := r.GetCompressed(); c != nil && c.Plan == plan {
			list = append(list, c)
		}
	}
	return list
}

// TestCompressedMatrix: every operation of floats, in place and not, coalesced, of
// groups of every shape, keeps what its codec promises.
func TestCompressedMatrix(t *testing.T) {
	for _, backend := range backends {
		for _, size := range []int{1, 2, 3, 4} {
			if backend != "gloo" && size != 3 {
				continue // what the library moves are bytes, and bfloat16
			}
			t.Run(fmt.Sprintf("%s/%d", backend, size), func(t *testing.T) {
				need(t, filepath.Dir(worker(t)), backend)
				var workloads []*planpb.Workload
				var counts [][]int64
				for _, c := range codecs(t) {
					w, _ := matrixOf(size, backend, func(x call) bool { return floatBits(x.dtype) > 0 })
					counts = append(counts, compress(w, c))
					workloads = append(workloads, w)
				}
				e := experiment(workloads...)
				e.Settings.Iterations, e.Settings.Warmup = 1, 0
				for r, records := range start(t, e, launch{backend: backend}).done(t, e) {
					for p := range workloads {
						list := compressed(records, int32(p))
						if len(list) != 1 || list[0].Operations != counts[p][r] || counts[p][r] == 0 {
							t.Fatalf("rank %d, plan %d: %v, want one of %d operations", r, p, list, counts[p][r])
						}
						c := list[0]
						relative := math.Sqrt(c.SquaredError / c.SquaredExact)
						t.Logf("%v: %d elements, largest error %.3g, relative %.3g", c.Compression, c.Elements, c.MaxAbsError, relative)
						if c.Elements == 0 || !(relative < 0.5) || size > 1 && relative == 0 {
							t.Errorf("rank %d: %v", r, c)
						}
					}
					for _, record := range records {
						if it := record.GetIteration(); it != nil && (len(it.CodecNs) != 1 || it.CodecNs[0] <= 0 || it.CodecNs[0] > it.EndNs-it.StartNs) {
							t.Errorf("rank %d: %d ns from %d to %d in the codecs", r, it.CodecNs, it.StartNs, it.EndNs)
						}
					}
				}
			})
		}
	}
}

// TestCompressedBytes: how many bytes are compressed and what they become, and how far
// off that is, computed here from what the codecs are.
func TestCompressedBytes(t *testing.T) {
	const size, count = 4, 4096
	for _, c := range codecs(t) {
		b := newBuilder(size, 1, "gloo")
		b.call(call{op: opAR, dtype: f32, red: plus, count: count})
		b.call(call{op: planpb.Op_OP_ALL_TO_ALL, dtype: f32, count: count})
		b.call(call{op: planpb.Op_OP_ALL_GATHER, dtype: f32, count: count})
		compress(b.w, c)
		e := experiment(b.w)
		e.Settings.Iterations, e.Settings.Warmup = 1, 0
		for r, records := range start(t, e, launch{}).done(t, e) {
			got := compressed(records, 0)[0]
			// A reduction sends three of its four parts, and its sums; an all_to_all
			// three of four blocks. bfloat16 goes to the library whole.
			blocks, block := []int64{count / size, count / size, count / size, count / size, count, count, count, count}, int64(0)
			raw := int64(0)
			switch c.Codec {
			case bf16:
				raw, block = 4*(count+size*count+count), 2*(count+size*count+count)
			default:
				for _, n := range blocks {
					raw += 4 * n
					switch c.Codec {
					case zfp:
						block += (n/4*int64(4*c.Rate) + 63) / 64 * 8
					default:
						block += n + 4
					}
				}
			}
			if got.Operations != 3 || got.Bytes != raw || got.CompressedBytes != block {
				t.Errorf("%v, rank %d: %d operations, %d bytes become %d; want 3, %d, %d", c, r, got.Operations, got.Bytes, got.CompressedBytes, raw, block)
			}
			// Rounding to p digits of numbers that are spread evenly between powers of
			// two is off by 2^-p / sqrt(3 * mean of squares of the significand, 7/12 * 4).
			lo, hi := 0.0, 0.0
			switch c.Codec {
			case bf16:
				lo, hi = 0.5*0x1p-8/math.Sqrt(7), 3*0x1p-8/math.Sqrt(7)
			case e4m3:
				lo, hi = 0.5*0x1p-4/math.Sqrt(7), 3*0x1p-4/math.Sqrt(7)
			case e5m2:
				lo, hi = 0.5*0x1p-3/math.Sqrt(7), 3*0x1p-3/math.Sqrt(7)
			case zfp: // a bit more or less is a factor of two
				lo, hi = math.Exp2(-c.Rate), math.Exp2(5-c.Rate)
			}
			if relative := math.Sqrt(got.SquaredError / got.SquaredExact); relative < lo || relative > hi {
				t.Errorf("%v, rank %d: relative error %.3g, expected from %.3g to %.3g", c, r, relative, lo, hi)
			}
		}
	}
}

// TestCompressedDataCheckFails: what a faulty library makes of compressed data shows.
// The last byte that zfp writes is the last place of its numbers, or nothing.
func TestCompressedDataCheckFails(t *testing.T) {
	folder := filepath.Join(filepath.Dir(worker(t)), "testing")
	need(t, folder, "broken")
	var workloads []*planpb.Workload
	for _, c := range []*planpb.Compression{{Codec: bf16}, {Codec: e4m3}, {Codec: e5m2}} {
		b := newBuilder(3, 1, "broken")
		b.call(call{op: opAR, dtype: f32, red: plus, count: 30_001})
		compress(b.w, c)
		workloads = append(workloads, b.w)
	}
	e := experiment(workloads...)
	e.Settings.Iterations, e.Settings.Warmup = 0, 0
	j := start(t, e, launch{modules: folder})
	j.wait()
	found := map[int32]bool{}
	for i := range 3 {
		for _, r := range j.records(t, i) {
			if v := r.GetVerification(); v != nil && len(v.Errors) > 0 {
				found[v.Plan] = true
				t.Log(v.Errors)
			}
		}
	}
	for p, w := range workloads {
		if !found[int32(p)] {
			t.Errorf("%v: nothing was found", w.Programs[0].Tasks[0].GetCommunication().Compression)
		}
	}
}

// TestInvalidCompression: what can't be is refused before anything runs.
func TestInvalidCompression(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(rank int, c *planpb.Communication)
	}{
		{"its codec is not set or unknown", func(_ int, c *planpb.Communication) { c.Compression = &planpb.Compression{} }},
		{"rate is not a multiple", func(_ int, c *planpb.Communication) { c.Compression = &planpb.Compression{Codec: zfp, Rate: 8.1} }},
		{"rate is not a multiple", func(_ int, c *planpb.Communication) {
			c.Compression = &planpb.Compression{Codec: zfp, Rate: math.NaN()}
		}},
		{"does not make float32 smaller", func(_ int, c *planpb.Communication) { c.Compression = &planpb.Compression{Codec: zfp, Rate: 32} }},
		{"only floating types can be compressed, not int8", func(_ int, c *planpb.Communication) {
			c.Dtype, c.Compression = i8, &planpb.Compression{Codec: bf16}
		}},
		{"disagree on the compression", func(rank int, c *planpb.Communication) {
			if rank == 1 {
				c.Compression = &planpb.Compression{Codec: bf16}
			}
		}},
		{"disagree on the compression", func(rank int, c *planpb.Communication) {
			c.Compression = &planpb.Compression{Codec: []planpb.Compression_Codec{e4m3, e5m2}[rank]}
		}},
	} {
		b := newBuilder(2, 1, "gloo")
		b.call(call{op: opAR, dtype: f32, red: plus, count: 8})
		for r, program := range b.w.Programs {
			for _, task := range program.Tasks {
				test.change(r, task.GetCommunication())
			}
		}
		j := start(t, experiment(b.w), launch{})
		j.wait()
		if text := j.out.String(); !strings.Contains(text, test.want) {
			t.Errorf("want %q, got\n%s", test.want, text)
		}
	}
}

// TestNoZFP: without the library the worker says what is missing.
func TestNoZFP(t *testing.T) {
	b := newBuilder(1, 1, "gloo")
	b.call(call{op: opAR, dtype: f32, red: plus, count: 8})
	compress(b.w, &planpb.Compression{Codec: zfp, Rate: 8})
	j := start(t, experiment(b.w), launch{env: []string{"MIXDOWN_ZFP=/nowhere/libzfp.so"}})
	j.wait()
	if text := j.out.String(); !strings.Contains(text, "codec zfp: /nowhere/libzfp.so") || !strings.Contains(text, "libzfp1") {
		t.Errorf("got\n%s", text)
	}
	cmd := exec.Command(worker(t), "--probe-codec", "zfp")
	cmd.Env = append(os.Environ(), "MIXDOWN_ZFP=/nowhere/libzfp.so")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "libzfp1") {
		t.Errorf("%v: %s", err, out)
	}
}
