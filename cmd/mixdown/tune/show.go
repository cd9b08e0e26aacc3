package tune

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/page"
	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// filter says what to show; the zero value shows all.
type filter struct {
	op    comm.Op
	ranks int
}

func newShowCmd(streams *cli.Streams) *cobra.Command {
	var format, op, parquet, html string
	var ranks int
	cmd := &cobra.Command{
		Use:   "show TABLE...",
		Short: "Who wins by operation and size, where the winner changes, what one library for everything loses",
		Long: `Reads a table of measurements, or several as one, and compares all libraries and
settings in it: the time of each at every size, the winner, the sizes at which the
winner changes, and what is lost by using one of them for everything.

A winner is marked with ~ where it is not clear: it is less than 3 % ahead, or the
confidence intervals overlap. Such places don't move a crossing.`,
		Example: `  mixdown tune show here.tune
  mixdown tune show here.tune --op all_reduce --ranks 4
  mixdown tune show here.tune imported.tune --format json
  mixdown tune show here.tune --html here.html
  mixdown tune show here.tune --parquet here.parquet`,
		Args: atLeastOne,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			t, err := Load(args)
			if err != nil {
				return err
			}
			if parquet != "" {
				if err := export.WriteFile(parquet, t.WriteParquet); err != nil {
					return fmt.Errorf("--parquet %s: %w", parquet, err)
				}
			}
			list := filter{comm.Op(op), ranks}.of(t)
			if html != "" {
				if err := writePage(html, t, list, args); err != nil {
					return fmt.Errorf("--html %s: %w", html, err)
				}
			}
			return show(streams.Out, t, format, list)
		},
	}
	cli.FormatFlag(cmd, &format)
	f := cmd.Flags()
	f.StringVar(&op, "op", "", "only this operation")
	f.IntVar(&ranks, "ranks", 0, "only groups of this size")
	f.StringVar(&html, "html", "", "also write a page for people to `FILE`: the map, times by library and size, what one library for everything costs")
	f.StringVar(&parquet, "parquet", "", "also write the rows as Parquet into `FILE`")
	return cmd
}

func newMergeCmd(streams *cli.Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "merge TABLE... -o TABLE",
		Short: "Make one table of several",
		Long: `Makes one table of several. Of two measurements of the same on the same machine
the one that rests on more stays, the later where both rest on as many.`,
		Example: `  mixdown tune merge a.tune b.tune -o both.tune`,
		Args:    atLeastOne,
		RunE: func(_ *cobra.Command, args []string) error {
			if output == "" {
				return fmt.Errorf("%w: -o TABLE is missing: name the file to write", cli.ErrUsage)
			}
			t, err := Load(args)
			if err != nil {
				return err
			}
			if err := t.Write(output); err != nil {
				return err
			}
			_, err = fmt.Fprintf(streams.Out, "%s: %d measurements\n", output, len(t.Rows))
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "`TABLE` to write")
	return cmd
}

// atLeastOne asks for a table.
func atLeastOne(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no input: name a table (\"mixdown tune\" and \"mixdown import\" make them)", cli.ErrUsage)
	}
	return nil
}

// Load reads tables as one.
func Load(names []string) (*tune.Table, error) {
	all := &tune.Table{}
	for _, name := range names {
		t, err := tune.Read(name)
		if err != nil {
			return nil, err
		}
		if err := all.Merge(t); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// of compares what the filter leaves of a table.
func (f filter) of(t *tune.Table) []tune.Comparison {
	var list []tune.Comparison
	for _, c := range tune.Compare(t, nil) {
		if (f.op == "" || c.Op == f.op) && (f.ranks == 0 || c.Ranks == f.ranks) {
			list = append(list, c)
		}
	}
	return list
}

// writePage writes the table for people to forward.
func writePage(file string, t *tune.Table, list []tune.Comparison, args []string) error {
	return export.WriteFile(file, page.Table(t, list, page.Process(args)).Write)
}

// show writes what the table says.
func show(w io.Writer, t *tune.Table, format string, list []tune.Comparison) error {
	if format == cli.JSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		return enc.Encode(newOutput(t, list))
	}
	return writeText(w, t, list)
}

func writeText(w io.Writer, t *tune.Table, list []tune.Comparison) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d measurements", len(t.Rows))
	for _, device := range []string{tune.Host, tune.GPU} {
		if n := count(t, device); n > 0 && device == tune.Host {
			fmt.Fprintf(&b, ", %d of them in host memory (say nothing about GPUs)", n)
		} else if n > 0 {
			fmt.Fprintf(&b, ", %d of them on GPUs", n)
		}
	}
	b.WriteByte('\n')
	for _, e := range t.Environments {
		fmt.Fprintf(&b, "  %s: %s\n", e.Hash, report.Printable(e.String()))
	}
	for _, c := range t.Contentions {
		fmt.Fprintf(&b, "  %s\n", contentionText(c))
	}
	writeHeat(&b, list)
	writeLosses(&b, list)
	for i := range list {
		writeComparison(&b, &list[i])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeLosses says what one contender for everything costs.
func writeLosses(b *strings.Builder, list []tune.Comparison) {
	losses := tune.Losses(list)
	if len(losses) > 0 {
		b.WriteString("\nOne for everything, against the best at each place\n")
		tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		for _, l := range losses {
			fmt.Fprintf(tw, "  %s\t%+.1f %%\tat worst %.1f times the time (%s, %s)\t%s\n", l.Contender, 100*(l.Mean-1), l.Worst, l.Where, report.Size(l.Bytes), covered(l))
		}
		tw.Flush()
	}
}

func covered(l tune.Loss) string {
	if l.Places == l.Of {
		return fmt.Sprintf("at all %d places", l.Of)
	}
	return fmt.Sprintf("at %d of %d places", l.Places, l.Of)
}

func count(t *tune.Table, device string) int {
	n := 0
	for i := range t.Rows {
		if t.Rows[i].Device == device {
			n++
		}
	}
	return n
}

func writeComparison(b *strings.Builder, c *tune.Comparison) {
	fmt.Fprintf(b, "\n%s\n", c.Question)
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tw, "\t")
	for _, who := range c.Contenders {
		fmt.Fprintf(tw, "%s\t", report.Printable(who.String()))
	}
	fmt.Fprint(tw, "  winner\t\n")
	for _, p := range c.Places {
		fmt.Fprintf(tw, "%s\t", report.Size(p.Bytes))
		for _, who := range c.Contenders {
			if ns, ok := p.Times[who]; ok {
				fmt.Fprintf(tw, "%s\t", report.Duration(ns))
			} else {
				fmt.Fprint(tw, "-\t")
			}
		}
		winner := p.Winner.String()
		if len(p.Times) < 2 {
			winner = ""
		} else if !p.Clear {
			winner = "~ " + winner
		} else {
			winner = fmt.Sprintf("%s by %.2f", winner, p.Gain)
		}
		fmt.Fprintf(tw, "  %s\t\n", report.Printable(winner))
	}
	writeFits(tw, c)
	tw.Flush()
	for _, x := range c.Crossings {
		fmt.Fprintf(b, "  %s below %s, %s from there (measured at %s and %s)\n", x.Below, report.Size(x.Bytes), x.Above, report.Size(x.Lower), report.Size(x.Higher))
	}
}

// writeFits adds what a line through the times says: what starting takes, what a
// MiB takes, and how far the line is from the times.
func writeFits(tw io.Writer, c *tune.Comparison) {
	if len(c.Fits) == 0 {
		return
	}
	for _, row := range []struct {
		name string
		of   func(tune.Fit) string
	}{
		{"start", func(f tune.Fit) string { return report.Duration(int64(f.Alpha)) }},
		{"per MiB", func(f tune.Fit) string { return report.Duration(int64(f.Beta * (1 << 20))) }},
		{"within", func(f tune.Fit) string { return fmt.Sprintf("%.0f %%", 100*f.Residual) }},
	} {
		fmt.Fprintf(tw, "%s\t", row.name)
		for _, who := range c.Contenders {
			if f, ok := c.Fits[who]; ok {
				fmt.Fprintf(tw, "%s\t", row.of(f))
			} else {
				fmt.Fprint(tw, "-\t")
			}
		}
		fmt.Fprint(tw, "\t\n")
	}
}
