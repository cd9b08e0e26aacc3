// Package join is the command "mixdown join".
package join

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/launching"
	"mixdown/cmd/mixdown/version"
	"mixdown/replay/cluster"
	"mixdown/replay/launch"
)

// Options are the dependencies and flags of the command.
type Options struct {
	Streams   *cli.Streams
	Leader    string
	Interface string
	Patience  time.Duration
	Getenv    func(string) string
}

// NewCmd makes the command; run replaces what it does in tests.
func NewCmd(streams *cli.Streams, run func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: streams, Getenv: os.Getenv}
	if run == nil {
		run = Run
	}
	cmd := &cobra.Command{
		Use:   "join HOST:PORT",
		Short: "Run one rank of a replay that another host leads",
		Long: `Takes part in a "mixdown replay --launch mpirun" or "--launch slurm" that listens at
HOST:PORT: starts the worker of one rank, and ends when the replay does. Replays
start this by themselves; by hand it is for engines that mixdown does not know.

Which rank, of how many, is read from the environment, as torchrun, Open MPI, MPICH,
Slurm and Kubernetes set it. MIXDOWN_JOIN_TOKEN must hold the replay's secret.`,
		Example: `  RANK=1 WORLD_SIZE=4 mixdown join node0:29430`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Leader = args[0]
			return run(cmd.Context(), opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.Interface, "interface", "", "network interface `NAME` for the libraries; without it that of the way to HOST")
	f.DurationVar(&opts.Patience, "join-timeout", cluster.DefaultPatience, "how long the replay may take to listen")
	return cmd
}

// Run joins, and returns when the replay is over.
func Run(ctx context.Context, opts *Options) error {
	if _, _, err := net.SplitHostPort(opts.Leader); err != nil {
		return fmt.Errorf("%w: %q: expected HOST:PORT", cli.ErrUsage, opts.Leader)
	}
	task, err := cluster.FromEnvironment(opts.Getenv)
	if err != nil {
		return err
	}
	worker, err := launch.FindWorker()
	if err != nil {
		return err
	}
	return launching.Join(ctx, cluster.JoinOptions{
		Leader: opts.Leader, Token: opts.Getenv(launching.TokenVariable), Version: version.String(),
		Task: task, Interface: opts.Interface, Worker: worker, Patience: opts.Patience,
	})
}
