package dataset

import (
	"fmt"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

// table is one file's worth of rows: how many there are to write, how to make
// room for rows that are read, and the columns.
type table struct {
	rows    int
	grow    func(n int) // adds n blank rows; rows is theirs too
	columns []column
}

// column is a column of a table. A scalar has one leaf; a list of records has
// one for each field.
type column struct {
	name    string
	node    schema.Node
	leaves  []leaf
	coding  coding
	isLater bool // see later
}

// coding is how a column is stored.
type coding uint8

const (
	dictionary coding = iota // few different values
	deltas                   // integers that differ little from row to row, never null
	numbers                  // other integers
)

// leaf moves the values of one Parquet column. Rows are numbered in the table,
// whatever row group they are in.
type leaf struct {
	write func(w file.ColumnChunkWriter, from, to int) error
	read  func(r file.ColumnChunkReader, from, to int) error
}

// value is what Parquet stores: integers, truth values, text.
type value interface {
	int64 | bool | parquet.ByteArray
}

// batch is how many values are handed to Parquet at once.
const batch = 1 << 15

// required makes a column that every row has a value for.
func required[V value](name string, get func(i int) V, set func(i int, v V) error) column {
	return column{name: name, node: node[V](name, parquet.Repetitions.Required), leaves: []leaf{{
		write: func(w file.ColumnChunkWriter, from, to int) error {
			values := make([]V, 0, min(batch, to-from))
			for from < to {
				values = values[:0]
				for ; from < to && len(values) < batch; from++ {
					values = append(values, get(from))
				}
				if err := writeBatch(w, values, nil, nil); err != nil {
					return err
				}
			}
			return nil
		},
		read: func(r file.ColumnChunkReader, from, to int) error {
			values := make([]V, min(batch, to-from))
			for from < to {
				_, n, err := readBatch(r, values[:min(len(values), to-from)], nil, nil)
				if err != nil {
					return err
				}
				if n == 0 {
					return fmt.Errorf("column %s has %d values too few", name, to-from)
				}
				for _, v := range values[:n] {
					if err := set(from, v); err != nil {
						return fmt.Errorf("column %s: %w", name, err)
					}
					from++
				}
			}
			return nil
		},
	}}}
}

// optional makes a column that is null where get reports false; set is not
// called for nulls.
func optional[V value](name string, get func(i int) (V, bool), set func(i int, v V) error) column {
	return column{name: name, node: node[V](name, parquet.Repetitions.Optional), leaves: []leaf{{
		write: func(w file.ColumnChunkWriter, from, to int) error {
			values, levels := make([]V, 0, min(batch, to-from)), make([]int16, 0, min(batch, to-from))
			for from < to {
				values, levels = values[:0], levels[:0]
				for ; from < to && len(levels) < batch; from++ {
					if v, ok := get(from); ok {
						values, levels = append(values, v), append(levels, 1)
					} else {
						levels = append(levels, 0)
					}
				}
				if err := writeBatch(w, values, levels, nil); err != nil {
					return err
				}
			}
			return nil
		},
		read: func(r file.ColumnChunkReader, from, to int) error {
			values, levels := make([]V, min(batch, to-from)), make([]int16, min(batch, to-from))
			for from < to {
				n := min(batch, to-from)
				rows, present, err := readBatch(r, values[:n], levels[:n], nil)
				if err != nil {
					return err
				}
				if rows == 0 {
					return fmt.Errorf("column %s has %d rows too few", name, to-from)
				}
				k := 0
				for _, level := range levels[:rows] {
					if level > 0 {
						if k >= present {
							return fmt.Errorf("column %s has fewer values than it says", name)
						}
						if err := set(from, values[k]); err != nil {
							return fmt.Errorf("column %s: %w", name, err)
						}
						k++
					}
					from++
				}
			}
			return nil
		},
	}}}
}

// text converts to and from the bytes that Parquet stores.
func text(name string, get func(i int) string, set func(i int, s string)) column {
	return required(name,
		func(i int) parquet.ByteArray { return parquet.ByteArray(valid(get(i))) },
		func(i int, v parquet.ByteArray) error { set(i, string(v)); return nil })
}

// optionalText is null where the string is empty.
func optionalText(name string, get func(i int) string, set func(i int, s string)) column {
	return optional(name,
		func(i int) (parquet.ByteArray, bool) { s := get(i); return parquet.ByteArray(valid(s)), s != "" },
		func(i int, v parquet.ByteArray) error { set(i, string(v)); return nil })
}

// integer is an int64 field of a row.
func integer(name string, field func(i int) *int64) column {
	return required(name, func(i int) int64 { return *field(i) }, func(i int, v int64) error { *field(i) = v; return nil })
}

// whole is an int field of a row.
func whole(name string, field func(i int) *int) column {
	return required(name, func(i int) int64 { return int64(*field(i)) }, func(i int, v int64) error { *field(i) = int(v); return nil })
}

// wholeUnless is an int field that is null when it has the value absent.
func wholeUnless(absent int, name string, field func(i int) *int) column {
	return optional(name,
		func(i int) (int64, bool) { return int64(*field(i)), *field(i) != absent },
		func(i int, v int64) error { *field(i) = int(v); return nil })
}

// truth is a bool field of a row.
func truth(name string, field func(i int) *bool) column {
	return required(name, func(i int) bool { return *field(i) }, func(i int, v bool) error { *field(i) = v; return nil })
}

// as sets the coding of a column. Arrow's coder of deltas fails on columns that
// are null throughout, so that it is for required ones.
func (c column) as(how coding) column {
	c.coding = how
	return c
}

// later says that datasets written before the column was added don't have it: its
// rows then keep what they are made with. Such columns are the last of their table.
func (c column) later() column {
	c.isLater = true
	return c
}

// node describes a column of type V to Parquet.
func node[V value](name string, repetition parquet.Repetition) schema.Node {
	var v V
	switch any(v).(type) {
	case bool:
		return schema.NewBooleanNode(name, repetition, -1)
	case parquet.ByteArray:
		return schema.MustPrimitive(schema.NewPrimitiveNodeLogical(name, repetition, schema.StringLogicalType{}, parquet.Types.ByteArray, 0, -1))
	}
	return schema.NewInt64Node(name, repetition, -1)
}

func writeBatch[V value](w file.ColumnChunkWriter, values []V, def, rep []int16) error {
	var err error
	switch v := any(values).(type) {
	case []int64:
		_, err = w.(*file.Int64ColumnChunkWriter).WriteBatch(v, def, rep)
	case []bool:
		_, err = w.(*file.BooleanColumnChunkWriter).WriteBatch(v, def, rep)
	case []parquet.ByteArray:
		_, err = w.(*file.ByteArrayColumnChunkWriter).WriteBatch(v, def, rep)
	}
	return err
}

// readBatch returns how many levels and how many values it read: of columns
// without levels, values only.
func readBatch[V value](r file.ColumnChunkReader, values []V, def, rep []int16) (levels, present int, err error) {
	var n int64
	switch v := any(values).(type) {
	case []int64:
		n, present, err = r.(*file.Int64ColumnChunkReader).ReadBatch(int64(len(v)), v, def, rep)
	case []bool:
		n, present, err = r.(*file.BooleanColumnChunkReader).ReadBatch(int64(len(v)), v, def, rep)
	case []parquet.ByteArray:
		n, present, err = r.(*file.ByteArrayColumnChunkReader).ReadBatch(int64(len(v)), v, def, rep)
	}
	if err == nil {
		err = r.Err()
	}
	return int(n), present, err
}
