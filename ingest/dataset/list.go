package dataset

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

// list is a column of lists: null where length reports -1.
type list struct {
	name   string
	length func(i int) int
	// resize makes row i a list of n elements: none is a list too, not a null.
	resize func(i, n int)
}

// integers makes a column of lists of int64.
func integers(name string, field func(i int) *[]int64) column {
	l := list{
		name: name,
		length: func(i int) int {
			if *field(i) == nil {
				return -1
			}
			return len(*field(i))
		},
		resize: func(i, n int) { *field(i) = make([]int64, n) },
	}
	return l.of(node[int64]("element", parquet.Repetitions.Required), plain(l,
		func(i, j int) int64 { return (*field(i))[j] },
		func(i, j int, v int64) { (*field(i))[j] = v }))
}

// wholes makes a column of lists of int.
func wholes(name string, field func(i int) *[]int) column {
	l := list{
		name: name,
		length: func(i int) int {
			if *field(i) == nil {
				return -1
			}
			return len(*field(i))
		},
		resize: func(i, n int) { *field(i) = make([]int, n) },
	}
	return l.of(node[int64]("element", parquet.Repetitions.Required), plain(l,
		func(i, j int) int64 { return int64((*field(i))[j]) },
		func(i, j int, v int64) { (*field(i))[j] = int(v) }))
}

// of makes the column of a list with the given elements: the three levels that
// the format prescribes.
func (l list) of(element schema.Node, leaves ...leaf) column {
	n, err := schema.ListOfWithName(l.name, element, parquet.Repetitions.Optional, -1)
	return column{name: l.name, node: schema.MustGroup(n, err), leaves: leaves}
}

// Definition levels of a list whose elements are never null themselves.
const (
	nullList  = 0
	emptyList = 1
	inList    = 2 // an element; of a record with a null field, the null
	inField   = 3 // the value of a field that may be null
)

// maxElements is how many elements the lists of one row group may have: a file
// that claims more would fill the memory.
const maxElements = 1 << 28

// listBatch is how many elements are read at once: most lists are short, and
// most ranks have few operations.
const listBatch = 1 << 11

// plain is the leaf of a list of integers.
func plain(l list, get func(i, j int) int64, set func(i, j int, v int64)) leaf {
	return listLeaf(l, true, inList,
		func(i, j int) (int64, bool) { return get(i, j), true },
		func(i, j int, v int64) { set(i, j, v) })
}

// listLeaf moves one field of the elements. The first leaf of a list makes the
// lists; the others must find them of the same length. full is the level of a
// value that is there.
func listLeaf[V value](l list, first bool, full int16, get func(i, j int) (V, bool), set func(i, j int, v V)) leaf {
	return leaf{
		write: func(w file.ColumnChunkWriter, from, to int) error {
			var values []V
			var def, rep []int16
			for i := from; i < to; i++ {
				switch n := l.length(i); {
				case n < 0:
					def, rep = append(def, nullList), append(rep, 0)
				case n == 0:
					def, rep = append(def, emptyList), append(rep, 0)
				}
				for j := range l.length(i) {
					level := int16(inList)
					if v, ok := get(i, j); ok {
						values, level = append(values, v), full
					}
					def, rep = append(def, level), append(rep, int16(min(j, 1)))
				}
				// Between rows only: Parquet counts rows by what begins one.
				if len(def) >= batch || i == to-1 {
					if err := writeBatch(w, values, def, rep); err != nil {
						return err
					}
					values, def, rep = values[:0], def[:0], rep[:0]
				}
			}
			return nil
		},
		read: func(r file.ColumnChunkReader, from, to int) error {
			rd := listReader[V]{r: r, full: full}
			for i := from; i < to; i++ {
				null, err := rd.row()
				if err != nil {
					return fmt.Errorf("column %s: %w", l.name, err)
				}
				n := len(rd.elements)
				if null {
					n = -1
				}
				if first && !null {
					l.resize(i, n)
				}
				if l.length(i) != n {
					return fmt.Errorf("column %s: the fields of row %d differ in length", l.name, i)
				}
				for j, e := range rd.elements {
					if e.present {
						set(i, j, e.v)
					}
				}
			}
			return nil
		},
	}
}

// listReader cuts the values of a leaf into rows.
type listReader[V value] struct {
	r    file.ColumnChunkReader
	full int16

	values   []V // what the last batch read, and how much of it is used
	def, rep []int16
	levels   int
	at, used int
	present  int
	total    int

	elements []element[V] // of the row read last
}

type element[V value] struct {
	v       V
	present bool
}

// row reads the next row.
func (rd *listReader[V]) row() (null bool, err error) {
	rd.elements = rd.elements[:0]
	for n := 0; ; n++ {
		if more, err := rd.more(); err != nil || !more {
			if n == 0 && err == nil {
				err = errors.New("too few rows")
			}
			return false, err
		}
		if (rd.rep[rd.at] == 0) != (n == 0) {
			if n == 0 {
				return false, errors.New("a row begins in the middle of a list")
			}
			return false, nil // the next row
		}
		switch level := rd.def[rd.at]; {
		case level < inList:
			rd.at++
			return level == nullList, nil
		case level == rd.full:
			if rd.used >= rd.present {
				return false, errors.New("fewer values than it says")
			}
			rd.elements = append(rd.elements, element[V]{rd.values[rd.used], true})
			rd.used++
		default:
			rd.elements = append(rd.elements, element[V]{})
		}
		rd.at++
	}
}

// more sees to it that there is a level to use.
func (rd *listReader[V]) more() (bool, error) {
	if rd.at < rd.levels {
		return true, nil
	}
	if rd.values == nil {
		rd.values, rd.def, rd.rep = make([]V, listBatch), make([]int16, listBatch), make([]int16, listBatch)
	}
	var err error
	rd.levels, rd.present, err = readBatch(rd.r, rd.values, rd.def, rd.rep)
	rd.at, rd.used = 0, 0
	if rd.total += rd.levels; err == nil && rd.total > maxElements {
		err = fmt.Errorf("more than %d elements in one row group", maxElements)
	}
	return rd.levels > 0, err
}
