package export

import (
	"bytes"
	"math"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/parquet/file"
)

// manyRows is a sheet of several row groups, with text that comes up late, a
// column without any value, and extreme integers.
func manyRows(n int) *sheet {
	return &sheet{rows: n, meta: map[string]string{"k": "v"}, columns: []sheetColumn{
		{name: "ts", kind: integers, integer: func(i int) (int64, bool) { return int64(i) * 1000, true }},
		{name: "word", kind: texts, nullable: true, text: func(i int) (string, bool) { return "w" + strconv.Itoa(i/1000), i%3 > 0 }},
		{name: "none", kind: texts, nullable: true, text: func(int) (string, bool) { return "", false }},
		{name: "empty", kind: integers, nullable: true, integer: func(int) (int64, bool) { return 0, false }},
		{name: "extreme", kind: integers, integer: func(i int) (int64, bool) { return []int64{math.MinInt64, math.MaxInt64, 0}[i%3], true }},
		{name: "flag", kind: truths, truth: func(i int) (bool, bool) { return i%2 > 0, true }},
		{name: "share", kind: floats, nullable: true, float: func(i int) (float64, bool) { return float64(i) / 3, i%5 > 0 }},
	}}
}

func TestSeveralRowGroups(t *testing.T) {
	const n = 2*groupRows + 7
	s := manyRows(n)
	var b bytes.Buffer
	if err := writeParquet(&b, s); err != nil {
		t.Fatal(err)
	}
	r, err := file.NewParquetReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if r.NumRows() != n || r.NumRowGroups() != 3 {
		t.Errorf("%d rows in %d groups", r.NumRows(), r.NumRowGroups())
	}
	i := 0
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		column, err := group.Column(4)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]int64, group.NumRows())
		if _, _, err := column.(*file.Int64ColumnChunkReader).ReadBatch(int64(len(values)), values, nil, nil); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if want, _ := s.columns[4].integer(i); v != want {
				t.Fatalf("row %d is %d, want %d", i, v, want)
			}
			i++
		}
		words, err := group.MetaData().ColumnChunk(1)
		if err != nil {
			t.Fatal(err)
		}
		if !words.HasDictionaryPage() {
			t.Errorf("row group %d has text without a dictionary", g)
		}
	}
}

func TestSeveralRecordBatches(t *testing.T) {
	const n = 2*groupRows + 7
	s := manyRows(n)
	var b bytes.Buffer
	if err := writeArrow(&b, s); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewFileReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	i := 0
	for k := range r.NumRecords() {
		record, err := r.Record(k)
		if err != nil {
			t.Fatal(err)
		}
		words := record.Column(1).(*array.Dictionary)
		for row := range int(record.NumRows()) {
			want, ok := s.columns[1].text(i)
			if words.IsNull(row) == ok || ok && words.Dictionary().(*array.String).Value(words.GetValueIndex(row)) != want {
				t.Fatalf("row %d of the file is wrong", i)
			}
			i++
		}
	}
	if i != n {
		t.Errorf("%d rows of %d", i, n)
	}
}

// TestNoRows: a table of nothing is a file all the same.
func TestNoRows(t *testing.T) {
	s := manyRows(0)
	var p, a bytes.Buffer
	if err := writeParquet(&p, s); err != nil {
		t.Fatal(err)
	}
	if err := writeArrow(&a, s); err != nil {
		t.Fatal(err)
	}
	if r, err := file.NewParquetReader(bytes.NewReader(p.Bytes())); err != nil || r.NumRows() != 0 || r.MetaData().Schema.NumColumns() != len(s.columns) {
		t.Errorf("parquet: %v", err)
	}
	if r, err := ipc.NewFileReader(bytes.NewReader(a.Bytes())); err != nil || len(r.Schema().Fields()) != len(s.columns) {
		t.Errorf("arrow: %v", err)
	}
}
