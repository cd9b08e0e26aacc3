package dataset

import (
	"context"
	"fmt"
	"iter"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Dataset is a dataset that can be read, rank by rank.
type Dataset struct {
	at       Place
	metadata metadata
	markers  []marker // by rank
}

// Open reads what a dataset holds, not yet its tables.
func Open(at Place) (*Dataset, error) {
	m, err := readMetadata(at)
	if err != nil {
		return nil, err
	}
	markers, err := readMarkers(at)
	if err != nil {
		return nil, err
	}
	return &Dataset{at: at, metadata: m, markers: markers}, nil
}

// Complete tells whether all that was to be read into the dataset is there.
func (d *Dataset) Complete() bool {
	return d.metadata.Complete && !slices.ContainsFunc(d.metadata.Ranks, func(rank int) bool {
		_, ok := d.marker(rank)
		return !ok
	})
}

func (d *Dataset) marker(rank int) (marker, bool) {
	i, ok := slices.BinarySearchFunc(d.markers, rank, func(m marker, want int) int { return m.Rank - want })
	if !ok {
		return marker{}, false
	}
	return d.markers[i], true
}

// Entries lists the ranks that are whole, by rank.
func (d *Dataset) Entries() []Entry {
	all := make([]Entry, len(d.markers))
	for i, m := range d.markers {
		all[i] = m.entry()
	}
	return all
}

// Diagnostics are those that concern no rank of the dataset.
func (d *Dataset) Diagnostics() diagnostic.Set {
	var set diagnostic.Set
	for _, f := range d.metadata.Diagnostics {
		set.Add(f.diagnostic())
	}
	if !d.Complete() {
		set.Addf("dataset-incomplete", diagnostic.NoRank, diagnostic.NoOffset,
			"%s was not written to its end: it has %d ranks; run the same mixdown ingest again", d.at, len(d.markers))
	}
	return set
}

// Rank reads one rank, with the diagnostics about it.
func (d *Dataset) Rank(rank int) (*trace.Rank, []diagnostic.Diagnostic, error) {
	return d.read(rank, Tables())
}

// Communication reads a rank without its events: what it communicated, in how
// many bytes and when.
func (d *Dataset) Communication(rank int) (*trace.Rank, []diagnostic.Diagnostic, error) {
	return d.read(rank, slices.DeleteFunc(Tables(), func(t string) bool { return t == eventsTable }))
}

// Faults reads the diagnostics about one rank alone.
func (d *Dataset) Faults(rank int) ([]diagnostic.Diagnostic, error) {
	if m, ok := d.marker(rank); ok && m.Files[diagnosticsTable].Rows == 0 {
		return nil, nil
	}
	_, diags, err := d.read(rank, []string{diagnosticsTable})
	return diags, err
}

func (d *Dataset) read(rank int, tables []string) (*trace.Rank, []diagnostic.Diagnostic, error) {
	m, ok := d.marker(rank)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %s has no rank %d", ErrNotDataset, d.at, rank)
	}
	r := &trace.Rank{Rank: rank, Names: trace.NewStrings()}
	var g []group
	var diags []diagnostic.Diagnostic
	all := tablesOf(r, &g, &diags)
	_, onDisk := d.at.(Folder)
	for _, name := range tables {
		if !onDisk && m.Files[name].Rows == 0 {
			continue // a request for nothing
		}
		if err := readTable(d.at, tablePath(name, rank), m.Files[name], all[name]); err != nil {
			return nil, nil, err
		}
	}
	if err := takeGroups(g, r); err != nil {
		return nil, nil, corrupt(d.at.name(tablePath(groupsTable, rank)), "%v", err)
	}
	if err := check(r, m.Files[eventsTable].Rows); err != nil {
		return nil, nil, corrupt(d.at.name(path.Join("*", rankName(rank))), "%v", err)
	}
	return r, diags, nil
}

// ranked reads a rank without its events, which it loads when they are needed.
func (d *Dataset) ranked(rank int) (*trace.Rank, []diagnostic.Diagnostic, error) {
	r, diags, err := d.Communication(rank)
	if err != nil {
		return nil, nil, err
	}
	r.KeepEvents(d)
	return r, diags, nil
}

// LoadEvents implements trace.EventStore.
func (d *Dataset) LoadEvents(r *trace.Rank) error {
	m, ok := d.marker(r.Rank)
	if !ok {
		return fmt.Errorf("%w: %s has no rank %d", ErrNotDataset, d.at, r.Rank)
	}
	if err := readTable(d.at, tablePath(eventsTable, r.Rank), m.Files[eventsTable], events(r)); err != nil {
		return err
	}
	if err := check(r, m.Files[eventsTable].Rows); err != nil {
		return corrupt(d.at.name(path.Join("*", rankName(r.Rank))), "%v", err)
	}
	return nil
}

// DropEvents implements trace.EventStore.
func (d *Dataset) DropEvents(*trace.Rank) {}

// All iterates over the ranks, holding one at a time. It ends with the first
// error.
func (d *Dataset) All() iter.Seq2[*trace.Rank, error] {
	return func(yield func(*trace.Rank, error) bool) {
		for _, m := range d.markers {
			r, _, err := d.Rank(m.Rank)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Read reads a whole dataset as a run. progress, when not nil, is called after
// each rank, from several goroutines, with how many are read.
func Read(ctx context.Context, at Place, progress func(done, total int)) (*trace.Run, error) {
	return read(ctx, at, progress, (*Dataset).Rank)
}

// ReadKept is Read without the events, which are loaded when they are acquired and
// forgotten when they are released; see trace.Rank. Of a run of any size only the
// communication is in memory all the time.
func ReadKept(ctx context.Context, at Place, progress func(done, total int)) (*trace.Run, error) {
	return read(ctx, at, progress, (*Dataset).ranked)
}

func read(ctx context.Context, at Place, progress func(done, total int), one func(*Dataset, int) (*trace.Rank, []diagnostic.Diagnostic, error)) (*trace.Run, error) {
	d, err := Open(at)
	if err != nil {
		return nil, err
	}
	if len(d.markers) == 0 {
		return nil, fmt.Errorf("%w: no rank in %s is whole: run mixdown ingest again", ErrEmpty, at)
	}
	n := len(d.markers)
	run := &trace.Run{Ranks: make([]*trace.Rank, n), Diagnostics: d.Diagnostics()}
	diags := make([][]diagnostic.Diagnostic, n)
	failures := make([]error, n)
	var next, done atomic.Int64
	lists := &lists{}
	var wg sync.WaitGroup
	readers := runtime.GOMAXPROCS(0)
	if _, onDisk := at.(Folder); !onDisk {
		readers = max(readers, markerReaders) // most of the time they wait for the store
	}
	for range min(n, readers) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				run.Ranks[i], diags[i], failures[i] = one(d, d.markers[i].Rank)
				if failures[i] == nil {
					lists.share(run.Ranks[i])
				}
				if progress != nil {
					progress(int(done.Add(1)), n)
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i := range n {
		if failures[i] != nil {
			return nil, failures[i]
		}
		for _, f := range diags[i] {
			run.Diagnostics.Add(f)
		}
	}
	return run, nil
}
