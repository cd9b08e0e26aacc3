// Package help holds the pages of "mixdown help TOPIC".
package help

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/mix"
	"mixdown/replay/schedule"
	"mixdown/replay/whatif"
)

//go:embed topics/*.txt
var files embed.FS

// topics in the order that help lists them.
var topics = []struct{ name, short string }{
	{"exit-codes", "What the exit codes mean"},
	{"mix", "The language of backend mixes"},
	{"deadlocks", "What is checked in a plan, and what backends can be said to do"},
	{"metrics", "What every number means and how it is computed"},
	{"schema", "The fields of the JSON outputs"},
	{"sources", "Inputs that are not files: web addresses and object stores"},
	{"cluster", "Ingest by many machines: Slurm, MPI, torchrun, Kubernetes"},
	{"datasets", "The tables of a dataset, column by column"},
	{"exports", "The files and tables that analyze writes for other programs"},
	{"gates", "Policies, rules and outputs of gates in CI"},
	{"schedules", "The pipeline schedules and their keys"},
	{"what-ifs", "What simulate --what-if can suppose: formulas, sources, costs"},
	{"simulation", "What simulate plays, what it costs, and how certain the answer is"},
	{"tuning", "Tables of measurements: how they are made, compared, imported, exported"},
	{"hosts", "Replays on several hosts: Slurm, mpirun, torchrun, Kubernetes"},
	{"diagnostics", "What the diagnostics mean and what to do about them"},
}

// Topic returns the text of a page. Schedules and checks describe themselves.
func Topic(name string) (string, error) {
	data, err := files.ReadFile("topics/" + name + ".txt")
	text := string(data)
	switch name {
	case "schedules":
		text = strings.Replace(text, "SCHEDULES\n", listSchedules(), 1)
	case "what-ifs":
		text = strings.Replace(text, "WHATIFS\n", listWhatIfs(), 1)
	case "deadlocks", "diagnostics":
		text = strings.Replace(text, "CHECKS\n", "CHECKS\n"+listChecks(), 1)
	}
	return text, err
}

func listSchedules() string {
	var b strings.Builder
	for _, d := range schedule.Known() {
		fmt.Fprintf(&b, "  %s", d.Name)
		if len(d.Aliases) > 0 {
			fmt.Fprintf(&b, " (also %s)", strings.Join(d.Aliases, ", "))
		}
		fmt.Fprintf(&b, "\n      %s\n      source: %s\n      keys: %s\n      e.g. %s\n", d.Summary, d.Source, strings.Join(d.Keys, ", "), d.Example)
	}
	return b.String()
}

func listWhatIfs() string {
	var b strings.Builder
	for _, k := range whatif.Known() {
		of := "all ranks as they ran"
		switch {
		case k.Step && k.Order:
			of += ", or an order"
		case k.Order:
			of = "an order"
		}
		value := ""
		if k.Value != "" {
			value = "=" + k.Value
			if k.Optional() {
				value = "[=" + k.Value[1:]
			}
		}
		fmt.Fprintf(&b, "  %s%s\n", k.Name, value)
		for _, line := range [][2]string{
			{"", k.Summary + "; of " + of}, {"computed: ", k.Formula}, {"source: ", k.Source}, {"cost: ", k.Cost}, {"not modelled: ", k.NotModeled}, {"e.g. ", k.Example},
		} {
			b.WriteString(wrapped(line[0]+line[1], "      "))
		}
	}
	return b.String()
}

// textWidth is the width of the pages' text, in columns.
const textWidth = 78

// wrapped breaks a text into lines that begin with the indent, further ones by two
// columns more.
func wrapped(text, indent string) string {
	var b strings.Builder
	line := indent
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > textWidth {
			b.WriteString(line + "\n")
			line = indent + " "
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
	return b.String()
}

// checkWidth is the width of the checks' texts, in columns.
const checkWidth = 54

func listChecks() string {
	var b strings.Builder
	for _, k := range mix.Kinds() {
		head := fmt.Sprintf("  %s %-21s", k.Code, k.Name)
		width := 0
		b.WriteString(head)
		for _, word := range strings.Fields(k.Summary) {
			if width > 0 && width+1+len(word) > checkWidth {
				b.WriteString("\n" + strings.Repeat(" ", len(head)))
				width = 0
			}
			b.WriteString(" " + word)
			width += 1 + len(word)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// AddTopics adds the pages to the command tree.
func AddTopics(root *cobra.Command, streams *cli.Streams) {
	for _, t := range topics {
		text, err := Topic(t.name)
		if err != nil {
			panic(fmt.Sprintf("help topic %s is not embedded: %v", t.name, err)) // a fault of the build, found by any test
		}
		topic := &cobra.Command{Use: t.name, Short: t.short, Long: strings.TrimRight(text, "\n")}
		topic.SetHelpFunc(func(*cobra.Command, []string) { fmt.Fprint(streams.Out, text) })
		root.AddCommand(topic)
	}
}
