package report

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// PageWidth is how many columns a page of text has, in runes, where no terminal says
// otherwise. It is a terminal
// beside an editor, and what a mail or an issue shows without breaking lines.
const PageWidth = 100

// Page is text for a terminal. Lines are wrapped and names in tables shortened to
// its columns, unless the page is wide.
type Page struct {
	b    strings.Builder
	wide bool
	look Look
}

// NewPage is an empty page. A wide one has lines of any length, whole names and
// all columns of its tables.
func NewPage(wide bool) *Page { return NewPageFor(wide, Look{}) }

// NewPageFor is a page that looks so.
func NewPageFor(wide bool, look Look) *Page { return &Page{wide: wide, look: look} }

// columns is how many the page has.
func (p *Page) columns() int { return p.look.columns() }

// String is the page so far.
func (p *Page) String() string { return p.b.String() }

// Linef writes one line of prose, whose names are printable already. What does
// not fit continues two columns further in than the line began.
func (p *Page) Linef(format string, args ...any) {
	p.prose(fmt.Sprintf(format, args...), false)
}

// more says that n rows of a table are not shown, if there are any.
func (p *Page) more(n int, rows string) {
	if n > 0 {
		p.Linef("... and %d more %s (--rows -1 shows all)", n, rows)
	}
}

// Headingf writes a line after an empty one.
func (p *Page) Headingf(format string, args ...any) {
	p.b.WriteString("\n")
	p.Linef(format, args...)
}

// List writes a line of items with commas between them. It is broken between
// items, not within them.
func (p *Page) List(lead string, items []string) {
	words := strings.Fields(lead)
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		words = append(words, item)
	}
	p.fill(indentOf(lead), words, false)
}

// Diagnostics writes the section of counted faults, if there are any.
func (p *Page) Diagnostics(list []Diagnostic) {
	if len(list) == 0 {
		return
	}
	p.Headingf("Diagnostics")
	for _, d := range list {
		p.prose("  "+d.String(), true)
	}
}

// pick chooses the short form of something, or on a wide page the full one.
func (p *Page) pick(short, full string) string {
	if p.wide {
		return full
	}
	return short
}

func (p *Page) prose(line string, paths bool) {
	if p.wide {
		p.b.WriteString(line + "\n")
		return
	}
	indent := indentOf(line)
	p.fill(indent, phrases(line[indent:]), paths)
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// fill writes words, as many as fit on each line. A word that fits on no line is
// shortened, or left too long when it is a path that someone will want to copy.
func (p *Page) fill(indent int, words []string, paths bool) {
	column := 0
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		if room := p.columns() - indent - 2; n > room && !p.wide && !(paths && strings.Contains(word, "/")) {
			word, n = shorten(word, room), room
		}
		switch {
		case i == 0:
			p.b.WriteString(strings.Repeat(" ", indent))
			column = indent
		case !p.wide && column+1+n > p.columns():
			p.b.WriteString("\n" + strings.Repeat(" ", indent+2))
			column = indent + 2
		default:
			p.b.WriteString(" ")
			column++
		}
		p.b.WriteString(word)
		column += n
	}
	p.b.WriteString("\n")
}

var (
	figure = regexp.MustCompile(`^\(?-?[0-9][0-9.]*$`)
	unit   = regexp.MustCompile(`^(ns|us|ms|s|B|KiB|MiB|GiB|GB/s|%)[),.;:]*$`)
)

// phrases are the words of a line; a figure and its unit are one.
func phrases(line string) []string {
	var list []string
	for _, word := range strings.Fields(line) {
		if n := len(list); n > 0 && figure.MatchString(list[n-1]) && unit.MatchString(word) {
			list[n-1] += " " + word
			continue
		}
		list = append(list, word)
	}
	return list
}

// shorten cuts the middle out of a name that has more than width runes. Names that
// belong together often differ only in how they end.
func shorten(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= width {
		return name
	}
	tail := max(width-1, 0) / 3
	head := max(width-1-tail, 0)
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}
