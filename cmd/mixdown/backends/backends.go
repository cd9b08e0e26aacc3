// Package backends is the command "mixdown backends".
package backends

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/launch"
)

// SchemaVersion is that of the JSON written by this command.
const SchemaVersion = 1

// Options are the dependencies and flags of the command.
type Options struct {
	Streams *cli.Streams
	Format  string
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "backends",
		Short: "Which communication libraries can run here, and why the others can't",
		Long: `Loads every backend module and asks its library for its version. What can't
run is listed with the reason and what would change it. A table says which
operations are calls of the library and which its module composes of others. The
codecs of --compress are listed too ("mixdown help mix").`,
		Example: `  mixdown backends
  mixdown backends --format json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), opts) },
	}
	cli.FormatFlag(cmd, &opts.Format)
	return cmd
}

// Run lists the backends.
func Run(ctx context.Context, opts *Options) error {
	if err := cli.CheckFormat(opts.Format); err != nil {
		return err
	}
	worker, err := launch.FindWorker()
	if err != nil {
		return err
	}
	list := worker.List(ctx)
	codecs := worker.Codecs(ctx)
	if opts.Format == cli.JSON {
		enc := json.NewEncoder(opts.Streams.Out)
		enc.SetIndent("", " ")
		return enc.Encode(struct {
			SchemaVersion int              `json:"schema_version"`
			Worker        string           `json:"worker"`
			Backends      []launch.Backend `json:"backends"`
			Codecs        []launch.Codec   `json:"codecs"`
		}{SchemaVersion, worker.Path, list, codecs})
	}
	var b strings.Builder
	for _, x := range list {
		if !x.Available {
			fmt.Fprintf(&b, "%-8s not available: %s\n", x.Name, x.Reason)
			continue
		}
		fmt.Fprintf(&b, "%-8s %s (%s memory", x.Name, x.Version, x.Device)
		if x.Launcher != "direct" {
			fmt.Fprintf(&b, ", started by its mpirun")
		}
		b.WriteString(")\n")
		for _, n := range x.Notes {
			fmt.Fprintf(&b, "         %s\n", n)
		}
	}
	if err := writeOperations(&b, list); err != nil {
		return err
	}
	b.WriteString("\ncodecs of --compress\n")
	for _, c := range codecs {
		if !c.Available {
			fmt.Fprintf(&b, "%-8s not available: %s\n", c.Name, c.Reason)
			continue
		}
		fmt.Fprintf(&b, "%-8s %s\n", c.Name, c.Version)
	}
	_, err = fmt.Fprint(opts.Streams.Out, b.String())
	return err
}
