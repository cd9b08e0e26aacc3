package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mixdown/analyze/overlap"
)

// WriteParquet writes the tables of the analysis as Parquet files into the folder
// dir, with a description of every column in tables.json.
func WriteParquet(ctx context.Context, dir string, in *Input) error {
	return writeTables(ctx, dir, in, "parquet", writeParquet)
}

// WriteArrow writes the tables as Arrow IPC files.
func WriteArrow(ctx context.Context, dir string, in *Input) error {
	return writeTables(ctx, dir, in, "arrow", writeArrow)
}

// tableWriter writes the tables of one folder.
type tableWriter struct {
	*exporter
	ctx    context.Context
	dir    string
	format string
	encode func(io.Writer, *sheet) error
	about  *description
}

func writeTables(ctx context.Context, dir string, in *Input, format string, encode func(io.Writer, *sheet) error) error {
	return writeFolder(dir, func(tmp string) error {
		w := &tableWriter{exporter: newExporter(in), ctx: ctx, dir: tmp, format: format, encode: encode}
		w.about = w.describe(format)
		if err := w.all(); err != nil {
			return err
		}
		return w.about.write(filepath.Join(tmp, descriptionFile))
	})
}

// all writes the communication first, rank by rank: steps sum it up.
func (w *tableWriter) all() error {
	steps := []stepRow{}
	layout := communicationLayout()
	d := layout.describe(w.format)
	for r, rank := range w.Run.Ranks {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		rows := w.operations(r, overlap.Measure(rank))
		meta := w.metadata(layout.name)
		meta["mixdown.rank"] = strconv.Itoa(rank.Rank)
		meta["mixdown.source"] = valid(rank.Source)
		if sum := w.Checksums[rank.Rank]; sum != "" {
			meta["mixdown.source_sha256"] = sum
		}
		if c := w.Clocks.Clocks[r]; c.Matches > 0 {
			meta["mixdown.clock_residual_ns"] = strconv.FormatInt(c.Residual, 10)
			meta["mixdown.clock_offset_ns"] = strconv.FormatInt(c.Offset, 10)
		}
		name := filepath.Join(layout.name, "rank="+strconv.Itoa(rank.Rank), "part-0."+w.format)
		if err := w.file(name, layout.sheet(rows, meta)); err != nil {
			return err
		}
		d.Rows, d.Files = d.Rows+len(rows), d.Files+1
		steps = append(steps, stepRows(rank, rows)...)
	}
	w.about.Tables = append(w.about.Tables, d)
	return errors.Join(
		writeSmall(w, ranksLayout(), w.Analysis.Ranks),
		writeSmall(w, collectivesLayout(), w.collectiveRows()),
		writeSmall(w, stepsLayout(), sortSteps(steps)),
		writeSmall(w, diagnosticsLayout(), w.Analysis.Diagnostics),
		writeSmall(w, clocksLayout(), w.Clocks.Clocks),
		writeSmall(w, stragglersLayout(), w.stragglerRows()),
		writeSmall(w, tasksLayout(), w.taskRows()),
	)
}

// writeSmall writes a table that is one file.
func writeSmall[T any](w *tableWriter, l layout[T], rows []T) error {
	d := l.describe(w.format)
	d.Rows, d.Files = len(rows), 1
	w.about.Tables = append(w.about.Tables, d)
	return w.file(filepath.Join(l.name, "part-0."+w.format), l.sheet(rows, w.metadata(l.name)))
}

func (w *tableWriter) file(name string, s *sheet) (err error) {
	name = filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := bufio.NewWriterSize(f, 1<<18)
	if err := w.encode(b, s); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(filepath.Dir(name)), err)
	}
	return b.Flush()
}

// metadata is what every file says of itself, so that one that was copied out of
// its folder still tells what it is.
func (w *tableWriter) metadata(table string) map[string]string {
	m := map[string]string{
		"mixdown.table":             table,
		"mixdown.schema_version":    strconv.Itoa(SchemaVersion),
		"mixdown.tool":              w.Tool,
		"mixdown.time":              timeAbout,
		"mixdown.world_size":        strconv.Itoa(w.about.WorldSize),
		"mixdown.clocks_applied":    strconv.FormatBool(w.Clocks.Applied),
		"mixdown.clocks_comparable": strconv.FormatBool(w.Clocks.Connected),
		"mixdown.clocks_reason":     valid(w.Clocks.Reason),
		"mixdown.diagnostics":       w.faults(),
	}
	if r, ok := w.residual(); ok {
		m["mixdown.alignment_residual_ns"] = strconv.FormatInt(r, 10)
	}
	return m
}

// faults sums up the diagnostics of all ranks: "code=count, code=count".
func (w *tableWriter) faults() string {
	counts := map[string]int64{}
	for _, d := range w.Analysis.Diagnostics {
		counts[d.Code] += d.Count
	}
	var list []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, code+"="+strconv.FormatInt(counts[code], 10))
	}
	return strings.Join(list, ", ")
}
