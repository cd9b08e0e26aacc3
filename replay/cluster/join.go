package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mixdown/replay/cluster/clusterpb"
	"mixdown/replay/environment"
	"mixdown/replay/launch"
)

// JoinOptions of Join.
type JoinOptions struct {
	// Leader is where to join, "HOST:PORT".
	Leader string
	// Token is the job's secret.
	Token string
	// Version of mixdown.
	Version string
	// Task is who this is.
	Task Task
	// Interface overrides the network interface that libraries use; "" is that of the
	// connection to the leader.
	Interface string
	// Worker is the worker of this host.
	Worker launch.Worker
	// Patience is how long the leader may take to listen. 0 means DefaultPatience.
	Patience time.Duration
}

// ErrLeader: the leader can't be reached, or was lost.
var ErrLeader = errors.New("no word from the leader")

// Join takes part in a job until the leader ends it. It returns the code with which
// the task is to exit.
func Join(ctx context.Context, o JoinOptions) (int, error) {
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Task.Restarts > 0 {
		return 0, fmt.Errorf("%w: the engine has started the tasks again (restart %d): a replay can't take tasks in again; start all of it anew", ErrRefused, o.Task.Restarts)
	}
	conn, err := dial(ctx, o)
	if err != nil {
		return 0, err
	}
	j := &joined{o: o, wire: newWire(conn)}
	defer j.wire.close()
	stop := context.AfterFunc(ctx, j.wire.close)
	defer stop()
	if err := j.wire.send(&clusterpb.Word{Kind: &clusterpb.Word_Hello{Hello: j.hello()}}); err != nil {
		return 0, fmt.Errorf("%w at %s: %w", ErrLeader, o.Leader, err)
	}
	code, err := j.serve()
	j.endWork()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return code, err
}

// dial tries until the leader listens.
func dial(ctx context.Context, o JoinOptions) (net.Conn, error) {
	deadline := time.Now().Add(o.Patience)
	for {
		dialer := net.Dialer{Timeout: 5 * time.Second}
		conn, err := dialer.DialContext(ctx, "tcp", o.Leader)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%w: after %v: %w", ErrLeader, o.Patience, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// joined is a task that takes part.
type joined struct {
	o    JoinOptions
	wire *wire
	work *work // the worker of the run in progress, nil between runs
}

func (j *joined) hello() *clusterpb.Hello {
	host, _ := os.Hostname()
	t := j.o.Task
	h := &clusterpb.Hello{Protocol: protocol, Token: j.o.Token, Version: j.o.Version, Rank: int32(t.Rank), Size: int32(t.Size),
		LocalRank: int32(t.LocalRank), LocalSize: int32(t.LocalSize), Host: host, Boot: bootID(), Pid: int64(os.Getpid()), Engine: t.Engine}
	if local, ok := j.wire.conn.LocalAddr().(*net.TCPAddr); ok && !local.IP.IsLoopback() {
		h.Address = local.IP.String()
		h.Interface = interfaceOf(local.IP)
	}
	if j.o.Interface != "" {
		h.Interface = j.o.Interface
	}
	h.Cpus, h.Numa = placement()
	h.Steering = environment.Fingerprints(os.Environ())
	return h
}

// interfaceOf names the network interface that has an address, "" when none has.
func interfaceOf(ip net.IP) string {
	all, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return i.Name
			}
		}
	}
	return ""
}

// serve does what the leader says until it says farewell.
func (j *joined) serve() (int, error) {
	for {
		var order clusterpb.Order
		if err := j.wire.receive(&order, maxFrame); err != nil {
			return 0, fmt.Errorf("%w at %s: %w", ErrLeader, j.o.Leader, lossOf(err))
		}
		switch kind := order.Kind.(type) {
		case *clusterpb.Order_Refusal:
			return 0, fmt.Errorf("%w: %s", ErrRefused, strings.TrimPrefix(kind.Refusal.Reason, ErrRefused.Error()+": "))
		case *clusterpb.Order_Ping:
			pong := &clusterpb.Pong{Id: kind.Ping.Id, NowNs: launch.Now()}
			if err := j.wire.send(&clusterpb.Word{Kind: &clusterpb.Word_Pong{Pong: pong}}); err != nil {
				return 0, fmt.Errorf("%w at %s: %w", ErrLeader, j.o.Leader, err)
			}
		case *clusterpb.Order_Start:
			j.endWork()
			var err error
			if j.work, err = j.begin(kind.Start); err != nil {
				// The leader words it, with what all others do.
				ended := &clusterpb.Ended{Exit: ": " + err.Error()}
				if err := j.wire.send(&clusterpb.Word{Kind: &clusterpb.Word_Ended{Ended: ended}}); err != nil {
					return 0, fmt.Errorf("%w at %s: %w", ErrLeader, j.o.Leader, err)
				}
			}
		case *clusterpb.Order_Open:
			if j.work != nil {
				j.work.open(kind.Open.StartNs)
			}
		case *clusterpb.Order_Rendezvous:
			if j.work != nil {
				if err := j.work.receive(kind.Rendezvous); err != nil {
					return 0, err
				}
			}
		case *clusterpb.Order_Stop:
			j.endWork()
		case *clusterpb.Order_Farewell:
			return int(kind.Farewell.Code), nil
		}
	}
}

func (j *joined) endWork() {
	if j.work != nil {
		j.work.end()
		j.work = nil
	}
}

// begin starts the worker of a run.
func (j *joined) begin(s *clusterpb.Start) (*work, error) {
	dir, err := os.MkdirTemp("", "mixdown-join-")
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*work, error) {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("begin the run: %w", err)
	}
	experiment := filepath.Join(dir, "experiment.pb")
	if err := os.WriteFile(experiment, s.Experiment, 0o600); err != nil {
		return fail(err)
	}
	card := j.o.Interface
	if local, ok := j.wire.conn.LocalAddr().(*net.TCPAddr); ok && card == "" {
		card = interfaceOf(local.IP)
		if local.IP.IsLoopback() {
			card = ""
			if s.Address != "" {
				card = interfaceOf(net.ParseIP(s.Address))
			}
		}
	}
	m, err := j.o.Worker.StartMember(launch.MemberOptions{Dir: dir, Experiment: experiment, Index: j.o.Task.Rank, Workers: int(s.Workers),
		LocalIndex: int(s.LocalIndex), LocalSize: int(s.LocalSize), Env: s.Env, Interface: card})
	if err != nil {
		return fail(err)
	}
	return newWork(m, dir, j.wire), nil
}

// flat says whether a name is that of a file in a folder, and of no other.
func flat(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00")
}
