package tune_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// row is a measurement of an all_reduce.
func row(who string, bytes, ns int64, change ...func(*tune.Row)) tune.Row {
	r := tune.Row{
		Contender: tune.ParseContender(who), Op: comm.AllReduce, DType: comm.Float32, Device: tune.Host, Ranks: 4, Nodes: 1,
		In: bytes, Out: bytes, Streams: 1, Time: ns, Statistic: tune.Median, N: 10, CILow: ns - ns/100, CIHigh: ns + ns/100, Source: "test",
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func table(t *testing.T, rows ...tune.Row) *tune.Table {
	t.Helper()
	x := &tune.Table{}
	if err := x.Add(rows...); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestRoundTrip(t *testing.T) {
	x := &tune.Table{}
	hash := x.AddEnvironment(tune.Environment{
		Hardware: "2 cores", Libraries: []tune.Library{{"openmpi", "4.1.4"}, {"gloo", "0.5.0"}}, Variables: map[string]string{"UCX_TLS": "sm"},
	})
	in := func(r *tune.Row) { r.Environment = hash }
	unknown := func(r *tune.Row) { r.Nodes, r.N, r.CILow, r.CIHigh, r.DType = 0, 0, 0, 0, "" }
	step := func(r *tune.Row) { r.InStep, r.Gap = true, 1500 }
	if err := x.Add(row("gloo", 8, 100, in), row("openmpi:ring", 8, 90, in), row("gloo", 64, 120, unknown), row("gloo", 64, 130, step)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "a.tune")
	if err := x.Write(name); err != nil {
		t.Fatal(err)
	}
	again, err := tune.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(x, again); diff != "" {
		t.Errorf("(-written +read)\n%s", diff)
	}
	first, _ := x.Encode()
	second, _ := again.Encode()
	if !bytes.Equal(first, second) {
		t.Error("the same table gives other bytes")
	}
	var parquet bytes.Buffer
	if err := again.WriteParquet(&parquet); err != nil || !bytes.HasPrefix(parquet.Bytes(), []byte("PAR1")) {
		t.Errorf("parquet: %v, %d bytes", err, parquet.Len())
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, err := table(t, row("gloo", 8, 100)).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("gloo,8,100\n"), "another version": append([]byte{8, 2}, good[2:]...), "half": good[:len(good)-3],
		"a plan": {8, 1, 18, 3, 10, 1, 'x'},
	} {
		if x, err := tune.Decode(data); !errors.Is(err, tune.ErrNotTable) {
			t.Errorf("%s: %+v, %v; want ErrNotTable", name, x, err)
		}
	}
}

func TestImpossibleRowsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*tune.Row){
		"no backend": func(r *tune.Row) { r.Backend = "" }, "a backend that a mix can't name": func(r *tune.Row) { r.Backend = "a,b" },
		"a variant that a mix can't name": func(r *tune.Row) { r.Variant = "a,b" }, "no op": func(r *tune.Row) { r.Op = "" },
		"no ranks": func(r *tune.Row) { r.Ranks = 0 }, "more nodes than ranks": func(r *tune.Row) { r.Nodes = 5 },
		"negative size": func(r *tune.Row) { r.In = -1 }, "no time": func(r *tune.Row) { r.Time = 0 }, "device": func(r *tune.Row) { r.Device = "fpga" },
		"interval": func(r *tune.Row) { r.CIHigh = r.CILow - 1 }, "streams": func(r *tune.Row) { r.Streams = 0 },
	} {
		if err := (&tune.Table{}).Add(row("gloo", 8, 100, change)); !errors.Is(err, tune.ErrRow) {
			t.Errorf("%s: %v, want ErrRow", name, err)
		}
	}
}

// TestMerge: of the same measurement the one that rests on more stays; other
// machines' measurements are others.
func TestMerge(t *testing.T) {
	few := func(r *tune.Row) { r.N = 3 }
	a := table(t, row("gloo", 8, 100), row("gloo", 64, 200, few))
	b := table(t, row("gloo", 8, 111, few), row("gloo", 64, 222), row("gloo", 8, 333, func(r *tune.Row) { r.Environment = "elsewhere" }))
	if err := a.Merge(b); err != nil {
		t.Fatal(err)
	}
	var times []int64
	for _, r := range a.Rows {
		times = append(times, r.Time)
	}
	if diff := cmp.Diff([]int64{100, 333, 222}, times); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := a.Put(row("gloo", 8, 77, few)); err != nil || a.Rows[0].Time != 77 {
		t.Errorf("put: %v, %d", err, a.Rows[0].Time)
	}
}
