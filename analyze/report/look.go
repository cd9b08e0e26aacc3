package report

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Look is how text is laid out for where it is read. The zero value is for pipes and
// files: PageWidth columns, and blocks of Unicode for bars.
type Look struct {
	// Columns of the page; 0 means PageWidth.
	Columns int
	// ASCII: bars have no character beyond it.
	ASCII bool
}

// Narrowest and widest pages: less cuts figures, more makes prose hard to read.
const (
	narrowestPage = 60
	widestPage    = 160
)

func (l Look) columns() int {
	if l.Columns <= 0 {
		return PageWidth
	}
	return min(max(l.Columns, narrowestPage), widestPage)
}

// Width is how many columns a page has that looks so.
func (l Look) Width() int { return l.columns() }

// eighths of a block, from one to seven.
var eighths = []rune("▏▎▍▌▋▊▉")

// Bar is a share, 0 to 1, of a bar of so many columns. Any share above 0 shows.
func (l Look) Bar(share float64, columns int) string {
	if !(share > 0) || columns < 1 {
		return ""
	}
	share = min(share, 1)
	if l.ASCII {
		return strings.Repeat("#", max(int(math.Round(share*float64(columns))), 1))
	}
	n := max(int(math.Round(share*float64(columns)*8)), 1)
	bar := strings.Repeat("█", n/8)
	if n%8 > 0 {
		bar += string(eighths[n%8-1])
	}
	return bar
}

// Interval draws where a value and its interval lie between low and high, with a mark
// at zero (no change) where that lies between them. Ends beyond are cut.
func (l Look) Interval(from, at, to, zero, low, high float64, columns int) string {
	if !(high > low) || columns < 3 {
		return ""
	}
	line, mark, point, empty := '─', '│', '●', ' '
	if l.ASCII {
		line, mark, point = '-', '|', 'o'
	}
	place := func(v float64) int {
		return min(max(int(math.Round((v-low)/(high-low)*float64(columns-1))), 0), columns-1)
	}
	cells := []rune(strings.Repeat(string(empty), columns))
	if zero >= low && zero <= high {
		cells[place(zero)] = mark
	}
	for i := place(from); i <= place(to); i++ {
		cells[i] = line
	}
	if zero >= low && zero <= high && place(zero) != place(at) {
		cells[place(zero)] = mark
	}
	cells[place(at)] = point
	return strings.TrimRight(string(cells), " ")
}

// barRow is a name with a figure and its share of a whole.
type barRow struct {
	name, figure string
	share        float64
}

// bars writes rows with a bar each, as wide as the page leaves room for.
func (p *Page) bars(rows []barRow) {
	const most, room = 60, 8 // columns of a bar, and of " 100 %  "
	name, figure, longest := 0, 0, 0.0
	for i := range rows {
		name = max(name, utf8.RuneCountInString(rows[i].name))
		figure = max(figure, utf8.RuneCountInString(rows[i].figure))
		longest = max(longest, rows[i].share)
	}
	width := p.columns()
	name = min(name, width/2)
	columns := min(width-2-name-2-figure-room, most)
	for _, r := range rows {
		text := shorten(r.name, name)
		text += strings.Repeat(" ", name-utf8.RuneCountInString(text)+2+figure-utf8.RuneCountInString(r.figure)) + r.figure
		bar := ""
		if longest > 0 {
			bar = p.look.Bar(r.share/longest, columns)
		}
		p.b.WriteString(strings.TrimRight("  "+text+percentOf(r.share)+bar, " ") + "\n")
	}
}

// percentOf is a share in 8 columns.
func percentOf(share float64) string {
	text := "<1"
	if share == 0 || share >= 0.005 {
		text = strconv.FormatFloat(100*share, 'f', 0, 64)
	}
	return strings.Repeat(" ", max(4-len(text), 0)) + text + " %  "
}
