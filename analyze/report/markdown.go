package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteMarkdown writes the report as Markdown, in the dialect of GitHub (tables).
func (a *Analysis) WriteMarkdown(w io.Writer, opts TextOptions) error {
	var b strings.Builder
	b.WriteString("# Communication analysis\n\n")
	fmt.Fprintf(&b, "%d of %d ranks", len(a.Run.RanksPresent), a.Run.WorldSize)
	if n := len(a.Run.RanksMissing); n > 0 {
		fmt.Fprintf(&b, " (missing: %s)", Ranges(a.Run.RanksMissing))
	}
	if a.Run.Backend != "" {
		fmt.Fprintf(&b, ", backend %s", escaped(a.Run.Backend))
	}
	fmt.Fprintf(&b, ", %d collectives matched on all their ranks, %d operations not matched.\n", a.Matched, a.Unmatched)
	a.markdownSteps(&b)
	a.markdownCritical(&b)
	a.markdownPipelines(&b)
	a.markdownRanks(&b)
	a.markdownStragglers(&b)
	a.markdownCommunication(&b, opts)
	a.markdownBreakdown(&b)
	a.markdownDiagnostics(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *Analysis) markdownSteps(b *strings.Builder) {
	if len(a.Run.Steps) == 0 {
		return
	}
	t := newMarkdownTable(b, "Steps", "", "step:", "ranks", "longest")
	for _, s := range a.Run.Steps {
		t.row(escaped(s.Name), strconv.Itoa(s.Ranks), Duration(s.Dur))
	}
}

func (a *Analysis) markdownCritical(b *strings.Builder) {
	c := a.CriticalPath
	if c == nil {
		return
	}
	step := "the whole trace"
	if c.Step != "" {
		step = escaped(c.Step)
	}
	fmt.Fprintf(b, "\n## What bounds %s\n\n%s from the first rank's start to the last one's end. %s\n\n", step, Duration(c.StepNS), escaped(c.Bound.Text))
	for _, line := range strings.Split(GainText(c.Free, c.FreeByOp), "\n") {
		b.WriteString(escaped(strings.TrimSpace(line)) + "\n")
	}
	t := newMarkdownTable(b, "", "", "on the critical path:", "time")
	for _, k := range c.ByKind {
		t.row(escaped(fmt.Sprint(k.Kind)), Duration(k.NS))
	}
}

func (a *Analysis) markdownRanks(b *strings.Builder) {
	t := newMarkdownTable(b, "Time of each rank", "Unions of intervals; exposed is communication that no computation covers.",
		"rank", "span", "compute", "comm", "exposed", "hidden", "memory", "idle", "exposed/span")
	for _, r := range a.Ranks {
		share := "-"
		if r.Time.Span > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(r.Time.Exposed)/float64(r.Time.Span))
		}
		t.row(strconv.Itoa(r.Rank), Duration(r.Time.Span), Duration(r.Time.Compute), Duration(r.Time.Comm), Duration(r.Time.Exposed),
			Duration(r.Time.Hidden), Duration(r.Time.Memory), Duration(r.Time.Idle), share)
	}
}

func (a *Analysis) markdownStragglers(b *strings.Builder) {
	if len(a.Ranks) < 2 {
		return
	}
	fmt.Fprintf(b, "\n## Clocks\n\n%s", escaped(a.Clocks.Reason))
	if a.Clocks.Remaining != nil {
		fmt.Fprintf(b, " Ends of collectives lie %s apart as traced, %s after the correction.", Duration(*a.Clocks.Spread), Duration(*a.Clocks.Remaining))
	}
	b.WriteString("\n")
	if a.Stragglers.Attributed == 0 {
		return
	}
	t := newMarkdownTable(b, "Stragglers", fmt.Sprintf("Of %s that ranks waited in %d collectives, %s was for one rank alone.",
		Duration(a.Stragglers.Wait), a.Stragglers.Judged, Duration(a.Stragglers.Attributed)),
		"rank", "others waited for it", "of that inherited", "in collectives", "it waited")
	for i, r := range a.Stragglers.Ranks {
		if i == shownStragglers || r.Caused == 0 {
			break
		}
		t.row(strconv.Itoa(r.Rank), Duration(r.Caused), Duration(r.Inherited), strconv.Itoa(r.Count), Duration(r.Waited))
	}
}

func (a *Analysis) markdownCommunication(b *strings.Builder, opts TextOptions) {
	if len(a.Communication) == 0 {
		b.WriteString("\n## Communication\n\nNo communication in these traces.\n")
		return
	}
	t := newMarkdownTable(b, "Communication", "Times are summed over ranks; wait is until the last rank arrived.",
		"group:", "op:", "dtype:", "in", "out", "ranks", "count", "total", "exposed", "wait", "transfer", "busbw GB/s")
	rows := opts.limit(len(a.Communication))
	for _, c := range a.Communication[:rows] {
		op := escaped(string(c.Op))
		if c.Splits != nil && *c.Splits == SplitsEstimated {
			op += " (splits estimated)"
		}
		t.row(escaped(c.Group), op, escaped(text(c.DType)), sizeOf(c.InBytes), sizeOf(c.OutBytes), number(c.Ranks), strconv.Itoa(c.Count),
			Duration(c.Total), Duration(c.Exposed), durationOf(c.Wait), durationOf(c.Transfer), bandwidth(c.BusBW))
	}
	if more := len(a.Communication) - rows; more > 0 {
		fmt.Fprintf(b, "\n%d more rows are left out.\n", more)
	}
}

func (a *Analysis) markdownBreakdown(b *strings.Builder) {
	if a.phases == nil {
		return
	}
	t := newMarkdownTable(b, "Communication by phase", "Times are summed over ranks and steps.",
		"group:", "op:", "phase:", "count", "total", "exposed", "hidden")
	for _, r := range a.phases {
		phase := r.Phase.String()
		if phase == "" {
			phase = "?"
		}
		t.row(escaped(r.GroupLabel()), escaped(string(r.Op)), phase, fmt.Sprint(r.Count), Duration(r.Total), Duration(r.Exposed), Duration(r.Hidden))
	}
	t = newMarkdownTable(b, "Time of each step", "", "rank", "step:", "lasts", "compute", "comm", "exposed", "memory", "idle")
	for _, r := range a.StepsByRank {
		for _, s := range r.Steps {
			t.row(strconv.Itoa(r.Rank), escaped(s.Step), Duration(s.Dur), Duration(s.Compute), Duration(s.Comm), Duration(s.Exposed), Duration(s.Memory), Duration(s.Idle))
		}
	}
}

func (a *Analysis) markdownDiagnostics(b *strings.Builder) {
	if len(a.Diagnostics) == 0 {
		return
	}
	t := newMarkdownTable(b, "Diagnostics", "", "code:", "rank", "count", "byte", "first example:")
	for _, d := range a.Diagnostics {
		offset := ""
		if d.Offset != nil {
			offset = strconv.FormatInt(*d.Offset, 10)
		}
		rank := ""
		if d.Rank != nil {
			rank = strconv.Itoa(*d.Rank)
		}
		t.row(escaped(d.Code), rank, strconv.FormatInt(d.Count, 10), offset, escaped(d.Example))
	}
}

// markdownTable writes rows. Columns whose header ends in a colon are text and
// stand left, the others are numbers and stand right.
type markdownTable struct{ b *strings.Builder }

func newMarkdownTable(b *strings.Builder, title, about string, columns ...string) markdownTable {
	if title != "" {
		fmt.Fprintf(b, "\n## %s\n", title)
	}
	if about != "" {
		fmt.Fprintf(b, "\n%s\n", about)
	}
	b.WriteString("\n")
	t := markdownTable{b}
	heads, rules := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		name, left := strings.CutSuffix(c, ":")
		heads[i], rules[i] = name, "---:"
		if left {
			rules[i] = "---"
		}
	}
	t.row(heads...)
	t.row(rules...)
	return t
}

// row writes cells that are escaped already.
func (t markdownTable) row(cells ...string) {
	t.b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// escaped makes text from a trace safe in Markdown: it is what a terminal may
// show, and no character of it is markup, HTML or the end of a table's cell. Not
// even a link is made of it: GitHub would of "www." and of "@name".
func escaped(s string) string {
	var b strings.Builder
	for _, r := range Printable(s) {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@':
			b.WriteString("&#64;")
		case strings.ContainsRune("\\`*_{}[]()#+!|~$", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return strings.NewReplacer("www.", "www&#46;", "://", "&#58;//").Replace(b.String())
}
