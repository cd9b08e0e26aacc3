package dataset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mixdown/ingest/comm"
	"mixdown/ingest/dataset"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/kineto"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

const tool = "mixdown test"

// load reads traces the way commands do.
func load(t testing.TB, args ...string) *trace.Run {
	t.Helper()
	files, err := source.Find(args, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := kineto.Load(context.Background(), files, kineto.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// write makes a dataset of a run.
func write(t testing.TB, dir string, run *trace.Run) {
	t.Helper()
	w, err := dataset.Create(dataset.Folder(dir), dataset.CreateOptions{Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	byRank := map[int][]diagnostic.Diagnostic{}
	for _, d := range run.Diagnostics.List() {
		byRank[d.Rank] = append(byRank[d.Rank], d)
	}
	for _, r := range run.Ranks {
		if _, err := w.Write(r, byRank[r.Rank], dataset.Provenance{Source: r.Source, Size: 1, ModTime: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(byRank[diagnostic.NoRank]); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, dir string) *trace.Run {
	t.Helper()
	run, err := dataset.Read(context.Background(), dataset.Folder(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// same compares two runs: everything but the numbers of names, which are
// compared as the strings they stand for.
func same(t *testing.T, got, want *trace.Run) {
	t.Helper()
	if len(got.Ranks) != len(want.Ranks) {
		t.Fatalf("%d ranks, want %d", len(got.Ranks), len(want.Ranks))
	}
	if d := cmp.Diff(want.Diagnostics.List(), got.Diagnostics.List(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("diagnostics:\n%s", d)
	}
	for i, w := range want.Ranks {
		g := got.Ranks[i]
		for e := range w.Events.Len() {
			if e < g.Events.Len() && w.Name(e) != g.Name(e) {
				t.Fatalf("rank %d, event %d: name %q, want %q", w.Rank, e, g.Name(e), w.Name(e))
			}
		}
		ignore := cmp.Options{cmpopts.IgnoreFields(trace.Rank{}, "Names", "Events"), cmpopts.IgnoreFields(trace.Events{}, "Name")}
		if d := cmp.Diff(*w, *g, ignore, withoutUnknownSizes); d != "" {
			t.Errorf("rank %d:\n%s", w.Rank, d)
		}
		if !reflect.DeepEqual(unnamed(w.Events), unnamed(g.Events)) {
			t.Errorf("rank %d: events:\n%s", w.Rank, cmp.Diff(unnamed(w.Events), unnamed(g.Events), cmpopts.EquateEmpty()))
		}
	}
}

// unnamed are the events but their names, none as a slice of none.
func unnamed(ev trace.Events) trace.Events {
	ev.Name = nil
	v := reflect.ValueOf(&ev).Elem()
	for i := range v.NumField() {
		if v.Field(i).Len() == 0 {
			v.Field(i).SetZero()
		}
	}
	return ev
}

// withoutUnknownSizes drops what means nothing where sizes are not known.
var withoutUnknownSizes = cmp.Transformer("known", func(o comm.Operation) known {
	if !o.SizeKnown {
		o.In, o.Out = 0, 0
	}
	return known(o)
})

type known comm.Operation

func TestRoundTrip(t *testing.T) {
	inputs := []string{"../../testdata/dp_moe_4rank/rank*.gz", "../../testdata/pipeline_1f1b_4rank"}
	corpus := os.Getenv("MIXDOWN_CORPUS")
	if corpus == "" {
		t.Log("MIXDOWN_CORPUS is not set: only the project's own traces")
	} else {
		for _, name := range []string{"param/dlrm_8rank/kineto", "hta/nccl_parser_config", "tracelens/mi300"} {
			inputs = append(inputs, filepath.Join(corpus, name))
		}
	}
	for _, input := range inputs {
		t.Run(filepath.Base(filepath.Dir(input))+"/"+filepath.Base(input), func(t *testing.T) {
			run := load(t, input)
			dir := filepath.Join(t.TempDir(), "ds")
			write(t, dir, run)
			same(t, read(t, dir), run)
		})
	}
}

// TestEveryFieldSurvives fills all fields there are, so that one that is added
// to the store is not forgotten here.
func TestEveryFieldSurvives(t *testing.T) {
	n := 0
	r := &trace.Rank{Names: trace.NewStrings()}
	for i := range 40 {
		row := trace.Row{}
		fill(reflect.ValueOf(&row).Elem(), &n)
		row.Name = r.Names.Intern([]byte(fmt.Sprint("name ", i%7)))
		row.Category, row.Phase, row.Thread = trace.Category(i%int(trace.Instant+1)), trace.Phase(i%int(trace.OtherPhase+1)), trace.ThreadID(i%3)
		switch i % 4 {
		case 1:
			row.Stream, row.Correlation, row.Device = trace.NoStream, trace.NoID, -1
		case 2:
			row.Stream, row.Correlation, row.Device = 0, 0, 0
		case 3:
			row.TS, row.Dur, row.Correlation = -1<<63, 1<<63-1, -1
		}
		r.Events.Append(row)
	}
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "Names" && name != "Events" {
			fill(v.Field(i), &n)
		}
	}
	r.Rank, r.Threads = 3, append(r.Threads, trace.Thread{}, trace.Thread{TID: "\"stream 7\""})
	r.Groups = append(r.Groups, comm.Group{Name: "no members"}, comm.Group{Ranks: []int{}})
	for i := range r.Operations {
		op := &r.Operations[i]
		op.Group, op.Thread, op.Event, op.Events = i%len(r.Groups), i-1, i, []int{i, i + 1}
	}
	r.Operations = append(r.Operations, comm.Operation{Op: comm.Unknown, Thread: -1},
		comm.Operation{Op: comm.Batch, Thread: 0, InSplits: []int64{}, Events: []int{}, Transfers: []comm.Transfer{{Peer: -1}, {Send: true, Peer: 0, Count: 1 << 40}}, CommsID: 1<<64 - 1})
	for i := range r.Waits {
		r.Waits[i].Thread = trace.ThreadID(i)
	}
	run := &trace.Run{Ranks: []*trace.Rank{r}}
	run.Diagnostics.Add(diagnostic.Diagnostic{Code: "a", Rank: 3, Count: 5, Offset: 0, Example: "x"})
	run.Diagnostics.Add(diagnostic.Diagnostic{Code: "b", Rank: 3, Offset: diagnostic.NoOffset})
	run.Diagnostics.Add(diagnostic.Diagnostic{Code: "c", Rank: diagnostic.NoRank, Count: 2, Offset: 7})
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, run)
	same(t, read(t, dir), run)
}

// fill gives every field a value of its own that is not zero, every slice
// three elements, every map one.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n % 5))
	}
}

// TestNamesAreText: Parquet readers refuse text that is not UTF-8.
func TestNamesAreText(t *testing.T) {
	r := &trace.Rank{Names: trace.NewStrings(), Threads: []trace.Thread{{}}}
	r.Events.Append(trace.Row{Name: r.Names.Intern([]byte("k\xff\xfe")), Correlation: trace.NoID, Stream: trace.NoStream, Device: -1})
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, &trace.Run{Ranks: []*trace.Rank{r}})
	if got := read(t, dir).Ranks[0].Name(0); got != "k\ufffd\ufffd" {
		t.Errorf("name %q", got)
	}
}

func TestSeveralRowGroups(t *testing.T) {
	const n = 1<<20 + 77
	r := &trace.Rank{Names: trace.NewStrings(), Threads: []trace.Thread{{}}, Groups: []comm.Group{{}}}
	for i := range n {
		row := trace.Row{Name: r.Names.Intern([]byte(fmt.Sprint("kernel ", i%5000))), TS: int64(i) * 1000, Dur: int64(i % 977), Correlation: trace.NoID, Stream: int64(i % 3), Device: -1}
		if i%2 == 0 {
			row.Correlation = int64(i)
		}
		r.Events.Append(row)
	}
	for i := range 40_000 {
		op := comm.Operation{Op: comm.AllToAllV, Thread: -1, Event: i, Events: make([]int, i%4), Name: "a"}
		for range i % 3 {
			op.Transfers = append(op.Transfers, comm.Transfer{Peer: i})
		}
		if i%5 > 0 {
			op.InSplits = make([]int64, 7)
		}
		r.Operations = append(r.Operations, op)
	}
	dir := filepath.Join(t.TempDir(), "ds")
	run := &trace.Run{Ranks: []*trace.Rank{r}}
	write(t, dir, run)
	same(t, read(t, dir), run)
}

func TestRankByRank(t *testing.T) {
	run := load(t, "../../testdata/dp_moe_4rank/rank*.gz")
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, run)
	d, err := dataset.Open(dataset.Folder(dir))
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for r, err := range d.All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Rank)
	}
	if fmt.Sprint(got) != "[0 1 2 3]" {
		t.Errorf("ranks %v", got)
	}
	r, _, err := d.Communication(2)
	if err != nil || r.Events.Len() != 0 || len(r.Operations) != len(run.Ranks[2].Operations) {
		t.Errorf("communication of rank 2: %d events, %d operations, %v", r.Events.Len(), len(r.Operations), err)
	}
	if _, _, err := d.Rank(9); err == nil {
		t.Error("rank 9 of 4 was read")
	}
}

// TestHalfWritten: whatever a killed process leaves, no rank reads as whole
// that is not.
func TestHalfWritten(t *testing.T) {
	run := load(t, "../../testdata/dp_moe_4rank/rank*.gz")
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, run)
	// Killed while rank 1 was replaced: some tables are new, the marker is gone.
	for _, gone := range []string{"_ranks/rank=1", "operations/rank=1"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := dataset.Create(dataset.Folder(dir), dataset.CreateOptions{Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.Entries()); n != 3 {
		t.Errorf("%d ranks are whole, want 3", n)
	}
	got := read(t, dir)
	if fmt.Sprint(got.Missing()) != "[1]" {
		t.Errorf("missing %v, want rank 1", got.Missing())
	}
	found := false
	for _, d := range got.Diagnostics.List() {
		found = found || d.Code == "dataset-incomplete"
	}
	if !found {
		t.Error("no diagnostic says that the dataset is not complete")
	}
	if _, err := w.Write(run.Ranks[1], nil, dataset.Provenance{Source: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(nil); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir); len(got.Missing()) != 0 || len(got.Diagnostics.List()) != 0 {
		t.Errorf("continued: missing %v, %v", got.Missing(), got.Diagnostics.List())
	}
}

func TestDamage(t *testing.T) {
	run := load(t, "../../testdata/pipeline_1f1b_4rank/rank0*")
	file := "events/rank=0/part-0.parquet"
	for name, damage := range map[string]func(path string) error{
		"gone":       os.Remove,
		"cut":        func(p string) error { return os.Truncate(p, 1000) },
		"empty":      func(p string) error { return os.Truncate(p, 0) },
		"overwrite":  func(p string) error { return flip(p, 2000) },
		"footer":     func(p string) error { return flip(p, -6) },
		"not a file": func(p string) error { os.Remove(p); return os.Mkdir(p, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "ds")
			write(t, dir, run)
			if err := damage(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			_, err := dataset.Read(context.Background(), dataset.Folder(dir), nil)
			if !errors.Is(err, dataset.ErrCorrupt) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "mixdown ingest") {
				t.Errorf("error %v, want one that names the file and says what to do", err)
			}
		})
	}
}

func flip(path string, at int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 0x55
	return os.WriteFile(path, data, 0o644)
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := dataset.Create(dataset.Folder(dir), dataset.CreateOptions{Tool: tool, Fresh: true}); !errors.Is(err, dataset.ErrForeign) {
		t.Errorf("a folder with other files: %v", err)
	}
	if _, err := dataset.Open(dataset.Folder(dir)); !errors.Is(err, dataset.ErrNotDataset) {
		t.Errorf("a folder without metadata: %v", err)
	}
	for content, want := range map[string]error{
		`{"schema_version":3,"tool":"mixdown 9"}`: dataset.ErrVersion,
		`{}`:   dataset.ErrCorrupt,
		`{"sc`: dataset.ErrCorrupt,
		`{"schema_version":2,"tool":"mixdown 1","complete":true}`: dataset.ErrEmpty,
	} {
		if err := os.WriteFile(filepath.Join(dir, dataset.MetadataFile), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := dataset.Read(context.Background(), dataset.Folder(dir), nil); !errors.Is(err, want) {
			t.Errorf("metadata %s: %v, want %v", content, err, want)
		}
	}
}

// TestMetadata: other programs read it.
func TestMetadata(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ds")
	write(t, dir, load(t, "../../testdata/pipeline_1f1b_4rank"))
	data, err := os.ReadFile(filepath.Join(dir, dataset.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if m["schema_version"] != 2.0 || m["world_size"] != 4.0 || m["complete"] != true || len(m["ranks"].([]any)) != 4 {
		t.Errorf("metadata %s", data)
	}
}
