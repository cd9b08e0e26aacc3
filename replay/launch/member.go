package launch

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MemberOptions say which worker of a run on several hosts to start here.
type MemberOptions struct {
	Dir        string // of its files, absolute; holds Experiment
	Experiment string
	// Index is the worker's, of Workers in all hosts together.
	Index, Workers int
	// LocalIndex is its place among the LocalSize workers of this host, which share
	// its GPUs and memory.
	LocalIndex, LocalSize int
	// Env are further settings of its environment, as NAME=VALUE.
	Env []string
	// Interface is the network interface for libraries without a launcher of their
	// own, "" for the loopback.
	Interface string
}

// Member is one worker of a run on several hosts. It has a control file to itself, and
// its barrier is opened by who started it: see Arrived and Open.
type Member struct {
	index   int
	dir     string
	control *control
	process *process
}

// StartMember starts the worker of a run whose others are started elsewhere.
func (w Worker) StartMember(o MemberOptions) (*Member, error) {
	// The worker of index 0 makes it anew, but may do so on another host.
	if err := os.MkdirAll(filepath.Join(o.Dir, "rendezvous"), 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(o.Dir, "control")
	c, err := newControl(file, o.Workers)
	if err != nil {
		return nil, err
	}
	// One worker here: it alone is awaited.
	binary.NativeEndian.PutUint32(c.memory[hereOffset:], 1)
	args := []string{"--experiment", o.Experiment, "--control", file, "--out", o.Dir, "--index", strconv.Itoa(o.Index),
		"--local-index", strconv.Itoa(o.LocalIndex), "--local-size", strconv.Itoa(o.LocalSize)}
	if o.Interface != "" {
		args = append(args, "--interface", o.Interface)
	}
	p, err := spawn(exec.Command(w.Path, args...), filepath.Join(o.Dir, fmt.Sprintf("stderr.%d", o.Index)), slices.Concat(os.Environ(), o.Env))
	if err != nil {
		c.close()
		return nil, fmt.Errorf("start worker %d: %w", o.Index, err)
	}
	return &Member{index: o.Index, dir: o.Dir, control: c, process: p}, nil
}

// Files are the names, in the member's folder, of what the run's folder is to hold of
// it: its results and its output.
func (m *Member) Files() []string {
	return []string{fmt.Sprintf("result.%d.pb", m.index), fmt.Sprintf("stderr.%d", m.index)}
}

// Rendezvous is the folder in which libraries leave what their peers need to find
// them.
func (m *Member) Rendezvous() string { return filepath.Join(m.dir, "rendezvous") }

// Status is what the worker shows.
func (m *Member) Status() Status { return m.control.status(m.index) }

// Process is the state of its process as Linux writes it, 0 when it is gone.
func (m *Member) Process() byte {
	if m.process.ended() {
		return 0
	}
	return processState(int64(m.process.cmd.Process.Pid))
}

// Ended is closed when the worker has ended.
func (m *Member) Ended() <-chan struct{} { return m.process.done }

// Exit words how it ended.
func (m *Member) Exit() string { return m.process.exit() }

// Arrived waits until the worker is in its barrier, and returns the barrier's number.
// False when it ended, or ctx did, before.
func (m *Member) Arrived(ctx context.Context) (uint32, bool) {
	arrived := m.control.word(arrivedOffset)
	for atomic.LoadUint32(arrived) == 0 {
		if ctx.Err() != nil || m.process.ended() {
			return 0, false
		}
		futexWait(arrived, 0, poll)
	}
	return atomic.LoadUint32(m.control.word(generationOffset)), true
}

// Open lets the worker go on, at a time on this host's CLOCK_MONOTONIC in ns.
func (m *Member) Open(start int64) {
	atomic.StoreUint32(m.control.word(arrivedOffset), 0)
	atomic.StoreUint64(m.control.long(startOffset), uint64(start))
	generation := m.control.word(generationOffset)
	atomic.AddUint32(generation, 1)
	futexWake(generation)
}

// Stop ends the worker, with force if it must.
func (m *Member) Stop() {
	m.control.stop()
	select {
	case <-m.process.done:
	case <-time.After(grace):
		m.process.kill(syscall.SIGKILL)
		select {
		case <-m.process.done:
		case <-time.After(10 * time.Second): // only the kernel can still hold it
		}
	}
}

// Close lets go of the control file of a worker that was stopped, or has ended.
func (m *Member) Close() { m.control.close() }

// Now is CLOCK_MONOTONIC in ns, the clock of the workers of this host.
func Now() int64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return now.Nano()
}

func futexWait(word *uint32, while uint32, most time.Duration) {
	t := unix.NsecToTimespec(most.Nanoseconds())
	const wait = 0 // FUTEX_WAIT, shared with the worker's process
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wait, uintptr(while), uintptr(unsafe.Pointer(&t)), 0, 0)
}

func futexWake(word *uint32) {
	const wake, all = 1, 1<<31 - 1
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wake, all, 0, 0, 0)
}
