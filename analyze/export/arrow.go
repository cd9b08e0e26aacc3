package export

import (
	"errors"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// dictionaryType is how text is stored: pandas makes categories of it.
var dictionaryType = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}

func (s *sheet) arrowSchema() *arrow.Schema {
	var fields []arrow.Field
	for _, c := range s.columns {
		f := arrow.Field{Name: c.name, Nullable: c.nullable, Type: arrow.PrimitiveTypes.Int64}
		switch c.kind {
		case texts:
			f.Type = dictionaryType
		case truths:
			f.Type = arrow.FixedWidthTypes.Boolean
		case floats:
			f.Type = arrow.PrimitiveTypes.Float64
		}
		fields = append(fields, f)
	}
	var keys, values []string
	for _, k := range sortedKeys(s.meta) {
		keys, values = append(keys, k), append(values, s.meta[k])
	}
	meta := arrow.NewMetadata(keys, values)
	return arrow.NewSchema(fields, &meta)
}

// writeArrow writes a sheet as an Arrow IPC file, uncompressed so that readers
// can map it. An IPC file has one dictionary for each column, so they are made
// before the first batch.
func writeArrow(w io.Writer, s *sheet) error {
	types := s.arrowSchema()
	fw, err := ipc.NewFileWriter(&positioned{w: w}, ipc.WithSchema(types))
	if err != nil {
		return err
	}
	dictionaries := make([]*textDictionary, len(s.columns))
	for i := range s.columns {
		if s.columns[i].kind == texts {
			dictionaries[i] = newTextDictionary(&s.columns[i], s.rows)
		}
	}
	for from := 0; from < s.rows; from += groupRows {
		to := min(from+groupRows, s.rows)
		columns := make([]arrow.Array, len(s.columns))
		for i := range s.columns {
			columns[i] = s.columns[i].array(from, to, dictionaries[i])
		}
		record := array.NewRecord(types, columns, int64(to-from))
		err := fw.Write(record)
		record.Release()
		for _, c := range columns {
			c.Release()
		}
		if err != nil {
			return err
		}
	}
	return fw.Close()
}

// textDictionary holds the different texts of a column, in order of appearance.
type textDictionary struct {
	index map[string]int32
	words arrow.Array
}

func newTextDictionary(c *sheetColumn, rows int) *textDictionary {
	d := &textDictionary{index: map[string]int32{}}
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	for i := range rows {
		if s, ok := c.text(i); ok {
			if _, have := d.index[s]; !have {
				d.index[s] = int32(len(d.index))
				b.Append(s)
			}
		}
	}
	d.words = b.NewArray()
	return d
}

// array makes rows of a column.
func (c *sheetColumn) array(from, to int, d *textDictionary) arrow.Array {
	switch c.kind {
	case texts:
		b := array.NewInt32Builder(memory.DefaultAllocator)
		defer b.Release()
		fill(b.Append, b.AppendNull, from, to, func(i int) (int32, bool) { s, ok := c.text(i); return d.index[s], ok })
		indices := b.NewArray()
		defer indices.Release()
		return array.NewDictionaryArray(dictionaryType, indices, d.words)
	case truths:
		b := array.NewBooleanBuilder(memory.DefaultAllocator)
		defer b.Release()
		fill(b.Append, b.AppendNull, from, to, c.truth)
		return b.NewArray()
	case floats:
		b := array.NewFloat64Builder(memory.DefaultAllocator)
		defer b.Release()
		fill(b.Append, b.AppendNull, from, to, c.float)
		return b.NewArray()
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	fill(b.Append, b.AppendNull, from, to, c.integer)
	return b.NewArray()
}

func fill[V any](add func(V), null func(), from, to int, get func(int) (V, bool)) {
	for i := from; i < to; i++ {
		if v, ok := get(i); ok {
			add(v)
		} else {
			null()
		}
	}
}

// positioned is a writer that knows where it is, which is all that Arrow seeks
// for.
type positioned struct {
	w io.Writer
	n int64
}

func (p *positioned) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.n += int64(n)
	return n, err
}

// Seek answers where the writer is; it moves nowhere.
func (p *positioned) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.ErrUnsupported
	}
	return p.n, nil
}
