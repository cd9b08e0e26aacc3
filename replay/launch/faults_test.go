package launch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mixdown/replay/plan/planpb"
)

// The faults come while real workers run; each must end the run within its
// time-out, with an account, nothing left running, and what was measured kept.

const faultTimeout = 3 * time.Second

func testWorker(t *testing.T) Worker {
	t.Helper()
	return workerWith(t, "gloo")
}

// workerWith is the worker with the module of a backend.
func workerWith(t *testing.T, backend string) Worker {
	t.Helper()
	path := os.Getenv("MIXDOWN_WORKER")
	if path == "" {
		path, _ = filepath.Abs("../../bin/mixdown-worker")
	}
	w := Worker{Path: path}
	if _, err := os.Stat(w.module(backend)); err != nil {
		t.Skipf("the worker or its module for %s is not built: %v", backend, err)
	}
	return w
}

// endless is an experiment that runs until something happens: all_reduces of three
// ranks, and a message from rank 0 to rank 2 on a stream of its own.
func endless(backend string) *planpb.Experiment {
	w := &planpb.Workload{WorldSize: 3, Groups: []*planpb.Group{{Name: "data", Ranks: []int32{0, 1, 2}}, {Name: "pair", Ranks: []int32{0, 2}}}}
	for r := range int32(3) {
		p := &planpb.Program{Rank: r, Streams: []*planpb.Stream{{Name: "collectives"}, {Name: "messages"}}}
		for seq := range int64(5) {
			p.Tasks = append(p.Tasks, &planpb.Task{Id: int32(seq), Kind: &planpb.Task_Communication{Communication: &planpb.Communication{
				Op: planpb.Op_OP_ALL_REDUCE, Seq: seq, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: 256, OutCount: 256,
				ReduceOp: planpb.ReduceOp_REDUCE_OP_SUM, Backend: backend}}})
		}
		if r != 1 {
			c := &planpb.Communication{Group: 1, Op: planpb.Op_OP_SEND, Dtype: planpb.DType_DTYPE_FLOAT32, InCount: 64, Backend: backend,
				Transfers: []*planpb.Transfer{{Send: true, Peer: 2 - r, Count: 64}}}
			if r == 2 {
				c.Op, c.InCount, c.OutCount, c.Transfers[0].Send = planpb.Op_OP_RECV, 0, 64, false
			}
			p.Tasks = append(p.Tasks, &planpb.Task{Id: 5, Stream: 1, Kind: &planpb.Task_Communication{Communication: c}})
		}
		w.Programs = append(w.Programs, p)
	}
	return &planpb.Experiment{SchemaVersion: 1, Plans: []*planpb.Plan{{Name: "endless", Workload: w}},
		Settings: &planpb.Settings{Iterations: 10_000_000, SpanMode: planpb.SpanMode_SPAN_MODE_SLEEP}}
}

// suffer runs the experiment below dir, lets the fault happen once iterations are
// under way, and returns what the run says.
func suffer(t *testing.T, w Worker, dir string, fault func(pids []int)) string {
	t.Helper()
	return sufferOn(t, "gloo", w, dir, fault)
}

func sufferOn(t *testing.T, backend string, w Worker, dir string, fault func(pids []int)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	underWay, once := make(chan struct{}), sync.Once{}
	ended := make(chan error, 1)
	go func() {
		_, err := w.Run(ctx, endless(backend), Options{Dir: dir, Timeout: faultTimeout, Progress: func(p Progress) {
			if p.State == Timing && p.Iteration > 20 {
				once.Do(func() { close(underWay) })
			}
		}})
		ended <- err
	}()
	select {
	case <-underWay:
	case err := <-ended:
		t.Fatalf("ended before the fault: %v", err)
	}
	pids := workersOf(t, dir, 3)
	fault(pids)
	begin := time.Now()
	err := <-ended
	if took := time.Since(begin); took > faultTimeout+grace+10*time.Second {
		t.Errorf("ended %v after the fault", took)
	}
	if !errors.Is(err, ErrFailed) { // exit code 5
		t.Fatalf("%v, want ErrFailed", err)
	}
	for i, pid := range pids {
		if alive(int64(pid)) {
			t.Errorf("worker %d still runs", i)
		}
	}
	left(t, dir)
	t.Log(err)
	return err.Error()
}

// workersOf reads the process ids from the run's control file.
func workersOf(t *testing.T, dir string, n int) []int {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "run-*", "control"))
	if len(found) != 1 {
		t.Fatalf("%d control files below %s", len(found), dir)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for i := range n {
		pids = append(pids, int(binary.NativeEndian.Uint64(data[headerSize+i*slotSize:])))
	}
	return pids
}

// left fails the test unless the iterations before the fault can be read.
func left(t *testing.T, dir string) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "run-*"))
	k, err := ReadKept(found[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(k.Plans[0].Iterations); n < 15 {
		t.Errorf("%d iterations can be read, want those before the fault", n)
	}
}

// stopAmidst stops a worker so that rank 0 waits for it in a collective. One that is
// stopped at the end of an iteration has done its part: the others go on to the barrier.
func stopAmidst(t *testing.T, dir string, pid int) {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "run-*", "control"))
	for range 100 {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		time.Sleep(200 * time.Millisecond)
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Error(err)
			return
		}
		if binary.NativeEndian.Uint32(data[headerSize+streamsOffset+4:]) == StreamCommunicates {
			return
		}
		_ = syscall.Kill(pid, syscall.SIGCONT)
		time.Sleep(7 * time.Millisecond)
	}
	t.Error("rank 0 never waits in a collective")
}

func expect(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(text) {
			t.Errorf("nothing matches %q in\n%s", p, text)
		}
	}
}

func TestStoppedWorker(t *testing.T) {
	for _, backend := range []string{"gloo", "ucx"} {
		t.Run(backend, func(t *testing.T) {
			dir := t.TempDir()
			text := sufferOn(t, backend, workerWith(t, backend), dir, func(pids []int) { stopAmidst(t, dir, pids[1]) })
			expect(t, text, `no progress for 3s`,
				`^  rank 1: in the timed iterations.*; its process is stopped by a signal`,
				`^  rank 0: in the timed iterations, plan "endless", iteration \d+; `+
					`collectives is in all_reduce \d of group "data" on `+backend+` \(1024 bytes\) since [3-9]\.\d s`)
		})
	}
}

func TestKilledWorker(t *testing.T) {
	for _, backend := range []string{"gloo", "ucx"} {
		t.Run(backend, func(t *testing.T) {
			text := sufferOn(t, backend, workerWith(t, backend), t.TempDir(), func(pids []int) { _ = syscall.Kill(pids[2], syscall.SIGKILL) })
			expect(t, text, `rank 2 died \(process \d+\) while in the timed iterations: signal 9`, `^  rank 2: .*its process is gone`)
		})
	}
}

// TestFullDisk: a file system of its own, filled while the workers run.
func TestFullDisk(t *testing.T) {
	w, dir := testWorker(t), t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("a file system to fill cannot be mounted (%v: %s); TestFileTooLarge tries another way", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	text := suffer(t, w, dir, func([]int) {
		f, err := os.Create(filepath.Join(dir, "filler"))
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
	})
	expect(t, text, `rank \d failed: result file .*/run-\d+/result\.\d\.pb: No space left on device`, `^  rank 0: `, `^  rank 2: `)
}

// TestNoSpaceAtAll: not even the control file fits.
func TestNoSpaceAtAll(t *testing.T) {
	w, dir := testWorker(t), t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8k", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("a file system to fill cannot be mounted: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	_, err := w.Run(context.Background(), endless("gloo"), Options{Dir: dir})
	if !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want ErrFailed for want of space", err)
	}
}

// TestFileTooLarge: the workers' files may not grow, which needs no rights.
func TestFileTooLarge(t *testing.T) {
	w := wrapped(t, testWorker(t), `ulimit -f 8 || exit 1; exec "$worker" "$@"`)
	text := suffer(t, w, t.TempDir(), func([]int) {})
	expect(t, text, `rank \d failed: result file .*: File too large`)
}

// wrapped is a worker below a shell script, in which $worker is the real one.
func wrapped(t *testing.T, w Worker, script string) Worker {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mixdown-worker")
	text := fmt.Sprintf("#!/bin/sh\nworker='%s'\n%s\n", w.Path, script)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return Worker{Path: path}
}

// TestBrokenConnection: the kernel breaks a connection between two workers, and
// both know.
func TestBrokenConnection(t *testing.T) {
	if _, err := exec.LookPath("ss"); err != nil {
		t.Skip("no ss to break connections with: install iproute2")
	}
	var broken string
	var still []byte
	text := suffer(t, testWorker(t), t.TempDir(), func(pids []int) {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^\S+\s+\S+\s+(\S+)\s+(\S+)\s.*pid=%d,.*$`, pids[1]))
		out, _ := exec.Command("ss", "-Htnp", "state", "established").Output()
		if m := line.FindSubmatch(out); m != nil {
			broken = string(m[0])
			_ = exec.Command("ss", "-K", "-t", "src", string(m[1]), "dst", string(m[2])).Run()
			still, _ = exec.Command("ss", "-Ht", "state", "established", "src", string(m[1]), "dst", string(m[2])).Output()
		}
		if broken == "" || len(strings.TrimSpace(string(still))) > 0 {
			_ = syscall.Kill(pids[1], syscall.SIGKILL) // to come to an end
		}
	})
	if broken == "" || len(strings.TrimSpace(string(still))) > 0 {
		t.Skipf("ss -K cannot break connections here: it needs root and a kernel with CONFIG_INET_DIAG_DESTROY (found %q)", broken)
	}
	expect(t, text, `rank [0-2] failed: `, `^  rank [0-2]: failed, plan "endless", iteration \d+: .*; collectives is in all_reduce \d of group "data"`)
}

// TestLostNetwork: packets vanish without a word, as when a cable is pulled: the
// workers are in a network of their own, which is shut down.
func TestLostNetwork(t *testing.T) {
	w := testWorker(t)
	name := fmt.Sprintf("mixdown-%d", os.Getpid())
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Skipf("a network to lose cannot be made: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	if out, err := exec.Command("ip", "-n", name, "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("a network to lose cannot be brought up: %v: %s", err, out)
	}
	w = wrapped(t, w, "exec ip netns exec "+name+` "$worker" "$@"`)
	text := suffer(t, w, t.TempDir(), func([]int) {
		if out, err := exec.Command("ip", "-n", name, "link", "set", "lo", "down").CombinedOutput(); err != nil {
			t.Errorf("the network stays: %v: %s", err, out)
		}
	})
	expect(t, text, `no progress for 3s`, `^  rank [0-2]: .*collectives is in all_reduce \d of group "data" on gloo \(1024 bytes\) since [3-9]\.\d s, `)
}
