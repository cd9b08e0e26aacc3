package export

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

// groupRows is the size of a row group: DuckDB reads with a thread for each, and
// advises 100,000 rows at least. Rows are sorted, so the groups' minima and
// maxima let readers skip by time.
const groupRows = 1 << 17

// compressRows is from how many rows on a table is compressed: Arrow makes a coder
// for each page, which costs more than a page of few rows is worth.
const compressRows = 512

// batchRows is how many values are handed to Parquet at once.
const batchRows = 1 << 14

// arrowSchemaKey is where Arrow's readers look for the Arrow types of a Parquet
// file; without it pandas and Polars would not make categories of dictionaries.
const arrowSchemaKey = "ARROW:schema"

// writeParquet writes a sheet as a Parquet file. It goes column by column: the
// Arrow layer above the Parquet package would bring gRPC into the program.
func writeParquet(w io.Writer, s *sheet) (err error) {
	defer recovered(&err)
	fields := make(schema.FieldList, len(s.columns))
	codec := compress.Codecs.Zstd
	if s.rows < compressRows {
		codec = compress.Codecs.Uncompressed
	}
	props := []parquet.WriterProperty{
		parquet.WithCompression(codec), parquet.WithCompressionLevel(1), parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithDictionaryDefault(false), parquet.WithBatchSize(batchRows), parquet.WithCreatedBy("mixdown"),
	}
	for i, c := range s.columns {
		fields[i] = c.node()
		switch {
		case c.kind == texts:
			props = append(props, parquet.WithDictionaryFor(c.name, true))
		case c.kind == integers && !c.nullable: // Arrow's coder fails on columns that are null throughout
			props = append(props, parquet.WithEncodingFor(c.name, parquet.Encodings.DeltaBinaryPacked))
		}
	}
	root, err := schema.NewGroupNode("mixdown", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return err
	}
	meta := metadata.NewKeyValueMetadata()
	for _, k := range sortedKeys(s.meta) {
		if err := meta.Append(k, s.meta[k]); err != nil {
			return err
		}
	}
	types, err := s.arrowSchemaMessage()
	if err != nil {
		return err
	}
	if err := meta.Append(arrowSchemaKey, types); err != nil {
		return err
	}
	pw := file.NewParquetWriter(w, root, file.WithWriterProps(parquet.NewWriterProperties(props...)), file.WithWriteMetadata(meta))
	for from := 0; from < s.rows; from += groupRows {
		if err := s.writeGroup(pw.AppendRowGroup(), from, min(from+groupRows, s.rows)); err != nil {
			return err
		}
	}
	return pw.Close()
}

// node describes a column to Parquet.
func (c *sheetColumn) node() schema.Node {
	repetition := parquet.Repetitions.Required
	if c.nullable {
		repetition = parquet.Repetitions.Optional
	}
	switch c.kind {
	case texts:
		return schema.MustPrimitive(schema.NewPrimitiveNodeLogical(c.name, repetition, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1))
	case truths:
		return schema.NewBooleanNode(c.name, repetition, -1)
	case floats:
		return schema.NewFloat64Node(c.name, repetition, -1)
	}
	return schema.NewInt64Node(c.name, repetition, -1)
}

func (s *sheet) writeGroup(g file.SerialRowGroupWriter, from, to int) error {
	for i := range s.columns {
		c := &s.columns[i]
		w, err := g.NextColumn()
		if err != nil {
			return err
		}
		if err := c.write(w, from, to); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
		if err := w.Close(); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return g.Close()
}

func (c *sheetColumn) write(w file.ColumnChunkWriter, from, to int) error {
	switch c.kind {
	case texts:
		return writeColumn(c.nullable, from, to, func(i int) (parquet.ByteArray, bool) {
			s, ok := c.text(i)
			return parquet.ByteArray(s), ok
		}, w.(*file.ByteArrayColumnChunkWriter).WriteBatch)
	case truths:
		return writeColumn(c.nullable, from, to, c.truth, w.(*file.BooleanColumnChunkWriter).WriteBatch)
	case floats:
		return writeColumn(c.nullable, from, to, c.float, w.(*file.Float64ColumnChunkWriter).WriteBatch)
	}
	return writeColumn(c.nullable, from, to, c.integer, w.(*file.Int64ColumnChunkWriter).WriteBatch)
}

func writeColumn[V any](nullable bool, from, to int, get func(int) (V, bool), write func([]V, []int16, []int16) (int64, error)) error {
	values, levels := make([]V, 0, min(batchRows, to-from)), make([]int16, 0, min(batchRows, to-from))
	for from < to {
		values, levels = values[:0], levels[:0]
		n := min(batchRows, to-from)
		for i := from; i < from+n; i++ {
			v, ok := get(i)
			if ok {
				values, levels = append(values, v), append(levels, 1)
			} else {
				levels = append(levels, 0)
			}
		}
		definitions := levels
		if !nullable {
			definitions = nil
		}
		if _, err := write(values, definitions, nil); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// arrowSchemaMessage is the Arrow schema as Parquet's metadata has it: the head
// of an IPC stream, in base 64.
func (s *sheet) arrowSchemaMessage() (string, error) {
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(s.arrowSchema()))
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// recovered turns a panic of the Parquet library, which it has for what it can't
// code, into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("parquet: %v", r)
	}
}
