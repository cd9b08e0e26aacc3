package readme_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mixdown/ingest/readme"
)

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	const other = "before\n<!-- a: go test -->\n\nold\n\n<!-- end -->\nafter\n<!-- b -->\n<!-- end -->\n"
	if err := os.WriteFile(path, []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := readme.Table(path, "a: go test", "new\n", false); !errors.Is(err, readme.ErrOther) {
		t.Errorf("another table: %v", err)
	}
	if err := readme.Table(path, "c", "new\n", true); err == nil || errors.Is(err, readme.ErrOther) {
		t.Errorf("no marks: %v", err)
	}
	for _, update := range []bool{true, false} {
		if err := readme.Table(path, "a: go test", "new\n", update); err != nil {
			t.Error(err)
		}
	}
	const want = "before\n<!-- a: go test -->\n\nnew\n\n<!-- end -->\nafter\n<!-- b -->\n<!-- end -->\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%v: %q", err, got)
	}
}
