package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// TextOptions of the text form. The zero value is a page for a pipe.
type TextOptions struct {
	// Rows of every table; 0 means DefaultRows, negative all.
	Rows int
	// Wide shows all columns and whole names, in lines of any length.
	Wide bool
	Look Look
}

// DefaultRows is how many rows of every table text shows.
const DefaultRows = 25

// limit returns how many of n rows to show.
func (o TextOptions) limit(n int) int {
	switch {
	case o.Rows == 0:
		return min(n, DefaultRows)
	case o.Rows < 0:
		return n
	}
	return min(n, o.Rows)
}

// shownSteps is how many steps the head of the text names.
const shownSteps = 8

// WriteText writes the analysis for people.
func (a *Analysis) WriteText(w io.Writer, opts TextOptions) error {
	p := NewPageFor(opts.Wide, opts.Look)
	a.writeHeader(p)
	a.writeParts(p)
	if a.CriticalPath != nil {
		a.CriticalPath.writeText(p)
	}
	a.writePipelines(p, opts)
	a.writeRanks(p, opts)
	a.writeStragglers(p)
	a.writeCommunication(p, opts)
	a.writeBreakdown(p, opts)
	p.Diagnostics(a.Diagnostics)
	_, err := io.WriteString(w, p.String())
	return err
}

func (a *Analysis) writeHeader(p *Page) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d ranks", len(a.Run.RanksPresent), a.Run.WorldSize)
	if n := len(a.Run.RanksMissing); n > 0 {
		fmt.Fprintf(&b, " (missing: %s)", Ranges(a.Run.RanksMissing))
	}
	if a.Run.Backend != "" {
		fmt.Fprintf(&b, ", backend %s", Printable(a.Run.Backend))
	}
	fmt.Fprintf(&b, ", %d collectives matched on all their ranks", a.Matched)
	if a.Unmatched > 0 {
		fmt.Fprintf(&b, ", %d operations not matched", a.Unmatched)
	}
	p.Linef("%s", b.String())
	if len(a.Run.Steps) == 0 {
		return
	}
	var steps []string
	for i, s := range a.Run.Steps {
		if i == shownSteps {
			steps = append(steps, fmt.Sprintf("... (%d in all)", len(a.Run.Steps)))
			break
		}
		steps = append(steps, fmt.Sprintf("%s %s", Printable(s.Name), Duration(s.Dur)))
	}
	p.List("steps:", steps)
}

// writeParts draws where the time of all ranks went.
func (a *Analysis) writeParts(p *Page) {
	var sum Time
	for _, r := range a.Ranks {
		sum.Span += r.Time.Span
		sum.Compute += r.Time.Compute
		sum.Exposed += r.Time.Exposed
		sum.Idle += r.Time.Idle
	}
	if sum.Span <= 0 {
		return
	}
	p.Headingf("Where the ranks' time goes, %s in all", Duration(sum.Span))
	part := func(name string, ns int64) barRow {
		return barRow{name, Duration(ns), float64(ns) / float64(sum.Span)}
	}
	rows := []barRow{part("computation", sum.Compute), part("exposed communication", sum.Exposed)}
	if alone := sum.Span - sum.Compute - sum.Exposed - sum.Idle; alone > 0 {
		rows = append(rows, part("copies", alone))
	}
	p.bars(append(rows, part("idle", sum.Idle)))
	a.writeExposed(p)
}

// shownGroups is how many kinds of communication have a bar.
const shownGroups = 6

// writeExposed draws which groups and operations are exposed, the most first.
func (a *Analysis) writeExposed(p *Page) {
	type kind struct{ group, op string }
	sums, total := map[kind]int64{}, int64(0)
	for i := range a.Communication {
		c := &a.Communication[i]
		sums[kind{c.Group, string(c.Op)}] += c.Exposed
		total += c.Exposed
	}
	if len(sums) < 2 || total <= 0 {
		return // one is in the table
	}
	list := make([]kind, 0, len(sums))
	for k := range sums {
		list = append(list, k)
	}
	slices.SortFunc(list, func(x, y kind) int {
		return cmp.Or(cmp.Compare(sums[y], sums[x]), cmp.Compare(x.group, y.group), cmp.Compare(x.op, y.op))
	})
	var rows []barRow
	for _, k := range list[:min(len(list), shownGroups)] {
		rows = append(rows, barRow{Printable(k.op) + " in " + Printable(k.group), Duration(sums[k]), float64(sums[k]) / float64(total)})
	}
	p.Headingf("Exposed communication by group and operation (each kind by itself)")
	p.bars(rows)
}

// writeRanks shows, where there are too many, those with the most exposed
// communication.
func (a *Analysis) writeRanks(p *Page, opts TextOptions) {
	ranks := a.Ranks
	shown := opts.limit(len(ranks))
	if shown < len(ranks) {
		ranks = slices.Clone(ranks)
		slices.SortStableFunc(ranks, func(x, y Rank) int { return cmp.Compare(y.Time.Exposed, x.Time.Exposed) })
		ranks = ranks[:shown]
		slices.SortFunc(ranks, func(x, y Rank) int { return cmp.Compare(x.Rank, y.Rank) })
	}
	p.Headingf("Time of each rank (unions of intervals; exposed = communication that no computation covers)")
	g := NewGrid(Column{Head: "rank"}, Column{Head: "span"}, Column{Head: "compute"}, Column{Head: "comm"}, Column{Head: "exposed"},
		Column{"hidden", Spare}, Column{Head: "memory"}, Column{Head: "idle"}, Column{Head: "exposed/span"})
	for _, r := range ranks {
		share := "-"
		if r.Time.Span > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(r.Time.Exposed)/float64(r.Time.Span))
		}
		g.Row(strconv.Itoa(r.Rank), Duration(r.Time.Span), Duration(r.Time.Compute), Duration(r.Time.Comm), Duration(r.Time.Exposed),
			Duration(r.Time.Hidden), Duration(r.Time.Memory), Duration(r.Time.Idle), share)
	}
	p.Grid(g)
	p.more(len(a.Ranks)-shown, "ranks, with less exposed communication")
}

func (a *Analysis) writeCommunication(p *Page, opts TextOptions) {
	rows := opts.limit(len(a.Communication))
	if len(a.Communication) == 0 {
		p.Headingf("No communication in these traces.")
		return
	}
	p.Headingf("Communication (times summed over ranks; wait = until the last rank arrived; busbw in GB/s)")
	g := NewGrid(Column{"group", Names}, Column{"op", Names}, Column{"dtype", Detail}, Column{Head: "in"}, Column{Head: "out"}, Column{"ranks", Detail},
		Column{Head: "count"}, Column{"total", Detail}, Column{Head: "exposed"}, Column{Head: "wait"}, Column{Head: "transfer"}, Column{Head: "busbw"})
	estimated := false
	for _, c := range a.Communication[:rows] {
		op := Printable(string(c.Op))
		if c.Splits != nil && *c.Splits == SplitsEstimated {
			estimated = true
			op += p.pick("*", " (splits estimated)")
		}
		g.Row(Printable(c.Group), op, Printable(text(c.DType)), sizeOf(c.InBytes), sizeOf(c.OutBytes), number(c.Ranks), strconv.Itoa(c.Count), Duration(c.Total),
			Duration(c.Exposed), durationOf(c.Wait), durationOf(c.Transfer), p.pick(roughBandwidth(c.BusBW), bandwidth(c.BusBW)))
	}
	p.Grid(g)
	if estimated && !p.wide {
		p.Linef("* splits estimated from the totals of all members")
	}
	p.more(len(a.Communication)-rows, "rows")
}

// String is a diagnostic's line.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.Code)
	if d.Count != 1 {
		fmt.Fprintf(&b, " x%d", d.Count)
	}
	if d.Rank != nil {
		fmt.Fprintf(&b, ", rank %d", *d.Rank)
	}
	if d.Offset != nil {
		fmt.Fprintf(&b, ", byte %d", *d.Offset)
	}
	fmt.Fprintf(&b, ": %s", Printable(d.Example))
	return b.String()
}

func text(s *string) string {
	if s == nil {
		return "?"
	}
	return *s
}

func number(n *int) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(*n)
}

func sizeOf(n *int64) string {
	if n == nil {
		return "?"
	}
	return Size(*n)
}

func durationOf(n *int64) string {
	if n == nil {
		return "?"
	}
	return Duration(*n)
}

func bandwidth(f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.3g", *f)
}

// roughBandwidth has no more digits than a reader compares.
func roughBandwidth(f *float64) string {
	if f != nil && *f > 0 && *f < 0.001 {
		return "<0.001"
	}
	return bandwidth(f)
}
