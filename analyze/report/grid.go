package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Column of a table.
type Column struct {
	Head string
	Kind ColumnKind
}

// ColumnKind says what becomes of a column where there is no room for all of them.
type ColumnKind int

const (
	Figures ColumnKind = iota // shown whole
	Names                     // shortened as far as needed
	Spare                     // left out when shortening names does not suffice
	Detail                    // on wide pages only
	Picture                   // of figures that are there too: the first to be left out
)

// gap is the space before every column.
const gap = 2

// narrowest is how far names are shortened: some of a name tells more than none.
const narrowest = 8

// Grid is a table on its way to a page.
type Grid struct {
	columns []Column
	rows    [][]string
}

// NewGrid is a table without rows.
func NewGrid(columns ...Column) *Grid { return &Grid{columns: columns} }

// Row adds a row, whose names are printable already.
func (g *Grid) Row(cells ...string) { g.rows = append(g.rows, cells) }

// Grid writes a table and below it, when it had to be cut to fit, how to see all.
func (p *Page) Grid(g *Grid) {
	shown, whole := []int{}, true
	for c, column := range g.columns {
		if column.Kind != Detail || p.wide {
			shown = append(shown, c)
		}
	}
	widths := g.widths(shown)
	if !p.wide {
		shown, whole = g.fit(shown, widths, p.columns())
	}
	g.shortenNames(shown, widths)
	heads := make([]string, len(g.columns))
	for c, column := range g.columns {
		heads[c] = shorten(column.Head, widths[c])
	}
	for _, cells := range append([][]string{heads}, g.rows...) {
		var line strings.Builder
		for _, c := range shown {
			fmt.Fprintf(&line, "%s%*s", strings.Repeat(" ", gap), widths[c], cells[c])
		}
		text := line.String()
		if n := len(shown); n > 0 && g.columns[shown[n-1]].Kind == Picture {
			text = strings.TrimRight(text, " ")
		}
		p.b.WriteString(text + "\n")
	}
	if !whole {
		p.Linef("shortened to fit (--wide shows all)")
	}
}

// widths of all columns as they are.
func (g *Grid) widths(shown []int) []int {
	widths := make([]int, len(g.columns))
	for _, c := range shown {
		widths[c] = utf8.RuneCountInString(g.columns[c].Head)
		for _, cells := range g.rows {
			widths[c] = max(widths[c], utf8.RuneCountInString(cells[c]))
		}
	}
	return widths
}

// fit narrows columns to the page. The widest names are shortened first, so that a
// long name costs the short ones beside it nothing.
func (g *Grid) fit(shown, widths []int, page int) (left []int, whole bool) {
	whole = true
	for {
		excess := -page
		widest, spare, picture := -1, -1, -1
		for i, c := range shown {
			excess += gap + widths[c]
			if g.columns[c].Kind == Names && widths[c] > narrowest && (widest < 0 || widths[c] > widths[widest]) {
				widest = c
			}
			switch g.columns[c].Kind {
			case Spare:
				spare = i
			case Picture:
				picture = i
			}
		}
		switch {
		case excess <= 0:
			return shown, whole
		case picture >= 0:
			shown = slices.Delete(slices.Clone(shown), picture, picture+1)
			continue // nothing is lost
		case widest >= 0:
			widths[widest]--
		case spare >= 0:
			shown = slices.Delete(slices.Clone(shown), spare, spare+1)
		default:
			return shown, false // figures of absurd length: better too wide than wrong
		}
		whole = false
	}
}

// shortenNames cuts names to the widths. Different names stay different: those that
// would look the same are numbered.
func (g *Grid) shortenNames(shown, widths []int) {
	for _, c := range shown {
		if g.columns[c].Kind != Names {
			continue
		}
		short, seen := map[string]string{}, map[string]int{}
		for _, cells := range g.rows {
			name := cells[c]
			if _, known := short[name]; !known {
				s := shorten(name, widths[c])
				if seen[s]++; seen[s] > 1 {
					number := fmt.Sprintf("~%d", seen[s])
					s = shorten(name, max(widths[c]-len(number), 1)) + number
				}
				short[name] = s
			}
			cells[c] = short[name]
		}
	}
}
