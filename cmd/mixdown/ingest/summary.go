package ingest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/ingest/dataset"
	"mixdown/ingest/diagnostic"
)

// summary is what the command prints.
type summary struct {
	SchemaVersion int                 `json:"schema_version"`
	Dataset       string              `json:"dataset"`
	Ranks         []rankSummary       `json:"ranks"`
	Written       int                 `json:"ranks_written"`
	Unchanged     int                 `json:"ranks_unchanged"`
	Events        int                 `json:"events"`
	Operations    int                 `json:"operations"`
	SourceBytes   *int64              `json:"source_bytes"` // of the traces as stored; null when one is not known
	DatasetBytes  int64               `json:"dataset_bytes"`
	Diagnostics   []report.Diagnostic `json:"diagnostics"`
	Task          *task               `json:"task"` // null: this process reads everything
}

// task is one of several processes that write the dataset together. All else in
// the summary is of its share.
type task struct {
	Index    int    `json:"index"`
	Count    int    `json:"count"`
	From     string `json:"from"` // who says so
	Files    int    `json:"files"`
	AllFiles int    `json:"all_files"`
	// Complete: the dataset is. Else the tasks that are not done yet, and those
	// that found other files.
	Complete bool  `json:"complete"`
	Missing  []int `json:"missing"`
	Differ   []int `json:"differ"`
}

type rankSummary struct {
	Rank         int    `json:"rank"`
	Source       string `json:"source"`
	Events       int    `json:"events"`
	Operations   int    `json:"operations"`
	SourceBytes  *int64 `json:"source_bytes"`
	DatasetBytes int64  `json:"dataset_bytes"`
	Unchanged    bool   `json:"unchanged"`
}

// summarize looks at the dataset as it is now.
func summarize(j *job) (*summary, *diagnostic.Set, error) {
	d, err := dataset.Open(j.at)
	if err != nil {
		return nil, nil, err
	}
	entries := d.Entries()
	whole := d.Diagnostics
	if !j.part.Alone() {
		entries = slices.DeleteFunc(entries, func(e dataset.Entry) bool { return !slices.Contains(j.ranks, e.Rank) })
		whole = func() diagnostic.Set { return j.diags }
	}
	faults, err := faultsOf(d, entries, whole())
	if err != nil {
		return nil, nil, err
	}
	kept := map[string]bool{}
	for i, s := range j.sources {
		kept[s.Name] = j.unchanged[i]
	}
	s := &summary{SchemaVersion: 1, Dataset: j.at.String(), Ranks: []rankSummary{}, SourceBytes: new(int64), Diagnostics: report.Diagnostics(faults)}
	for _, e := range entries {
		r := rankSummary{Rank: e.Rank, Source: e.From.Source, Events: e.Events, Operations: e.Operations, DatasetBytes: e.Bytes, Unchanged: kept[e.From.Source]}
		if e.From.Size >= 0 {
			r.SourceBytes = &e.From.Size
		}
		s.add(r)
	}
	if !j.part.Alone() {
		s.Task = &task{Index: j.part.Index, Count: j.part.Count, From: j.part.From, Files: len(j.sources), AllFiles: len(j.all),
			Complete: j.waiting.Done(), Missing: append([]int{}, j.waiting.Missing...), Differ: append([]int{}, j.waiting.Differ...)}
	}
	return s, faults, nil
}

func (s *summary) add(r rankSummary) {
	s.Ranks = append(s.Ranks, r)
	s.Events += r.Events
	s.Operations += r.Operations
	s.DatasetBytes += r.DatasetBytes
	if r.Unchanged {
		s.Unchanged++
	} else {
		s.Written++
	}
	if r.SourceBytes == nil || s.SourceBytes == nil {
		s.SourceBytes = nil
	} else {
		*s.SourceBytes += *r.SourceBytes
	}
}

func (s *summary) write(opts *Options) error {
	if opts.Format == cli.JSON {
		enc := json.NewEncoder(opts.Streams.Out)
		enc.SetIndent("", " ")
		return enc.Encode(s)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d ranks (%d written, %d unchanged), %d events, %d communication operations\n",
		s.Dataset, len(s.Ranks), s.Written, s.Unchanged, s.Events, s.Operations)
	if s.SourceBytes != nil {
		fmt.Fprintf(&b, "%s of traces as %s of tables\n", mebibytes(*s.SourceBytes), mebibytes(s.DatasetBytes))
	} else {
		fmt.Fprintf(&b, "%s of tables\n", mebibytes(s.DatasetBytes))
	}
	if s.Task != nil {
		s.Task.write(&b)
	}
	if len(s.Diagnostics) > 0 {
		b.WriteString("\nDiagnostics\n")
		for _, d := range s.Diagnostics {
			fmt.Fprintf(&b, "  %s\n", d)
		}
	}
	_, err := opts.Streams.Out.Write([]byte(b.String()))
	return err
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// write says which task this is and what the dataset waits for.
func (t *task) write(b *strings.Builder) {
	fmt.Fprintf(b, "task %d of %d (%s): %d of %d files; ", t.Index, t.Count, t.From, t.Files, t.AllFiles)
	switch {
	case t.Complete:
		b.WriteString("all tasks are done: the dataset is complete\n")
	case len(t.Differ) > 0:
		fmt.Fprintf(b, "tasks %s found other files, or these in another state: run them again\n", numbers(t.Differ))
	default:
		fmt.Fprintf(b, "not done yet: tasks %s\n", numbers(t.Missing))
	}
}

// numbers lists the first of some numbers.
func numbers(list []int) string {
	const most = 8
	var words []string
	for _, n := range list[:min(len(list), most)] {
		words = append(words, strconv.Itoa(n))
	}
	if len(list) > most {
		words = append(words, fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(words, ", ")
}
