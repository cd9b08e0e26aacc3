package commlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"

	"mixdown/ingest/comm"
	"mixdown/ingest/commslog"
	"mixdown/replay/plan/planpb"
)

const deepspeed = "../../testdata/deepspeed_zero2_2rank/"

// TestDeepSpeedsOwnTable: from the latencies of a job that DeepSpeed logged come
// the tables that DeepSpeed printed, to the byte.
func TestDeepSpeedsOwnTable(t *testing.T) {
	data, err := os.ReadFile(deepspeed + "comms.json")
	if err != nil {
		t.Fatal(err)
	}
	var ranks map[string]struct {
		Raw map[string]map[string]struct {
			Latency []float64 `json:"latency_ms"`
		}
	}
	if err := json.Unmarshal(data, &ranks); err != nil {
		t.Fatal(err)
	}
	w := &planpb.Workload{WorldSize: 2, Groups: []*planpb.Group{{Name: "0", Ranks: []int32{0, 1}}}}
	l := New(&planpb.Plan{Workload: w})
	ops := map[string]planpb.Op{"all_reduce": planpb.Op_OP_ALL_REDUCE, "all_gather_into_tensor": planpb.Op_OP_ALL_GATHER}
	for rank := range int32(2) {
		program := &planpb.Program{Rank: rank}
		it := &planpb.Iteration{}
		raw := ranks["rank"+strconv.Itoa(int(rank))].Raw
		for _, name := range []string{"all_reduce", "all_gather_into_tensor"} { // as they were called
			for _, size := range sortedKeys(raw[name]) {
				n, err := strconv.ParseInt(size, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				for _, ms := range raw[name][size].Latency {
					c := &planpb.Communication{Seq: int64(len(program.Tasks)), Op: ops[name], Dtype: planpb.DType_DTYPE_UINT8, InCount: n, OutCount: n}
					if name != "all_reduce" {
						c.OutCount = 2 * n
					}
					task := int32(len(program.Tasks))
					program.Tasks = append(program.Tasks, &planpb.Task{Id: task, Kind: &planpb.Task_Communication{Communication: c}})
					it.Tasks = append(it.Tasks, &planpb.TaskTime{Task: task, StartNs: 5, EndNs: 5 + int64(math.Round(ms*1e6))})
				}
			}
		}
		w.Programs = append(w.Programs, program)
		l.calls = append(l.calls, nil)
		if err := l.Add(int(rank), it); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.ReadFile(deepspeed + "comms.log")
	if err != nil {
		t.Fatal(err)
	}
	_, want, ok := strings.Cut(string(log), "log_all, show_straggler:\n")
	if !ok {
		t.Fatal("no tables in comms.log")
	}
	var b strings.Builder
	if err := l.Text(&b, 0); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("written:\n%s\nDeepSpeed:\n%s", b.String(), want)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return keys
}

// TestRoundTrip: what is written of random times, JSON and text, is read again
// by ingest/commslog; JSON without loss.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		l := randomLog(t, random)
		for worker := range l.calls {
			var text, data bytes.Buffer
			if err := errors.Join(l.Text(&text, worker), l.JSON(&data, worker, time.Unix(0, 0).UTC())); err != nil {
				t.Fatal(err)
			}
			rows := l.rows(worker)
			if len(rows) == 0 {
				continue
			}
			exact := read(t, data.Bytes())
			if exact.WorldSize != 4 || exact.Rank != worker || exact.Timestamp != "1970-01-01T00:00:00.000000" {
				t.Errorf("%+v", exact)
			}
			rounded := read(t, text.Bytes())
			if len(exact.Rows) != len(rows) || len(rounded.Rows) != len(rows) {
				t.Fatalf("%d rows written, %d and %d read\n%s", len(rows), len(exact.Rows), len(rounded.Rows), &text)
			}
			for i, r := range rows {
				j := slices.IndexFunc(exact.Rows, func(e commslog.Row) bool { return e.Name == r.name && e.SizeLo == r.size })
				if j < 0 || !equal(exact.Rows[j], r, 1) {
					t.Errorf("%+v is not read from JSON: %+v", r, exact.Rows)
				}
				if got := rounded.Rows[i]; got.Name != r.name || got.SizeLo > r.size || got.SizeHi < r.size || !equal(got, r, 10_000) {
					t.Errorf("%+v is read as %+v %+v from\n%s", r, got, got.Straggler, &text)
				}
			}
		}
	}
}

func read(t *testing.T, data []byte) commslog.Table {
	t.Helper()
	log, err := commslog.Read(bytes.NewReader(data), "log", commslog.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	for _, d := range log.Diagnostics.List() {
		t.Errorf("%+v", d)
	}
	if len(log.Tables) != 1 || !log.Tables[0].Straggler || len(log.Calls) != 0 {
		t.Fatalf("%d tables, %d calls", len(log.Tables), len(log.Calls))
	}
	return log.Tables[0]
}

// equal compares up to the resolution of the times in ns.
func equal(got commslog.Row, want row, resolution int64) bool {
	near := func(a, b int64) bool { return a-b <= resolution/2 && b-a <= resolution/2 }
	s := got.Straggler
	return s != nil && got.Count == want.count && s.Count == want.count && near(got.TotalNS, want.totalNS) && near(got.AvgNS, want.avgNS) &&
		near(s.TotalCommNS, want.commNS) && near(s.TotalStragglerNS, want.stragglerNS) &&
		near(s.AvgCommNS, want.avgComm) && near(s.AvgStragglerNS, want.avgStraggler) &&
		math.Abs(got.TputGbps-want.tput) <= 0.006 && math.Abs(got.BusGbps-want.bus) <= 0.006
}

// randomLog is of two iterations on four workers.
func randomLog(t *testing.T, random *rand.Rand) *Log {
	t.Helper()
	w := &planpb.Workload{WorldSize: 4, Groups: []*planpb.Group{
		{Name: "0", Ranks: []int32{0, 1, 2, 3}}, {Name: "<b>", Ranks: []int32{0, 1, 2, 3}},
	}}
	var list []*planpb.Communication
	for n := range random.IntN(30) {
		c := &planpb.Communication{
			Group: int32(random.IntN(2)), Seq: int64(n), Op: planpb.Op(1 + random.IntN(17)), Backend: "gloo",
			Dtype: planpb.DType_DTYPE_FLOAT32, InCount: random.Int64N(1<<30) >> random.IntN(30), OutCount: random.Int64N(1<<20) >> random.IntN(20),
		}
		if random.IntN(4) == 0 {
			c.InCount, c.OutCount = 1<<random.IntN(20), 0
		}
		if c.Op >= planpb.Op_OP_SEND && c.Op <= planpb.Op_OP_BATCH {
			c.Transfers = []*planpb.Transfer{{Send: random.IntN(2) == 0, Count: random.Int64N(1 << 20)}, {Send: true, Count: 3}}
		}
		list = append(list, c)
	}
	for rank := range int32(4) {
		program := &planpb.Program{Rank: rank, Tasks: []*planpb.Task{{Kind: &planpb.Task_Wait{Wait: &planpb.Wait{}}}}}
		for i, c := range list {
			program.Tasks = append(program.Tasks, &planpb.Task{Id: int32(i + 1), Kind: &planpb.Task_Communication{Communication: c}})
		}
		w.Programs = append(w.Programs, program)
	}
	l := New(&planpb.Plan{Name: "a plan", Workload: w})
	for worker := range 4 {
		for n := range int32(2) {
			it := &planpb.Iteration{Iteration: n}
			for task := range len(list) + 1 {
				it.Tasks = append(it.Tasks, &planpb.TaskTime{Task: int32(task), StartNs: 7, EndNs: 7 + random.Int64N(1<<36)>>random.IntN(36)})
			}
			if err := l.Add(worker, it); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

// TestNothingLost: under "calls" is every call with its times.
func TestNothingLost(t *testing.T) {
	l := randomLog(t, rand.New(rand.NewPCG(5, 6)))
	var b bytes.Buffer
	if err := l.JSON(&b, 2, time.Now()); err != nil {
		t.Fatal(err)
	}
	var f file
	if err := json.Unmarshal(b.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Calls) != len(l.calls[2]) || len(f.Calls) == 0 {
		t.Fatalf("%d of %d calls", len(f.Calls), len(l.calls[2]))
	}
	for i, c := range f.Calls {
		w := l.calls[2][i]
		if c.DurNS != w.durNS || c.InBytes != w.in || c.OutBytes != w.out || c.Op != string(w.op) || c.Iteration != w.iteration ||
			c.Task != w.task || c.Backend != "gloo" || (c.Seq != nil) != w.collective || c.Group != w.groupIs || c.Ranks != 4 {
			t.Errorf("%+v is written as %+v", w, c)
		}
	}
}

// TestRecords: a worker's result file, also one that was cut off.
func TestRecords(t *testing.T) {
	w := &planpb.Workload{WorldSize: 1, Groups: []*planpb.Group{{Ranks: []int32{0}}}, Programs: []*planpb.Program{{Tasks: []*planpb.Task{
		{Kind: &planpb.Task_Communication{Communication: &planpb.Communication{Op: planpb.Op_OP_BARRIER}}},
	}}}}
	var b bytes.Buffer
	for _, it := range []*planpb.Iteration{{Plan: 0}, {Plan: 1}, {Plan: 1, Iteration: 1}} {
		it.Tasks = []*planpb.TaskTime{{EndNs: 9}}
		if _, err := protodelim.MarshalTo(&b, &planpb.Record{Kind: &planpb.Record_Iteration{Iteration: it}}); err != nil {
			t.Fatal(err)
		}
	}
	for cut, want := range map[int]int{0: 2, 2: 1} {
		l := New(&planpb.Plan{Workload: w})
		if err := l.AddRecords(0, 1, bytes.NewReader(b.Bytes()[:b.Len()-cut])); err != nil || len(l.calls[0]) != want {
			t.Errorf("cut by %d: %v, %d calls", cut, err, len(l.calls[0]))
		}
	}
}

func TestMismatch(t *testing.T) {
	l := randomLog(t, rand.New(rand.NewPCG(5, 6)))
	for _, err := range []error{
		l.Add(4, &planpb.Iteration{}), l.Add(-1, &planpb.Iteration{}), l.Text(&bytes.Buffer{}, 9), l.JSON(&bytes.Buffer{}, -1, time.Now()),
		l.Add(0, &planpb.Iteration{Tasks: []*planpb.TaskTime{{Task: 1 << 20}}}),
		l.Add(0, &planpb.Iteration{Tasks: []*planpb.TaskTime{{Task: 0, StartNs: 2, EndNs: 1}}}),
	} {
		if !errors.Is(err, ErrMismatch) {
			t.Errorf("%v", err)
		}
	}
}

// TestNames: every operation has one.
func TestNames(t *testing.T) {
	for _, op := range comm.Ops() {
		if names[op] == "" {
			t.Errorf("%s has no name", op)
		}
	}
}
