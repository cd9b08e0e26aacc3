package export

// SchemaVersion is that of the tables. Columns are added without a new one.
const SchemaVersion = 1

// kind is the type of a column's values.
type kind uint8

const (
	integers kind = iota // int64
	texts                // UTF-8, dictionary-encoded
	truths
	floats // float64, for ratios and rates only
)

func (k kind) String() string {
	return [...]string{"int64", "string", "bool", "float64"}[k]
}

// column is a column of rows of type T. One of the functions is set, by kind;
// it reports false for null.
type column[T any] struct {
	name, unit, about string
	hta               string // the column of HTA's frame that means the same, if its name differs
	kind              kind
	nullable          bool

	integer func(*T) (int64, bool)
	text    func(*T) (string, bool)
	truth   func(*T) (bool, bool)
	float   func(*T) (float64, bool)
}

// whole makes a column of integers that are always known.
func whole[T any](name, unit, about string, get func(*T) int64) column[T] {
	return column[T]{name: name, unit: unit, about: about, kind: integers, integer: func(t *T) (int64, bool) { return get(t), true }}
}

// maybe makes a column of integers that may be null.
func maybe[T any](name, unit, about string, get func(*T) (int64, bool)) column[T] {
	return column[T]{name: name, unit: unit, about: about, kind: integers, nullable: true, integer: get}
}

// word makes a column of text that is null where empty.
func word[T any](name, about string, get func(*T) string) column[T] {
	return column[T]{name: name, about: about, kind: texts, nullable: true, text: func(t *T) (string, bool) { s := get(t); return s, s != "" }}
}

func flag[T any](name, about string, get func(*T) bool) column[T] {
	return column[T]{name: name, about: about, kind: truths, truth: func(t *T) (bool, bool) { return get(t), true }}
}

func ratio[T any](name, unit, about string, get func(*T) (float64, bool)) column[T] {
	return column[T]{name: name, unit: unit, about: about, kind: floats, nullable: true, float: get}
}

// asHTA notes the name that HTA has for the same.
func (c column[T]) asHTA(name string) column[T] {
	c.hta = name
	return c
}

// sheet is what the writers of files see of a table: columns over numbered rows.
type sheet struct {
	rows    int
	columns []sheetColumn
	meta    map[string]string // the file's metadata
}

type sheetColumn struct {
	name     string
	kind     kind
	nullable bool

	integer func(i int) (int64, bool)
	text    func(i int) (string, bool)
	truth   func(i int) (bool, bool)
	float   func(i int) (float64, bool)
}

// layout is a table as the description has it.
type layout[T any] struct {
	name, about string
	sorted      []string // columns that the rows are sorted by
	byRank      bool     // one file a rank, the rank in its path
	columns     []column[T]
}

// sheet gives rows the columns of the layout.
func (l layout[T]) sheet(rows []T, meta map[string]string) *sheet {
	s := &sheet{rows: len(rows), meta: meta}
	for _, c := range l.columns {
		out := sheetColumn{name: c.name, kind: c.kind, nullable: c.nullable}
		switch c.kind {
		case integers:
			out.integer = func(i int) (int64, bool) { return c.integer(&rows[i]) }
		case texts:
			out.text = func(i int) (string, bool) { s, ok := c.text(&rows[i]); return valid(s), ok }
		case truths:
			out.truth = func(i int) (bool, bool) { return c.truth(&rows[i]) }
		case floats:
			out.float = func(i int) (float64, bool) { return c.float(&rows[i]) }
		}
		s.columns = append(s.columns, out)
	}
	return s
}

// describe makes the description of the table, without counts.
func (l layout[T]) describe(extension string) tableDescription {
	d := tableDescription{Name: l.name, About: l.about, SortedBy: l.sorted, PartitionedBy: []string{}, Columns: []columnDescription{}}
	d.Path = l.name + "/part-0." + extension
	if l.byRank {
		d.Path = l.name + "/rank=*/part-0." + extension
		d.PartitionedBy = []string{"rank"}
		d.Columns = append(d.Columns, columnDescription{Name: "rank", Type: "int64", About: "global rank; in the path of the file, not in the file"})
	}
	for _, c := range l.columns {
		out := columnDescription{Name: c.name, Type: c.kind.String(), Nullable: c.nullable, Unit: c.unit, About: c.about, HTA: c.hta}
		out.Dictionary = c.kind == texts
		d.Columns = append(d.Columns, out)
	}
	return d
}
