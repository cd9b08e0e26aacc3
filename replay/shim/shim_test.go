package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
)

var update = flag.Bool("update", false, "write the files that are expected")

// checked is the mix that testdata/generate/check_shim.py runs under PyTorch:
// standin is a backend of that program.
const checked = "all_to_all@>=4KiB=standin,all_to_allv@>=64KiB=gloo,all_to_allv=standin,all_reduce@>=1KiB=standin," +
	"broadcast@group:tp=standin,all_gather@1KiB-8KiB=standin,reduce_scatter@<4KiB=standin,gather=standin," +
	"scatter@group:odd=standin,reduce=standin,barrier=standin,send@<1KiB=standin,recv@<1KiB=standin,batch=standin,*=gloo"

// TestGolden: what is written for two mixes. Of the one that PyTorch doesn't run
// here only what is different is kept: the head and the rules.
func TestGolden(t *testing.T) {
	expect(t, "checked.py", write(t, parse(t, checked), Options{Version: "0.1.0"}))
	got := write(t, parse(t, "all_to_all=openmpi,all_reduce@>=1MiB=nccl,*=gloo"), Options{Version: "0.1.0"})
	head, body, _ := bytes.Cut(got, []byte("\"\"\"Sends "))
	from := bytes.Index(body, []byte("VERSION = "))
	to := from + bytes.Index(body[from:], []byte("\n)\n")) + len("\n)\n")
	expect(t, "docs.txt", slices.Concat(head, body[from:to]))
}

func expect(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what is written; if that is meant: go test -update", path)
	}
}

func parse(t *testing.T, text string) mix.Mix {
	t.Helper()
	m, err := mix.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func write(t *testing.T, m mix.Mix, opts Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, m, opts); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestDecisions writes what package mix decides about the calls that
// check_shim.py makes, for it to compare with.
func TestDecisions(t *testing.T) {
	type row struct {
		Op      comm.Op `json:"op"`
		Group   string  `json:"group"`
		Backend string  `json:"backend"`
		Bytes   []int64 `json:"bytes"` // -1: not known to all
	}
	var list []*row
	for _, op := range comm.Ops() {
		for _, group := range []string{"default_pg", "tp", "odd"} {
			for _, bytes := range append([]int64{-1}, sizes()...) {
				d := decide(parse(t, checked), op, bytes, group)
				i := slices.IndexFunc(list, func(r *row) bool { return r.Op == op && r.Group == group && r.Backend == d.Backend })
				if i < 0 {
					i, list = len(list), append(list, &row{op, group, d.Backend, nil})
				}
				list[i].Bytes = append(list[i].Bytes, bytes)
			}
		}
	}
	var b bytes.Buffer
	for _, d := range list {
		line, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	expect(t, "checked.decisions.jsonl", b.Bytes())
}

// decision is what a mix says about an operation; of -1 bytes where its members
// know no common size.
type decision struct {
	Op      comm.Op `json:"op"`
	Bytes   int64   `json:"bytes"`
	Group   string  `json:"group"`
	Backend string  `json:"backend"`
}

// decide asks package mix. Of an unknown size it decides by the rules that ask
// for none.
func decide(m mix.Mix, op comm.Op, bytes int64, group string) decision {
	d := decision{Op: op, Bytes: bytes, Group: group}
	if bytes < 0 {
		var rules []mix.Rule
		for _, r := range m.Rules {
			if r.Min == 0 && r.Max == math.MaxInt64 {
				rules = append(rules, r)
			}
		}
		m, bytes = mix.Of(rules...), 0
	}
	d.Backend, _ = m.Backend(op, bytes, "", group)
	return d
}

func sizes() []int64 {
	list := []int64{0}
	for k := 2; k <= 20; k++ {
		list = append(list, 1<<k, 3<<k, 9<<k) // groups have 2, 3 or 4 members
	}
	return list
}

// TestRefused: what can't be applied anywhere is said before anything is written.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"traced":                               "has no rules",
		"gatherv=gloo,*=gloo":                  "rule 1, \"gatherv=gloo\": torch.distributed has no gatherv",
		"all_reduce=nccl:ring/ll,*=gloo":       "settings (ring/ll) can't be chosen for a process group",
		"all_reduce=openmpi,*=mpich":           "openmpi is used before, and a PyTorch is built with one MPI library",
		"send=gloo,*=nccl":                     "send and recv have different rules",
		"send=gloo,recv@>=1KiB=gloo,*=x":       "send and recv have different rules",
		"recv=gloo,send@group:pp=gloo":         "send and recv have different rules",
		"all_reduce=nccl:ring,all_reduce=nccl": "settings (ring)",
	} {
		err := Write(&bytes.Buffer{}, parse(t, text), Options{})
		if !errors.Is(err, ErrInapplicable) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
	for _, text := range []string{
		"send@<1KiB=gloo,recv@<1KiB=gloo,*=x", "all_reduce=x,*=gloo,send=x", "*=openmpi,all_reduce=openmpi",
		"recv=gloo,send=gloo",
	} {
		if err := Write(&bytes.Buffer{}, parse(t, text), Options{}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestBackendNames: PyTorch's names, and settings that are left to the library.
func TestBackendNames(t *testing.T) {
	m := parse(t, "all_reduce=nccl:ring/ll,barrier=mine,broadcast=rccl,*=mpich")
	got := string(write(t, m, Options{Backends: map[string]string{"nccl:ring/ll": "nccl", "mine": "Their_Plugin"}}))
	for _, want := range []string{
		`op="all_reduce", least=0, most=None, group=None, backend="nccl")`,
		`op="barrier", least=0, most=None, group=None, backend="their_plugin")`,
		`op="broadcast", least=0, most=None, group=None, backend="nccl")`,
		`op=None, least=0, most=None, group=None, backend="mpi")`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got[:3000])
		}
	}
}

// TestCompiles: what is written is Python.
func TestCompiles(t *testing.T) {
	python := needPython(t)
	for _, text := range []string{checked, "all_to_all=openmpi,all_reduce@>=1MiB=nccl,*=gloo"} {
		file := filepath.Join(t.TempDir(), FileName)
		if err := os.WriteFile(file, write(t, parse(t, text), Options{}), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, python, "-W", "error", "-m", "py_compile", file)
	}
}

// hostile are names that try to end a string or a comment.
var hostile = []string{
	`"`, `'`, `"""`, `'''`, `\`, `\"`, "a\nimport os", "a\r\nraise SystemExit(7)", "#", `"), __import__("os").abort(), ("`,
	"{}", "%s", "\x00", "\x1b[31m", "\u2028", "\u202e", "é", "𝛼", `\N{BULLET}`, `\u0041`, "\x7f", "\t",
}

// TestRandomMixes: every rule of a random mix is there, as it was, whatever its
// names; and the module decides as package mix does.
func TestRandomMixes(t *testing.T) {
	python := needPython(t)
	random := rand.New(rand.NewPCG(1, 2))
	type example struct {
		Module    string     `json:"module"`
		Rules     [][]any    `json:"rules"` // op, least, most, group, backend
		Decisions []decision `json:"decisions"`
	}
	var list []example
	for range 60 {
		m := randomMix(random)
		e := example{Module: string(write(t, m, Options{Version: hostile[random.IntN(len(hostile))]}))}
		for _, r := range m.Rules {
			var op, group, most any
			if r.Op != "" {
				op = r.Op
			}
			if r.Group != "" {
				group = r.Group
			}
			if r.Max < math.MaxInt64 {
				most = r.Max
			}
			e.Rules = append(e.Rules, []any{op, r.Min, most, group, strings.ToLower(r.Backend)})
		}
		for range 40 {
			group := "default_pg"
			if g := m.Rules[random.IntN(len(m.Rules))].Group; g != "" && random.IntN(2) == 0 {
				group = g
			}
			ops := comm.Ops()
			d := decide(m, ops[random.IntN(len(ops))], int64(random.IntN(1<<16))-1, group)
			d.Backend = strings.ToLower(d.Backend)
			e.Decisions = append(e.Decisions, d)
		}
		list = append(list, e)
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "examples.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, python, filepath.Join("testdata", "examine.py"), file)
}

func randomMix(random *rand.Rand) mix.Mix {
	ops := append([]comm.Op{""}, comm.AllReduce, comm.AllGather, comm.AllToAll, comm.AllToAllV, comm.Barrier, comm.Batch, comm.Broadcast)
	var rules []mix.Rule
	for range 1 + random.IntN(6) {
		r := mix.Rule{Op: ops[random.IntN(len(ops))], Max: math.MaxInt64}
		r.Backend = []string{"gloo", "nccl", "Plug_In", "x" + strings.ReplaceAll(hostile[random.IntN(len(hostile))], ":", "")}[random.IntN(4)]
		if random.IntN(2) == 0 {
			r.Min = random.Int64N(1 << 15)
		}
		if random.IntN(2) == 0 {
			r.Max = r.Min + 1 + random.Int64N(1<<15)
		}
		if random.IntN(3) == 0 {
			r.Group = hostile[random.IntN(len(hostile))]
		}
		rules = append(rules, r)
	}
	return mix.Of(rules...)
}

// TestInvalidUTF8: a name that Python could not compare is refused.
func TestInvalidUTF8(t *testing.T) {
	m := mix.Of(mix.Rule{Max: math.MaxInt64, Group: "a\xff", Backend: "gloo"})
	if err := Write(&bytes.Buffer{}, m, Options{}); !errors.Is(err, ErrInapplicable) {
		t.Errorf("%v", err)
	}
}

func TestDeepSpeed(t *testing.T) {
	var b bytes.Buffer
	if err := WriteDeepSpeed(&b); err != nil {
		t.Fatal(err)
	}
	var file map[string]map[string]any
	if err := json.Unmarshal(b.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	block := file["comms_logger"]
	if block["enabled"] != true || block["prof_all"] != true || block["verbose"] != false || block["debug"] != false || len(block) != 5 {
		t.Errorf("%v", block)
	}
	for text, want := range map[string]string{
		"*=openmpi":              `deepspeed.init_distributed(dist_backend="mpi")`,
		"all_reduce=nccl,*=gloo": "--to pytorch-shim",
	} {
		a, err := DeepSpeedAdvice(parse(t, text), Options{})
		if err != nil || !strings.Contains(strings.Join(a.Apply, "\n"), want) {
			t.Errorf("%s: %v %v", text, a, err)
		}
	}
}

func needPython(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	return python
}

func run(t *testing.T, command ...string) {
	t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}
