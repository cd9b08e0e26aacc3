package executiontrace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mixdown/ingest/comm"
)

// flat is a node of schema 1.0.1.
func flat(id, rf, parent int, name, inputs, shapes, types, outputs, outShapes, outTypes string) string {
	return fmt.Sprintf(`
    {
      "name": "%s", "id": %d, "rf_id": %d, "parent": %d, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": "",
      "inputs": [%s], "input_shapes": [%s], "input_types": [%s],
      "outputs": [%s], "output_shapes": [%s], "output_types": [%s]
    }`, name, id, rf, parent, inputs, shapes, types, outputs, outShapes, outTypes)
}

// node is a node of schema 1.0.2 and later.
func node(id, rf, parent int, name, inputs, shapes, types, outputs, outShapes, outTypes, attrs string) string {
	return fmt.Sprintf(`
    {
      "id": %d, "name": "%s", "ctrl_deps": %d,
      "inputs": {"values": [%s], "shapes": [%s], "types": [%s]},
      "outputs": {"values": [%s], "shapes": [%s], "types": [%s]},
      "attrs": [{"name": "rf_id", "type": "uint64", "value": %d},{"name": "tid", "type": "uint64", "value": 1}%s]
    }`, id, name, parent, inputs, shapes, types, outputs, outShapes, outTypes, rf, attrs)
}

func file(schema string, nodes ...string) string {
	return fmt.Sprintf(`{
  "schema": "%s", "pid": 7, "time": "2023-09-07 16:09:59", "start_ts": 6672645,
  "nodes": [%s
  ],
  "finish_ts": 6674697
}
`, schema, strings.Join(nodes, ","))
}

// An all_to_all of 3 parts on NCCL, two columns wide, as the schemas have it.
// The annotation is written first: nodes are written when they end.
func oldExchange(splits string) []string {
	return []string{
		flat(12, 102, 11, "nccl:all_to_all", `[5,6,0,12,4,"cuda:0"]`, `[6,2]`, `"Tensor(float)"`, "", "", ""),
		flat(11, 101, 10, "record_param_comms", `[5,6,0,12,4,"cuda:0"],7,94594108284448,0,"all_to_allv",`+splits,
			`[6,2],[],[],[],[],[],[]`, `"Tensor(float)","Int","Int","Int","String","GenericList[Int]","GenericList[Int]"`,
			`[8,9,0,18,4,"cuda:0"]`, `[9,2]`, `"Tensor(float)"`),
		flat(10, 100, 3, "c10d::alltoall_base_", `[8,9,0,18,4,"cuda:0"],[5,6,0,12,4,"cuda:0"],"<Object>",[4,5,0],[1,2,3],-1`,
			`[9,2],[6,2],[],[[],[],[]],[[],[],[]],[]`,
			`"Tensor(float)","Tensor(float)","Object","GenericList[Int,Int,Int]","GenericList[Int,Int,Int]","Int"`, "", "", ""),
		flat(20, 110, 3, "record_param_comms", `7,0,0,"wait",[],[]`, `[],[],[],[],[],[]`,
			`"Int","Int","Int","String","GenericList[]","GenericList[]"`, "", "", ""),
	}
}

func paramNode(id, rf int, name, tensor, shape, typ, group, splits, tail, out, outShape, attrs string) string {
	return node(id, rf, 3, "record_param_comms", tensor+",7,"+group+`,0,"`+name+`",`+splits+tail,
		shape+",[],[],[],[],[],[]", `"`+typ+`","Int","Tuple[String,String]","Int","String","GenericList[]","GenericList[]"`,
		out, outShape, `"`+typ+`"`, attrs)
}

const initGroups = `"[{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"ranks\": [], \"group_size\": 4, \"group_count\": 2}, {\"pg_name\": \"7\", \"backend_id\": 82149104, \"pg_desc\": \"pair\", \"ranks\": [1, 3], \"group_size\": 2}]"`

func groupNode() string {
	return node(2, 1, 1, "## process_group:init ##", initGroups, "[]", `"String"`, "", "", "", "")
}

type want struct {
	op       comm.Op
	dtype    comm.DType
	in, out  int64
	sized    bool
	splits   bool
	inParts  []int64
	outParts []int64
	rf       int64
	rfs      int
	group    string
	ranks    []int
}

func TestSchemas(t *testing.T) {
	v := want{op: comm.AllToAllV, dtype: comm.Float32, in: 12, out: 18, sized: true,
		splits: true, inParts: []int64{2, 4, 6}, outParts: []int64{8, 10, 0}, rf: 101, rfs: 3}
	for _, c := range []struct {
		name  string
		input string
		want  []want
	}{
		{"1.0.1", file("1.0.1", oldExchange("[1,2,3],[4,5,0]")...), []want{v}},
		{"1.0.1, lists the other way around", file("1.0.1", oldExchange("[4,5,0],[1,2,3]")...), []want{v}},
		{"1.0.1, cut off lists", file("1.0.1", oldExchange(`"[1,2, ...]","[4, ...]"`)...), []want{v}},
		{"1.0.1, record_param_comms alone", file("1.0.1", oldExchange("[1,2,3],[4,5,0]")[1]),
			[]want{{op: v.op, dtype: v.dtype, in: 12, out: 18, sized: true, splits: true, inParts: v.inParts, outParts: v.outParts, rf: 101, rfs: 1}}},
		{"1.0.2", file("1.0.2-chakra.0.0.4", groupNode(),
			paramNode(8, 20, "allreduce", `[[4,5,0,10,2,"cuda:0"],[6,7,0,5,2,"cuda:0"]]`, `[[10],[5]]`,
				"GenericList[Tensor(c10::BFloat16),Tensor(c10::BFloat16)]", "82149104", "[],[]", ",2",
				`[[4,5,0,10,2,"cuda:0"],[6,7,0,5,2,"cuda:0"]]`, `[[10],[5]]`, "")),
			[]want{{op: comm.AllReduce, dtype: comm.BFloat16, in: 15, out: 15, sized: true, rf: 20, rfs: 1, group: "7", ranks: []int{1, 3}}}},
		{"1.0.3", file("1.0.3-chakra.0.0.4",
			paramNode(8, 20, "_allgather_base", `[4,5,0,10,8,"cuda:0"]`, `[10]`, "Tensor(long)", `["5","undefined"]`, "[],[]", ",2,4,3",
				`[6,7,0,30,8,"cuda:0"]`, `[30]`, "")),
			[]want{{op: comm.AllGather, dtype: comm.Int64, in: 10, out: 30, sized: true, rf: 20, rfs: 1, group: "5", ranks: []int{2, 6, 10}}}},
		{"1.1.0", file("1.1.0-chakra.0.0.4", groupNode(),
			paramNode(8, 20, "all_to_allv", `[4,5,0,12,4,"cuda:0"]`, `[6,2]`, "Tensor(float)", `["0","default_pg"]`, "[1,2,3,0],[0,0,4,5]", ",0,1,4",
				`[6,7,0,18,4,"cuda:0"]`, `[9,2]`, `,
        {"name": "collective_name", "type": "string", "value": "all_to_allv"},{"name": "dtype", "type": "string", "value": "Float"},
        {"name": "in_msg_nelems", "type": "uint64", "value": 12},{"name": "out_msg_nelems", "type": "uint64", "value": 18},
        {"name": "in_split_size", "type": "string", "value": "[1,2,3,0]"},{"name": "out_split_size", "type": "string", "value": "[0, 0, 4, 5]"},
        {"name": "pg_name", "type": "string", "value": "0"},{"name": "pg_desc", "type": "string", "value": "default_pg"},{"name": "pg_size", "type": "uint64", "value": 4}`)),
			[]want{{op: comm.AllToAllV, dtype: comm.Float32, in: 12, out: 18, sized: true, splits: true,
				inParts: []int64{2, 4, 6, 0}, outParts: []int64{0, 0, 8, 10}, rf: 20, rfs: 1, group: "0", ranks: []int{0, 1, 2, 3}}}},
		{"1.1.1 Gloo", file("1.1.1-chakra.0.0.4",
			node(8, 20, 3, "c10d::alltoall_base_", `[4,5,0,8,8,"cpu"],[6,7,0,8,8,"cpu"],"<Object>",[],[],false,-1`, `[8],[8],[],[],[],[],[]`,
				`"Tensor(long int)","Tensor(long int)","Object","GenericList[]","GenericList[]","Bool","Int"`, "", "", "", ""),
			node(9, 21, 3, "gloo:all_to_all", `[6,7,0,8,8,"cpu"]`, `[8]`, `"Tensor(long int)"`, "", "", "", ""),
			node(12, 30, 3, "c10d::barrier", `[1,2,0,1,1,"cpu"],"<Object>",[],-1`, `[1],[],[],[]`, `"Tensor(unsigned char)","Object","GenericList[]","Int"`, "", "", "", ""),
			node(13, 31, 12, "gloo:barrier", "", "", "", "", "", "", "")),
			[]want{
				{op: comm.AllToAll, dtype: comm.Int64, in: 8, out: 8, sized: true, splits: true, rf: 20, rfs: 2},
				{op: comm.Barrier, dtype: comm.Uint8, sized: true, rf: 30, rfs: 2}}},
		{"lists of tensors", file("1.1.1-chakra.0.0.4",
			node(8, 20, 3, "c10d::alltoall_", `[[4,5,0,8,8,"cpu"],[4,5,0,1,8,"cpu"]],[[6,7,0,3,8,"cpu"],[6,7,0,3,8,"cpu"]],"<Object>",-1`, `[[8],[1]],[[3],[3]],[],[]`,
				`"GenericList[Tensor(long),Tensor(long)]","GenericList[Tensor(long),Tensor(long)]","Object","Int"`, "", "", "", "")),
			[]want{{op: comm.AllToAllV, dtype: comm.Int64, in: 6, out: 9, sized: true, splits: true, inParts: []int64{3, 3}, outParts: []int64{8, 1}, rf: 20, rfs: 1}}},
		{"one side even", file("1.0.1", flat(10, 100, 3, "c10d::alltoall_base_", `[8,9,0,6,4,"cuda:0"],[5,6,0,9,4,"cuda:0"],"<Object>",[],[1,2,6],-1`,
			`[6],[9],[],[],[[],[],[]],[]`, `"Tensor(float)","Tensor(float)","Object","GenericList[]","GenericList[Int,Int,Int]","Int"`, "", "", "")),
			[]want{{op: comm.AllToAllV, dtype: comm.Float32, in: 9, out: 6, sized: true, splits: true, inParts: []int64{1, 2, 6}, outParts: []int64{2, 2, 2}, rf: 100, rfs: 1}}},
		{"barrier made of an all_reduce", file("1.0.1",
			flat(12, 103, 11, "record_param_comms", `[[5,6,0,1,4,"cuda:0"]],8,1,0,"allreduce",[],[]`, `[[1]],[],[],[],[],[],[]`,
				`"GenericList[Tensor(float)]","Int","Int","Int","String","GenericList[]","GenericList[]"`, `[[5,6,0,1,4,"cuda:0"]]`, `[[1]]`, `"GenericList[Tensor(float)]"`),
			flat(11, 102, 10, "record_param_comms", `7,1,0,"barrier",[],[]`, `[],[],[],[],[],[]`, `"Int","Int","Int","String","GenericList[]","GenericList[]"`, "", "", ""),
			flat(10, 101, 3, "c10d::barrier", "", "", "", "", "", "")),
			[]want{{op: comm.AllReduce, dtype: comm.Float32, in: 1, out: 1, sized: true, rf: 103, rfs: 2}}},
		{"send and recv", file("1.0.1",
			flat(12, 103, 3, "record_param_comms", `[[5,6,0,4,4,"cuda:0"]],8,1,2,"send",[],[]`, `[[4]],[],[],[],[],[],[]`,
				`"GenericList[Tensor(float)]","Int","Int","Int","String","GenericList[]","GenericList[]"`, `[[5,6,0,4,4,"cuda:0"]]`, `[[4]]`, `"GenericList[Tensor(float)]"`),
			flat(13, 104, 3, "c10d::recv_", `[[5,6,0,4,4,"cuda:0"]],"<Object>",1,0`, `[[4]],[],[],[]`, `"GenericList[Tensor(float)]","Object","Int","Int"`, "", "", "")),
			[]want{{op: comm.Send, dtype: comm.Float32, in: 4, sized: true, rf: 103, rfs: 1}, {op: comm.Recv, dtype: comm.Float32, out: 4, sized: true, rf: 104, rfs: 1}}},
		{"nothing known but the name", file("1.0.2", `{"id": 4, "name": "c10d::broadcast_"}`), []want{{op: comm.Broadcast}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(c.input), "et_3.json")
			if err != nil {
				t.Fatal(err)
			}
			none(t, got.Diagnostics)
			if got.Rank != 3 || got.Lost != 0 {
				t.Errorf("rank %d, %d nodes lost", got.Rank, got.Lost)
			}
			compare(t, got.Calls, c.want)
		})
	}
}

func compare(t *testing.T, got []Call, wanted []want) {
	t.Helper()
	if len(got) != len(wanted) {
		t.Fatalf("%d calls, want %d: %+v", len(got), len(wanted), got)
	}
	for i, w := range wanted {
		g := got[i]
		if g.Op != w.op || g.DType != w.dtype || g.In != w.in || g.Out != w.out || g.SizeKnown != w.sized ||
			g.SplitsKnown != w.splits || !slices.Equal(g.InSplits, w.inParts) || !slices.Equal(g.OutSplits, w.outParts) ||
			g.RecordFn != w.rf || len(g.RecordFns) != w.rfs || g.Group.Name != w.group || !slices.Equal(g.Group.Ranks, w.ranks) {
			t.Errorf("call %d:\n got %+v\nwant %+v", i, g, w)
		}
	}
}

// cutReader ends as a gzip file does that was cut off.
type cutReader struct{ r io.Reader }

func (c cutReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b[:min(len(b), 100)])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestDamage(t *testing.T) {
	broadcast := func(id int) string {
		return node(id, id, 1, "c10d::broadcast_", fmt.Sprintf(`[[4,5,0,%d,4,"cpu"]],"<Object>",0`, id), "[[]]", `"GenericList[Tensor(float)]"`, "", "", "", "")
	}
	other := node(50, 50, 1, "aten::mul", "nan,-inf,1.5e3", "", `"Double"`, "", "", "", "")
	whole := file("1.1.1", broadcast(8), other, broadcast(9))
	old := flat(8, 8, 1, "c10d::broadcast_", `[[4,5,0,8,4,"cpu"]]`, "[[8]]", `"GenericList[Tensor(float)]"`, "", "", "")
	for _, c := range []struct {
		name  string
		input string
		calls []int64 // sizes
		lost  int64
		codes string
	}{
		{"whole", whole, []int64{8, 9}, 0, ""},
		{"missing comma", strings.ReplaceAll(whole, "},\n    {", "}\n    {"), []int64{8, 9}, 0, "execution-trace-missing-comma:2"},
		{"no end", whole[:strings.LastIndex(whole, "]")], []int64{8, 9}, 0, "execution-trace-truncated:1"},
		{"node cut by the next", file("1.1.1", broadcast(8)[:150], broadcast(9)), []int64{9}, 1, "execution-trace-node-lost:1"},
		{"node cut by the next, old form", file("1.0.1", old[:120], old), []int64{8}, 1, "execution-trace-node-lost:1"},
		{"last node cut", whole[:strings.LastIndex(whole, `"attrs"`)], []int64{8}, 1, "execution-trace-node-lost:1 execution-trace-truncated:1"},
		{"brace too many", file("1.1.1", broadcast(8)+"}", broadcast(9)), []int64{8, 9}, 1, "execution-trace-node-lost:1"},
		{"brace missing", file("1.1.1", strings.Replace(broadcast(8), `"]},`, `"],`, 1), broadcast(9)), []int64{9}, 1, "execution-trace-node-lost:1"},
		{"quote missing", file("1.1.1", strings.Replace(broadcast(8), `"cpu"`, `"cpu`, 1), broadcast(9)), []int64{9}, 1, "execution-trace-node-lost:1"},
		{"brackets left over", file("1.1.1", broadcast(8)+`]}, {"x": 1`, broadcast(9)), []int64{8, 9}, 1, "execution-trace-node-lost:1"},
		{"no id", file("1.1.1", `{"name": "c10d::broadcast_"}`, broadcast(9)), []int64{9}, 1, "execution-trace-node-lost:1"},
		{"too deep", file("1.1.1", `{"id": 3, "x": `+strings.Repeat("[", 100)+strings.Repeat("]", 100)+"}", broadcast(9)), []int64{9}, 1, "execution-trace-node-lost:1"},
		{"too large", file("1.1.1", `{"id": 3, "x": "`+strings.Repeat("x", 3<<20)+`"}`, broadcast(9)), []int64{9}, 1, "execution-trace-node-lost:1"},
		{"no nodes", file("1.1.1"), nil, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := defaultLimits
			limit.node = 1 << 20
			got, err := read(strings.NewReader(c.input), "rank3.json", limit)
			if err != nil {
				t.Fatal(err)
			}
			var sizes []int64
			for _, call := range got.Calls {
				sizes = append(sizes, call.In)
			}
			var codes []string
			for _, d := range got.Diagnostics.List() {
				codes = append(codes, fmt.Sprintf("%s:%d", d.Code, d.Count))
				if d.Rank != 3 {
					t.Errorf("diagnostic of rank %d, want 3: %s", d.Rank, d)
				}
			}
			if !slices.Equal(sizes, c.calls) || got.Lost != c.lost || strings.Join(codes, " ") != c.codes {
				t.Errorf("got calls %v, %d lost, %v; want %v, %d, %q", sizes, got.Lost, got.Diagnostics.List(), c.calls, c.lost, c.codes)
			}
		})
	}
	t.Run("cut gzip", func(t *testing.T) {
		got, err := Read(cutReader{strings.NewReader(whole[:len(whole)-300])}, "rank3.json")
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Calls) != 1 || got.Lost != 1 || len(got.Diagnostics.List()) != 2 {
			t.Errorf("%d calls, %d lost, %v", len(got.Calls), got.Lost, got.Diagnostics.List())
		}
	})
	t.Run("every cut", func(t *testing.T) {
		start := strings.Index(whole, "[") + 1
		for n := start; n < len(whole); n += 3 {
			got, err := Read(strings.NewReader(whole[:n]), "rank3.json")
			if err != nil {
				t.Fatalf("cut at %d: %v", n, err)
			}
			if done := n > strings.LastIndex(whole, "]"); done != (len(got.Diagnostics.List()) == 0) {
				t.Fatalf("cut at %d of %d: %v", n, len(whole), got.Diagnostics.List())
			}
		}
	})
}

func TestNotExecutionTrace(t *testing.T) {
	for _, input := range []string{
		"", "  ", "[]", "hello", `{"schemaVersion": 1, "traceEvents": [{"ph": "X"}]}`, `{"nodes": []}`, `{"a": {"nodes": [1]}}`,
		`{"schema": "1.0.1"}`, `{"schema": "1.0.1", "nodes": 3}`, `{"schema`, `{"schema": "1.0.1", "time": `,
		"{" + strings.Repeat(`"a":{`, 1000),
	} {
		if _, err := Read(strings.NewReader(input), "et_0.json"); !errors.Is(err, ErrNotExecutionTrace) {
			t.Errorf("%.40q: got %v, want ErrNotExecutionTrace", input, err)
		}
	}
}

func TestReadFailure(t *testing.T) {
	whole := file("1.0.1", oldExchange("[],[]")...)
	failure := errors.New("disk on fire")
	for _, c := range []struct {
		size  int
		err   error
		fails bool
	}{{20, failure, true}, {150, failure, true}, {1500, failure, false}, {1500, context.Canceled, true}} {
		got, err := Read(io.MultiReader(strings.NewReader(whole[:c.size]), failing{c.err}), "et_0.json")
		switch {
		case c.fails && !errors.Is(err, c.err):
			t.Errorf("after %d bytes: got %v, want %v", c.size, err, c.err)
		case !c.fails && (err != nil || !strings.Contains(codes(got.Diagnostics), "execution-trace-truncated:1")):
			t.Errorf("after %d bytes: got %v, want what was read and a diagnostic", c.size, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	trace := file("1.0.1", oldExchange("[1,2,3],[4,5,0]")...)
	load := func(files map[string]string) (map[int]*Trace, string, error) {
		sub := filepath.Join(dir, fmt.Sprint(len(files), time.Now().UnixNano()))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(sub, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		traces, diags, err := Load(context.Background(), find(t, sub))
		return traces, codes(diags), err
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		ranks []int
		codes string
		err   error
	}{
		{"two ranks and other JSON", map[string]string{"et_0.json": trace, "et_5.json": trace, "rank3.json": `{"traceEvents": []}`, "x.json": trace},
			[]int{0, 5}, "not-an-execution-trace:1 rank-unknown:1", nil},
		{"damage is of its rank", map[string]string{"et_5.json": trace[:len(trace)-30]}, []int{5}, "execution-trace-truncated:1", nil},
		{"the only one", map[string]string{"x.json": trace}, []int{0}, "rank-assumed:1", nil},
		{"twice", map[string]string{"et_5.json": trace, "rank5.json": trace}, nil, "", ErrDuplicateRank},
		{"no ranks", map[string]string{"x.json": trace, "y.json": trace}, nil, "rank-unknown:2", ErrNoRank},
		{"none", map[string]string{"x.json": "{}"}, nil, "not-an-execution-trace:1", ErrNotExecutionTrace},
	} {
		t.Run(c.name, func(t *testing.T) {
			traces, codes, err := load(c.files)
			if !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if got := slices.Sorted(maps.Keys(traces)); !slices.Equal(got, c.ranks) || codes != c.codes {
				t.Errorf("got ranks %v, %q; want %v, %q", got, codes, c.ranks, c.codes)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Load(ctx, find(t, moe+"/et")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func FuzzRead(f *testing.F) {
	f.Add([]byte(file("1.0.1", oldExchange("[1,2,3],[4,5,0]")...)))
	f.Add([]byte(file("1.1.1", groupNode(), paramNode(8, 20, "all_to_allv", `[4,5,0,12,4,"cuda:0"]`, `[6,2]`, "Tensor(float)",
		`["0","default_pg"]`, "[1,2,3,0],[0,0,4,5]", ",0,1,4", `[6,7,0,18,4,"cuda:0"]`, `[9,2]`, `,{"name": "in_split_size", "value": "[1,2]"}`))))
	f.Add([]byte(`{"schema": "1", "nodes": [{"id": 1, "name": "gloo:send"}{"id": 1, "name": "c10d::send", "ctrl_deps": 1}]}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		limit := limits{node: 1 << 12, depth: 16, records: 1 << 10, splits: 1 << 12}
		got, err := read(strings.NewReader(string(input)), "rank0.json", limit)
		if err != nil {
			return
		}
		for _, call := range got.Calls {
			if call.In < 0 || call.Out < 0 || call.InSplits != nil && (sum(call.InSplits) != call.In || sum(call.OutSplits) != call.Out) {
				t.Errorf("impossible call %+v", call)
			}
		}
	})
}

func sum(list []int64) int64 {
	var total int64
	for _, n := range list {
		total += n
	}
	return total
}
