package synthetic

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"mixdown/ingest/kineto"
	"mixdown/ingest/source"
	"mixdown/ingest/trace"
)

// WriteFiles writes a run's traces to a folder, one file for each rank.
func WriteFiles(dir string, opts Options) (*Truth, error) {
	files := make([]*os.File, opts.withDefaults().Ranks)
	writers := make([]io.Writer, len(files))
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("rank%04d.pt.trace.json", i)))
		if err != nil {
			return nil, err
		}
		defer f.Close() // closing again does no harm
		files[i], writers[i] = f, f
	}
	truth, err := Generate(opts, writers)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return truth, nil
}

// Load writes a run's traces to a folder and reads them as any other run is.
func Load(dir string, opts Options) (*trace.Run, *Truth, error) {
	truth, err := WriteFiles(dir, opts)
	if err != nil {
		return nil, nil, err
	}
	files, err := source.Find([]string{dir}, source.Options{})
	if err != nil {
		return nil, nil, err
	}
	run, err := kineto.Load(context.Background(), files, kineto.Options{})
	return run, truth, err
}
