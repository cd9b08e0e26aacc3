package tune

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"mixdown/analyze/report"
	"mixdown/replay/tune"
)

// cellWidth is that of a column of the map: a size as "512 B" and a blank.
const cellWidth = 6

// How far ahead a winner is that the map marks.
const (
	farAhead     = 1.5
	veryFarAhead = 3
)

// writeHeat draws who wins where: a letter for each winner.
func writeHeat(b *strings.Builder, list []tune.Comparison) {
	label := labels(list)
	width := 0
	for _, c := range list {
		width = max(width, len(label(c.Question)))
	}
	h := tune.NewHeat(list, (report.PageWidth-2-width)/cellWidth)
	if len(h.Rows) == 0 {
		return
	}
	letters := letters(h)
	var winners []string
	for _, who := range h.Contenders {
		if l, ok := letters[who]; ok {
			winners = append(winners, fmt.Sprintf("%c %s", l, report.Printable(who.String())))
		}
	}
	fmt.Fprintf(b, "\nWho wins, by size: %s\n", strings.Join(winners, ", "))
	fmt.Fprintf(b, "  %-*s", width, "")
	for _, bytes := range h.Columns {
		fmt.Fprintf(b, "%*s", cellWidth, shortSize(bytes))
	}
	b.WriteByte('\n')
	var small, plus, hash bool
	for _, row := range h.Rows {
		var line strings.Builder
		fmt.Fprintf(&line, "  %-*s", width, label(row.Question))
		for _, c := range row.Cells {
			if c.Places == 0 {
				fmt.Fprintf(&line, "%*s", cellWidth, "")
				continue
			}
			letter, mark := letters[c.Winner], " "
			switch {
			case !c.Clear:
				letter, small = unicode.ToLower(letter), true
			case c.Gain >= veryFarAhead:
				mark, hash = "#", true
			case c.Gain >= farAhead:
				mark, plus = "+", true
			}
			fmt.Fprintf(&line, "%*c%s", cellWidth-1, letter, mark)
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	var marks []string
	if small {
		marks = append(marks, "a small letter: not clear")
	}
	if plus {
		marks = append(marks, fmt.Sprintf("+: the next best takes %v times as long", farAhead))
	}
	if hash {
		marks = append(marks, fmt.Sprintf("#: %v times", veryFarAhead))
	}
	if len(marks) > 0 {
		fmt.Fprintf(b, "  (%s)\n", strings.Join(marks, "; "))
	}
}

// labels names questions by what tells them apart: what all have in common is
// left out.
func labels(list []tune.Comparison) func(tune.Question) string {
	var same tune.Question
	nodes, class, device := true, true, true
	for i, c := range list {
		if i == 0 {
			same = c.Question
			continue
		}
		nodes = nodes && c.Nodes == same.Nodes
		device = device && c.Device == same.Device
		if c.Class != "any" { // of what is only moved there is one class
			class = class && (c.Class == same.Class || same.Class == "any")
			same.Class = c.Class
		}
	}
	return func(q tune.Question) string {
		if nodes {
			q.Nodes = 0
		}
		if class {
			q.Class = "any"
		}
		if device {
			q.Device = tune.Host
		}
		return q.String()
	}
}

// letters gives every winner one: of its name where that is free. A map knows too
// few letters only where more than 36 contenders win somewhere.
func letters(h *tune.Heat) map[tune.Contender]rune {
	wins := map[tune.Contender]bool{}
	for _, row := range h.Rows {
		for _, c := range row.Cells {
			wins[c.Winner] = wins[c.Winner] || c.Places > 0
		}
	}
	out, taken := map[tune.Contender]rune{}, map[rune]bool{}
	for _, who := range h.Contenders {
		if !wins[who] {
			continue
		}
		name := who.Variant // settings of one library differ in these
		if name == "" {
			name = who.Backend
		}
		out[who] = '?'
		for _, r := range strings.ToUpper(name) + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" {
			if r >= 'A' && r <= 'Z' && !taken[r] {
				out[who], taken[r] = r, true
				break
			}
		}
	}
	return out
}

// shortSize writes bytes in at most five characters: "512 B", "64 K", "1.5 M".
func shortSize(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range "KMGT" {
		f /= 1024
		switch {
		case f >= 999.5:
			continue
		case f < 9.95 && f != math.Trunc(f):
			return fmt.Sprintf("%.1f %c", f, unit)
		}
		return fmt.Sprintf("%.0f %c", f, unit)
	}
	return "huge"
}
