package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"mixdown/ingest/share"
	"mixdown/replay/cluster/clusterpb"
	"mixdown/replay/launch"
	"mixdown/replay/mix"
)

// Starter starts the workers of runs on the leader's members. With an engine, each run
// has its tasks started anew; without, the tasks are there, and stay.
func (l *Leader) Starter(engine *Engine) launch.Starter { return starter{l, engine} }

type starter struct {
	leader *Leader
	engine *Engine
}

func (s starter) Start(ctx context.Context, job launch.Job) (launch.Crew, error) {
	c := &crew{leader: s.leader, job: job, files: map[string]*os.File{}}
	ended := func() error { return nil }
	if s.engine != nil {
		var err error
		if c.tasks, err = s.engine.start(job, s.leader.Port(), s.leader.opts.Token); err != nil {
			return nil, err
		}
		ended = c.tasks.fault
	}
	members, err := s.leader.gather(ctx, job.Workers, ended)
	if err == nil {
		err = settled(ctx, members)
	}
	if err == nil {
		err = alikeSteered(members)
	}
	if err == nil && s.engine == nil {
		err = s.leader.fitsMPI(job.Launcher, members[0].hello.Engine)
	}
	if err != nil {
		c.End()
		return nil, err
	}
	if err := c.start(members); err != nil {
		c.End()
		return nil, err
	}
	return c, nil
}

// settled waits until the clocks of all members are known well enough.
func settled(ctx context.Context, members []*member) error {
	const answers = 8
	for _, m := range members {
		for m.answers() < answers {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-m.gone:
				return fmt.Errorf("rank %d on %s is lost: %w", m.hello.Rank, m.host(), m.lostBecause())
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	return nil
}

// alikeSteered is check E9 for ranks whose environments only they know: where they differ,
// a library may choose one algorithm here and another there for the same operation.
func alikeSteered(members []*member) error {
	first := members[0].hello.Steering
	for rank, m := range members[1:] {
		var names []string
		for name, value := range m.hello.Steering {
			if first[name] != value {
				names = append(names, name)
			}
		}
		for name := range first {
			if _, has := m.hello.Steering[name]; !has {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			return fmt.Errorf("%w: E9 rank 0 on %s and rank %d on %s have different values, or files of different content, in %s: set them alike on all hosts",
				mix.ErrDeadlock, members[0].host(), rank+1, m.host(), strings.Join(names, ", "))
		}
	}
	return nil
}

// fitsMPI says whether tasks that stay, started by an engine, can run workers of an MPI
// library: it wires up what its own launcher started, and once only.
func (l *Leader) fitsMPI(launcher, engine string) error {
	if launcher == "direct" {
		return nil
	}
	if engine != launcher && engine != share.Slurm {
		return fmt.Errorf("%w: %s needs tasks that its own mpirun, or srun, starts; these are of %s: use --launch mpirun", ErrEngine, launcher, engine)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.usedMPI {
		return fmt.Errorf("%w: tasks can start one set of MPI workers only, and these variants need several: use --launch mpirun or slurm, or one variant at a time", ErrEngine)
	}
	l.usedMPI = true
	return nil
}

// crew are the members that a run is on.
type crew struct {
	leader  *Leader
	job     launch.Job
	tasks   *tasks // of the engine, nil when the tasks are not the leader's
	members []*member
	hosts   []launch.Host

	mu      sync.Mutex
	waiting int   // members in the barrier
	began   int64 // of the iteration
	files   map[string]*os.File
}

func (c *crew) start(members []*member) error {
	c.members, c.hosts = members, hostsOf(members)
	experiment, err := os.ReadFile(c.job.Experiment)
	if err != nil {
		return err
	}
	for _, m := range members {
		m.mu.Lock()
		m.crew, m.status, m.process, m.exit, m.ended = c, launch.Status{}, 0, "", false
		m.mu.Unlock()
	}
	outward := c.outward()
	for _, h := range c.hosts {
		for local, worker := range h.Workers {
			m := members[worker]
			start := &clusterpb.Start{Experiment: experiment, Workers: int32(len(members)), LocalIndex: int32(local), LocalSize: int32(len(h.Workers)), Env: c.job.Worker.Env}
			if m.hello.LocalRank >= 0 {
				start.LocalIndex = m.hello.LocalRank
			}
			if m.hello.Interface == "" {
				start.Address = outward
			}
			if err := m.wire.send(&clusterpb.Order{Kind: &clusterpb.Order_Start{Start: start}}); err != nil {
				m.leave(err)
				return fmt.Errorf("rank %d on %s: %w", worker, m.host(), err)
			}
		}
	}
	return nil
}

// outward is the leader's address as members on other hosts see it, "" when there are
// none. Members on its own host may have come through the loopback, where their
// libraries' peers could not reach them.
func (c *crew) outward() string {
	for _, m := range c.members {
		if m.hello.Interface != "" {
			host, _, _ := strings.Cut(m.wire.conn.LocalAddr().String(), "%")
			if i := strings.LastIndexByte(host, ':'); i >= 0 {
				return strings.Trim(host[:i], "[]")
			}
		}
	}
	return ""
}

// arrived counts a member that is in the barrier, and opens it when all are.
func (c *crew) arrived(generation uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting++
	if c.waiting < len(c.members) {
		return
	}
	c.waiting = 0
	c.began = launch.Now() + c.margin().Nanoseconds()
	for _, m := range c.members {
		offset, _ := m.offset()
		open := &clusterpb.Open{Generation: generation, StartNs: c.began + offset.Nanoseconds()}
		if err := m.wire.send(&clusterpb.Order{Kind: &clusterpb.Order_Open{Open: open}}); err != nil {
			m.leave(err)
		}
	}
}

// margin is time for the word to reach all workers, and for them to wake up: those of a
// host may have to take turns on few cores.
func (c *crew) margin() time.Duration {
	const (
		wakeUp  = 300 * time.Microsecond
		perTurn = 60 * time.Microsecond // for each worker of a host
		perSend = 30 * time.Microsecond // for each member
	)
	most, farthest := 0, time.Duration(0)
	for _, h := range c.hosts {
		most, farthest = max(most, len(h.Workers)), max(farthest, h.RoundTrip)
	}
	return wakeUp + time.Duration(most)*perTurn + time.Duration(len(c.members))*perSend + 2*farthest
}

// share passes a rendezvous file on to all other members.
func (c *crew) share(from *member, r *clusterpb.Rendezvous) {
	for _, m := range c.members {
		if m == from {
			continue
		}
		if err := m.wire.send(&clusterpb.Order{Kind: &clusterpb.Order_Rendezvous{Rendezvous: r}}); err != nil {
			m.leave(err)
		}
	}
}

// keep writes a piece of a member's file into the run's folder.
func (c *crew) keep(m *member, f *clusterpb.File) error {
	rank := fmt.Sprint(m.hello.Rank)
	if f.Name != "result."+rank+".pb" && f.Name != "stderr."+rank {
		return fmt.Errorf("it sent a file %q, which is not its own", f.Name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		return nil // the run is over
	}
	file := c.files[f.Name]
	if file == nil {
		var err error
		if file, err = os.Create(filepath.Join(c.job.Dir, f.Name)); err != nil {
			return err
		}
		c.files[f.Name] = file
	}
	_, err := file.WriteAt(f.Data, f.Offset)
	return err
}

func (c *crew) Status(i int) launch.Status {
	m := c.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

func (c *crew) Process(i int) byte {
	m := c.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

func (c *crew) Host(i int) string { return c.members[i].host() }

// Hosts are those that the workers run on.
func (c *crew) Hosts() []launch.Host { return c.hosts }

func (c *crew) Began() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began
}

func (c *crew) Lost(i int) error { return c.members[i].lostBecause() }

func (c *crew) Exit(i int) string {
	m := c.members[i]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.exit
}

func (c *crew) Fault(rank func(int) int32) error {
	for i, m := range c.members {
		m.mu.Lock()
		status, exit, ended := m.status, m.exit, m.ended
		m.mu.Unlock()
		if ended && status.State == launch.NotStarted {
			return fmt.Errorf("rank %d on %s did not start%s%s", rank(i), m.host(), exit, launch.OutputOf(c.job.Dir, fmt.Sprint(i)))
		}
	}
	if c.tasks != nil && !c.Done() {
		return c.tasks.fault()
	}
	return nil
}

func (c *crew) Done() bool {
	for _, m := range c.members {
		m.mu.Lock()
		ended := m.ended
		m.mu.Unlock()
		if !ended {
			return false
		}
	}
	return true
}

// endLimit is how long members may take to end their workers.
const endLimit = 15 * time.Second

func (c *crew) End() {
	for _, m := range c.members {
		if m.lostBecause() == nil {
			if err := m.wire.send(&clusterpb.Order{Kind: &clusterpb.Order_Stop{Stop: &clusterpb.Stop{}}}); err != nil {
				m.leave(err)
			}
		}
	}
	for deadline := time.Now().Add(endLimit); time.Now().Before(deadline) && !c.quiet(); {
		time.Sleep(10 * time.Millisecond)
	}
	for _, m := range c.members {
		m.mu.Lock()
		m.crew = nil
		m.mu.Unlock()
	}
	c.mu.Lock()
	for _, f := range c.files {
		f.Close()
	}
	c.files = nil
	c.mu.Unlock()
	if c.tasks != nil {
		c.leader.dismiss(0)
		c.tasks.end()
	}
}

// quiet says whether every member has ended its worker, or is lost.
func (c *crew) quiet() bool {
	for _, m := range c.members {
		m.mu.Lock()
		quiet := m.ended || m.lost != nil
		m.mu.Unlock()
		if !quiet {
			return false
		}
	}
	return true
}
