package analyze

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"mixdown/analyze/report"
	"mixdown/ingest/chrome"
	"mixdown/ingest/commslog"
	"mixdown/ingest/source"
)

// loggerReport is what the analysis of a log of DeepSpeed's comms logger writes
// as JSON. The log has totals, not a timeline.
type loggerReport struct {
	SchemaVersion int                 `json:"schema_version"`
	Source        string              `json:"source"`
	Tables        []loggerTable       `json:"comms_log"`
	Calls         int                 `json:"calls"` // verbose lines
	Diagnostics   []report.Diagnostic `json:"diagnostics"`
}

type loggerTable struct {
	Rank      *int        `json:"rank"`
	WorldSize *int        `json:"world_size"`
	Rows      []loggerRow `json:"rows"`
}

type loggerRow struct {
	Op     string `json:"op"`
	Name   string `json:"name"`
	Caller string `json:"caller"`
	// Bounds of the logged message size; they differ where the log rounds it.
	SizeLo int64  `json:"size_from_bytes"`
	SizeHi int64  `json:"size_to_bytes"`
	Count  int64  `json:"count"`
	Total  *int64 `json:"total_ns"`
	Avg    *int64 `json:"avg_ns"`
}

// analyzeLog analyses the input as a log of DeepSpeed's comms logger, after it
// was found to be no trace. It reports false when it is no log either.
func analyzeLog(ctx context.Context, opts *Options, notTrace error) (bool, error) {
	if len(opts.Input.Args) != 1 || !errors.Is(notTrace, chrome.ErrNotJSON) && !errors.Is(notTrace, chrome.ErrNotTrace) {
		return false, nil
	}
	files, err := source.Find(opts.Input.Args, source.Options{Remote: opts.Input.Remote(ctx)})
	if err != nil || len(files) != 1 {
		return false, nil
	}
	f, err := files[0].Open()
	if err != nil {
		return false, nil
	}
	defer f.Close()
	log, err := commslog.Read(f, files[0].Name, commslog.Options{})
	if err != nil {
		return false, nil
	}
	r := describeLog(log)
	if opts.Format == "json" {
		enc := json.NewEncoder(opts.Streams.Out)
		enc.SetIndent("", " ")
		err = enc.Encode(r)
	} else {
		err = r.writeText(opts.Streams.Out, opts.Wide)
	}
	if err != nil {
		return true, fmt.Errorf("write result: %w", err)
	}
	return true, opts.Input.Refuse(&log.Diagnostics)
}

func describeLog(log *commslog.Log) *loggerReport {
	r := &loggerReport{
		SchemaVersion: report.SchemaVersion, Source: log.Source, Tables: []loggerTable{}, Calls: len(log.Calls),
		Diagnostics: report.Diagnostics(&log.Diagnostics),
	}
	for _, t := range log.Tables {
		table := loggerTable{Rows: []loggerRow{}}
		if t.RankKnown {
			table.Rank = &t.Rank
		}
		if t.WorldSize > 0 {
			table.WorldSize = &t.WorldSize
		}
		for _, row := range t.Rows {
			out := loggerRow{Op: string(row.Op), Name: row.Name, Caller: row.Caller, SizeLo: row.SizeLo, SizeHi: row.SizeHi, Count: row.Count}
			if row.HasTimes {
				out.Total, out.Avg = &row.TotalNS, &row.AvgNS
			}
			table.Rows = append(table.Rows, out)
		}
		r.Tables = append(r.Tables, table)
	}
	return r
}

func (r *loggerReport) writeText(w io.Writer, wide bool) error {
	p := report.NewPage(wide)
	p.Linef("%s: DeepSpeed's comms logger, %d tables, %d single calls", report.Printable(r.Source), len(r.Tables), r.Calls)
	p.Linef("A log has totals and no timeline: what overlapped, and who waited, is not in it.")
	for i, t := range r.Tables {
		of := ""
		if t.Rank != nil {
			of = fmt.Sprintf(" of rank %d", *t.Rank)
		}
		p.Headingf("table %d%s", i+1, of)
		g := report.NewGrid(report.Column{Head: "operation", Kind: report.Names}, report.Column{Head: "size"},
			report.Column{Head: "count"}, report.Column{Head: "total"}, report.Column{Head: "average"})
		for _, row := range t.Rows {
			size := report.Size(row.SizeLo)
			if row.SizeHi != row.SizeLo {
				size = fmt.Sprintf("%d..%d B", row.SizeLo, row.SizeHi)
			}
			total, avg := "?", "?"
			if row.Total != nil {
				total, avg = report.Duration(*row.Total), report.Duration(*row.Avg)
			}
			g.Row(report.Printable(row.Name), size, fmt.Sprint(row.Count), total, avg)
		}
		p.Grid(g)
	}
	p.Diagnostics(r.Diagnostics)
	_, err := io.WriteString(w, p.String())
	return err
}
