package breakdown_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mixdown/analyze/breakdown"
	"mixdown/analyze/overlap"
	"mixdown/ingest/kineto"
	"mixdown/ingest/source"
)

// TestRealTraces: whatever a trace holds, its steps add up. Traces of others are
// looked for in MIXDOWN_CORPUS.
func TestRealTraces(t *testing.T) {
	folders := map[string]bool{}
	for _, top := range []string{"../../testdata", os.Getenv("MIXDOWN_CORPUS")} {
		if top == "" {
			t.Log("MIXDOWN_CORPUS is not set: only testdata is read")
			continue
		}
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".json.gz")) {
				folders[filepath.Dir(path)] = true
			}
			return nil
		})
	}
	checked := 0
	for folder := range folders {
		files, err := source.Find([]string{folder}, source.Options{})
		if err != nil {
			continue
		}
		run, err := kineto.Load(context.Background(), files, kineto.Options{})
		if err != nil {
			continue // no traces, or several runs in one folder
		}
		j := prepare(run)
		b := breakdown.Analyze(run, j.match, j.clocks)
		for r, rank := range run.Ranks {
			checked++
			got, want := b.Ranks[r].Total(), breakdown.Times(overlap.Measure(rank).Times())
			if got != want {
				t.Errorf("%s, rank %d:\n%+v, want\n%+v", folder, rank.Rank, got, want)
			}
			count := 0
			for _, row := range b.Rows {
				if row.Hidden < 0 || row.Exposed < 0 {
					t.Errorf("%s: %+v", folder, row)
				}
				count += row.Count
			}
			ops := 0
			for _, other := range run.Ranks {
				ops += len(other.Operations)
			}
			if count != ops {
				t.Errorf("%s: %d operations in the rows, %d in the run", folder, count, ops)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d ranks checked", checked)
	}
}
