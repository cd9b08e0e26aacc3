// Package root is the command "mixdown": it puts the verbs together and turns
// errors into messages and exit codes.
package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/analyze"
	"mixdown/cmd/mixdown/backends"
	"mixdown/cmd/mixdown/check"
	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/diff"
	"mixdown/cmd/mixdown/export"
	"mixdown/cmd/mixdown/gate"
	"mixdown/cmd/mixdown/help"
	"mixdown/cmd/mixdown/importing"
	"mixdown/cmd/mixdown/ingest"
	"mixdown/cmd/mixdown/inspect"
	"mixdown/cmd/mixdown/join"
	"mixdown/cmd/mixdown/plan"
	"mixdown/cmd/mixdown/replay"
	"mixdown/cmd/mixdown/report"
	"mixdown/cmd/mixdown/schedule"
	"mixdown/cmd/mixdown/simulate"
	"mixdown/cmd/mixdown/tune"
	"mixdown/cmd/mixdown/version"
)

// NewCmd makes the whole command tree.
func NewCmd(streams *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mixdown",
		Short: "Find what communication costs a distributed training run, and measure what other backends would give",
		Long: `mixdown reads profiler traces of PyTorch and DeepSpeed runs, finds what their
communication cost, runs it again on real communication libraries with other
mixes of backends, and reports the measured speedups.

A first look:

  mixdown analyze traces/          where the time of every rank went
  mixdown backends                 which libraries can run on this machine
  mixdown replay traces/ --map nccl=gloo --mix '*=openmpi'
                                   what another library would change`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.String(),
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetVersionTemplate("mixdown {{.Version}}\n")
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.Err)
	cmd.PersistentFlags().BoolVar(&streams.Quiet, "quiet", false, "no progress on stderr")
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %v (see %q)", cli.ErrUsage, err, c.CommandPath()+" --help")
	})
	cmd.AddCommand(analyze.NewCmd(streams, nil), diff.NewCmd(streams, nil), gate.NewCmd(streams, nil), inspect.NewCmd(streams, nil), ingest.NewCmd(streams, nil), plan.NewCmd(streams, nil), check.NewCmd(streams, nil), replay.NewCmd(streams, nil), report.NewCmd(streams, nil), simulate.NewCmd(streams, nil), schedule.NewCmd(streams, nil), tune.NewCmd(streams, nil), importing.NewCmd(streams, nil), export.NewCmd(streams, nil), backends.NewCmd(streams, nil), join.NewCmd(streams, nil), version.NewCmd(streams))
	help.AddTopics(cmd, streams)
	return cmd
}

// Main runs mixdown and returns its exit code.
func Main(args []string) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return int(Execute(ctx, cli.System(), args))
}

// Execute runs one command line.
func Execute(ctx context.Context, streams *cli.Streams, args []string) cli.ExitCode {
	cmd := NewCmd(streams)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return cli.Done
	}
	if isUnknownCommand(err) {
		err = fmt.Errorf("%w: %v", cli.ErrUsage, err)
	}
	fmt.Fprintf(streams.Err, "mixdown: %s\n", strings.TrimPrefix(err.Error(), cli.ErrUsage.Error()+": "))
	return cli.CodeOf(err)
}

// isUnknownCommand recognises the errors that cobra makes before a command runs.
func isUnknownCommand(err error) bool {
	text := err.Error()
	return !errors.Is(err, cli.ErrUsage) && (strings.HasPrefix(text, "unknown command") || strings.HasPrefix(text, "unknown help topic") ||
		strings.Contains(text, "arg(s), received"))
}
