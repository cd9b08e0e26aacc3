package kinetotest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"mixdown/ingest/kineto"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// Load reads the traces of a folder, file or glob as one run.
func Load(tb testing.TB, path string) *trace.Run {
	tb.Helper()
	files, err := source.Find([]string{path}, source.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	run, err := kineto.Load(context.Background(), files, kineto.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return run
}

// Corpus returns the path of other people's traces below their folder; the test is
// skipped where there is none.
func Corpus(tb testing.TB, path ...string) string {
	tb.Helper()
	dir := os.Getenv("MIXDOWN_CORPUS")
	if dir == "" {
		tb.Skip("MIXDOWN_CORPUS is not set: the traces this test reads are not part of the project")
	}
	return filepath.Join(append([]string{dir}, path...)...)
}
