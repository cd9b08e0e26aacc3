package diff

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"mixdown/analyze/report"
)

// TextOptions of the text form.
type TextOptions struct {
	// Rows of the table of operations; 0 means DefaultRows, negative all.
	Rows int
	Look report.Look
}

// DefaultRows is how many operations the text shows.
const DefaultRows = 25

// WriteText writes the comparison for people, the answer first.
func (d *Diff) WriteText(w io.Writer, opts TextOptions) error {
	var b strings.Builder
	wrap(&b, d.Answer, "", opts.Look.Width())
	b.WriteString("\n")
	d.Before.write(&b, "before:", opts.Look.Width())
	d.After.write(&b, "after:", opts.Look.Width())
	for _, n := range d.Notes {
		wrap(&b, "note: "+report.Printable(n.Text), "  ", opts.Look.Width())
	}
	d.writeTime(&b, opts.Look)
	d.writeOperations(&b, opts)
	d.writeDiagnostics(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Side) write(b *strings.Builder, which string, columns int) {
	text := fmt.Sprintf("%s %s, %d of %d ranks, ", which, clip(report.Printable(s.Name), 50), s.RanksRead, s.WorldSize)
	if s.Steps > 0 {
		text += counting(s.Steps, "step") + ", "
	} else {
		text += "no steps, "
	}
	wrap(b, text+counting(s.Operations, "operation"), "        ", columns)
}

// line is a row of a table: cells of fixed width, the first to the left.
func line(b *strings.Builder, widths []int, cells ...string) {
	var text strings.Builder
	for i, c := range cells {
		if i > 0 {
			text.WriteString("  ")
		}
		pad := strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(c), 0))
		if i == 0 {
			text.WriteString(c + pad)
		} else {
			text.WriteString(pad + c)
		}
	}
	b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
}

func (d *Diff) writeTime(b *strings.Builder, look report.Look) {
	head := "\nTime of a step, mean over ranks (median over steps)\n"
	if d.Before.Steps == 0 || d.After.Steps == 0 {
		head = "\nTime, mean over ranks (where a run has no steps: of its whole trace)\n"
	}
	b.WriteString(head)
	widths := []int{22, 10, 10, 10, 9, 6}
	line(b, widths, "", "before", "after", "change", "", "p")
	// Bars are of the changes per rank, against the largest.
	largest, room := 0.0, min(look.Width()-79, 40)
	for _, m := range []*Metric{&d.Time.Step, &d.Time.Compute, &d.Time.Comm, &d.Time.Exposed, &d.Time.Hidden, &d.Time.Memory, &d.Time.Idle} {
		if m.PerRankChange != nil {
			largest = max(largest, math.Abs(*m.PerRankChange))
		}
	}
	bar := func(m *Metric) string {
		if m.PerRankChange == nil || *m.PerRankChange == 0 {
			return ""
		}
		sign := "+"
		if *m.PerRankChange < 0 {
			sign = "-"
		}
		return sign + look.Bar(math.Abs(*m.PerRankChange)/largest, room-1)
	}
	step := &d.Time.Step
	line(b, widths, "step, slowest rank", sum(step.Before), sum(step.After), deltaOf(step), share(step.Relative, floatOf(step.Change)), pOf(step))
	average := *step
	average.P = nil // the test is of the slowest rank's times
	for _, r := range []struct {
		name string
		m    *Metric
	}{
		{"step", &average}, {"computation", &d.Time.Compute}, {"communication", &d.Time.Comm}, {"  exposed", &d.Time.Exposed},
		{"  hidden", &d.Time.Hidden}, {"memory", &d.Time.Memory}, {"idle", &d.Time.Idle},
	} {
		var relative *float64
		if r.m.PerRankChange != nil && *r.m.PerRankBefore != 0 {
			q := *r.m.PerRankChange / *r.m.PerRankBefore
			relative = &q
		}
		line(b, widths, r.name, mean(r.m.PerRankBefore), mean(r.m.PerRankAfter), delta(r.m.PerRankChange), share(relative, r.m.PerRankChange), fmt.Sprintf("%6s  %s", pOf(r.m), bar(r.m)))
	}
}

// The columns of the table of operations make 99 characters with the spaces.
var operationWidths = []int{48, 9, 9, 10, 7, 6}

func (d *Diff) writeOperations(b *strings.Builder, opts TextOptions) {
	if len(d.Operations) == 0 {
		b.WriteString("\nNo communication in either run.\n")
		return
	}
	rows := opts.Rows
	if rows == 0 {
		rows = DefaultRows
	}
	basis := "sums over ranks"
	if d.Basis == ByRank {
		basis = "means per rank"
	}
	fmt.Fprintf(b, "\nOperations of a step, by change of exposed time (%s, median over steps)\n", basis)
	shown, quiet := 0, 0
	for i := range d.Operations {
		o := &d.Operations[i]
		if o.still() {
			quiet++
			continue
		}
		if rows > 0 && shown == rows {
			continue
		}
		if shown++; shown == 1 {
			b.WriteString("  + appeared  - vanished  > grew  < shrank\n")
			line(b, operationWidths, "", "count", "exposed", "change", "", "p")
		}
		d.writeOperation(b, o)
	}
	if rest := len(d.Operations) - quiet - shown; rest > 0 {
		fmt.Fprintf(b, "... and %d more (--rows -1 shows all)\n", rest)
	}
	if quiet > 0 {
		fmt.Fprintf(b, "no change in count, size, total or exposed time: %s\n", counting(quiet, "operation"))
	}
}

// still says whether the operation has no change at all that the text shows.
func (o *Operation) still() bool {
	for _, m := range []*Metric{&o.Count, &o.Bytes, &o.Total, &o.Exposed} {
		if c, ok := m.change(); ok && c != 0 || !ok && m != &o.Bytes {
			return false
		}
	}
	return o.Verdict == Unchanged
}

var marks = map[Verdict]string{Appeared: "+", Vanished: "-", Grew: ">", Shrank: "<", Unchanged: " "}

func (d *Diff) writeOperation(b *strings.Builder, o *Operation) {
	tail := ""
	if o.SizeTo != nil {
		tail += " " + o.Class()
	}
	if o.Phase != nil {
		tail += " " + *o.Phase
	}
	what := marks[o.Verdict] + " " + string(o.Op) + tail
	if o.Group != nil { // the name may be long; what follows it must not go
		what += " in "
		what += clip(report.Printable(*o.Group), operationWidths[0]-utf8.RuneCountInString(what))
	}
	count := counted(&o.Count, d.Basis)
	e := &o.Exposed
	if d.Basis == BySum {
		line(b, operationWidths, clip(what, operationWidths[0]), count, sum(e.Before), deltaOf(e), share(e.Relative, e.PerRankChange), pOf(e))
		return
	}
	line(b, operationWidths, clip(what, operationWidths[0]), count, mean(e.PerRankBefore), deltaOf(e), share(e.Relative, e.PerRankChange), pOf(e))
}

func (d *Diff) writeDiagnostics(b *strings.Builder) {
	if len(d.Before.Diagnostics)+len(d.After.Diagnostics) == 0 {
		return
	}
	fmt.Fprintf(b, "\nKinds of diagnostics: %d before, %d after (mixdown analyze lists them)\n", len(d.Before.Diagnostics), len(d.After.Diagnostics))
}

// counting is a number of things: "1 step", "2 steps".
func counting(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func counted(m *Metric, basis Basis) string {
	if basis == BySum {
		if *m.Before == *m.After {
			return fmt.Sprint(*m.Before)
		}
		return fmt.Sprintf("%d>%d", *m.Before, *m.After)
	}
	if *m.PerRankBefore == *m.PerRankAfter {
		return fmt.Sprintf("%.3g", *m.PerRankBefore)
	}
	return fmt.Sprintf("%.3g>%.3g", *m.PerRankBefore, *m.PerRankAfter)
}

func sum(v *int64) string {
	if v == nil {
		return "?"
	}
	return report.Duration(*v)
}

func mean(v *float64) string {
	if v == nil {
		return "?"
	}
	return report.Duration(int64(*v))
}

func delta(v *float64) string {
	if v == nil {
		return "?"
	}
	return signed(*v)
}

func deltaOf(m *Metric) string {
	if c, ok := m.change(); ok {
		return signed(c)
	}
	return "?"
}

func floatOf(v *int64) *float64 {
	if v == nil {
		return nil
	}
	f := float64(*v)
	return &f
}

// share is a relative change; nothing for no change or from 0, where it has none.
func share(relative, change *float64) string {
	if relative == nil || change == nil || *change == 0 {
		return ""
	}
	text := strings.ReplaceAll(percent(relative), " %", "%")
	return text
}

// pOf is empty where no step differs from any other.
func pOf(m *Metric) string {
	if c, ok := m.change(); m.P == nil || ok && c == 0 && *m.P == 1 {
		return ""
	}
	return shortP(*m.P)
}

// clip shortens text to n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 3 {
		return ""
	}
	return string([]rune(s)[:n-2]) + ".."
}

// wrap writes a paragraph in lines that fit, those after the first indented.
func wrap(b *strings.Builder, text, indent string, columns int) {
	width := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
			b.WriteString(lead)
			width = len(lead)
		case width+1+n > columns:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteString(" ")
			width++
		}
		b.WriteString(word)
		width += n
	}
	b.WriteString("\n")
}
