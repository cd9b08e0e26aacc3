package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/cluster/clusterpb"
	"mixdown/replay/launch"
)

const (
	// showEvery is how often a member looks at what its worker does and writes.
	showEvery = 100 * time.Millisecond
	// shareEvery is how often it looks for rendezvous files, while libraries connect.
	shareEvery = 2 * time.Millisecond
	// piece is how much of a file goes into a frame.
	piece = 1 << 20
)

// work is a worker, and what a member does for it.
type work struct {
	member *launch.Member
	dir    string
	wire   *wire
	cancel context.CancelFunc
	opened chan int64 // starts of iterations
	tasks  sync.WaitGroup

	// Of show, and then of end.
	sent map[string]int64 // how much of each file
	told bool             // that the worker has ended

	mu    sync.Mutex
	known map[string]bool // rendezvous files that came from others, or were sent
}

func newWork(m *launch.Member, dir string, w *wire) *work {
	ctx, cancel := context.WithCancel(context.Background())
	k := &work{member: m, dir: dir, wire: w, cancel: cancel, opened: make(chan int64, 1), sent: map[string]int64{}, known: map[string]bool{}}
	for _, f := range []func(context.Context){k.relay, k.show, k.share} {
		k.tasks.Add(1)
		go func() {
			defer k.tasks.Done()
			f(ctx)
		}()
	}
	return k
}

// relay carries the worker's barrier to the leader, and its opening back.
func (k *work) relay(ctx context.Context) {
	for {
		generation, ok := k.member.Arrived(ctx)
		if !ok {
			return
		}
		if k.wire.send(&clusterpb.Word{Kind: &clusterpb.Word_Arrived{Arrived: &clusterpb.Arrived{Generation: generation}}}) != nil {
			return
		}
		select {
		case start := <-k.opened:
			k.member.Open(start)
		case <-ctx.Done():
			return
		}
	}
}

func (k *work) open(start int64) {
	select {
	case k.opened <- start:
	default: // twice for one barrier: not the leader that it joined
	}
}

// show tells the leader what the worker does, and sends what it writes, until it ends.
func (k *work) show(ctx context.Context) {
	ticker := time.NewTicker(showEvery)
	defer ticker.Stop()
	var last *clusterpb.Status
	var lastAt time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.member.Ended():
			k.tellEnd()
			return
		case <-ticker.C:
		}
		now := k.statusNow()
		if time.Since(lastAt) >= beat || !alike(now, last) {
			last, lastAt = now, time.Now()
			if k.wire.send(&clusterpb.Word{Kind: &clusterpb.Word_Status{Status: now}}) != nil {
				return
			}
		}
		if k.sendFiles() != nil {
			return
		}
	}
}

// tellEnd sends the last of a worker that has ended, once.
func (k *work) tellEnd() {
	if k.told {
		return
	}
	k.told = true
	// Without a wire there is nobody to tell.
	_ = k.wire.send(&clusterpb.Word{Kind: &clusterpb.Word_Status{Status: k.statusNow()}})
	_ = k.sendFiles()
	_ = k.wire.send(&clusterpb.Word{Kind: &clusterpb.Word_Ended{Ended: &clusterpb.Ended{Exit: k.member.Exit()}}})
}

// alike compares two statuses, but for how long streams have been in what they do.
func alike(a, b *clusterpb.Status) bool {
	if b == nil || len(a.Streams) != len(b.Streams) {
		return false
	}
	b = proto.Clone(b).(*clusterpb.Status)
	for i := range b.Streams {
		b.Streams[i].AgeNs = a.Streams[i].AgeNs
	}
	return proto.Equal(a, b)
}

func (k *work) statusNow() *clusterpb.Status {
	s, now := k.member.Status(), launch.Now()
	status := &clusterpb.Status{Pid: s.PID, State: uint32(s.State), Plan: s.Plan, Iteration: s.Iteration, TasksEnded: s.TasksEnded,
		Message: s.Message, Process: uint32(k.member.Process())}
	for _, st := range s.Streams {
		status.Streams = append(status.Streams, &clusterpb.Stream{Task: st.Task, Doing: st.Doing, AgeNs: now - st.Since})
	}
	return status
}

// sendFiles sends what the worker wrote since the last time.
func (k *work) sendFiles() error {
	for _, name := range k.member.Files() {
		f, err := os.Open(filepath.Join(k.dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = k.sendFile(f, name)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *work) sendFile(f *os.File, name string) error {
	for {
		data := make([]byte, piece)
		n, err := f.ReadAt(data, k.sent[name])
		if n > 0 {
			file := &clusterpb.File{Name: name, Offset: k.sent[name], Data: data[:n]}
			if err := k.wire.send(&clusterpb.Word{Kind: &clusterpb.Word_File{File: file}}); err != nil {
				return err
			}
			k.sent[name] += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// share sends the files by which libraries find their peers, while they look for them.
func (k *work) share(ctx context.Context) {
	ticker := time.NewTicker(shareEvery)
	defer ticker.Stop()
	for k.member.Status().State <= launch.Connecting {
		select {
		case <-ctx.Done():
			return
		case <-k.member.Ended():
			return
		case <-ticker.C:
		}
		entries, err := os.ReadDir(k.member.Rendezvous())
		if err != nil {
			continue // it is being made anew
		}
		for _, e := range entries {
			if k.shareFile(e) != nil {
				return
			}
		}
	}
}

// shareFile sends a file once. Those that begin with a dot, or end in ".tmp", are being
// written.
func (k *work) shareFile(e os.DirEntry) error {
	name := e.Name()
	if e.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp") || k.knows(name) {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(k.member.Rendezvous(), name))
	if err != nil {
		return nil // renamed meanwhile
	}
	k.learn(name)
	return k.wire.send(&clusterpb.Word{Kind: &clusterpb.Word_Rendezvous{Rendezvous: &clusterpb.Rendezvous{Name: name, Data: data}}})
}

func (k *work) knows(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known[name]
}

func (k *work) learn(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[name] = true
}

// receive writes a rendezvous file of another member.
func (k *work) receive(r *clusterpb.Rendezvous) error {
	if !flat(r.Name) {
		return fmt.Errorf("the leader sent a rendezvous file %q, which is not one", r.Name)
	}
	k.learn(r.Name)
	path := filepath.Join(k.member.Rendezvous(), r.Name)
	written := filepath.Join(k.member.Rendezvous(), "."+r.Name+".tmp")
	if err := os.WriteFile(written, r.Data, 0o600); err != nil {
		return err
	}
	return os.Rename(written, path)
}

// end ends the worker, sends the last of it, and removes its files.
func (k *work) end() {
	k.cancel()
	k.tasks.Wait()
	k.member.Stop()
	k.tellEnd()
	k.member.Close()
	os.RemoveAll(k.dir)
}
