// Package inspect is the command "mixdown inspect".
package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"mixdown/analyze/report"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/ingest/trace"
)

// SchemaVersion is that of the JSON written by this command.
const SchemaVersion = 1

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Input   input.Options
	Format  string
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "inspect INPUT...",
		Short: "What a set of traces is: ranks, devices, groups, steps, and what fills the files",
		Long: `Reads the traces and says what they are: which file is which rank and how that
is known, the job they belong to, how long they last, and how many events of
which kind they hold.`,
		Example: `  mixdown inspect traces/
  mixdown inspect traces/ --format json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Input.Args = args
			return run(cmd.Context(), opts)
		},
	}
	opts.Input.AddFlags(cmd)
	cli.FormatFlag(cmd, &opts.Format)
	return cmd
}

// result is what the command writes as JSON.
type result struct {
	SchemaVersion int                 `json:"schema_version"`
	WorldSize     int                 `json:"world_size"`
	RanksMissing  []int               `json:"ranks_missing"`
	Backend       string              `json:"backend"`
	Ranks         []rank              `json:"ranks"`
	Categories    []category          `json:"categories"`
	Groups        []group             `json:"groups"`
	Diagnostics   []report.Diagnostic `json:"diagnostics"`
}

type rank struct {
	Rank       int    `json:"rank"`
	RankFrom   string `json:"rank_from"`
	Source     string `json:"source"`
	Device     string `json:"device"` // "gpu", or "cpu" when there are no device events
	Events     int64  `json:"events"`
	Stored     int    `json:"events_stored"`
	Operations int    `json:"operations"`
	Steps      int    `json:"steps"`
	Threads    int    `json:"threads"`
	Span       int64  `json:"span_ns"` // from the first to the last event
	Truncated  bool   `json:"truncated"`
}

// category counts the stored events of one kind over all ranks.
type category struct {
	Name   string `json:"name"`
	Events int    `json:"events"`
	NS     int64  `json:"dur_ns"` // durations added up, nested ones too
}

type group struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Ranks       []int  `json:"ranks"` // null when the traces do not say
	Operations  int    `json:"operations"`
}

var categoryNames = map[trace.Category]string{
	trace.Other: "other", trace.CPUOp: "cpu operators", trace.UserAnnotation: "annotations", trace.PythonFunction: "python functions",
	trace.Runtime: "API calls", trace.Kernel: "kernels", trace.Memcpy: "copies", trace.Memset: "sets",
	trace.CollectiveActivity: "collective activities", trace.GPUAnnotation: "device annotations", trace.Sync: "synchronisation", trace.Instant: "instants",
}

// Run inspects the input and writes what it is.
func Run(ctx context.Context, opts *Options) error {
	if err := cli.CheckFormat(opts.Format); err != nil {
		return err
	}
	job, err := opts.Input.Load(ctx, opts.Streams)
	if err != nil {
		return err
	}
	r := describe(job)
	if opts.Format == cli.JSON {
		enc := json.NewEncoder(opts.Streams.Out)
		enc.SetIndent("", " ")
		err = enc.Encode(r)
	} else {
		_, err = fmt.Fprint(opts.Streams.Out, r.text())
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return opts.Input.Refuse(&job.Run.Diagnostics)
}

func describe(job *input.Job) *result {
	run := job.Run
	r := &result{
		SchemaVersion: SchemaVersion, WorldSize: run.WorldSize(), RanksMissing: run.Missing(),
		Ranks: []rank{}, Categories: []category{}, Groups: []group{}, Diagnostics: report.Diagnostics(&run.Diagnostics),
	}
	counts, durations := map[trace.Category]int{}, map[trace.Category]int64{}
	operations := make([]int, len(job.Match.Groups))
	for i, from := range run.Ranks {
		if r.Backend == "" {
			r.Backend = from.Distributed.Backend
		}
		one := rank{
			Rank: from.Rank, RankFrom: from.RankFrom, Source: from.Source, Device: "gpu", Events: from.Read, Stored: from.Events.Len(),
			Operations: len(from.Operations), Steps: len(from.Steps), Threads: len(from.Threads), Truncated: from.Truncated,
		}
		if from.CPUOnly {
			one.Device = "cpu"
		}
		var first, last int64
		for e := range from.Events.Len() {
			counts[from.Events.Category[e]]++
			durations[from.Events.Category[e]] += from.Events.Dur[e]
			if e == 0 {
				first, last = from.Events.TS[e], from.Events.End(e)
			}
			first, last = min(first, from.Events.TS[e]), max(last, from.Events.End(e))
		}
		one.Span = last - first
		r.Ranks = append(r.Ranks, one)
		for o := range from.Operations {
			operations[job.Match.GroupOf[i][from.Operations[o].Group]]++
		}
	}
	for c := trace.Other; c <= trace.Instant; c++ {
		if counts[c] > 0 {
			r.Categories = append(r.Categories, category{categoryNames[c], counts[c], durations[c]})
		}
	}
	for g := range job.Match.Groups {
		from := &job.Match.Groups[g]
		r.Groups = append(r.Groups, group{from.Name, from.Description, from.Ranks, operations[g]})
	}
	return r
}

func (r *result) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d ranks", len(r.Ranks), r.WorldSize)
	if len(r.RanksMissing) > 0 {
		fmt.Fprintf(&b, " (missing: %s)", report.Ranges(r.RanksMissing))
	}
	if r.Backend != "" {
		fmt.Fprintf(&b, ", backend %s", report.Printable(r.Backend))
	}
	b.WriteString("\n\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "rank\tdevice\tevents\tcommunication\tsteps\tlasts\trank from\tfile")
	for _, x := range r.Ranks {
		cut := ""
		if x.Truncated {
			cut = " (cut)"
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%d\t%d\t%s\t%s\t%s%s\n", x.Rank, x.Device, x.Events, x.Operations, x.Steps, report.Duration(x.Span), x.RankFrom, report.Printable(x.Source), cut)
	}
	t.Flush()
	b.WriteString("\nProcess groups\n")
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  name\tdescription\toperations\tranks")
	for _, g := range r.Groups {
		ranks := "unknown"
		if g.Ranks != nil {
			ranks = report.Ranges(g.Ranks)
		}
		fmt.Fprintf(t, "  %s\t%s\t%d\t%s\n", report.Printable(g.Name), report.Printable(g.Description), g.Operations, ranks)
	}
	t.Flush()
	b.WriteString("\nEvents kept, of all ranks\n")
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range r.Categories {
		fmt.Fprintf(t, "%s\t%d\t%s\t\n", c.Name, c.Events, report.Duration(c.NS))
	}
	t.Flush()
	for i, d := range r.Diagnostics {
		if i == 0 {
			b.WriteString("\nDiagnostics\n")
		}
		fmt.Fprintf(&b, "  %s\n", d)
	}
	return b.String()
}
