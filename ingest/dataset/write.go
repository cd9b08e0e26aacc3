package dataset

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Writer writes a dataset rank by rank. Its methods may be called from several
// goroutines, but one process at a time may write a dataset, or the tasks of one
// job that each say which they are.
type Writer struct {
	at   Place
	tool string
	task Task
	tmp  string // folder for what is not finished

	earlier *metadata // of the dataset that is gone on with, nil of a new one

	mu     sync.Mutex
	whole  map[int]Entry
	world  int
	opened bool // the metadata says that the dataset is being written
}

// CreateOptions say who writes, and how.
type CreateOptions struct {
	Tool string // the program and its version
	// Fresh removes what the dataset holds first. Not for tasks: each would
	// remove what the others wrote.
	Fresh bool
	Task  Task
}

// Create begins a dataset, or goes on with the one that is there. The writer must
// be closed.
func Create(at Place, opts CreateOptions) (*Writer, error) {
	w := &Writer{at: at, tool: opts.Tool, task: opts.Task, whole: map[int]Entry{}}
	if opts.Fresh && !w.task.alone() {
		return nil, fmt.Errorf("%w: tasks that write together can't write again what is there: name a new place", ErrForeign)
	}
	there := Is(at)
	if !there {
		empty, err := at.empty()
		if err != nil {
			return nil, fmt.Errorf("write dataset: %w", err)
		}
		// Another task may have begun since.
		if there = !empty && Is(at); !empty && !there {
			return nil, fmt.Errorf("%w: %s is neither empty nor a dataset: name a new folder", ErrForeign, at)
		}
	}
	if there {
		if err := w.resume(opts.Fresh); err != nil {
			return nil, err
		}
	}
	if f, ok := at.(Folder); ok {
		for _, folder := range []string{incompleteFolder, markerFolder} {
			if err := os.MkdirAll(f.name(folder), 0o755); err != nil {
				return nil, fmt.Errorf("write dataset: %w", err)
			}
		}
	}
	var err error
	if w.tmp, err = at.staging(w.stagingName()); err != nil {
		return nil, fmt.Errorf("write dataset: %w", err)
	}
	if w.earlier != nil {
		return w, nil // as it is until something changes
	}
	w.opened = true
	if err := w.describe(false, nil); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// stagingName begins the name of the folder for what this process writes.
func (w *Writer) stagingName() string {
	if w.task.alone() {
		return "alone-"
	}
	return fmt.Sprintf("task=%d-of-%d-", w.task.Index, w.task.Count)
}

// Close removes what was not finished.
func (w *Writer) Close() error {
	if err := os.RemoveAll(w.tmp); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// resume takes over what an earlier process wrote.
func (w *Writer) resume(fresh bool) error {
	// What was being written is of no use: its marker never came.
	if err := w.clean(); err != nil {
		return err
	}
	if fresh {
		return w.empty()
	}
	m, err := readMetadata(w.at)
	if err != nil {
		return err
	}
	w.world, w.earlier = m.WorldSize, &m
	markers, err := readMarkers(w.at)
	if err != nil {
		return err
	}
	for _, m := range markers {
		w.whole[m.Rank] = m.entry()
	}
	return nil
}

// clean removes what an earlier process of this task left unfinished.
func (w *Writer) clean() error {
	f, ok := w.at.(Folder)
	if !ok {
		return nil // it was elsewhere
	}
	names, err := f.list(incompleteFolder)
	for _, n := range names {
		if w.task.alone() || strings.HasPrefix(n, w.stagingName()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.name(incompleteFolder), n)))
		}
	}
	if err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// empty removes all that a dataset holds, damaged or not.
func (w *Writer) empty() error {
	var err error
	if f, ok := w.at.(Folder); ok {
		for _, name := range append(Tables(), markerFolder, taskFolder) {
			err = errors.Join(err, os.RemoveAll(f.name(name)))
		}
	} else {
		// Markers first: what is left is no rank.
		var names []string
		if names, err = w.at.list(markerFolder); err == nil {
			for _, n := range names {
				if rank, ok := parseRank(n); ok {
					err = errors.Join(err, w.removeFiles(rank))
				}
			}
		}
		if names, listErr := w.at.list(taskFolder); listErr == nil {
			for _, n := range names {
				err = errors.Join(err, w.at.remove(path.Join(taskFolder, n)))
			}
		}
	}
	if err != nil {
		return fmt.Errorf("write dataset: %w", err)
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
	temporary, err := os.MkdirTemp(w.tmp, rankName(r.Rank)+"-")
	if err != nil {
		return Entry{}, fmt.Errorf("write dataset: %w", err)
	}
	defer os.RemoveAll(temporary)
	m := marker{SchemaVersion: SchemaVersion, Rank: r.Rank, World: r.Distributed.WorldSize, From: from, Files: map[string]part{}}
	for name, t := range tablesOf(r, groupsOf(r), &diags) {
		if m.Files[name], err = writeTable(filepath.Join(temporary, name), t); err != nil {
			return Entry{}, err
		}
	}
	return w.publish(m, temporary)
}

// publish moves the tables of a rank into place, its marker last.
func (w *Writer) publish(m marker, temporary string) (Entry, error) {
	if err := w.Remove(m.Rank); err != nil {
		return Entry{}, err
	}
	// At once: a store takes its time for each.
	failures := make([]error, len(Tables()))
	var wg sync.WaitGroup
	for i, table := range Tables() {
		wg.Go(func() { failures[i] = w.at.put(tablePath(table, m.Rank), filepath.Join(temporary, table)) })
	}
	wg.Wait()
	if err := cmp.Or(failures...); err != nil {
		return Entry{}, fmt.Errorf("write dataset: %w", err)
	}
	if err := w.putJSON(markerPath(m.Rank), m); err != nil {
		return Entry{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole[m.Rank] = m.entry()
	w.world = max(w.world, m.World)
	return m.entry(), nil
}

// Remove takes a rank out of the dataset.
func (w *Writer) Remove(rank int) error {
	w.mu.Lock()
	_, there := w.whole[rank]
	err := w.open()
	delete(w.whole, rank)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	// Of a rank that is not whole, tables may be left: they are put again, or
	// are no part of a rank.
	if _, onDisk := w.at.(Folder); !there && !onDisk {
		return nil
	}
	if err := w.removeFiles(rank); err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// open says that the dataset, and what this task wrote of it, is being written.
func (w *Writer) open() error {
	if w.opened {
		return nil
	}
	if err := w.describe(false, nil); err != nil {
		return err
	}
	if !w.task.alone() {
		if err := w.at.remove(manifestPath(w.task.Index, w.task.Count)); err != nil {
			return fmt.Errorf("write dataset: %w", err)
		}
	}
	w.opened = true
	return nil
}

// removeFiles deletes the marker first, so that what is left is no rank.
func (w *Writer) removeFiles(rank int) error {
	if err := w.at.remove(markerPath(rank)); err != nil {
		return err
	}
	for _, table := range Tables() {
		if err := w.at.remove(tablePath(table, rank)); err != nil {
			return err
		}
	}
	return nil
}

// Finish says that all was read, with the diagnostics that concern no rank of
// the dataset.
func (w *Writer) Finish(diags []diagnostic.Diagnostic) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	world := w.world
	for rank := range w.whole {
		world = max(world, rank+1)
	}
	for _, d := range Dialects() {
		if err := w.putFile(path.Join(viewFolder, string(d)+".sql"), []byte(Views(d, w.at, world))); err != nil {
			return err
		}
	}
	if err := w.describe(true, diags); err != nil {
		return err
	}
	w.opened = false
	// Other tasks may still use theirs.
	if f, ok := w.at.(Folder); ok && w.task.alone() {
		if err := os.RemoveAll(f.name(incompleteFolder)); err != nil {
			return fmt.Errorf("write dataset: %w", err)
		}
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
	return w.putJSON(MetadataFile, m)
}

// putJSON writes a small file.
func (w *Writer) putJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return w.putFile(path, append(data, '\n'))
}

// putFile writes a small file at once.
func (w *Writer) putFile(path string, data []byte) error {
	dir, err := os.MkdirTemp(w.tmp, "file-")
	if err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "file")
	if err = os.WriteFile(name, data, 0o644); err == nil {
		err = w.at.put(path, name)
	}
	if err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// tablesOf are all tables of a rank, to write or to read.
func tablesOf(r *trace.Rank, g *[]group, diags *[]diagnostic.Diagnostic) map[string]*table {
	return map[string]*table{
		eventsTable: events(r), operationsTable: operations(r), ranksTable: ranks(r), groupsTable: groups(g),
		stepsTable: steps(r), waitsTable: waits(r), eventWaitsTable: eventWaits(r), threadsTable: threads(r), diagnosticsTable: diagnostics(r.Rank, diags),
	}
}
