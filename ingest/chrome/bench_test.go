package chrome

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// kineto makes a trace of about n bytes with the layout and the mix of events
// that Kineto writes.
func kineto(n int) []byte {
	var b bytes.Buffer
	b.WriteString("\n{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n  ],\n  \"traceEvents\": [\n")
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `  {
    "ph": "X", "cat": "cpu_op", "name": "aten::as_strided", "pid": 542, "tid": 542,
    "ts": 3743411256%03d.%03d, "dur": 1.660,
    "args": {
      "External id": %d,"Record function id": 0, "Concrete Inputs": ["", "[-1]"], "Input type": ["c10::BFloat16", "ScalarList"], "Input Strides": [[1], []], "Input Dims": [[256], []], "Ev Idx": %d
    }
  },
  {
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)", "pid": 0, "tid": 7,
    "ts": 3743411256%03d.%03d, "dur": 2.304,
    "args": {
      "External id": %d,
      "queued": 0, "device": 0, "context": 1,
      "stream": 7, "correlation": %d,
      "registers per thread": 16,
      "shared memory": 0,
      "blocks per SM": 1.481481,
      "warps per SM": 5.925926,
      "grid": [160, 1, 1],
      "block": [128, 1, 1],
      "est. achieved occupancy %%": 9
    }
  },
  {
    "ph": "s", "id": %d, "pid": 542, "tid": 542, "ts": 3743411256%03d.%03d,
    "cat": "ac2g", "name": "ac2g"
  },
`, i%1000, i%997, i, i, i%1000, i%997, i, i, i, i%1000, i%997)
	}
	b.WriteString("  {\"ph\": \"M\", \"name\": \"x\", \"pid\": 1}\n  ],\n  \"traceName\": \"t.json\"\n}\n")
	return b.Bytes()
}

func benchmark(b *testing.B, data []byte, withArgs bool) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		r := NewReader(bytes.NewReader(data), Options{})
		for {
			ev, err := r.Next()
			if err != nil {
				break
			}
			events++
			if withArgs {
				ev.Args.Each(func(_ []byte, v Value) bool { v.Int(); return true })
			}
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

func BenchmarkReader(b *testing.B) {
	data := kineto(16 << 20)
	b.Run("indented", func(b *testing.B) { benchmark(b, data, false) })
	b.Run("indented-args", func(b *testing.B) { benchmark(b, data, true) })
	compact := []byte(strings.NewReplacer("\n", "", "  ", "", ": ", ":").Replace(string(data)))
	b.Run("compact", func(b *testing.B) { benchmark(b, compact, false) })
}

// BenchmarkCorpus reads the real traces, all one after the other.
func BenchmarkCorpus(b *testing.B) {
	var all [][]byte
	total := 0
	corpus(b, func(_ string, data []byte) {
		if bytes.Contains(data, []byte(`"ph"`)) {
			all = append(all, data)
			total += len(data)
		}
	})
	b.SetBytes(int64(total))
	b.ReportAllocs()
	for b.Loop() {
		for _, data := range all {
			r := NewReader(bytes.NewReader(data), Options{})
			for {
				if _, err := r.Next(); err != nil {
					break
				}
			}
		}
	}
}
