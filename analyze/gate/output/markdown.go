package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"mixdown/analyze/gate"
	"mixdown/analyze/report"
)

// SummaryLimit is how many bytes of Markdown are written: GitHub takes 1 MiB of a
// step's summary and drops all of it when there is more.
const SummaryLimit = 900 << 10

// icons of outcomes.
var icons = map[gate.Outcome]string{
	gate.Pass: "✅", gate.Improved: "🟢", gate.Warning: "⚠️", gate.Waived: "🟡",
	gate.Regression: "❌", gate.Inconclusive: "❔", gate.NotComparable: "❔",
}

func writeMarkdown(w io.Writer, r *Document) error { return WriteSummary(w, r, SummaryLimit) }

// WriteSummary writes Markdown of at most limit bytes: the answer, what stops the
// gate, and a table of all checks as far as there is room. Of tables that do not
// fit, the first rows are kept, with a line that counts the others.
func WriteSummary(w io.Writer, r *Document, limit int) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "### %s %s: %s\n\n", icons[r.Outcome], r.tool(), markdown(r.Answer))
	before, after := r.sides()
	if r.Before != nil {
		fmt.Fprintf(&b, before+" %s  \n", markdown(SideText(r.Before)))
	}
	fmt.Fprintf(&b, after+" %s\n\n", markdown(SideText(r.After)))
	const reserve = 200 // for the line that says what was cut
	var causes []string
	for i := range r.Checks {
		if c := &r.Checks[i]; Told(c) {
			causes = append(causes, cause(c))
		}
	}
	for _, line := range comparisonLines(r, gate.Differs) {
		causes = append(causes, "- differs: "+markdown(line)+"\n")
	}
	fill(&b, causes, (limit-b.Len())/2, "- and %d more\n")
	b.WriteString("\n")
	if len(r.Checks) > 0 {
		head, rule := "| | check | limit | "+before+" | "+after+" | change | interval | p | steps |\n", "|---|---|---|---:|---:|---:|---|---:|---:|\n"
		if !r.limited() {
			head, rule = strings.Replace(head, " limit |", "", 1), strings.Replace(rule, "---|", "", 1)
		}
		b.WriteString(head + rule)
		var rows []string
		for i := range r.Checks {
			rows = append(rows, r.row(&r.Checks[i]))
		}
		notes := 0
		for _, n := range r.Notes {
			notes += len(markdown(n)) + 3
		}
		fill(&b, rows, limit-b.Len()-reserve-min(notes, limit/4), "\n%d more checks are not shown: the summary would be too large.\n")
		fmt.Fprintf(&b, "\n%s\n", markdown(r.Method))
	}
	var notes []string
	for _, n := range r.Notes {
		notes = append(notes, "- "+markdown(n)+"\n")
	}
	if notes != nil {
		b.WriteString("\n")
		fill(&b, notes, limit-b.Len()-reserve/2, "- and %d more notes\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// fill writes parts as long as there is room, then how many are left.
func fill(b *bytes.Buffer, parts []string, room int, more string) {
	for i, part := range parts {
		if len(part)+len(more)+20 > room {
			fmt.Fprintf(b, more, len(parts)-i)
			return
		}
		room -= len(part)
		b.WriteString(part)
	}
}

func cause(c *gate.Check) string {
	text := fmt.Sprintf("- %s **%s**: %s\n", icons[c.Outcome], markdown(c.Name()), markdown(message(c)))
	if a := advice(c); a != "" {
		text += "  " + code(a) + "\n"
	}
	return text
}

func (d *Document) row(c *gate.Check) string {
	before, after, change, interval := figures(c)
	cells := []string{icons[c.Outcome] + " " + string(c.Outcome), markdown(c.Name())}
	if d.limited() {
		cells = append(cells, markdown(c.Limit))
	}
	cells = append(cells, before, after, change, interval, markdown(significance(c)), steps(c))
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// markdown makes text safe in prose and in tables: nothing in it is formatting, a
// link, a mention or HTML.
func markdown(text string) string {
	var b strings.Builder
	runes := []rune(report.Printable(strings.ReplaceAll(text, "\n", " ")))
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	for i, c := range runes {
		if strings.ContainsRune("\\`*[]<|#&~$@", c) || c == '_' && !(inWord(i-1) && inWord(i+1)) {
			fmt.Fprintf(&b, "&#%d;", c)
			continue
		}
		b.WriteRune(c)
	}
	return strings.NewReplacer("www.", "www&#46;", "://", "&#58;//").Replace(b.String()) // no links of themselves
}

// code is text as it stands. A fence of more backticks than it has encloses it.
func code(text string) string {
	text = report.Printable(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}
