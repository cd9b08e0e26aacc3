package launch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Layout of the control file: see replay/plan/control.md.
const (
	controlMagic   = "MXDNCTL1"
	controlVersion = 1
	headerSize     = 4096
	slotSize       = 4096
	streamsOffset  = 1024
	streamSize     = 48
	maxStreams     = 62
	messageOffset  = 32
	messageSize    = 992
	stopOffset     = 24

	arrivedOffset    = 28
	generationOffset = 32
	hereOffset       = 36
	startOffset      = 40
)

// State is what a worker is doing.
type State uint32

// The states of a worker, in the order of a run without faults.
const (
	NotStarted State = iota
	Starting
	Connecting
	Verifying
	WarmingUp
	Timing
	Finished
	Failed
	Terminated // by a signal it could handle
	Left       // because it was asked to stop
)

var stateNames = [...]string{"not started", "starting", "connecting", "verifying data", "warming up", "in the timed iterations", "finished", "failed", "terminated", "stopped with the others"}

// String names the state in words that follow "rank 3 is".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("in state %d", uint32(s))
}

// StreamState is what a stream of a worker is doing.
type StreamState struct {
	Task  int32 // -1 when idle
	Doing uint32
	Since int64 // ns, CLOCK_MONOTONIC
}

// What a stream can be doing.
const (
	StreamIdle uint32 = iota
	StreamWaitsForTasks
	StreamWaitsForTurn
	StreamInSpan
	StreamCommunicates
)

// Status is a worker's slot of the control file.
type Status struct {
	PID             int64
	State           State
	Plan, Iteration int32
	TasksEnded      uint64
	Message         string
	Streams         []StreamState
}

// control is the mapped control file.
type control struct {
	file    *os.File
	memory  []byte
	workers int
}

// newControl makes the control file of a run.
func newControl(path string, workers int) (*control, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	size := headerSize + workers*slotSize
	// Written, not only made that long: on a full disk a page without a place to be
	// would end us, or a worker, with SIGBUS.
	if _, err := f.Write(make([]byte, size)); err != nil {
		f.Close()
		return nil, fmt.Errorf("write control file: %w", err)
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("map control file: %w", err)
	}
	c := &control{file: f, memory: memory, workers: workers}
	copy(memory, controlMagic)
	binary.NativeEndian.PutUint32(memory[8:], controlVersion)
	binary.NativeEndian.PutUint32(memory[12:], uint32(workers))
	binary.NativeEndian.PutUint64(memory[16:], uint64(os.Getpid()))
	return c, nil
}

func (c *control) close() {
	_ = unix.Munmap(c.memory)
	c.file.Close()
}

// word is the 32-bit word at an offset, shared with the workers.
func (c *control) word(offset int) *uint32 {
	return (*uint32)(unsafe.Pointer(&c.memory[offset]))
}

func (c *control) long(offset int) *uint64 {
	return (*uint64)(unsafe.Pointer(&c.memory[offset]))
}

// stop asks all workers to leave.
func (c *control) stop() { atomic.StoreUint32(c.word(stopOffset), 1) }

func (c *control) stopped() bool { return atomic.LoadUint32(c.word(stopOffset)) != 0 }

// start is when the iteration began, ns on CLOCK_MONOTONIC.
func (c *control) start() int64 { return int64(atomic.LoadUint64(c.long(startOffset))) }

// status reads the slot of worker i.
func (c *control) status(i int) Status {
	at := headerSize + i*slotSize
	s := Status{
		PID:        int64(atomic.LoadUint64(c.long(at))),
		State:      State(atomic.LoadUint32(c.word(at + 8))),
		Plan:       int32(atomic.LoadUint32(c.word(at + 16))),
		Iteration:  int32(atomic.LoadUint32(c.word(at + 20))),
		TasksEnded: atomic.LoadUint64(c.long(at + 24)),
	}
	message := c.memory[at+messageOffset : at+messageOffset+messageSize]
	if end := bytes.IndexByte(message, 0); end > 0 {
		s.Message = string(message[:end])
	}
	for k := range min(int(atomic.LoadUint32(c.word(at+12))), maxStreams) {
		o := at + streamsOffset + k*streamSize
		s.Streams = append(s.Streams, StreamState{
			Task:  int32(atomic.LoadUint32(c.word(o))),
			Doing: atomic.LoadUint32(c.word(o + 4)),
			Since: int64(atomic.LoadUint64(c.long(o + 8))),
		})
	}
	return s
}
