// Package help holds the pages of "mixdown help TOPIC".
package help

import (
	"embed"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
)

//go:embed topics/*.txt
var files embed.FS

// topics in the order that help lists them.
var topics = []struct{ name, short string }{
	{"exit-codes", "What the exit codes mean"},
	{"mix", "The language of backend mixes"},
	{"metrics", "What every number means and how it is computed"},
	{"schema", "The fields of the JSON outputs"},
	{"diagnostics", "What the diagnostics mean and what to do about them"},
}

// Topic returns the text of a page.
func Topic(name string) (string, error) {
	data, err := files.ReadFile("topics/" + name + ".txt")
	return string(data), err
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
