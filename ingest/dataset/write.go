package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Writer writes a dataset rank by rank. Its methods may be called from several
// goroutines, but one process at a time may write a dataset.
type Writer struct {
	dir  string
	tool string

	earlier *metadata // of the dataset that is gone on with, nil of a new one

	mu     sync.Mutex
	whole  map[int]Entry
	world  int
	opened bool // the metadata says that the dataset is being written
}

// Create begins a dataset in dir, or goes on with the one that is there. With
// fresh, what the dataset holds is removed first. tool is the program and
// version that writes.
func Create(dir, tool string, fresh bool) (*Writer, error) {
	w := &Writer{dir: dir, tool: tool, whole: map[int]Entry{}}
	if Is(dir) {
		if err := w.resume(fresh); err != nil {
			return nil, err
		}
	} else if err := checkEmpty(dir); err != nil {
		return nil, err
	}
	for _, folder := range []string{"", incompleteFolder, markerFolder} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, fmt.Errorf("write dataset: %w", err)
		}
	}
	if w.earlier != nil {
		return w, nil // as it is until something changes
	}
	w.opened = true
	return w, w.describe(false, nil)
}

// resume takes over what an earlier process wrote.
func (w *Writer) resume(fresh bool) error {
	// What was being written is of no use: its marker never came.
	stale := []string{incompleteFolder}
	if fresh {
		stale = append(Tables(), incompleteFolder, markerFolder)
	}
	if !fresh {
		m, err := readMetadata(w.dir)
		if err != nil {
			return err
		}
		w.world, w.earlier = m.WorldSize, &m
		markers, err := readMarkers(w.dir)
		if err != nil {
			return err
		}
		for _, m := range markers {
			w.whole[m.Rank] = m.entry()
		}
	}
	for _, name := range stale {
		if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
			return fmt.Errorf("write dataset: %w", err)
		}
	}
	return nil
}

// checkEmpty refuses a folder of something else.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("write dataset: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("%w: %s is neither empty nor a dataset: name a new folder", ErrForeign, dir)
	}
	return nil
}

// Earlier returns the diagnostics that the dataset had when it was last
// finished; it reports false for one that is new or was not.
func (w *Writer) Earlier() ([]diagnostic.Diagnostic, bool) {
	if w.earlier == nil || !w.earlier.Complete {
		return nil, false
	}
	var diags []diagnostic.Diagnostic
	for _, f := range w.earlier.Diagnostics {
		diags = append(diags, f.diagnostic())
	}
	return diags, true
}

// Entries lists the ranks that are whole, by rank.
func (w *Writer) Entries() []Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entries()
}

func (w *Writer) entries() []Entry {
	return slices.SortedFunc(maps.Values(w.whole), func(a, b Entry) int { return a.Rank - b.Rank })
}

// Write writes a rank with the diagnostics about it, in place of what the
// dataset has of this rank.
func (w *Writer) Write(r *trace.Rank, diags []diagnostic.Diagnostic, from Provenance) (Entry, error) {
	if r.Rank < 0 {
		return Entry{}, fmt.Errorf("write dataset: %s has no rank", r.Source)
	}
	from.Tool = w.tool
	temporary, err := os.MkdirTemp(filepath.Join(w.dir, incompleteFolder), rankName(r.Rank)+"-")
	if err != nil {
		return Entry{}, fmt.Errorf("write dataset: %w", err)
	}
	defer os.RemoveAll(temporary)
	m := marker{SchemaVersion: SchemaVersion, Rank: r.Rank, From: from, Files: map[string]part{}}
	for name, t := range tablesOf(r, groupsOf(r), &diags) {
		if err := os.Mkdir(filepath.Join(temporary, name), 0o755); err != nil {
			return Entry{}, fmt.Errorf("write dataset: %w", err)
		}
		if m.Files[name], err = writeTable(filepath.Join(temporary, name, partName), t); err != nil {
			return Entry{}, err
		}
	}
	return w.publish(m, temporary, r.Distributed.WorldSize)
}

// publish moves the tables of a rank into place, its marker last.
func (w *Writer) publish(m marker, temporary string, world int) (Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.remove(m.Rank); err != nil {
		return Entry{}, err
	}
	for _, table := range Tables() {
		err := os.MkdirAll(filepath.Join(w.dir, table), 0o755)
		if err == nil {
			err = os.Rename(filepath.Join(temporary, table), filepath.Join(w.dir, table, rankName(m.Rank)))
		}
		if err != nil {
			return Entry{}, fmt.Errorf("write dataset: %w", err)
		}
	}
	if err := writeJSON(markerPath(w.dir, m.Rank), filepath.Join(temporary, "marker"), m); err != nil {
		return Entry{}, err
	}
	w.whole[m.Rank] = m.entry()
	w.world = max(w.world, world)
	return m.entry(), nil
}

// Remove takes a rank out of the dataset.
func (w *Writer) Remove(rank int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.remove(rank)
}

// remove deletes the marker first, so that what is left is no rank.
func (w *Writer) remove(rank int) error {
	if !w.opened {
		if err := w.describe(false, nil); err != nil {
			return err
		}
		w.opened = true
	}
	delete(w.whole, rank)
	if err := os.Remove(markerPath(w.dir, rank)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write dataset: %w", err)
	}
	for _, table := range Tables() {
		if err := os.RemoveAll(filepath.Join(w.dir, table, rankName(rank))); err != nil {
			return fmt.Errorf("write dataset: %w", err)
		}
	}
	return nil
}

// Finish says that all was read, with the diagnostics that concern no rank of
// the dataset.
func (w *Writer) Finish(diags []diagnostic.Diagnostic) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.describe(true, diags); err != nil {
		return err
	}
	w.opened = false
	if err := os.RemoveAll(filepath.Join(w.dir, incompleteFolder)); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// describe writes the metadata, as of the ranks that are whole now.
func (w *Writer) describe(complete bool, diags []diagnostic.Diagnostic) error {
	m := metadata{SchemaVersion: SchemaVersion, Tool: w.tool, Complete: complete, WorldSize: w.world, Ranks: []int{}, Diagnostics: []fault{}}
	for _, e := range w.entries() {
		m.Ranks = append(m.Ranks, e.Rank)
		m.WorldSize = max(m.WorldSize, e.Rank+1)
	}
	for _, d := range diags {
		m.Diagnostics = append(m.Diagnostics, newFault(d))
	}
	return writeJSON(filepath.Join(w.dir, MetadataFile), filepath.Join(w.dir, incompleteFolder, MetadataFile), m)
}

// tablesOf are all tables of a rank, to write or to read.
func tablesOf(r *trace.Rank, g *[]group, diags *[]diagnostic.Diagnostic) map[string]*table {
	return map[string]*table{
		eventsTable: events(r), operationsTable: operations(r), ranksTable: ranks(r), groupsTable: groups(g),
		stepsTable: steps(r), waitsTable: waits(r), threadsTable: threads(r), diagnosticsTable: diagnostics(r.Rank, diags),
	}
}
