package report

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Duration writes ns with three digits or so: "13.01 ms".
func Duration(ns int64) string {
	switch n := float64(ns); {
	case ns == 0:
		return "0"
	case ns < 10_000 && ns > -10_000:
		return fmt.Sprintf("%.2f us", n/1e3)
	case ns < 1_000_000 && ns > -1_000_000:
		return fmt.Sprintf("%.1f us", n/1e3)
	case ns < 1_000_000_000 && ns > -1_000_000_000:
		return fmt.Sprintf("%.2f ms", n/1e6)
	default:
		return fmt.Sprintf("%.3f s", n/1e9)
	}
}

// Size writes bytes with binary units: "96 KiB", "16.2 KiB".
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return decimal(float64(n)/(1<<10), 1) + " KiB"
	case n < 1<<30:
		return decimal(float64(n)/(1<<20), 1) + " MiB"
	}
	return decimal(float64(n)/(1<<30), 2) + " GiB"
}

// decimal writes a number with that many digits after the point, without those at
// its end that are zeros: sizes are whole more often than not.
func decimal(f float64, digits int) string {
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(f, 'f', digits, 64), "0"), ".")
}

// Ranges writes sorted numbers with runs drawn together: "0-3, 7".
func Ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(list[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// maxPrintable bounds how much of a name from a trace is shown.
const maxPrintable = 300

// Printable makes text from a trace safe for a terminal: what is no visible
// character is escaped, so that no name can move the cursor or fake output.
func Printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		if i > maxPrintable {
			b.WriteString("...")
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
