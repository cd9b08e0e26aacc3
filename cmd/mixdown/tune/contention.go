package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"mixdown/analyze/export"
	"mixdown/analyze/report"
	"mixdown/analyze/slowdown"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/input"
	"mixdown/ingest/trace"
	"mixdown/replay/mix"
	"mixdown/replay/tune"
)

// contentionOf measures what communication of a run's backend makes of kernels beside
// it.
func contentionOf(run *trace.Run) (tune.Contention, error) {
	r, err := slowdown.Measure(run)
	if err != nil {
		return tune.Contention{}, err
	}
	first := run.Ranks[0]
	backend := mix.TracedBackend(first.Distributed.Backend, first.CPUOnly)
	switch {
	case !r.Known:
		return tune.Contention{}, fmt.Errorf("%w: %s", slowdown.ErrNotMeasured, r.Why)
	case backend == mix.UnknownBackend:
		return tune.Contention{}, fmt.Errorf("%w: they don't name their backend", slowdown.ErrNotMeasured)
	}
	return tune.Contention{
		Contender: tune.Contender{Backend: backend}, Device: tune.GPU, Factor: r.Factor, CILow: r.Low, CIHigh: r.High, N: int64(r.Kernels), Source: "mixdown tune",
	}, nil
}

// contend adds to a table what the traces show of contention; where they don't, it
// says so once.
func (o *Options) contend(t *tune.Table, run *trace.Run) error {
	c, err := contentionOf(run)
	switch {
	case errors.Is(err, slowdown.ErrNotMeasured):
		if !o.Streams.Quiet && !run.Ranks[0].CPUOnly {
			fmt.Fprintln(o.Streams.Err, err)
		}
		return nil
	case err != nil:
		return err
	}
	return t.AddContention(c)
}

func newContentionCmd(streams *cli.Streams) *cobra.Command {
	var in input.Options
	var output, format string
	cmd := &cobra.Command{
		Use:   "contention -o TABLE INPUT...",
		Short: "How much longer kernels take beside communication, from traces",
		Long: `Compares the kernels of traces that ran beside communication on their device with
those of the same name and grid that ran beside none, and writes how many times as
long they take to a table, or adds it to the table that is there. Nothing is run.
"mixdown simulate --mix ... --table TABLE" takes it for the backend of these traces:
give the traces of a job that ran on the backend in question.

"mixdown tune -o TABLE traces/" writes it beside its measurements.
See "mixdown help simulation" for how it is measured and used.`,
		Example: `  mixdown tune contention -o job.tune traces/`,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Args = args
			if err := cli.CheckFormat(format); err != nil {
				return err
			}
			if output == "" {
				return fmt.Errorf("%w: -o TABLE is missing: name the file to write", cli.ErrUsage)
			}
			return writeContention(cmd.Context(), streams, &in, output, format)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "`TABLE` to write, or to add to")
	in.AddFlags(cmd)
	cli.FormatFlag(cmd, &format)
	return cmd
}

func writeContention(ctx context.Context, streams *cli.Streams, in *input.Options, output, format string) error {
	if err := export.CheckFile(output); err != nil {
		return fmt.Errorf("-o %s: %w", output, err)
	}
	table := &tune.Table{}
	if have, err := tune.Read(output); err == nil {
		table = have
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	job, err := in.Load(ctx, streams)
	if err != nil {
		return err
	}
	if err := in.Refuse(&job.Run.Diagnostics); err != nil {
		return err
	}
	c, err := contentionOf(job.Run)
	if err != nil {
		return err
	}
	if err := table.AddContention(c); err != nil {
		return err
	}
	if err := table.Write(output); err != nil {
		return err
	}
	if format == cli.JSON {
		enc := json.NewEncoder(streams.Out)
		enc.SetIndent("", " ")
		return enc.Encode(struct {
			SchemaVersion int              `json:"schema_version"`
			Table         string           `json:"table"`
			Contention    contentionOutput `json:"contention"`
		}{tune.SchemaVersion, output, newContentionOutput(c)})
	}
	_, err = fmt.Fprintf(streams.Out, "%s: %s\n", output, contentionText(c))
	return err
}

// contentionOutput is a factor in JSON.
type contentionOutput struct {
	Contender string     `json:"contender"`
	Device    string     `json:"device"`
	Factor    float64    `json:"factor"`
	CI95      [2]float64 `json:"ci95"`
	N         int64      `json:"n"`
	Source    string     `json:"source"`
}

func newContentionOutput(c tune.Contention) contentionOutput {
	return contentionOutput{c.Contender.String(), c.Device, c.Factor, [2]float64{c.CILow, c.CIHigh}, c.N, c.Source}
}

func contentionText(c tune.Contention) string {
	return report.Printable(fmt.Sprintf("kernels take %.2f times as long beside communication on %s (95 %% interval %.2f to %.2f, from %d kernels; %s)",
		c.Factor, c.Contender, c.CILow, c.CIHigh, c.N, c.Source))
}
