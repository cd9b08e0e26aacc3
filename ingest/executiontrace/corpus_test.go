package executiontrace

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/kineto"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// corpus returns a path in the folder of real traces.
func corpus(t *testing.T, path ...string) string {
	t.Helper()
	root := os.Getenv("MIXDOWN_CORPUS")
	if root == "" {
		t.Skip("MIXDOWN_CORPUS is not set: the real traces are not read")
	}
	return filepath.Join(root, filepath.Join(path...))
}

func find(t *testing.T, pattern string) []source.File {
	t.Helper()
	files, err := source.Find([]string{pattern}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func loadBoth(t *testing.T, kinetoFiles, executionTraces string) (*trace.Run, map[int]*Trace) {
	t.Helper()
	run, err := kineto.Load(context.Background(), find(t, kinetoFiles), kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	traces, diags, err := Load(context.Background(), find(t, executionTraces))
	if err != nil {
		t.Fatal(err)
	}
	none(t, diags)
	return run, traces
}

func none(t *testing.T, diags diagnostic.Set) {
	t.Helper()
	for _, d := range diags.List() {
		t.Errorf("unexpected diagnostic: %s", d)
	}
}

// checkExchange checks the splits of the operations at position k of each
// member: sums, and that what i sends to j is what j receives of i.
func checkExchange(t *testing.T, members []*comm.Operation) {
	t.Helper()
	for i, op := range members {
		if !op.SplitsKnown || op.SplitsEstimated {
			t.Fatalf("member %d: splits unknown", i)
		}
		if op.InSplits == nil {
			continue
		}
		if len(op.InSplits) != len(members) || len(op.OutSplits) != len(members) {
			t.Fatalf("member %d: %d and %d splits for %d members", i, len(op.InSplits), len(op.OutSplits), len(members))
		}
		in, out := int64(0), int64(0)
		for j := range members {
			in, out = in+op.InSplits[j], out+op.OutSplits[j]
			if got, want := members[j].OutSplits[i], op.InSplits[j]; got != want {
				t.Errorf("%d sends %d elements to %d, which receives %d", i, want, j, got)
			}
		}
		if in != op.In || out != op.Out {
			t.Errorf("member %d: splits add up to %d and %d, want %d and %d", i, in, out, op.In, op.Out)
		}
	}
}

func TestDLRM(t *testing.T) {
	run, traces := loadBoth(t, corpus(t, "param/dlrm_8rank/kineto"), corpus(t, "param/dlrm_8rank/et"))
	if len(run.Ranks) != 8 || len(traces) != 8 {
		t.Fatalf("got %d ranks and %d execution traces, want 8", len(run.Ranks), len(traces))
	}
	none(t, Apply(run, traces))
	exchanges := 0
	for k := range run.Ranks[0].Operations {
		var members []*comm.Operation
		for _, rank := range run.Ranks {
			if op := &rank.Operations[k]; evenForm(op.Op) == comm.AllToAll {
				members = append(members, op)
			}
		}
		if len(members) == 0 {
			continue
		}
		if len(members) != 8 {
			t.Fatalf("operation %d is an all_to_all on %d ranks", k, len(members))
		}
		exchanges++
		checkExchange(t, members)
	}
	if exchanges != 5 {
		t.Errorf("got %d all_to_all, want 5", exchanges)
	}
	for _, rank := range run.Ranks {
		if got := rank.Groups[0].Size; got != 8 {
			t.Errorf("rank %d: group of %d, want 8", rank.Rank, got)
		}
	}
	want := []int64{96, 224, 288, 1664, 592, 96, 192, 240}
	if got := run.Ranks[0].Operations[3].InSplits; !slices.Equal(got, want) {
		t.Errorf("rank 0: fourth all_to_all has splits %v, want %v", got, want)
	}
}

const moe = "../../testdata/dp_moe_4rank"

// truthCalls reads what the program that was traced knew.
type truthCall struct {
	Op          string  `json:"op"`
	Group       string  `json:"group"`
	InElements  int64   `json:"in_elements"`
	OutElements int64   `json:"out_elements"`
	InSplits    []int64 `json:"in_splits"`
	OutSplits   []int64 `json:"out_splits"`
}

func truth(t *testing.T) [][]truthCall {
	t.Helper()
	b, err := os.ReadFile(moe + "/truth.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Ranks []struct {
			Steps []struct {
				Calls []truthCall `json:"calls"`
			} `json:"steps"`
		} `json:"ranks"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	var ranks [][]truthCall
	for _, r := range file.Ranks {
		var calls []truthCall
		for _, s := range r.Steps {
			calls = append(calls, s.Calls...)
		}
		ranks = append(ranks, calls)
	}
	return ranks
}

// forget removes from a run what an execution trace can tell.
func forget(run *trace.Run, ids bool) {
	for _, rank := range run.Ranks {
		for i := range rank.Operations {
			op := &rank.Operations[i]
			op.SplitsKnown, op.InSplits, op.OutSplits = false, nil, nil
			op.Op = evenForm(op.Op)
			if !ids {
				op.RecordFn = 0
			}
		}
	}
}

func TestMixtureOfExperts(t *testing.T) {
	want := truth(t)
	for _, c := range []struct {
		name   string
		before func(*trace.Run)
	}{
		{"as read", func(*trace.Run) {}},
		{"by id", func(run *trace.Run) { forget(run, true) }},
		{"by order", func(run *trace.Run) { forget(run, false) }},
		{"without sizes", func(run *trace.Run) {
			forget(run, true)
			for _, rank := range run.Ranks {
				for i := range rank.Operations {
					op := &rank.Operations[i]
					op.SizeKnown, op.In, op.Out, op.DType = false, 0, 0, ""
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, traces := loadBoth(t, moe+"/*.pt.trace.json.gz", moe+"/et")
			c.before(run)
			none(t, Apply(run, traces))
			for r, rank := range run.Ranks {
				var exchanges []truthCall
				for _, call := range want[r] {
					if call.Op == "all_to_all" || call.Op == "all_to_allv" {
						exchanges = append(exchanges, call)
					}
				}
				n := 0
				for i := range rank.Operations {
					op := &rank.Operations[i]
					if evenForm(op.Op) != comm.AllToAll {
						continue
					}
					if n == len(exchanges) {
						t.Fatalf("rank %d: more than %d all_to_all", rank.Rank, n)
					}
					w := exchanges[n]
					n++
					if string(op.Op) != w.Op || !op.SizeKnown || op.In != w.InElements || op.Out != w.OutElements ||
						!op.SplitsKnown || !slices.Equal(op.InSplits, w.InSplits) || !slices.Equal(op.OutSplits, w.OutSplits) {
						t.Errorf("rank %d: got %s %d %d %v %v, want %+v", rank.Rank, op.Op, op.In, op.Out, op.InSplits, op.OutSplits, w)
					}
				}
				if n != len(exchanges) || n == 0 {
					t.Errorf("rank %d: %d all_to_all, want %d", rank.Rank, n, len(exchanges))
				}
			}
			for k := range run.Ranks[0].Operations {
				var members []*comm.Operation
				for _, rank := range run.Ranks {
					if evenForm(rank.Operations[k].Op) == comm.AllToAll {
						members = append(members, &rank.Operations[k])
					}
				}
				if len(members) > 0 {
					checkExchange(t, members)
				}
			}
		})
	}
}

// The calls themselves are those that the program made.
func TestMixtureOfExpertsCalls(t *testing.T) {
	want := truth(t)
	traces, diags, err := Load(context.Background(), find(t, moe+"/et"))
	if err != nil {
		t.Fatal(err)
	}
	none(t, diags)
	for r, calls := range want {
		got := traces[r].Calls
		if len(got) != len(calls) {
			t.Fatalf("rank %d: %d calls, want %d", r, len(got), len(calls))
		}
		for i, w := range calls {
			g := &got[i]
			if string(g.Op) != w.Op || g.In != w.InElements || g.Out != w.OutElements {
				t.Errorf("rank %d, call %d: got %s %d %d, want %+v", r, i, g.Op, g.In, g.Out, w)
			}
			if len(g.RecordFns) != 2 {
				t.Errorf("rank %d, call %d (%s): record functions %v, want those of operator and annotation", r, i, g.Name, g.RecordFns)
			}
		}
		if len(traces[r].Groups) < 2 || !slices.Equal(traces[r].Groups[0].Ranks, []int{0, 1, 2, 3}) {
			t.Errorf("rank %d: groups %+v", r, traces[r].Groups)
		}
	}
}

func TestCorpusFiles(t *testing.T) {
	for _, c := range []struct {
		file, schema string
		nodes        int64
		calls        map[comm.Op]int
		group        string
		ranks        []int
	}{
		{"chakra/et/1.0.2-chakra.0.0.4.json.gz", "1.0.2-chakra.0.0.4", 263, map[comm.Op]int{comm.AllGather: 10}, "0", []int{0, 1}},
		{"param/et_only/1.0.3_resnet_1gpu_et.json.gz", "1.0.3-chakra.0.0.4", 14391, map[comm.Op]int{comm.AllReduce: 15, comm.Broadcast: 6}, "0", []int{0}},
		{"param/et_only/1.1.0_resnet_2gpu_et.json.gz", "1.1.0-chakra.0.0.4", 14392, map[comm.Op]int{comm.AllReduce: 15, comm.Broadcast: 6}, "0", []int{0, 1}},
		{"param/et_only/hf_GPT2_et.json.gz", "1.1.0-chakra.0.0.4", 27156, nil, "", nil},
		{"param/et_only/pt2_et.json.gz", "1.1.1-chakra.0.0.4", 20, nil, "", nil},
		{"param/linear_pair/linear_et.json.gz", "1.0.1", 931, nil, "", nil},
	} {
		t.Run(filepath.Base(c.file), func(t *testing.T) {
			f, err := find(t, corpus(t, c.file))[0].Open()
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got, err := Read(f, c.file)
			if err != nil {
				t.Fatal(err)
			}
			none(t, got.Diagnostics)
			if got.Schema != c.schema || got.Nodes != c.nodes {
				t.Errorf("schema %q with %d nodes, want %q with %d", got.Schema, got.Nodes, c.schema, c.nodes)
			}
			ops := map[comm.Op]int{}
			for _, call := range got.Calls {
				ops[call.Op]++
				if !call.SizeKnown || len(call.RecordFns) != 3 {
					t.Errorf("%s: size known %v, record functions %v", call.Name, call.SizeKnown, call.RecordFns)
				}
				if call.Group.Name != c.group || !slices.Equal(call.Group.Ranks, c.ranks) {
					t.Errorf("%s: group %+v, want %q of %v", call.Name, call.Group, c.group, c.ranks)
				}
			}
			for op, n := range c.calls {
				if ops[op] != n {
					t.Errorf("%d %s, want %d", ops[op], op, n)
				}
			}
			if len(ops) != len(c.calls) {
				t.Errorf("operations %v, want %v", ops, c.calls)
			}
		})
	}
}
