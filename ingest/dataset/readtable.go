package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

// maxPage is how large a page may be once decompressed. Those written here have
// 1 MiB, and dictionaries 8.
const maxPage = 256 << 20

// maxFile is how large a file may be.
const maxFile = 16 << 30

// readTable reads a file that want describes into t.
func readTable(at Place, path string, want part, t *table) error {
	name := at.name(path)
	if want.Bytes > maxFile {
		return corrupt(name, "it is said to have %d bytes", want.Bytes)
	}
	data, err := at.read(path, want.Bytes)
	if err != nil {
		return unread(name, err)
	}
	if int64(len(data)) != want.Bytes {
		return corrupt(name, "it has %d bytes, not %d as when it was written", len(data), want.Bytes)
	}
	if crc32.Checksum(data, castagnoli) != want.CRC {
		return corrupt(name, "its content is not what was written")
	}
	if err := decode(data, want.Rows, t); err != nil {
		return corrupt(name, "%v", err)
	}
	return nil
}

// decode reads a Parquet file of the given number of rows into t, which has
// none before.
func decode(data []byte, rows int, t *table) (err error) {
	defer recovered(&err)
	t.rows = 0
	pool := &limited{memory.NewGoAllocator()}
	r, err := file.NewParquetReader(bytes.NewReader(data), file.WithReadProps(parquet.NewReaderProperties(pool)))
	if err != nil {
		return err
	}
	defer r.Close()
	if n := r.NumRows(); n != int64(rows) {
		return fmt.Errorf("it has %d rows, not %d", n, rows)
	}
	if err := sameSchema(r.MetaData().Schema, t); err != nil {
		return err
	}
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		n := group.NumRows()
		if n < 0 || n > groupRows || n > int64(rows-t.rows) {
			return fmt.Errorf("row group %d claims %d rows", g, n)
		}
		from := t.rows
		t.grow(int(n))
		t.rows += int(n)
		if err := decodeGroup(group, r.MetaData().Schema, data, pool, t, from); err != nil {
			return fmt.Errorf("row group %d: %w", g, err)
		}
	}
	if t.rows != rows {
		return fmt.Errorf("its row groups have %d rows, not %d", t.rows, rows)
	}
	return nil
}

func decodeGroup(group *file.RowGroupReader, whole *schema.Schema, data []byte, pool memory.Allocator, t *table, row int) error {
	buffers := &sync.Pool{New: func() any { return memory.NewResizableBuffer(pool) }}
	i := 0
	for _, c := range t.columns {
		if i == whole.NumColumns() {
			break // what follows was added later
		}
		for _, l := range c.leaves {
			chunk, err := group.MetaData().ColumnChunk(i)
			if err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
			from, n := chunk.DataPageOffset(), chunk.TotalCompressedSize()
			if at := chunk.DictionaryPageOffset(); chunk.HasDictionaryPage() && at > 0 && at < from {
				from = at
			}
			if from < 0 || n < 0 || from > int64(len(data)) || n > int64(len(data))-from || chunk.NumValues() < 0 {
				return fmt.Errorf("column %s claims %d bytes at byte %d", c.name, n, from)
			}
			if err := checkPages(data[from:from+n], chunk.Compression()); err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
			pages, err := group.GetColumnPageReader(i)
			if err != nil {
				return fmt.Errorf("column %s: %w", c.name, err)
			}
			if err := l.read(file.NewColumnReader(whole.Column(i), &checked{PageReader: pages}, pool, buffers), row, t.rows); err != nil {
				return err
			}
			i++
		}
	}
	return nil
}

// sameSchema compares the columns of a file with those that t reads. Columns that
// were added later may be missing.
func sameSchema(have *schema.Schema, t *table) error {
	fields := make(schema.FieldList, len(t.columns))
	for i, c := range t.columns {
		fields[i] = c.node
	}
	root, err := schema.NewGroupNode("mixdown", parquet.Repetitions.Required, fields, -1)
	if err != nil {
		return err
	}
	want := schema.NewSchema(root)
	least := want.NumColumns()
	for _, c := range t.columns {
		if c.isLater {
			least -= len(c.leaves)
		}
	}
	n := have.NumColumns()
	if n != want.NumColumns() && n != least {
		return fmt.Errorf("it has %d columns, not %d", n, want.NumColumns())
	}
	for i := range n {
		if !want.Column(i).Equals(have.Column(i)) || want.Column(i).Path() != have.Column(i).Path() {
			return fmt.Errorf("its column %d is %s, not the %s of this version", i, have.Column(i).Path(), want.Column(i).Path())
		}
	}
	return nil
}

// checked refuses pages that make the library set aside more memory than their
// bytes account for.
type checked struct {
	file.PageReader
	err error
}

func (p *checked) Next() bool {
	if p.err != nil || !p.PageReader.Next() {
		return false
	}
	page, ok := p.Page().(*file.DictionaryPage)
	if ok && (page.NumValues() < 0 || int64(page.NumValues()) > int64(len(page.Data()))) {
		p.err = fmt.Errorf("a dictionary of %d bytes claims %d values", len(page.Data()), page.NumValues())
		return false
	}
	return true
}

func (p *checked) Err() error { return errors.Join(p.err, p.PageReader.Err()) }

// limited refuses to set aside memory for pages of absurd size.
type limited struct{ memory.Allocator }

var errPage = fmt.Errorf("a page of more than %d bytes", maxPage)

func (l *limited) Allocate(size int) []byte {
	if size < 0 || size > maxPage {
		panic(errPage) // caught by recovered
	}
	return l.Allocator.Allocate(size)
}

func (l *limited) Reallocate(size int, b []byte) []byte {
	if size < 0 || size > maxPage {
		panic(errPage)
	}
	return l.Allocator.Reallocate(size, b)
}
