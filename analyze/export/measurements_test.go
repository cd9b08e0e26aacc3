package export_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/google/go-cmp/cmp"

	"mixdown/analyze/export"
)

// TestMeasurements reads measurements back: what is not known is null, not 0.
func TestMeasurements(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.parquet")
	rows := []export.Measurement{
		{Backend: "nccl", Variant: "ring/ll", Op: "all_reduce", DType: "float32", Device: "gpu", Ranks: 8, Nodes: 1, In: 8, Out: 8, Streams: 1, Time: 9000, Statistic: "mean", Min: 8000, N: 20, Source: "nccl-tests", Verified: true},
		{Backend: "gloo", Op: "barrier", Device: "host", Ranks: 2, Streams: 1, Time: 5, Statistic: "median", InPlace: true},
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := export.WriteMeasurements(f, rows); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := file.OpenParquetFile(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := map[string][]string{}
	group := r.RowGroup(0)
	for c := range group.NumColumns() {
		column, err := group.Column(c)
		if err != nil {
			t.Fatal(err)
		}
		got[column.Descriptor().Name()] = values(t, column, int(group.NumRows()))
	}
	for column, want := range map[string][]string{
		"backend": {"nccl", "gloo"}, "variant": {"ring/ll", null}, "nodes": {"1", null}, "in_bytes": {"8", "0"}, "time_ns": {"9000", "5"},
		"min_ns": {"8000", null}, "p95_ns": {null, null}, "n": {"20", null}, "verified": {"true", "false"}, "in_place": {"false", "true"}, "dtype": {"float32", null},
	} {
		if diff := cmp.Diff(want, got[column]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", column, diff)
		}
	}
}
