package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"sync"

	"mixdown/ingest/diagnostic"
)

// Task is one of several processes that write a dataset together, each its share
// of the files. The zero value is a process that writes alone.
//
// Tasks do not talk to each other. Each leaves a manifest when its share is
// written, and the one that finds the manifests of all says that the dataset is
// complete. A task that is run again goes on where it was.
type Task struct {
	Index, Count int
	// Listing is the same for all tasks that found the same files in the same
	// state: shares of different lists would leave files out.
	Listing string
	// Files is how many files are this task's share.
	Files int
}

// alone tells that there are no other tasks.
func (t Task) alone() bool { return t.Count <= 1 }

// manifest is what a task leaves.
type manifest struct {
	SchemaVersion int       `json:"schema_version"`
	Tool          string    `json:"tool"`
	Task          int       `json:"task"`
	Tasks         int       `json:"tasks"`
	Listing       string    `json:"listing"` // of all files, not of the task's alone
	Files         int       `json:"files"`   // of the task
	Ranks         []written `json:"ranks"`
	Diagnostics   []fault   `json:"diagnostics"` // those that concern no rank
}

// written is a rank that a task wrote, or found written.
type written struct {
	Rank   int    `json:"rank"`
	Source string `json:"source"`
}

func manifestPath(index, count int) string {
	return path.Join(taskFolder, "task="+strconv.Itoa(index)+"-of-"+strconv.Itoa(count)+".json")
}

// ErrTwice: two tasks wrote the same rank from different files.
var ErrTwice = errors.New("two files claim the same rank")

// Waiting are the tasks whose manifests are missing, or are of another list of
// files; none when the dataset is complete.
type Waiting struct{ Missing, Differ []int }

// Done tells that there is nothing to wait for.
func (w Waiting) Done() bool { return len(w.Missing)+len(w.Differ) == 0 }

// FinishTask leaves the task's manifest, with the ranks of its share and the
// diagnostics that concern no rank. When all tasks have left theirs, it finishes
// the dataset.
func (w *Writer) FinishTask(ranks []int, diags []diagnostic.Diagnostic) (Waiting, error) {
	m := manifest{SchemaVersion: SchemaVersion, Tool: w.tool, Task: w.task.Index, Tasks: w.task.Count, Listing: w.task.Listing,
		Files: w.task.Files, Ranks: []written{}, Diagnostics: []fault{}}
	w.mu.Lock()
	for _, rank := range slices.Sorted(slices.Values(ranks)) {
		m.Ranks = append(m.Ranks, written{rank, w.whole[rank].From.Source})
	}
	w.mu.Unlock()
	for _, d := range diags {
		m.Diagnostics = append(m.Diagnostics, newFault(d))
	}
	if err := w.putJSON(manifestPath(m.Task, m.Tasks), m); err != nil {
		return Waiting{}, err
	}
	all, waiting, err := w.manifests()
	if err != nil || !waiting.Done() {
		return waiting, err
	}
	return waiting, w.finishAll(all)
}

// manifests reads those of all tasks.
func (w *Writer) manifests() ([]manifest, Waiting, error) {
	var waiting Waiting
	all := make([]manifest, w.task.Count)
	failures := make([]error, w.task.Count)
	var wg sync.WaitGroup
	slots := make(chan struct{}, markerReaders)
	for i := range all {
		slots <- struct{}{}
		wg.Go(func() {
			failures[i] = readJSON(w.at, manifestPath(i, w.task.Count), &all[i])
			<-slots
		})
	}
	wg.Wait()
	for i, err := range failures {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			waiting.Missing = append(waiting.Missing, i)
		case err != nil:
			return nil, waiting, unread(w.at.name(manifestPath(i, w.task.Count)), err)
		case all[i].Listing != w.task.Listing || all[i].Tool != w.tool || all[i].Task != i || all[i].Tasks != w.task.Count:
			waiting.Differ = append(waiting.Differ, i)
		}
	}
	return all, waiting, nil
}

// finishAll writes the metadata that all manifests add up to. Two tasks may both
// do it: they write the same.
func (w *Writer) finishAll(all []manifest) error {
	sources := map[int]string{}
	var diags []diagnostic.Diagnostic
	for _, m := range all {
		for _, r := range m.Ranks {
			if have, ok := sources[r.Rank]; ok {
				return fmt.Errorf("%w: rank %d is claimed by %s and by %s: keep one of them, or name ranks with --ranks-from, and write another dataset",
					ErrTwice, r.Rank, min(have, r.Source), max(have, r.Source))
			}
			sources[r.Rank] = r.Source
		}
		for _, f := range m.Diagnostics {
			diags = append(diags, f.diagnostic())
		}
	}
	markers, err := readMarkers(w.at)
	if err != nil {
		return err
	}
	w.mu.Lock()
	clear(w.whole)
	for _, m := range markers {
		w.whole[m.Rank], w.world = m.entry(), max(w.world, m.World)
	}
	for rank := range sources {
		if _, ok := w.whole[rank]; !ok {
			w.mu.Unlock()
			return fmt.Errorf("%w: rank %d was written and is gone: run the tasks again", ErrCorrupt, rank)
		}
	}
	w.mu.Unlock()
	return w.Finish(diags)
}
