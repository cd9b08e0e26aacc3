package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestLauncherFor(t *testing.T) {
	for _, c := range []struct {
		backends []string
		want     string
	}{
		{[]string{"gloo"}, direct}, {[]string{"gloo", "openmpi"}, openMPI}, {[]string{"mpich", "gloo", "mpich"}, mpich}, {[]string{"mine"}, direct},
	} {
		if got, err := LauncherFor(c.backends); err != nil || got != c.want {
			t.Errorf("%v: %q, %v; want %q", c.backends, got, err, c.want)
		}
	}
	if _, err := LauncherFor([]string{"openmpi", "mpich"}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("two MPI libraries: %v, want ErrUnavailable", err)
	}
}

// TestAlive: a process that has ended but was not waited for is not alive.
func TestAlive(t *testing.T) {
	if !alive(int64(os.Getpid())) || alive(0) || alive(-1) {
		t.Error("this process is not alive, or none is")
	}
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := int64(cmd.Process.Pid)
	for deadline := time.Now().Add(10 * time.Second); alive(pid); {
		if time.Now().After(deadline) {
			t.Fatal("a zombie counts as alive")
		}
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Wait()
}

func TestControlFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	c, err := newControl(path, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if s := c.status(2); s.State != NotStarted || s.PID != 0 || len(s.Streams) != 0 {
		t.Errorf("a new slot says %+v", s)
	}
	// What a worker writes is what the launcher reads.
	slot := headerSize + 1*slotSize
	*c.long(slot) = 77
	*c.word(slot + 8) = uint32(Failed)
	*c.word(slot + 12) = 4_000_000_000 // a broken worker must not make us read beyond its slot
	copy(c.memory[slot+messageOffset:], "no peer\x00rest")
	if s := c.status(1); s.PID != 77 || s.State != Failed || s.Message != "no peer" || len(s.Streams) != maxStreams {
		t.Errorf("got %d, %v, %q, %d streams", s.PID, s.State, s.Message, len(s.Streams))
	}
	if c.stopped() {
		t.Error("stopped before anybody asked")
	}
	if c.stop(); !c.stopped() {
		t.Error("stop is not seen")
	}
	if _, err := newControl(path, 3); err == nil {
		t.Error("a control file of another run was taken over")
	}
}

// TestOneSession: every launcher's ranks stay in the session that started them, so that
// Linux shares cores among them alike.
func TestOneSession(t *testing.T) {
	library := filepath.Join(filepath.Dir(testWorker(t).Path), oneSession)
	for _, name := range []string{direct, openMPI, mpich} {
		t.Run(name, func(t *testing.T) {
			if name != direct {
				if _, err := exec.LookPath(launchers[name].program); err != nil {
					t.Skip(err)
				}
			}
			dir := t.TempDir()
			w := Worker{Path: filepath.Join(dir, "worker")}
			// Stands in for a worker: writes its session's number.
			if err := os.WriteFile(w.Path, []byte("#!/bin/sh\ncut -d' ' -f6 /proc/$$/stat >"+dir+"/session.$$\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(library, filepath.Join(dir, oneSession)); err != nil {
				t.Fatal(err)
			}
			list, err := w.start(name, dir, "none", "none", 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range list {
				if <-p.done; p.err != nil {
					t.Fatal(p.err)
				}
			}
			files, err := filepath.Glob(filepath.Join(dir, "session.*"))
			if err != nil || len(files) != 2 {
				t.Fatalf("%d workers wrote their session, %v", len(files), err)
			}
			want := fmt.Sprintln(session(t))
			for _, f := range files {
				if got, err := os.ReadFile(f); err != nil || string(got) != want {
					t.Errorf("a worker's session is %q, %v; want %q", got, err, want)
				}
			}
		})
	}
}

// session is that of this process.
func session(t *testing.T) int {
	id, _, errno := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return int(id)
}
