package gantt

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Legend explains the characters of Figure.Text in one line.
const Legend = "0-9 forward, a-z backward or input gradient, A-Z weight gradient of micro-batch 0 1 2 ... (after 9 or z from the first again), > < = of an unknown one; ~ communication, # other; alternating: at once; . idle"

// TextOptions is how a figure is drawn on a terminal.
type TextOptions struct {
	Width  int  // columns of time, at most; 0 is 80
	Colour bool // ANSI colours by phase; plain ASCII without
}

// Text draws the figure with one character a column, one line a row, its bubble
// behind it. A column shows what the row does in its middle. Where there are
// columns enough, every unit of time has the same number of them.
func (f Figure) Text(w io.Writer, opts TextOptions) error {
	if err := f.check(); err != nil {
		return err
	}
	width := opts.Width
	if width <= 0 {
		width = 80
	}
	end := f.end()
	if each := math.Floor(float64(width) / end); end == math.Floor(end) && each >= 1 {
		width = int(each * end)
	}
	var b strings.Builder
	if f.Title != "" {
		b.WriteString(clean(f.Title) + "\n")
	}
	for i, c := range f.Charts {
		rows := c.byRow()
		each, all := c.bubbles(rows)
		if len(f.Charts) > 1 {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(clean(c.Title) + ": " + strings.ReplaceAll(f.summary(i, all), "×", "x") + "\n")
		}
		until := c.until()
		label := 0
		for _, r := range c.Rows {
			label = max(label, utf8.RuneCountInString(clean(r.Name)))
		}
		for r, row := range rows {
			line := columns(row, end, until[r], width)
			fmt.Fprintf(&b, "%-*s |%s|", label, clean(c.Rows[r].Name), paint(line, opts.Colour))
			if !c.Rows[r].Beside {
				fmt.Fprintf(&b, " %6s", percent(each[r]))
			}
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell is what stands in a column; phase counts only where mark is a bar's.
type cell struct {
	mark  byte
	phase Phase
}

// columns is a row as characters: idle up to its own end, blank behind.
func columns(row []Bar, end, own float64, width int) []cell {
	line := make([]cell, width)
	for i := range line {
		line[i].mark = ' '
		if i < column(own, end, width) {
			line[i].mark = '.'
		}
	}
	for _, b := range row {
		first, last := column(b.Start, end, width), column(b.End, end, width)
		step := 1
		if b.Lane != Whole {
			step = 2
		}
		if b.Lane == Lower {
			first++
		}
		for c := first; c < last; c += step {
			line[c] = cell{b.mark(), b.Phase}
		}
	}
	return line
}

// column is the first column whose middle is not before a time.
func column(at, end float64, width int) int {
	// The middle of column c is at (c+1/2)·end/width.
	const rounding = 1e-9
	return max(0, min(width, int(math.Ceil(at/end*float64(width)-0.5-rounding))))
}

// mark is the character of a bar.
func (b Bar) mark() byte {
	known := b.Microbatch >= 0
	switch {
	case b.Phase == Communication:
		return '~'
	case b.Phase == Other:
		return '#'
	case b.Phase == Forward && known:
		return '0' + byte(b.Microbatch%10)
	case b.Phase == Forward:
		return '>'
	case b.Phase == WeightGradient && known:
		return 'A' + byte(b.Microbatch%26)
	case b.Phase == WeightGradient:
		return '='
	case known:
		return 'a' + byte(b.Microbatch%26)
	}
	return '<'
}

// paint is a line, with a colour for each run of one phase.
func paint(line []cell, colour bool) string {
	codes := [phases]string{"34", "33", "31", "32", "35", "36"}
	var b strings.Builder
	on := ""
	for _, c := range line {
		code := ""
		if colour {
			code = "90"
			if c.mark != '.' && c.mark != ' ' {
				code = codes[c.phase]
			}
		}
		if code != on {
			b.WriteString("\x1b[" + code + "m")
			on = code
		}
		b.WriteByte(c.mark)
	}
	if on != "" {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}
