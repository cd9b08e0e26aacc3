package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mixdown/ingest/diagnostic"
)

// Provenance is what a rank was read from, and how. A rank whose provenance is
// the same need not be read again.
type Provenance struct {
	Tool            string `json:"tool"`                       // and version that read it
	Source          string `json:"source"`                     // as the user named it
	Size            int64  `json:"size"`                       // bytes of the source as stored, -1 when not known
	ModTime         int64  `json:"mod_time_ns"`                // of the source, ns since 1970; 0 when not known
	Version         string `json:"version,omitempty"`          // of an object, as its store calls it
	Flags           string `json:"flags,omitempty"`            // that change what is read from the same bytes
	ExecutionTraces string `json:"execution_traces,omitempty"` // what was joined to it
}

// Known tells whether a change of the source would show: that of standard input
// does not.
func (p Provenance) Known() bool { return p.Size >= 0 && (p.ModTime != 0 || p.Version != "") }

// Entry is a rank of a dataset that is whole.
type Entry struct {
	Rank int
	From Provenance
	// Events and Operations are how many rows the rank has in these tables.
	Events, Operations int
	Bytes              int64 // of all its files
}

// marker is the file that makes a rank whole.
type marker struct {
	SchemaVersion int             `json:"schema_version"`
	Rank          int             `json:"rank"`
	From          Provenance      `json:"from"`
	Files         map[string]part `json:"files"` // by table
}

func (m marker) entry() Entry {
	e := Entry{Rank: m.Rank, From: m.From, Events: m.Files[eventsTable].Rows, Operations: m.Files[operationsTable].Rows}
	for _, p := range m.Files {
		e.Bytes += p.Bytes
	}
	return e
}

// metadata is the content of MetadataFile.
type metadata struct {
	SchemaVersion int     `json:"schema_version"`
	Tool          string  `json:"tool"`
	Complete      bool    `json:"complete"` // all that was asked for was read
	WorldSize     int     `json:"world_size"`
	Ranks         []int   `json:"ranks"`
	Diagnostics   []fault `json:"diagnostics"` // those that concern no rank that is here
}

// fault is a diagnostic as the metadata has it.
type fault struct {
	Code    string `json:"code"`
	Rank    *int   `json:"rank"`
	Count   int64  `json:"count"`
	Offset  *int64 `json:"offset"`
	Example string `json:"example"`
}

func newFault(d diagnostic.Diagnostic) fault {
	f := fault{Code: d.Code, Count: d.Count, Example: d.Example}
	if d.Rank != diagnostic.NoRank {
		f.Rank = &d.Rank
	}
	if d.Offset != diagnostic.NoOffset {
		f.Offset = &d.Offset
	}
	return f
}

func (f fault) diagnostic() diagnostic.Diagnostic {
	d := diagnostic.Diagnostic{Code: f.Code, Rank: diagnostic.NoRank, Count: f.Count, Offset: diagnostic.NoOffset, Example: f.Example}
	if f.Rank != nil {
		d.Rank = *f.Rank
	}
	if f.Offset != nil {
		d.Offset = *f.Offset
	}
	return d
}

// maxJSON is how large a file of metadata may be.
const maxJSON = 64 << 20

// readJSON reads a small file into v.
func readJSON(name string, v any) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJSON))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// writeJSON writes v to a file of that name beside it, then renames it.
func writeJSON(name, temporary string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err == nil {
		err = os.WriteFile(temporary, append(data, '\n'), 0o644)
	}
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// readMetadata reads what a dataset is.
func readMetadata(dir string) (metadata, error) {
	var m metadata
	name := filepath.Join(dir, MetadataFile)
	err := readJSON(name, &m)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, fmt.Errorf("%w: %s has no %s: make one with mixdown ingest INPUT -o %s", ErrNotDataset, dir, MetadataFile, dir)
	case err != nil:
		return m, corrupt(name, "%v", err)
	case m.SchemaVersion == 0:
		return m, corrupt(name, "it does not say which version it is")
	}
	return m, checkVersion(dir, m.SchemaVersion, m.Tool)
}

func checkVersion(dir string, version int, tool string) error {
	switch {
	case version > SchemaVersion:
		return fmt.Errorf("%w: %s has schema version %d, made by %s; this mixdown reads version %d: use a newer mixdown, or ingest the traces again into another folder",
			ErrVersion, dir, version, tool, SchemaVersion)
	case version < SchemaVersion:
		return fmt.Errorf("%w: %s has schema version %d, made by %s; this mixdown reads version %d: run mixdown ingest --force to write it again",
			ErrVersion, dir, version, tool, SchemaVersion)
	}
	return nil
}

// readMarkers reads the markers of the ranks that are whole, by rank.
func readMarkers(dir string) ([]marker, error) {
	entries, err := os.ReadDir(filepath.Join(dir, markerFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var all []marker
	for _, e := range entries {
		rank, ok := parseRank(e.Name())
		if !ok {
			continue
		}
		name := markerPath(dir, rank)
		var m marker
		if err := readJSON(name, &m); err != nil {
			return nil, corrupt(name, "%v", err)
		}
		if m.Rank != rank {
			return nil, corrupt(name, "it is of rank %d", m.Rank)
		}
		if err := checkVersion(dir, m.SchemaVersion, m.From.Tool); err != nil {
			return nil, err
		}
		for _, table := range Tables() {
			if p, ok := m.Files[table]; !ok || p.Rows < 0 || p.Bytes < 0 {
				return nil, corrupt(name, "it does not describe the table %s", table)
			}
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b marker) int { return a.Rank - b.Rank })
	return all, nil
}
