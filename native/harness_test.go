// Starts real workers on experiments that the tests make, the way the launcher
// does.
package native_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan/planpb"
)

const (
	page     = 4096
	stopAt   = 24
	deadline = 60 * time.Second

	largeDeadline = 10 * time.Minute
)

// worker is the path of the executable under test.
func worker(t *testing.T) string {
	t.Helper()
	path := os.Getenv("MIXDOWN_WORKER")
	if path == "" {
		path = filepath.Join("..", "bin", "mixdown-worker")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no worker at %s: run make build", path)
	}
	return path
}

// need skips the test unless the module of the backend was built.
func need(t *testing.T, folder, backend string) {
	t.Helper()
	module := filepath.Join(folder, "libmixdown_"+backend+".so")
	if _, err := os.Stat(module); err != nil {
		t.Skipf("backend %s was not built: no %s", backend, module)
	}
}

// job is one start of all workers.
type job struct {
	dir     string
	size    int
	control *os.File
	out     bytes.Buffer // of all workers, stdout and stderr
	cmds    []*exec.Cmd
	codes   []int // exit code of each cmd
	wg      sync.WaitGroup
}

type launch struct {
	backend string // decides the launcher
	modules string // folder, "" for the worker's own
	raw     []byte // in place of the experiment, when not nil
	slots   int    // in the control file, 0 for as many as programs
	pid     int    // of the launcher, 0 for this process

	deadline time.Duration // 0 for the usual
	env      []string      // of the workers, beside this process's
	args     []string      // of the workers, besides
	unset    []string      // variables of the launcher's that workers are not to see
}

// start writes the files and starts the workers.
func start(t *testing.T, e *planpb.Experiment, l launch) *job {
	t.Helper()
	path := worker(t)
	j := &job{dir: t.TempDir(), size: len(e.Plans[0].Workload.Programs)}
	data := l.raw
	if data == nil {
		var err error
		if data, err = proto.Marshal(e); err != nil {
			t.Fatal(err)
		}
	}
	experiment := filepath.Join(j.dir, "experiment.pb")
	if err := os.WriteFile(experiment, data, 0o600); err != nil {
		t.Fatal(err)
	}
	slots := l.slots
	if slots == 0 {
		slots = j.size
	}
	header := make([]byte, page*(1+slots))
	copy(header, "MXDNCTL1")
	binary.NativeEndian.PutUint32(header[8:], 1)
	binary.NativeEndian.PutUint32(header[12:], uint32(slots))
	binary.NativeEndian.PutUint64(header[16:], uint64(cmp.Or(l.pid, os.Getpid())))
	control := filepath.Join(j.dir, "control")
	if err := os.WriteFile(control, header, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if j.control, err = os.OpenFile(control, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.control.Close() })

	args := []string{"--experiment", experiment, "--control", control, "--out", j.dir}
	if l.modules != "" {
		args = append(args, "--modules", l.modules)
	}
	args = append(args, l.args...)
	worker := []string{path}
	for _, name := range l.unset {
		worker = append([]string{"env", "-u", name}, worker...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(l.deadline, deadline))
	t.Cleanup(cancel)
	var cmds []*exec.Cmd
	switch l.backend {
	case "openmpi":
		mpirun := []string{"--oversubscribe", "--bind-to", "none", "--allow-run-as-root",
			"--mca", "mpi_yield_when_idle", "1", "-np", strconv.Itoa(j.size)}
		cmds = append(cmds, exec.CommandContext(ctx, "mpirun.openmpi", slices.Concat(mpirun, worker, args)...))
	case "mpich":
		cmd := exec.CommandContext(ctx, "mpirun.mpich", slices.Concat([]string{"-np", strconv.Itoa(j.size)}, worker, args)...)
		cmd.Env = append(os.Environ(), "UCX_TLS=self,sm")
		cmds = append(cmds, cmd)
	default:
		for i := range j.size {
			cmds = append(cmds, exec.CommandContext(ctx, path, append(slices.Clone(args), "--index", strconv.Itoa(i))...))
		}
	}
	if l.backend == "openmpi" || l.backend == "mpich" {
		// Plug-ins of these are gone when AddressSanitizer looks for leaks: what they
		// leave behind has no name by which it could be told from ours.
		cmds[0].Env = append(cmds[0].Environ(), "ASAN_OPTIONS=detect_leaks=0")
	}
	for i, cmd := range cmds {
		cmd.Env = append(cmd.Environ(), l.env...)
		// Of gpu_check.sh: what differs between ranks that share a GPU.
		if each := os.Getenv("MIXDOWN_TEST_RANK_ENV"); each != "" && len(cmds) == j.size {
			cmd.Env = append(cmd.Env, strings.ReplaceAll(each, "%d", strconv.Itoa(i)))
		}
	}
	var lock sync.Mutex
	j.cmds, j.codes = cmds, make([]int, len(cmds))
	for i, cmd := range cmds {
		w := writerFunc(func(p []byte) (int, error) {
			lock.Lock()
			defer lock.Unlock()
			return j.out.Write(p)
		})
		cmd.Stdout, cmd.Stderr = w, w
		cmd.WaitDelay = 5 * time.Second
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		j.wg.Go(func() {
			err := cmd.Wait()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				j.codes[i] = -1
				return
			}
			j.codes[i] = cmd.ProcessState.ExitCode()
		})
	}
	return j
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// wait returns when all workers have ended.
func (j *job) wait() { j.wg.Wait() }

// stop sets the stop flag, as the launcher does.
func (j *job) stop(t *testing.T) {
	t.Helper()
	word := binary.NativeEndian.AppendUint32(nil, 1)
	if _, err := j.control.WriteAt(word, stopAt); err != nil {
		t.Fatal(err)
	}
}

// slot is what the control file shows of a worker.
type slot struct {
	pid     int64
	state   uint32
	ended   uint64
	message string
}

func (j *job) slot(t *testing.T, index int) slot {
	t.Helper()
	b := make([]byte, page)
	if _, err := j.control.ReadAt(b, int64(page*(1+index))); err != nil {
		t.Fatal(err)
	}
	text, _, _ := bytes.Cut(b[32:1024], []byte{0})
	return slot{
		pid:     int64(binary.NativeEndian.Uint64(b)),
		state:   binary.NativeEndian.Uint32(b[8:]),
		ended:   binary.NativeEndian.Uint64(b[24:]),
		message: string(text),
	}
}

// messages are what the workers say in the control file.
func (j *job) messages(t *testing.T) string {
	var b strings.Builder
	for i := range j.size {
		if s := j.slot(t, i); s.message != "" {
			fmt.Fprintf(&b, "worker %d: %s\n", i, s.message)
		}
	}
	return b.String()
}

// records reads a worker's result file as far as it goes.
func (j *job) records(t *testing.T, index int) []*planpb.Record {
	t.Helper()
	f, err := os.Open(filepath.Join(j.dir, fmt.Sprintf("result.%d.pb", index)))
	if err != nil {
		t.Fatalf("%v\n%s", err, j.out.String())
	}
	defer f.Close()
	var records []*planpb.Record
	for r := bufio.NewReader(f); ; {
		record := &planpb.Record{}
		err := protodelim.UnmarshalFrom(r, record)
		if errors.Is(err, io.EOF) {
			return records
		}
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
}

// done waits and fails the test unless every worker ended well, with the data
// right in every plan, all iterations there and the records in order. It returns
// the records of each worker.
func (j *job) done(t *testing.T, e *planpb.Experiment) [][]*planpb.Record {
	t.Helper()
	j.wait()
	for i, code := range j.codes {
		if code != 0 {
			t.Fatalf("process %d ended with %d:\n%s%s", i, code, j.messages(t), j.out.String())
		}
	}
	all := make([][]*planpb.Record, j.size)
	for i := range all {
		all[i] = j.records(t, i)
		rank := e.Plans[0].Workload.Programs[i].Rank
		if h := all[i][0].GetHeader(); h == nil || h.Rank != rank || h.SchemaVersion != 1 || h.Pid == 0 || h.Host == "" {
			t.Fatalf("worker %d: bad header: %v", i, all[i][0])
		}
		if f := all[i][len(all[i])-1].GetFooter(); f == nil || f.MaxRssBytes <= 0 {
			t.Fatalf("worker %d: no footer at the end", i)
		}
		verified := 0
		iterations := make([]int, len(e.Plans))
		for _, r := range all[i] {
			if f := r.GetFailure(); f != nil {
				t.Fatalf("worker %d failed: %v", i, f)
			}
			if v := r.GetVerification(); v != nil {
				verified++
				if len(v.Errors) > 0 {
					t.Errorf("worker %d, plan %d: %s", i, v.Plan, strings.Join(v.Errors, "\n"))
				}
				if want := communications(e.Plans[v.Plan].Workload.Programs[i]); v.Operations != want {
					t.Errorf("worker %d, plan %d: %d operations checked, want %d", i, v.Plan, v.Operations, want)
				}
			}
			if it := r.GetIteration(); it != nil {
				if it.EndNs < it.StartNs {
					t.Errorf("worker %d: iteration ends before it starts: %v", i, it)
				}
				iterations[it.Plan]++
			}
		}
		if e.Settings.Verify && verified != len(e.Plans) {
			t.Errorf("worker %d: %d plans verified, want %d", i, verified, len(e.Plans))
		}
		for p, n := range iterations {
			if n != int(e.Settings.Iterations) {
				t.Errorf("worker %d, plan %d: %d iterations, want %d", i, p, n, e.Settings.Iterations)
			}
		}
		if s := j.slot(t, i); s.state != 6 {
			t.Errorf("worker %d: state %d at the end: %s", i, s.state, s.message)
		}
	}
	return all
}

func communications(p *planpb.Program) int64 {
	var n int64
	for _, task := range p.Tasks {
		if task.GetCommunication() != nil {
			n++
		}
	}
	return n
}
