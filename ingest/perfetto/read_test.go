package perfetto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"mixdown/ingest/chrome"
)

// The fixtures in testdata are made by testdata/generate.py with the PyPI
// package perfetto, which has the official protos.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func describeEvent(ev *chrome.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%c %q", ev.Phase, ev.Name)
	if len(ev.Cat) > 0 {
		fmt.Fprintf(&b, " cat %s", ev.Cat)
	}
	fmt.Fprintf(&b, " %s/%s", ev.PID, ev.TID)
	if ev.HasTS {
		fmt.Fprintf(&b, " %d", ev.TS)
	}
	if ev.HasDur {
		fmt.Fprintf(&b, "+%d", ev.Dur)
	}
	if ev.BindID.Kind() != chrome.IDAbsent {
		fmt.Fprintf(&b, " flow %s", ev.BindID)
	}
	if raw := ev.Args.Raw(); len(raw) > 0 {
		fmt.Fprintf(&b, " %s", raw)
	}
	return b.String()
}

func readAll(in io.Reader, opts Options) (string, error) {
	r := NewReader(in, opts)
	var b strings.Builder
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		b.WriteString(describeEvent(ev) + "\n")
	}
	if ns, ok := r.UnixOffset(); ok {
		fmt.Fprintf(&b, "unix %+d\n", ns)
	}
	for _, d := range r.Diagnostics() {
		fmt.Fprintf(&b, "! %s x%d: %s\n", d.Code, d.Count, d.Example)
	}
	return b.String(), nil
}

// TestFixtures reads what PyTorch's two writers and a tracing service write.
func TestFixtures(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"pytorch", `M "process_name" 0/ {"name": "GPU 0"}
M "thread_name" 0/7 {"name": "stream 7"}
M "process_name" 4242/ {"name": "python"}
M "thread_name" 4242/4243 {"name": "thread 4243 (python)"}
X "gemm" 0/7 1796030320880425867+2000 flow 11 {"stream": 7, "correlation": 11, "grid": [1, 2, 3]}
X "ncclDevKernel_AllReduce_Sum_f32_RING_LL" 0/7 1796030320880427867+6000 flow 12 {"stream": 7, "correlation": 12, "Collective name": "allreduce", "In msg nelems": 2049000, "Process Group Ranks": "[0, 1]"}
X "Memset" 0/7 1796030320880425367+0 {"bytes": 16}
X "cudaLaunchKernel" 4242/4243 1796030320880424967+300 flow 11 {"correlation": 11}
X "cudaLaunchKernel" 4242/4243 1796030320880425317+1550 flow 12 {"correlation": 12}
`},
		{"kineto", `M "process_name" 0/ {"name": "Kineto Trace"}
M "process_name" 5/ {"name": "python3"}
M "thread_name" 5/77 {"name": "thread 77 (python3)"}
i "trace_metadata" 0/ {"distributedInfo": "{\"backend\": \"nccl\", \"rank\": 3}"}
X "aten::mm" 5/77 1796030320880425867+5000 {"External id": 513, "Input Dims": [[4, 3], []], "Input type": ["float", ""]}
X "cudaLaunchKernel" 5/77 1796030320880426867+1000 flow 99 {"cbid": 211, "correlation": 99, "correlation_id": 99}
X "broken" 5/77 1796030320880428867+0 {"metadata": "\"bandwidth\": inf"}
! missing-ts x1: "trace_metadata"
`},
		{"sdk", `M "process_name" 9/ {"name": "trainer"}
M "thread_name" 9/10 {"name": "main"}
X "step" cat user_annotation 9/10 2005000+31000 {"number": 18446744073709551615, "text": "interned \"text\""}
X "forward" cat user_annotation,train 9/10 2015000+20000 {"all": {"list": [1, -2, "x"], "f": 1.5, "b": true, "inf": "Infinity", "empty": {"x": null}}, "json": {"a": [1, null]}, "nested": {"i": 3, "s": "t"}, "ptr": "replaced", "more": 7}
i "mark" 9/10 2015000
X "F0" 9/pipeline stage 0 3000000+50000
X "zipped" 9/pipeline stage 0 4000000+100
i "after" 9/10 3000000
i "" 9/10 3000001
B "open" 9/pipeline stage 0 5000000
i "nowhere" /track 999 5000001
unix +1796030320879424867
! bad-annotation x1: annotation without a value that is read
! missing-interned x1: interned id 5
! packet-loss x1: packets of sequence 2
! unmatched-begin x1: "open"
! unknown-track x1: track 999
! unmatched-end x1: at 1000 ns
! unread-event x1: event of type 4, phase 0
! unread-packet x1: gpu_counter_event
`},
		{"stages", `X "gemm" cat Kernel 2/stream 7 1796030320880424967+50 {"device": 2, "event_id": 100, "context": 1, "correlation": "100", "grid": [4, 2, 1], "block": [128, 1, 1], "registers per thread": 32}
X "Memcpy DtoH" cat Memcpy 2/stream 7 1796030320880425027+5 {"device": 2, "event_id": 160, "context": 1, "correlation": "160"}
`},
	} {
		got, err := readAll(iotest.HalfReader(bytes.NewReader(fixture(t, c.name+".pftrace"))), Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
}

// TestCut: a file that ends anywhere gives what is before the cut, and says so.
func TestCut(t *testing.T) {
	for _, name := range []string{"pytorch.pftrace", "sdk.pftrace"} {
		whole := fixture(t, name)
		last := 0
		for n := 1; n < len(whole); n++ {
			r := NewReader(bytes.NewReader(whole[:n]), Options{})
			events := 0
			for {
				ev, err := r.Next()
				if err != nil {
					if !errors.Is(err, io.EOF) && !errors.Is(err, ErrNotPerfetto) {
						t.Fatalf("%s cut at %d: %v", name, n, err)
					}
					break
				}
				if ev.Phase != 'M' {
					events++
				}
			}
			if events < last {
				t.Fatalf("%s cut at %d: %d events after %d", name, n, events, last)
			}
			last = events
		}
	}
}

// TestBrokenPackets damages one packet after the other: the others stay.
func TestBrokenPackets(t *testing.T) {
	whole := fixture(t, "kineto.pftrace")
	want, err := readAll(bytes.NewReader(whole), Options{})
	if err != nil {
		t.Fatal(err)
	}
	count := func(s string) int { return strings.Count("\n"+s, "\nX ") + strings.Count("\n"+s, "\nB ") }
	for at := 0; at < len(whole); {
		s := newStream(bytes.NewReader(whole[at:]), 1<<20)
		b, _, err := s.packet()
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(whole)
		start := at + int(s.at) - len(b)
		for i := range b {
			damaged[start+i] = 0xff
		}
		got, err := readAll(bytes.NewReader(damaged), Options{})
		if err != nil {
			t.Fatalf("packet at %d: %v", at, err)
		}
		if !strings.Contains(got, "! broken-packet x1") || count(got) < count(want)-1 {
			t.Errorf("packet at %d: got\n%s", at, got)
		}
		at += int(s.at)
	}
}

func TestReadFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		input string
		want  error
	}{
		{"empty", "", ErrEmpty},
		{"JSON", `{"traceEvents": []}`, ErrNotPerfetto},
		{"JSON behind a newline", "\n" + `{"traceEvents": [{"ph": "X", "name": "this is longer than its first character says it would be, which is 123 bytes, so it is read", "ts": 1}]}`, ErrNotPerfetto},
		{"gzip", "\x1f\x8b\x08\x00", ErrNotPerfetto},
		{"pickle", "\x80\x02}q\x00.", ErrNotPerfetto},
		{"a packet that never comes", "\n\xff\xff\xff\xff\x07x", ErrNotPerfetto},
	} {
		if _, err := readAll(strings.NewReader(c.input), Options{}); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		opts Options
		want string
	}{
		{"packet", Options{MaxPacketBytes: 60}, CodePacketTooLarge},
		{"events", Options{MaxEvents: 3}, CodeEventLimit},
		{"memory", Options{MaxHeldBytes: 200}, CodeEventLimit},
		{"tracks", Options{MaxTracks: 2}, CodeEventLimit},
		{"depth", Options{MaxDepth: 1}, CodeBadAnnotation},
	} {
		got, err := readAll(bytes.NewReader(fixture(t, "sdk.pftrace")), c.opts)
		if err != nil || !strings.Contains(got, "! "+c.want) {
			t.Errorf("%s: error %v, got\n%s", c.name, err, got)
		}
	}
}
