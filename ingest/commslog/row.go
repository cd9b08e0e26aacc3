package commslog

import (
	"math"
	"strconv"
	"strings"
)

// columnWidth is the width that every field of a table is padded to.
const columnWidth = 20

// fields are the values of a row as text: the size, the count, and four
// numbers. Both kinds of table have this form.
type fields struct {
	size, count string
	numbers     [4]string
}

// looksLikeRow says whether line, without the launcher's prefix, begins as rows
// do: with a column of blanks and then a digit.
func looksLikeRow(line string) bool {
	rest := strings.TrimLeft(line, " ")
	return len(line)-len(rest) >= columnWidth && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// splitRow finds the fields of a row, by columns if they hold, by grammar if
// not.
func splitRow(line string) (fields, bool) {
	if f, ok := byColumns(line); ok {
		return f, true
	}
	return byGrammar(line)
}

func byColumns(line string) (f fields, ok bool) {
	if len(line) < columnWidth || strings.Trim(line[:columnWidth], " ") != "" {
		return f, false
	}
	var cells [6]string
	rest := line[columnWidth:]
	for i := range cells {
		n := min(columnWidth, len(rest))
		cells[i] = strings.TrimRight(rest[:n], " ")
		rest = rest[n:]
	}
	if strings.TrimSpace(rest) != "" {
		return f, false
	}
	f = fields{size: cells[0], count: cells[1], numbers: [4]string(cells[2:])}
	if _, _, ok := parseSize(f.size); !ok || !isCount(f.count) {
		return f, false
	}
	for _, n := range f.numbers {
		if !isNumber(n) {
			return f, false
		}
	}
	return f, true
}

// byGrammar reads a row whose columns are shifted: a value of more than 20
// characters pushes those behind it, and touches its neighbour. The numbers
// have two decimals each, so their ends are known.
func byGrammar(line string) (f fields, ok bool) {
	rest := strings.TrimLeft(line, " \t")
	digits := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if digits <= 0 {
		return f, false
	}
	unit := strings.TrimLeft(rest[digits:], " ")
	end := strings.IndexFunc(unit, func(r rune) bool { return r < 'A' || r > 'Z' })
	if end <= 0 {
		return f, false
	}
	f.size = rest[:digits] + " " + unit[:end]
	if _, _, ok := parseSize(f.size); !ok {
		return f, false
	}
	rest = strings.TrimLeft(unit[end:], " ")
	f.count, rest, _ = strings.Cut(rest, " ")
	if !isCount(f.count) {
		return f, false
	}
	for i := range f.numbers {
		rest = strings.TrimLeft(rest, " ")
		n := numberLength(rest)
		if n == 0 {
			return f, false
		}
		f.numbers[i], rest = rest[:n], rest[n:]
	}
	return f, strings.TrimSpace(rest) == ""
}

func isCount(s string) bool { return s != "" && len(s) <= 18 && allDigits(s) }

// numberLength is the length of the number at the beginning of s as "%.2f"
// writes it, 0 when there is none.
func numberLength(s string) int {
	i := 0
	if strings.HasPrefix(s, "-") {
		i = 1
	}
	for _, word := range []string{"nan", "inf"} {
		if strings.HasPrefix(s[i:], word) {
			return i + len(word)
		}
	}
	start := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == start || i+3 > len(s) || s[i] != '.' || !allDigits(s[i+1:i+3]) {
		return 0
	}
	return i + 3
}

func isNumber(s string) bool { return s != "" && numberLength(s) == len(s) }

// gbps reads a bandwidth; nan and inf are unknown.
func gbps(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// summary makes a row of the fields of a summary table; false when a number
// does not fit or is no number.
func (f fields) summary() (Row, bool) {
	r := Row{ResolutionNS: textResolution}
	var ok [4]bool
	r.SizeLo, r.SizeHi, ok[0] = parseSize(f.size)
	var err error
	r.Count, err = strconv.ParseInt(f.count, 10, 64)
	ok[1] = err == nil
	r.TotalNS, ok[2] = millis(f.numbers[0])
	r.AvgNS, ok[3] = millis(f.numbers[1])
	r.HasTimes = true
	r.TputGbps, r.TputGbpsKnown = gbps(f.numbers[2])
	r.BusGbps, r.BusGbpsKnown = gbps(f.numbers[3])
	r.zeroUnknown()
	return r, ok == [4]bool{true, true, true, true}
}

// straggler makes a row of the fields of a straggler table.
func (f fields) straggler() (Row, bool) {
	r := Row{ResolutionNS: textResolution}
	var ok [6]bool
	r.SizeLo, r.SizeHi, ok[0] = parseSize(f.size)
	s := &Straggler{}
	var err error
	s.Count, err = strconv.ParseInt(f.count, 10, 64)
	ok[1] = err == nil
	s.TotalCommNS, ok[2] = millis(f.numbers[0])
	s.TotalStragglerNS, ok[3] = millis(f.numbers[1])
	s.AvgCommNS, ok[4] = millis(f.numbers[2])
	s.AvgStragglerNS, ok[5] = millis(f.numbers[3])
	r.Count, r.Straggler = s.Count, s
	return r, ok == [6]bool{true, true, true, true, true, true}
}

// zeroUnknown leaves nothing in the fields that are not known.
func (r *Row) zeroUnknown() {
	if !r.TputGbpsKnown {
		r.TputGbps = 0
	}
	if !r.BusGbpsKnown {
		r.BusGbps = 0
	}
}

const textResolution = 10_000 // ns: times are printed in ms with two decimals
