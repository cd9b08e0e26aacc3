package ingest

import (
	"path/filepath"
	"slices"
	"strings"

	"mixdown/ingest/dataset"
	"mixdown/ingest/source"
)

// traceFile is a trace file and how its state is recorded.
type traceFile struct {
	source.File
	from dataset.Provenance
}

// describe looks at the files as they are before they are read, so that a
// change while they are read shows the next time. Files in dir are left out.
func describe(files []source.File, dir, flags string) []traceFile {
	own, err := filepath.Abs(dir)
	if err == nil {
		files = slices.DeleteFunc(files, func(f source.File) bool {
			abs, err := filepath.Abs(f.Name)
			return err == nil && strings.HasPrefix(abs, own+string(filepath.Separator))
		})
	}
	all := make([]traceFile, len(files))
	for i, f := range files {
		all[i] = traceFile{f, dataset.Provenance{Source: f.Name, Size: f.Size, ModTime: f.Modified, Version: f.Version, Flags: flags}}
	}
	return all
}
