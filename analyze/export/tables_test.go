package export_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/google/go-cmp/cmp"

	"mixdown/analyze/export"
)

// described is what a test looks at of tables.json.
type described struct {
	SchemaVersion int `json:"schema_version"`
	Tables        []struct {
		Name, Path  string
		Rows, Files int
		Columns     []struct {
			Name, Type, Unit, About string
			Nullable                bool
		}
	}
}

func describe(t *testing.T, dir string) described {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "tables.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d described
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestTables: Parquet and Arrow hold the same values, which are the description's
// columns, and sum to the report.
func TestTables(t *testing.T) {
	for name, in := range inputs(t) {
		dir := t.TempDir()
		pq, ar := filepath.Join(dir, "pq"), filepath.Join(dir, "ar")
		if err := export.WriteParquet(context.Background(), pq, in); err != nil {
			t.Fatal(err)
		}
		if err := export.WriteArrow(context.Background(), ar, in); err != nil {
			t.Fatal(err)
		}
		d := describe(t, pq)
		if d.SchemaVersion != export.SchemaVersion || len(d.Tables) != 8 {
			t.Fatalf("%s: version %d, %d tables", name, d.SchemaVersion, len(d.Tables))
		}
		tables := map[string]map[string][]string{}
		for i, table := range d.Tables {
			fromParquet := readAll(t, pq, table.Path, readParquet)
			fromArrow := readAll(t, ar, describe(t, ar).Tables[i].Path, readArrow)
			if diff := cmp.Diff(fromParquet, fromArrow); diff != "" {
				t.Errorf("%s: %s: Parquet and Arrow differ:\n%.2000s", name, table.Name, diff)
			}
			tables[table.Name] = fromParquet
			for _, c := range table.Columns {
				if c.Name == "rank" && table.Name == "communication" {
					continue
				}
				if got := len(fromParquet[c.Name]); got != table.Rows {
					t.Errorf("%s: %s.%s has %d values, %d rows described", name, table.Name, c.Name, got, table.Rows)
				}
				if !c.Nullable && slices.Contains(fromParquet[c.Name], null) {
					t.Errorf("%s: %s.%s has nulls", name, table.Name, c.Name)
				}
			}
		}
		var count int
		var exposed int64
		for _, c := range in.Analysis.Communication {
			count, exposed = count+c.Count, exposed+c.Exposed
		}
		if got := len(tables["communication"]["ts"]); got != count {
			t.Errorf("%s: %d operations, %d in the report", name, got, count)
		}
		if got := sum(t, tables["communication"]["exposed_ns"]); got != exposed {
			t.Errorf("%s: exposed %d, %d in the report", name, got, exposed)
		}
		checkWaits(t, name, in, tables)
		var tasks int
		for _, p := range in.Pipelines {
			for i := range p.Steps {
				for _, list := range p.Steps[i].Tasks {
					tasks += len(list)
				}
			}
		}
		if got := len(tables["pipeline_tasks"]["action"]); got != tasks || name == "pipeline" && tasks == 0 {
			t.Errorf("%s: %d tasks, %d in the pipelines", name, got, tasks)
		}
		if got := len(tables["collectives"]["ts"]); got != in.Analysis.Matched {
			t.Errorf("%s: %d collectives, %d in the report", name, got, in.Analysis.Matched)
		}
		if !in.Clocks.Connected && sum(t, tables["communication"]["wait_ns"]) != 0 {
			t.Errorf("%s: waits, though clocks can't be compared", name)
		}
	}
}

// checkWaits: waiting and transfer are the report's, and the members' waits are
// their collective's.
func checkWaits(t *testing.T, name string, in *export.Input, tables map[string]map[string][]string) {
	t.Helper()
	var wait, transfer int64
	for _, c := range in.Analysis.Communication {
		if c.Wait == nil { // of one operation of the row at least
			return
		}
		wait, transfer = wait+*c.Wait, transfer+*c.Transfer
	}
	comm := tables["communication"]
	if got := [2]int64{sum(t, comm["wait_ns"]), sum(t, comm["transfer_ns"])}; got != [2]int64{wait, transfer} {
		t.Errorf("%s: wait and transfer %v, %d and %d in the report", name, got, wait, transfer)
	}
	var members []string
	for i, id := range comm["collective_id"] {
		if id != null {
			members = append(members, comm["wait_ns"][i])
		}
	}
	if got, want := sum(t, tables["collectives"]["wait_ns"]), sum(t, members); got != want || got == 0 && name != "hostile" { // whose ranks do all at once
		t.Errorf("%s: collectives wait %d, their members %d", name, got, want)
	}
	var late int64
	for _, r := range in.Analysis.Stragglers.Ranks {
		late += r.Caused
	}
	if got := sum(t, tables["stragglers"]["caused_ns"]); got != late {
		t.Errorf("%s: stragglers caused %d, %d in the report", name, got, late)
	}
}

func sum(t *testing.T, values []string) (total int64) {
	t.Helper()
	for _, v := range values {
		if v == null {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}

const null = "\x00null"

// readAll reads the files of a table, each sorted by ts where it has one.
func readAll(t *testing.T, dir, path string, read func(*testing.T, string) map[string][]string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, path))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", path, err)
	}
	all := map[string][]string{}
	for _, f := range files {
		one := read(t, f)
		var ts []int64
		for _, v := range one["ts"] {
			n, _ := strconv.ParseInt(v, 10, 64)
			ts = append(ts, n)
		}
		if !slices.IsSorted(ts) {
			t.Errorf("%s is not sorted by ts", f)
		}
		for c, v := range one {
			all[c] = append(all[c], v...)
		}
	}
	return all
}

func readParquet(t *testing.T, name string) map[string][]string {
	t.Helper()
	r, err := file.OpenParquetFile(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	meta := r.MetaData().KeyValueMetadata()
	for _, key := range []string{"mixdown.schema_version", "mixdown.table", "mixdown.clocks_reason", "mixdown.diagnostics", "ARROW:schema"} {
		if meta.FindValue(key) == nil {
			t.Errorf("%s: no metadata %s", name, key)
		}
	}
	all := map[string][]string{}
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		for c := range group.NumColumns() {
			column, err := group.Column(c)
			if err != nil {
				t.Fatal(err)
			}
			all[column.Descriptor().Name()] = append(all[column.Descriptor().Name()], values(t, column, int(group.NumRows()))...)
		}
	}
	return all
}

func values(t *testing.T, column file.ColumnChunkReader, rows int) []string {
	t.Helper()
	levels := make([]int16, rows)
	var text []string
	var err error
	switch c := column.(type) {
	case *file.Int64ColumnChunkReader:
		v := make([]int64, rows)
		_, _, err = c.ReadBatch(int64(rows), v, levels, nil)
		for _, x := range v {
			text = append(text, strconv.FormatInt(x, 10))
		}
	case *file.ByteArrayColumnChunkReader:
		v := make([]parquet.ByteArray, rows)
		_, _, err = c.ReadBatch(int64(rows), v, levels, nil)
		for _, x := range v {
			text = append(text, string(x))
		}
	case *file.BooleanColumnChunkReader:
		v := make([]bool, rows)
		_, _, err = c.ReadBatch(int64(rows), v, levels, nil)
		for _, x := range v {
			text = append(text, strconv.FormatBool(x))
		}
	case *file.Float64ColumnChunkReader:
		v := make([]float64, rows)
		_, _, err = c.ReadBatch(int64(rows), v, levels, nil)
		for _, x := range v {
			text = append(text, strconv.FormatFloat(x, 'g', -1, 64))
		}
	default:
		t.Fatalf("column of type %T", column)
	}
	if err != nil {
		t.Fatal(err)
	}
	if column.Descriptor().MaxDefinitionLevel() == 0 {
		return text
	}
	out := make([]string, rows)
	k := 0
	for i, level := range levels {
		out[i] = null
		if level > 0 {
			out[i] = text[k]
			k++
		}
	}
	return out
}

func readArrow(t *testing.T, name string) map[string][]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if meta := r.Schema().Metadata(); meta.FindKey("mixdown.schema_version") < 0 {
		t.Errorf("%s: metadata %v", name, meta)
	}
	all := map[string][]string{}
	for i := range r.NumRecords() {
		record, err := r.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		for c, field := range record.Schema().Fields() {
			for k := range int(record.NumRows()) {
				all[field.Name] = append(all[field.Name], cell(t, record.Column(c), k))
			}
		}
	}
	return all
}

func cell(t *testing.T, a arrow.Array, i int) string {
	t.Helper()
	if a.IsNull(i) {
		return null
	}
	switch c := a.(type) {
	case *array.Dictionary:
		return c.Dictionary().(*array.String).Value(c.GetValueIndex(i))
	case *array.Int64:
		return strconv.FormatInt(c.Value(i), 10)
	case *array.Boolean:
		return strconv.FormatBool(c.Value(i))
	case *array.Float64:
		return strconv.FormatFloat(c.Value(i), 'g', -1, 64)
	}
	t.Fatalf("column of type %T", a)
	return ""
}
