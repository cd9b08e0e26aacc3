package dataset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mixdown/ingest/dataset"
)

// Definitions in other people's engines are checked by check_readers.py; here, that
// they are of this place, of all tables, and written when the dataset is finished.
func TestViews(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's")
	run := load(t, "../../testdata/dp_moe_4rank/rank*.gz")
	w, err := dataset.Create(dataset.Folder(dir), dataset.CreateOptions{Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, r := range run.Ranks {
		if _, err := w.Write(r, nil, dataset.Provenance{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "_views")); err == nil {
		t.Error("views of a dataset that is not finished")
	}
	if err := w.Finish(nil); err != nil {
		t.Fatal(err)
	}
	for _, d := range dataset.Dialects() {
		data, err := os.ReadFile(filepath.Join(dir, "_views", string(d)+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for _, table := range dataset.Tables() {
			if !strings.Contains(text, strings.ReplaceAll(dir, "'", "''")+"/"+table) {
				t.Errorf("%s: no table %s of this place", d, table)
			}
		}
		if d == dataset.Athena && !strings.Contains(text, "'0,3'") {
			t.Errorf("%s does not look for ranks 0 to 3", d)
		}
	}
	if text := dataset.Views(dataset.Athena, dataset.At("s3://bucket/run.dataset/", nil), 8); !strings.Contains(text, "LOCATION 's3://bucket/run.dataset/events/'") ||
		!strings.Contains(text, "`transfers` array<struct<send:boolean,peer:bigint,elements:bigint>>") || strings.Contains(text, "`comms_id`") {
		t.Error(text)
	}
}
