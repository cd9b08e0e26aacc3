package ingest

import (
	"encoding/json"
	"fmt"
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
func summarize(dir string, j *job) (*summary, *diagnostic.Set, error) {
	d, err := dataset.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	faults, err := faultsOf(d)
	if err != nil {
		return nil, nil, err
	}
	kept := map[string]bool{}
	for i, s := range j.sources {
		kept[s.Name] = j.unchanged[i]
	}
	s := &summary{SchemaVersion: 1, Dataset: dir, Ranks: []rankSummary{}, SourceBytes: new(int64), Diagnostics: report.Diagnostics(faults)}
	for _, e := range d.Entries() {
		r := rankSummary{Rank: e.Rank, Source: e.From.Source, Events: e.Events, Operations: e.Operations, DatasetBytes: e.Bytes, Unchanged: kept[e.From.Source]}
		if e.From.Size >= 0 {
			r.SourceBytes = &e.From.Size
		}
		s.add(r)
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
