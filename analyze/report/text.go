package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// TextOptions of the text form. The zero value shows everything that fits.
type TextOptions struct {
	// Rows of the communication table; 0 means DefaultRows, negative all.
	Rows int
}

// DefaultRows is how many rows of the communication table text shows.
const DefaultRows = 25

// WriteText writes the analysis for people.
func (a *Analysis) WriteText(w io.Writer, opts TextOptions) error {
	var b strings.Builder
	a.writeHeader(&b)
	if a.CriticalPath != nil {
		a.CriticalPath.writeText(&b)
	}
	a.writeRanks(&b)
	a.writeStragglers(&b)
	a.writeCommunication(&b, opts)
	a.writeBreakdown(&b)
	a.writeDiagnostics(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *Analysis) writeHeader(b *strings.Builder) {
	fmt.Fprintf(b, "%d of %d ranks", len(a.Run.RanksPresent), a.Run.WorldSize)
	if n := len(a.Run.RanksMissing); n > 0 {
		fmt.Fprintf(b, " (missing: %s)", Ranges(a.Run.RanksMissing))
	}
	if a.Run.Backend != "" {
		fmt.Fprintf(b, ", backend %s", Printable(a.Run.Backend))
	}
	fmt.Fprintf(b, ", %d collectives matched on all their ranks", a.Matched)
	if a.Unmatched > 0 {
		fmt.Fprintf(b, ", %d operations not matched", a.Unmatched)
	}
	b.WriteString("\n")
	if len(a.Run.Steps) > 0 {
		b.WriteString("steps: ")
		for i, s := range a.Run.Steps {
			if i > 0 {
				b.WriteString(", ")
			}
			if i == 8 {
				fmt.Fprintf(b, "... (%d in all)", len(a.Run.Steps))
				break
			}
			fmt.Fprintf(b, "%s %s", Printable(s.Name), Duration(s.Dur))
		}
		b.WriteString("\n")
	}
}

func (a *Analysis) writeRanks(b *strings.Builder) {
	b.WriteString("\nTime of each rank (unions of intervals; exposed = communication that no computation covers)\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rank\tspan\tcompute\tcomm\texposed\thidden\tmemory\tidle\texposed/span\t")
	for _, r := range a.Ranks {
		share := "-"
		if r.Time.Span > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(r.Time.Exposed)/float64(r.Time.Span))
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Rank, Duration(r.Time.Span), Duration(r.Time.Compute), Duration(r.Time.Comm),
			Duration(r.Time.Exposed), Duration(r.Time.Hidden), Duration(r.Time.Memory), Duration(r.Time.Idle), share)
	}
	t.Flush()
}

func (a *Analysis) writeCommunication(b *strings.Builder, opts TextOptions) {
	rows := opts.Rows
	if rows == 0 {
		rows = DefaultRows
	}
	if len(a.Communication) == 0 {
		b.WriteString("\nNo communication in these traces.\n")
		return
	}
	b.WriteString("\nCommunication (times summed over ranks; wait = until the last rank arrived)\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "group\top\tdtype\tin\tout\tranks\tcount\ttotal\texposed\twait\ttransfer\tbusbw GB/s\t")
	for i, c := range a.Communication {
		if rows > 0 && i == rows {
			break
		}
		op := string(c.Op)
		if c.Splits != nil && *c.Splits == SplitsEstimated {
			op += " (splits estimated)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t\n", Printable(c.Group), op, text(c.DType), sizeOf(c.InBytes), sizeOf(c.OutBytes),
			number(c.Ranks), c.Count, Duration(c.Total), Duration(c.Exposed), durationOf(c.Wait), durationOf(c.Transfer), bandwidth(c.BusBW))
	}
	t.Flush()
	if rows > 0 && len(a.Communication) > rows {
		fmt.Fprintf(b, "... and %d more rows (--rows -1 shows all)\n", len(a.Communication)-rows)
	}
}

func (a *Analysis) writeDiagnostics(b *strings.Builder) {
	if len(a.Diagnostics) == 0 {
		return
	}
	b.WriteString("\nDiagnostics\n")
	for _, d := range a.Diagnostics {
		fmt.Fprintf(b, "  %s\n", d)
	}
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
