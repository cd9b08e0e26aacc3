// Package launching holds the flags by which commands that run workers run them on
// other hosts too.
package launching

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/cmd/mixdown/version"
	"mixdown/replay/cluster"
	"mixdown/replay/launch"
)

// Ways to start workers.
const (
	Local  = "local"
	MPIRun = "mpirun"
	Slurm  = "slurm"
	Env    = "env"
)

// TokenVariable holds the secret of a job.
const TokenVariable = "MIXDOWN_JOIN_TOKEN"

// Options are the flags.
type Options struct {
	Launch     string
	Hosts      []string
	Rendezvous string
	Interface  string
	Args       []string
	Patience   time.Duration
	// Getenv is os.Getenv, replaced in tests.
	Getenv func(string) string
}

// AddFlags adds them to a command.
func (o *Options) AddFlags(cmd *cobra.Command) {
	o.Getenv = os.Getenv
	f := cmd.Flags()
	f.StringVar(&o.Launch, "launch", Local, "how workers are started: local, on this host; mpirun or slurm, by it, on several; env, every task of a job that an engine started runs this command: see mixdown help hosts")
	f.StringSliceVar(&o.Hosts, "hosts", nil, "with --launch mpirun: where, as `HOST` or HOST:RANKS, which is the most that it takes, in the order of the ranks; without it mpirun decides")
	f.StringVar(&o.Rendezvous, "rendezvous", "", "`HOST[:PORT]` of this command's task as the others reach it")
	f.StringVar(&o.Interface, "interface", "", "network interface `NAME` for the libraries on all hosts; without it that of their way to the rendezvous")
	f.StringArrayVar(&o.Args, "launch-arg", nil, "`ARGUMENT` for srun or mpirun, repeatable")
	f.DurationVar(&o.Patience, "join-timeout", cluster.DefaultPatience, "how long the tasks of all hosts may take to come together")
}

func (o *Options) check() error {
	known := []string{Local, MPIRun, Slurm, Env}
	switch {
	case !slices.Contains(known, o.Launch):
		return fmt.Errorf("%w: --launch %q: known are %s", cli.ErrUsage, o.Launch, strings.Join(known, ", "))
	case len(o.Hosts) > 0 && o.Launch != MPIRun:
		return fmt.Errorf("%w: --hosts goes with --launch mpirun; %s knows its hosts", cli.ErrUsage, o.Launch)
	case o.Launch == Local && (o.Rendezvous != "" || o.Interface != "" || len(o.Args) > 0):
		return fmt.Errorf("%w: --rendezvous, --interface and --launch-arg need a --launch other than local", cli.ErrUsage)
	case o.Launch == Env && len(o.Args) > 0:
		return fmt.Errorf("%w: --launch-arg: with --launch env the tasks are there already", cli.ErrUsage)
	case o.Patience <= 0:
		return fmt.Errorf("%w: --join-timeout %v: expected a positive time", cli.ErrUsage, o.Patience)
	}
	return nil
}

// Job is what this process does in a run.
type Job struct {
	// Starter starts the workers, nil for those of this host alone.
	Starter launch.Starter
	// Joined: this task is not the one that plans and reports. It has done its part.
	Joined bool

	leader *cluster.Leader
	self   chan error // of the leader's own membership, nil when it has none
}

// Begin finds out which part this process has. For all but the leader it returns when
// the job is over, with the leader's outcome.
func (o *Options) Begin(ctx context.Context, streams *cli.Streams) (*Job, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	switch o.Launch {
	case Local:
		return &Job{}, nil
	case Env:
		return o.beginEnv(ctx, streams)
	}
	return o.beginEngine(streams)
}

// note tells what happens before any progress can be shown.
func note(streams *cli.Streams) func(string) {
	return func(text string) {
		if !streams.Quiet {
			fmt.Fprintln(streams.Err, "mixdown: "+text)
		}
	}
}

func (o *Options) beginEngine(streams *cli.Streams) (*Job, error) {
	host, port, err := o.address()
	if err != nil {
		return nil, err
	}
	if host == "" {
		if host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("%w: name this host with --rendezvous: %w", cli.ErrUsage, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	token := o.Getenv(TokenVariable)
	if token == "" {
		secret := make([]byte, 16)
		if _, err := rand.Read(secret); err != nil {
			return nil, err
		}
		token = hex.EncodeToString(secret)
	}
	leader, err := cluster.Listen(cluster.LeaderOptions{Address: net.JoinHostPort("", port), Token: token, Version: version.String(), Patience: o.Patience, Note: note(streams)})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cluster.ErrEngine, err)
	}
	engine := &cluster.Engine{Name: o.Launch, Hosts: o.Hosts, Leader: host, Mixdown: self, Interface: o.Interface, Args: o.Args}
	return &Job{Starter: leader.Starter(engine), leader: leader}, nil
}

// address splits --rendezvous; port "0" when it has none.
func (o *Options) address() (host, port string, err error) {
	if o.Rendezvous == "" {
		return "", "0", nil
	}
	if host, port, err = net.SplitHostPort(o.Rendezvous); err == nil {
		return host, port, nil
	}
	if strings.ContainsAny(o.Rendezvous, ":/ ") && net.ParseIP(o.Rendezvous) == nil {
		return "", "", fmt.Errorf("%w: --rendezvous %q: expected HOST or HOST:PORT", cli.ErrUsage, o.Rendezvous)
	}
	return o.Rendezvous, "0", nil
}

func (o *Options) beginEnv(ctx context.Context, streams *cli.Streams) (*Job, error) {
	task, err := cluster.FromEnvironment(o.Getenv)
	if err != nil {
		return nil, fmt.Errorf("--launch env: %w", err)
	}
	at := o.Rendezvous
	if at == "" {
		at = task.Leader
	}
	if _, _, err := net.SplitHostPort(at); err != nil {
		return nil, fmt.Errorf("%w: --launch env: %s does not say where rank 0 listens: give --rendezvous HOST:PORT, the same for all tasks, or set MIXDOWN_RENDEZVOUS", cli.ErrUsage, task.Engine)
	}
	worker, err := launch.FindWorker()
	if err != nil {
		return nil, err
	}
	join := cluster.JoinOptions{Leader: at, Token: o.Getenv(TokenVariable), Version: version.String(), Task: task, Interface: o.Interface, Worker: worker, Patience: o.Patience}
	if task.Rank != 0 {
		return &Job{Joined: true}, Join(ctx, join)
	}
	if task.Restarts > 0 {
		return nil, fmt.Errorf("%w: %s has started the tasks again (restart %d): a replay can't take tasks in again; start all of it anew", cluster.ErrRefused, task.Engine, task.Restarts)
	}
	_, port, _ := net.SplitHostPort(at)
	leader, err := cluster.Listen(cluster.LeaderOptions{Address: net.JoinHostPort("", port), Token: join.Token, Version: join.Version, Patience: o.Patience, Note: note(streams)})
	if err != nil {
		return nil, fmt.Errorf("%w: rank 0 can't listen at %s: %w", cluster.ErrEngine, at, err)
	}
	j := &Job{leader: leader, Starter: leader.Starter(nil), self: make(chan error, 1)}
	go func() { j.self <- Join(ctx, join) }()
	return j, nil
}

// End tells all tasks how the job ended.
func (j *Job) End(outcome error) {
	if j.leader == nil {
		return
	}
	j.leader.Close(int(cli.CodeOf(outcome)))
	if j.self != nil {
		<-j.self
	}
}

// OutcomeError is the outcome of a job as its leader gave it to a task.
type OutcomeError struct{ Code cli.ExitCode }

func (e *OutcomeError) Error() string {
	return fmt.Sprintf("the task of rank 0 ended with code %d: see what it says", e.Code)
}

// ExitCode is the code with which the task ends too.
func (e *OutcomeError) ExitCode() cli.ExitCode { return e.Code }

// Join takes part in a job until it is over.
func Join(ctx context.Context, o cluster.JoinOptions) error {
	code, err := cluster.Join(ctx, o)
	switch {
	case err != nil:
		if errors.Is(err, context.Canceled) {
			return err
		}
		return fmt.Errorf("rank %d: %w", o.Task.Rank, err)
	case code != 0:
		return fmt.Errorf("rank %d: %w", o.Task.Rank, &OutcomeError{cli.ExitCode(code)})
	}
	return nil
}
