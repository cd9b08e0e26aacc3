package export_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"mixdown/analyze/export"
)

// names lists what is in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestFileIsWholeOrAbsent(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	failure := errors.New("disk on fire")
	fail := func(w io.Writer) error {
		_, _ = w.Write(make([]byte, 3<<20))
		return failure
	}
	if err := export.WriteFile(name, fail); !errors.Is(err, failure) {
		t.Fatalf("error %v", err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("a failed write left %v", left)
	}
	good := func(w io.Writer) error { _, err := io.WriteString(w, "whole"); return err }
	if err := export.WriteFile(name, good); err != nil {
		t.Fatal(err)
	}
	if err := export.WriteFile(name, fail); !errors.Is(err, failure) {
		t.Fatalf("error %v", err)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "whole" {
		t.Errorf("a failed write changed the file: %q, %v", data, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
	if err := export.WriteFile(link, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(name); string(data) != "new" {
		t.Errorf("what the link names holds %q", data)
	}
	if err := export.WriteFile(os.DevNull, good); err != nil {
		t.Errorf("a device: %v", err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatalf("the null device is gone: %v", err)
	}
}

func TestTargetsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign")
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(foreign, "mine.txt")
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"file in no folder":      export.CheckFile(filepath.Join(dir, "no", "a")),
		"file below a file":      export.CheckFile(filepath.Join(mine, "a")),
		"a folder as file":       export.CheckFile(foreign),
		"tables in no folder":    export.CheckFolder(filepath.Join(dir, "no", "a")),
		"tables in a full one":   export.CheckFolder(foreign),
		"tables in place a file": export.CheckFolder(mine),
	} {
		if !errors.Is(err, export.ErrTarget) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := errors.Join(export.CheckFile(filepath.Join(dir, "a")), export.CheckFolder(filepath.Join(dir, "b"))); err != nil {
		t.Error(err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("checking left %v", got)
	}
}

// TestTablesReplaceTablesOnly: an export takes the place of an earlier one, and
// never of anything else, not even of one beside which something was put.
func TestTablesReplaceTablesOnly(t *testing.T) {
	in := load(t, "world_36rank_bare")
	parent := t.TempDir()
	dir := filepath.Join(parent, "tables")
	for range 2 {
		if err := export.WriteParquet(context.Background(), dir, in); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, parent); len(got) != 1 {
		t.Errorf("beside the tables: %v", got)
	}
	if err := export.WriteArrow(context.Background(), dir, in); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*.parquet")); len(left) > 0 {
		t.Errorf("Parquet among Arrow: %v", left)
	}
	note := filepath.Join(dir, "notes.ipynb")
	if err := os.WriteFile(note, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := export.WriteParquet(context.Background(), dir, in); !errors.Is(err, export.ErrTarget) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(note); err != nil {
		t.Error(err)
	}
}

// TestStoppedTablesLeaveTheOldOnes: a cancelled export changes nothing.
func TestStoppedTablesLeaveTheOldOnes(t *testing.T) {
	in := load(t, "world_36rank_bare")
	parent := t.TempDir()
	dir := filepath.Join(parent, "tables")
	if err := export.WriteParquet(context.Background(), dir, in); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := export.WriteArrow(ctx, dir, in); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if got := names(t, parent); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
	if whole, _ := filepath.Glob(filepath.Join(dir, "*", "*.parquet")); len(whole) == 0 {
		t.Error("the old tables are gone")
	}
}
