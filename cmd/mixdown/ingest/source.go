package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mixdown/ingest/dataset"
	"mixdown/ingest/remote"
	"mixdown/ingest/share"
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
	if remote.Is(dir) {
		files = slices.DeleteFunc(files, func(f source.File) bool { return strings.HasPrefix(f.Name, remote.Join(dir, "")) })
	} else if own, err := filepath.Abs(dir); err == nil {
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

// shareOf are the files of one task.
func shareOf(all []traceFile, part share.Share) []traceFile {
	own := make([]traceFile, 0, part.Of(len(all)))
	for i, f := range all {
		if part.Has(i) {
			own = append(own, f)
		}
	}
	return own
}

// fingerprint is the same for lists of the same files in the same state.
func fingerprint(all []traceFile) string {
	sum := sha256.New()
	for _, f := range all {
		fmt.Fprintf(sum, "%q %d %d %q %q\n", f.Name, f.from.Size, f.from.ModTime, f.from.Version, f.from.Flags)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
