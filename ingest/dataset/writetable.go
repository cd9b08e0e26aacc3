package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

// Rows of a row group: many, so that columns compress and readers skip well;
// fewer in tables with lists, whose rows are of any length.
const (
	groupRows     = 1 << 20
	listGroupRows = 1 << 14
)

// Compression. Arrow makes a coder for each page, which costs more than a page
// of few rows is worth; the next level takes 2 % off the size and several times
// as long.
const (
	compressRows  = 512
	compressLevel = 1
)

// dictionaryBytes is how large the dictionary of a column may become. Names of
// Python functions with their paths need more than the usual 1 MiB.
const dictionaryBytes = 8 << 20

// part describes a file as it was written.
type part struct {
	Rows  int    `json:"rows"`
	Bytes int64  `json:"bytes"`
	CRC   uint32 `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeTable writes t as a Parquet file.
func writeTable(name string, t *table) (p part, err error) {
	f, err := os.Create(name)
	if err != nil {
		return part{}, fmt.Errorf("write dataset: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := &summing{w: bufio.NewWriterSize(f, 1<<20)}
	if err := encode(sum, t); err != nil {
		return part{}, fmt.Errorf("write dataset: %s: %w", name, err)
	}
	if err := sum.w.Flush(); err != nil {
		return part{}, fmt.Errorf("write dataset: %w", err)
	}
	return part{Rows: t.rows, Bytes: sum.n, CRC: sum.crc}, nil
}

// encode writes t to w.
func encode(w io.Writer, t *table) (err error) {
	defer recovered(&err)
	fields := make(schema.FieldList, len(t.columns))
	codec := compress.Codecs.Zstd
	if t.rows < compressRows {
		codec = compress.Codecs.Uncompressed
	}
	props := []parquet.WriterProperty{
		parquet.WithCompression(codec), parquet.WithCompressionLevel(compressLevel), parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithDictionaryDefault(true), parquet.WithDictionaryPageSizeLimit(dictionaryBytes),
		parquet.WithBatchSize(batch), parquet.WithCreatedBy("mixdown"),
	}
	rows := groupRows
	for i, c := range t.columns {
		fields[i] = c.node
		switch c.coding {
		case deltas:
			props = append(props, parquet.WithDictionaryFor(c.name, false), parquet.WithEncodingFor(c.name, parquet.Encodings.DeltaBinaryPacked))
		case numbers:
			props = append(props, parquet.WithDictionaryFor(c.name, false))
		}
		if c.node.Type() == schema.Group {
			rows = listGroupRows
		}
	}
	root, err := schema.NewGroupNode("mixdown", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return err
	}
	pw := file.NewParquetWriter(w, root, file.WithWriterProps(parquet.NewWriterProperties(props...)))
	for from := 0; from < t.rows; from += rows {
		if err := encodeGroup(pw.AppendRowGroup(), t, from, min(from+rows, t.rows)); err != nil {
			return err
		}
	}
	return pw.Close()
}

func encodeGroup(g file.SerialRowGroupWriter, t *table, from, to int) error {
	for _, c := range t.columns {
		for _, l := range c.leaves {
			cw, err := g.NextColumn()
			if err != nil {
				return err
			}
			if err := l.write(cw, from, to); err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
			if err := cw.Close(); err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
		}
	}
	return g.Close()
}

// summing counts and sums what is written.
type summing struct {
	w   *bufio.Writer
	n   int64
	crc uint32
}

func (s *summing) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	s.crc = crc32.Update(s.crc, castagnoli, p[:n])
	return n, err
}

// recovered turns a panic of the Parquet library into an error: it panics on
// what it cannot code or decode.
func recovered(err *error) {
	if r := recover(); r != nil {
		if e, ok := r.(error); ok {
			*err = fmt.Errorf("parquet: %w", e)
			return
		}
		*err = fmt.Errorf("parquet: %v", r)
	}
}

// valid is s with U+FFFD for each byte that is not UTF-8, as encoding/json has
// it: Parquet readers refuse other text.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
