package tune

import (
	"slices"
)

// SchemaVersion is that of table files and of the JSON about them.
const SchemaVersion = 1

// Table is measurements and where they were made. The zero value is empty.
type Table struct {
	Environments []Environment // sorted by hash
	Rows         []Row         // sorted, each key once
	Contentions  []Contention  // sorted, each contender and device once
}

// Add adds rows. Of two with the same key, that is the same operation, size,
// group, contender and environment, the one with more measurements stays, and the
// later one where both have as many.
func (t *Table) Add(rows ...Row) error {
	for i := range rows {
		if err := rows[i].Check(); err != nil {
			return err
		}
	}
	at := make(map[key]int, len(t.Rows))
	for i := range t.Rows {
		at[t.Rows[i].key()] = i
	}
	for _, r := range rows {
		k := r.key()
		i, ok := at[k]
		if !ok {
			at[k] = len(t.Rows)
			t.Rows = append(t.Rows, r)
		} else if r.N >= t.Rows[i].N {
			t.Rows[i] = r
		}
	}
	slices.SortFunc(t.Rows, func(a, b Row) int { return a.key().compare(b.key()) })
	return nil
}

// Put adds rows in place of those with the same key, whatever those rest on.
func (t *Table) Put(rows ...Row) error {
	fresh := make(map[key]bool, len(rows))
	for i := range rows {
		fresh[rows[i].key()] = true
	}
	t.Rows = slices.DeleteFunc(t.Rows, func(r Row) bool { return fresh[r.key()] })
	return t.Add(rows...)
}

// AddEnvironment adds an environment and returns its hash.
func (t *Table) AddEnvironment(e Environment) string {
	e = e.sealed()
	i, ok := slices.BinarySearchFunc(t.Environments, e.Hash, func(have Environment, hash string) int {
		if have.Hash < hash {
			return -1
		}
		if have.Hash > hash {
			return 1
		}
		return 0
	})
	if !ok {
		t.Environments = slices.Insert(t.Environments, i, e)
	}
	return e.Hash
}

// Merge adds everything that another table has.
func (t *Table) Merge(other *Table) error {
	for _, e := range other.Environments {
		t.AddEnvironment(e)
	}
	if err := t.AddContention(other.Contentions...); err != nil {
		return err
	}
	return t.Add(other.Rows...)
}

// Environment finds an environment by its hash.
func (t *Table) Environment(hash string) (Environment, bool) {
	for _, e := range t.Environments {
		if e.Hash == hash {
			return e, true
		}
	}
	return Environment{}, false
}
