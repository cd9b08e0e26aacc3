package launch

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"
)

// Starter starts the workers of a run.
type Starter interface {
	Start(ctx context.Context, job Job) (Crew, error)
}

// Job is what workers are started for.
type Job struct {
	Worker   Worker
	Launcher string // which backend's launcher the workers need: "direct", "openmpi" or "mpich"
	Dir      string // where the results and outputs of all workers are to be, absolute
	// Experiment is the file of the experiment, in Dir; Workers their number.
	Experiment string
	Workers    int
	// Timeout is how long workers may make no progress.
	Timeout time.Duration
}

// Crew are the workers of a run, by their index in its workloads.
type Crew interface {
	// Status is what a worker last showed.
	Status(i int) Status
	// Process is the state of a worker's process as Linux writes it, 0 when there is
	// none.
	Process(i int) byte
	// Host names where a worker runs; "" is this host.
	Host(i int) string
	// Hosts are all of them, nil when all workers run on this host.
	Hosts() []Host
	// Lost says why nothing is known of a worker any more; nil while something is.
	Lost(i int) error
	// Began is when the current iteration began, ns on this host's CLOCK_MONOTONIC.
	Began() int64
	// Exit words how the process of a worker ended, to follow an account of it; ""
	// when that is not known.
	Exit(i int) string
	// Fault says what ended, or broke, without any worker's word; nil when nothing
	// did. rank gives the rank of a worker.
	Fault(rank func(int) int32) error
	// Done: all has ended by itself, and the results are in the job's Dir.
	Done() bool
	// End makes sure that nothing is left running.
	End()
}

// Host is a computer that workers of a run on several hosts run on.
type Host struct {
	Name    string // with its address, where names alone may be alike
	Workers []int  // indexes
	// Address is where its connection to the leader begins, Interface the network
	// interface of that: "" for the leader's own host.
	Address, Interface string
	// CPUs are those that its first worker may run on, NUMA the nodes of its memory, as
	// Linux lists them; "" when not known.
	CPUs, NUMA string
	// ClockOffset is what its CLOCK_MONOTONIC is ahead of the leader's, ClockBound how
	// far off that may be, RoundTrip the shortest time to it and back.
	ClockOffset, ClockBound, RoundTrip time.Duration
}

// here starts workers on this host.
type here struct{}

// local is a crew on this host.
type local struct {
	job       Job
	control   *control
	processes []*process
}

func (here) Start(_ context.Context, job Job) (Crew, error) {
	controlFile := filepath.Join(job.Dir, "control")
	control, err := newControl(controlFile, job.Workers)
	if err != nil {
		return nil, err
	}
	l := &local{job: job, control: control}
	if l.processes, err = job.Worker.start(job.Launcher, job.Dir, job.Experiment, controlFile, job.Workers); err != nil {
		l.End()
		return nil, err
	}
	return l, nil
}

func (l *local) Status(i int) Status { return l.control.status(i) }

func (l *local) Process(i int) byte { return processState(l.control.status(i).PID) }

func (l *local) Host(int) string { return "" }

func (l *local) Hosts() []Host { return nil }

func (l *local) Lost(int) error { return nil }

func (l *local) Began() int64 { return l.control.start() }

func (l *local) Done() bool {
	for _, p := range l.processes {
		if !p.ended() {
			return false
		}
	}
	return true
}

func (l *local) Fault(rank func(int) int32) error {
	for i, p := range l.processes {
		if !p.ended() {
			continue
		}
		if l.job.Launcher != direct {
			if p.err != nil || !l.allFinished() {
				return fmt.Errorf("%s ended before its workers did: %v%s", launchers[l.job.Launcher].program, p.err, OutputOf(l.job.Dir, l.job.Launcher))
			}
		} else if l.control.status(i).State == NotStarted {
			return fmt.Errorf("rank %d did not start: %v%s", rank(i), p.err, OutputOf(l.job.Dir, fmt.Sprint(i)))
		}
	}
	return nil
}

func (l *local) allFinished() bool {
	for i := range l.job.Workers {
		if l.control.status(i).State != Finished {
			return false
		}
	}
	return true
}

func (l *local) Exit(i int) string {
	if l.job.Launcher != direct {
		return ""
	}
	return l.processes[i].exit()
}

// exit words how a process ended, "" when it does not.
func (p *process) exit() string {
	select {
	case <-p.done:
	case <-time.After(time.Second):
		return ""
	}
	if state := p.cmd.ProcessState; state != nil {
		if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return fmt.Sprintf(": signal %d, %v", ws.Signal(), ws.Signal())
		}
		return fmt.Sprintf(": exit status %d", state.ExitCode())
	}
	return ""
}

// grace is how long workers may take to leave once they are asked to.
const grace = 2 * time.Second

func (l *local) End() {
	defer l.control.close()
	l.control.stop()
	deadline := time.Now().Add(grace)
	for time.Now().Before(deadline) && l.anyAlive() {
		time.Sleep(poll)
	}
	for l.anyAlive() {
		for i := range l.job.Workers {
			if s := l.control.status(i); alive(s.PID) {
				_ = syscall.Kill(int(s.PID), syscall.SIGKILL)
			}
		}
		for _, p := range l.processes {
			if !p.ended() {
				p.kill(syscall.SIGKILL)
			}
		}
		if time.Now().After(deadline.Add(10 * time.Second)) {
			return // only the kernel can still hold them
		}
		time.Sleep(poll)
	}
}

func (l *local) anyAlive() bool {
	for _, p := range l.processes {
		if !p.ended() {
			return true
		}
	}
	for i := range l.job.Workers {
		if s := l.control.status(i); alive(s.PID) {
			return true
		}
	}
	return false
}
