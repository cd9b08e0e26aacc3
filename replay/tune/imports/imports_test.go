package imports_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
	"mixdown/replay/tune/imports"
)

// word is a row on one line: what is imported and what it was made of.
func word(r tune.Row) string {
	s := fmt.Sprintf("%s %s %s %s in=%d out=%d ranks=%d nodes=%d %d ns %s", r.Contender, r.Op, r.DType, r.Device, r.In, r.Out, r.Ranks, r.Nodes, r.Time, r.Statistic)
	for _, x := range []struct {
		name  string
		value int64
	}{{"min", r.Min}, {"p95", r.P95}, {"n", r.N}, {"error", r.SizeError}} {
		if x.value != 0 {
			s += fmt.Sprintf(" %s=%d", x.name, x.value)
		}
	}
	if r.InPlace {
		s += " in-place"
	}
	if r.Verified {
		s += " verified"
	}
	return s
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		file, as string
		opts     imports.Options
		rows     []string
		codes    string
	}{
		{"nccl-tests.log", "nccl-tests", imports.Options{}, []string{
			"nccl all_gather float32 gpu in=256 out=1024 ranks=4 nodes=2 12400 ns mean verified",
			"nccl all_gather float32 gpu in=256 out=1024 ranks=4 nodes=2 12100 ns mean in-place verified",
			"nccl all_gather float32 gpu in=262144 out=1048576 ranks=4 nodes=2 41200 ns mean verified",
			"nccl all_gather float32 gpu in=262144 out=1048576 ranks=4 nodes=2 40900 ns mean in-place",
		}, ""},
		{"nccl-tests-per-iteration.log", "nccl-tests", imports.Options{Variant: "ring/ll"}, []string{
			"nccl:ring/ll broadcast bfloat16 gpu in=1048576 out=1048576 ranks=2 nodes=1 30000 ns mean min=29000 verified",
			"nccl:ring/ll broadcast bfloat16 gpu in=1048576 out=1048576 ranks=2 nodes=1 31000 ns mean min=30100 in-place verified",
		}, ""},
		{"nccl-tests-faulty.log", "nccl-tests", imports.Options{}, []string{
			"nccl all_reduce float32 gpu in=1024 out=1024 ranks=2 nodes=1 12100 ns mean in-place verified",
			"nccl all_reduce  gpu in=8192 out=8192 ranks=2 nodes=1 12600 ns mean verified",
			"nccl all_reduce  gpu in=8192 out=8192 ranks=2 nodes=1 12600 ns mean in-place verified",
		}, "import-bad-row import-dtype import-no-time import-wrong-data"},
		{"nccl-tests.json", "nccl-tests", imports.Options{}, []string{
			"nccl all_to_all float32 gpu in=1048576 out=1048576 ranks=2 nodes=1 20250 ns median min=20000 p95=24000 n=3 verified",
			"nccl all_to_all float32 gpu in=1048576 out=1048576 ranks=2 nodes=1 21000 ns mean in-place",
		}, ""},
		{"nccl-tests-faulty.json", "nccl-tests", imports.Options{}, []string{
			"nccl all_reduce float32 gpu in=1024 out=1024 ranks=2 nodes=2 12500 ns mean in-place verified",
			"nccl all_reduce float32 gpu in=2048 out=2048 ranks=2 nodes=2 13500 ns mean in-place verified",
			"nccl all_reduce  gpu in=4096 out=4096 ranks=2 nodes=2 15000 ns mean verified",
		}, "import-bad-row import-dtype import-no-time import-wrong-data"},
		{"rccl-tests.json", "rccl-tests", imports.Options{Nodes: 1}, []string{
			"rccl all_reduce float16 gpu in=1048576 out=1048576 ranks=8 nodes=1 88100 ns mean",
			"rccl all_reduce float16 gpu in=1048576 out=1048576 ranks=8 nodes=1 87900 ns mean in-place",
		}, ""},
		{"rccl-tests-faulty.json", "rccl-tests", imports.Options{}, []string{
			"rccl all_reduce float16 gpu in=2097152 out=2097152 ranks=8 nodes=0 98100 ns mean",
		}, "import-bad-row import-unknown-op import-wrong-data"},
		{"osu.log", "osu", imports.Options{Backend: "openmpi", Ranks: 8}, []string{
			"openmpi all_to_all int8 gpu in=8192 out=8192 ranks=8 nodes=0 19330 ns mean n=1000",
			"openmpi all_to_all int8 gpu in=8388608 out=8388608 ranks=8 nodes=0 101880 ns mean n=100",
			"openmpi barrier  gpu in=0 out=0 ranks=8 nodes=0 2500 ns mean",
		}, ""},
		{"osu-faulty.log", "osu", imports.Options{Backend: "mpich", Ranks: 2, Device: tune.Host}, []string{
			"mpich all_reduce float32 host in=16 out=16 ranks=2 nodes=0 1300 ns mean verified",
		}, "import-no-time import-unknown-op import-wrong-data"},
		{"param.log", "param", imports.Options{Backend: "nccl", Ranks: 8, Device: tune.GPU}, []string{
			"nccl all_gather float32 gpu in=131072 out=1048576 ranks=8 nodes=0 44500 ns mean",
		}, ""},
		{"param-faulty.log", "param", imports.Options{Backend: "nccl", Ranks: 8, Device: tune.GPU}, []string{
			"nccl all_to_all float16 gpu in=2097152 out=2097152 ranks=8 nodes=0 54000 ns mean",
		}, "import-bad-row import-unknown-op"},
		{"ucc-perftest.log", "ucc-perftest", imports.Options{Ranks: 4}, []string{
			"ucc reduce_scatter float32 gpu in=4096 out=1024 ranks=4 nodes=0 12600 ns mean",
			"ucc reduce_scatter float32 gpu in=1048576 out=262144 ranks=4 nodes=0 82500 ns mean",
		}, ""},
		{"ucc-perftest-faulty.log", "ucc-perftest", imports.Options{Ranks: 4}, []string{
			"ucc broadcast float32 host in=4096 out=4096 ranks=4 nodes=0 14200 ns mean in-place",
		}, "import-bad-row import-no-time import-unknown-op"},
		{"nccl-inspector.jsonl", "nccl-inspector", imports.Options{}, []string{
			"nccl reduce_scatter  gpu in=131072 out=65536 ranks=2 nodes=1 120000 ns median min=100000 p95=131000 n=3",
		}, ""},
		{"nccl-inspector-faulty.jsonl", "nccl-inspector", imports.Options{DType: comm.BFloat16}, []string{
			"nccl all_reduce bfloat16 gpu in=65536 out=65536 ranks=4 nodes=1 110000 ns median min=110000 p95=110000 n=1",
		}, "import-bad-row import-no-time import-partial"},
		{"deepspeed.json", "deepspeed", imports.Options{Backend: "nccl", Device: tune.GPU}, []string{
			"nccl all_gather  gpu in=1048576 out=4194304 ranks=4 nodes=0 500000 ns trimmed mean n=10",
			"nccl reduce_scatter  gpu in=4194304 out=1048576 ranks=4 nodes=0 600000 ns trimmed mean n=10",
		}, "import-group"},
		{"deepspeed.log", "deepspeed", imports.Options{Backend: "nccl", Device: tune.GPU, Ranks: 8}, []string{
			"nccl all_reduce  gpu in=98304 out=98304 ranks=8 nodes=0 600000 ns median min=500000 n=2 error=5",
			"nccl reduce_scatter  gpu in=2097152 out=262144 ranks=8 nodes=0 1000000 ns median min=1000000 n=1 error=5242",
		}, "import-group import-size"},
		{"deepspeed-faulty.log", "deepspeed", imports.Options{Backend: "nccl", Device: tune.GPU, Ranks: 8}, []string{
			"nccl all_reduce  gpu in=103022592 out=103022592 ranks=8 nodes=0 500000 ns median min=500000 n=1 error=5242",
		}, "comms-log-bad-line comms-log-unknown-operation import-group import-size import-unknown-op"},
	} {
		t.Run(c.file, func(t *testing.T) {
			got, err := read(t, c.file, c.as, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			var rows, codes []string
			for _, r := range got.Rows {
				rows = append(rows, word(r))
			}
			for _, d := range got.Diagnostics.List() {
				codes = append(codes, d.Code)
			}
			if diff := cmp.Diff(c.rows, rows); diff != "" {
				t.Errorf("rows (-want +got)\n%s", diff)
			}
			if s := strings.Join(codes, " "); s != c.codes {
				t.Errorf("diagnostics %q, want %q", s, c.codes)
			}
			if _, err := got.Table(); err != nil {
				t.Errorf("as a table: %v", err)
			}
		})
	}
}

func read(t *testing.T, file, as string, opts imports.Options) (*imports.Result, error) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return imports.Read(as, f, file, opts)
}

// Every result of a JSON file that becomes no row is counted.
func TestNothingIsDroppedInSilence(t *testing.T) {
	got, err := read(t, "nccl-tests-faulty.json", "nccl-tests", imports.Options{})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, d := range got.Diagnostics.List() {
		counts[d.Code] = int64(d.Count)
	}
	// A time that is no number, and a result without any.
	if counts["import-no-time"] != 2 || counts["import-bad-row"] != 1 || counts["import-wrong-data"] != 1 {
		t.Errorf("%v", counts)
	}
}

// TestWhatIsMissingIsAskedFor: what neither the log nor a flag says is named with
// the flag.
func TestWhatIsMissingIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		file, as, flag string
		opts           imports.Options
	}{
		{"osu.log", "osu", "--ranks", imports.Options{Backend: "openmpi"}},
		{"osu.log", "osu", "--backend", imports.Options{Ranks: 8}},
		{"osu-faulty.log", "osu", "--device", imports.Options{Backend: "openmpi", Ranks: 8}},
		{"deepspeed-faulty.log", "deepspeed", "--ranks", imports.Options{Backend: "nccl", Device: tune.GPU}},
	} {
		if _, err := read(t, c.file, c.as, c.opts); !errors.Is(err, imports.ErrMissing) || !strings.Contains(err.Error(), c.flag) {
			t.Errorf("%s: %v, want %s to be asked for", c.file, err, c.flag)
		}
	}
	if _, err := imports.Read("nccl-tests", strings.NewReader("        1024           256     float     sum      -1    12.40    0.08    0.08      0    12.10    0.08    0.08       0\n"), "x.log", imports.Options{Ranks: 2}); !errors.Is(err, imports.ErrMissing) || !strings.Contains(err.Error(), "--op") {
		t.Errorf("a log without an operation: %v", err)
	}
	if _, err := read(t, "nccl-tests.log", "nccl-tests", imports.Options{Ranks: 8}); !errors.Is(err, imports.ErrContradiction) {
		t.Errorf("--ranks 8 for a log of 4: %v", err)
	}
	for _, as := range imports.Formats() {
		for _, text := range []string{"", "{", "[", "nothing\n", "{}\n", "[]", "name,size\n"} {
			if _, err := imports.Read(as.Name, strings.NewReader(text), "x", imports.Options{Ranks: 2, Backend: "b", Device: tune.GPU, Op: comm.AllReduce}); !errors.Is(err, imports.ErrFormat) {
				t.Errorf("%s: %q: %v, want ErrFormat", as.Name, text, err)
			}
		}
	}
	if _, err := imports.Read("vtune", strings.NewReader(""), "x", imports.Options{}); !errors.Is(err, imports.ErrUnknownFormat) {
		t.Errorf("an unknown format: %v", err)
	}
}

// FuzzRead: no input makes a reader panic, and what it returns can be a table.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, as := range imports.Formats() {
			r, err := imports.Read(as.Name, strings.NewReader(string(data)), "x", imports.Options{Ranks: 3, Nodes: 1, Backend: "b", Device: tune.GPU})
			if err != nil {
				continue
			}
			if _, err := r.Table(); err != nil {
				t.Errorf("%s: %v", as.Name, err)
			}
		}
	})
}
