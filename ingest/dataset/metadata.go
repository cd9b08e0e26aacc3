package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/remote"
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
	World         int             `json:"world_size,omitempty"` // as the rank's trace says
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
func readJSON(at Place, path string, v any) error {
	data, err := at.read(path, maxJSON)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// readMetadata reads what a dataset is.
func readMetadata(at Place) (metadata, error) {
	var m metadata
	dir, name := at.String(), at.name(MetadataFile)
	err := readJSON(at, MetadataFile, &m)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, fmt.Errorf("%w: %s has no %s: make one with mixdown ingest INPUT -o %s", ErrNotDataset, dir, MetadataFile, dir)
	case err != nil:
		return m, unread(name, err)
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
func readMarkers(at Place) ([]marker, error) {
	names, err := at.list(markerFolder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var found []int
	for _, name := range names {
		if rank, ok := parseRank(name); ok {
			found = append(found, rank)
		}
	}
	slices.Sort(found)
	all := make([]marker, len(found))
	failures := make([]error, len(found))
	var wg sync.WaitGroup
	slots := make(chan struct{}, markerReaders)
	for i, rank := range found {
		slots <- struct{}{}
		wg.Go(func() {
			all[i], failures[i] = readMarker(at, rank)
			<-slots
		})
	}
	wg.Wait()
	// Another task may have taken a rank out since it was listed.
	kept := all[:0]
	for i, err := range failures {
		switch {
		case err == nil:
			kept = append(kept, all[i])
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return kept, nil
}

// markerReaders is how many markers are read at once: of a store, each costs a
// request.
const markerReaders = 32

func readMarker(at Place, rank int) (marker, error) {
	var m marker
	name := at.name(markerPath(rank))
	if err := readJSON(at, markerPath(rank), &m); errors.Is(err, fs.ErrNotExist) {
		return m, err
	} else if err != nil {
		return m, unread(name, err)
	}
	if m.Rank != rank {
		return m, corrupt(name, "it is of rank %d", m.Rank)
	}
	if err := checkVersion(at.String(), m.SchemaVersion, m.From.Tool); err != nil {
		return m, err
	}
	for _, table := range Tables() {
		if p, ok := m.Files[table]; !ok || p.Rows < 0 || p.Bytes < 0 {
			return m, corrupt(name, "it does not describe the table %s", table)
		}
	}
	return m, nil
}

// unread tells a store that can't be reached from a file that is damaged.
func unread(name string, err error) error {
	for _, why := range []error{remote.ErrCredentials, remote.ErrDenied, remote.ErrUnavailable, context.Canceled} {
		if errors.Is(err, why) {
			return err
		}
	}
	return corrupt(name, "%v", err)
}
