package trace

import "sync"

// Kept is what a rank knows of events that are not in memory all the time.
type Kept struct {
	mu     sync.Mutex
	store  EventStore
	users  int
	adjust []func(*Events) // what was done to the events, to be done again
}

// EventStore is where the events of ranks are that are not in memory all the time.
type EventStore interface {
	// LoadEvents appends the rank's events to Events, which is empty, and their
	// names to Names, where those of an earlier load still are.
	LoadEvents(*Rank) error
	// DropEvents tells that they are no longer in memory.
	DropEvents(*Rank)
}

// KeepEvents says that the events of a rank are in a store, and in memory only
// between Acquire and Release.
func (r *Rank) KeepEvents(in EventStore) { r.Kept = &Kept{store: in} }

// Acquire sees to it that the events of the rank are in memory until Release. Of a
// rank whose events are there all the time it does nothing. It may be called from
// several goroutines.
func (r *Rank) Acquire() error {
	if r.Kept == nil {
		return nil
	}
	r.Kept.mu.Lock()
	defer r.Kept.mu.Unlock()
	if r.Kept.users == 0 {
		if err := r.Kept.store.LoadEvents(r); err != nil {
			r.Events = Events{}
			return err
		}
		for _, f := range r.Kept.adjust {
			f(&r.Events)
		}
	}
	r.Kept.users++
	return nil
}

// Release ends what Acquire began.
func (r *Rank) Release() {
	if r.Kept == nil {
		return
	}
	r.Kept.mu.Lock()
	defer r.Kept.mu.Unlock()
	if r.Kept.users--; r.Kept.users == 0 {
		r.Events = Events{}
		r.Kept.store.DropEvents(r)
	}
}

// AdjustEvents changes the events of the rank, now or whenever they are loaded.
func (r *Rank) AdjustEvents(f func(*Events)) {
	if r.Kept == nil {
		f(&r.Events)
		return
	}
	r.Kept.mu.Lock()
	defer r.Kept.mu.Unlock()
	if r.Kept.users > 0 {
		f(&r.Events)
	}
	r.Kept.adjust = append(r.Kept.adjust, f)
}
