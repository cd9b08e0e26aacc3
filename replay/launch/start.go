package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// launcher is a program that starts the workers of an MPI library.
type launcher struct {
	program string
	args    func(n int) []string
	env     []string
}

// launchers by name. Options are those that let ranks share cores: no binding,
// more ranks than cores allowed, and waiting ranks that give their core up.
var launchers = map[string]launcher{
	openMPI: {
		program: "mpirun.openmpi",
		args: func(n int) []string {
			return []string{"-np", strconv.Itoa(n), "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"}
		},
		env: []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"},
	},
	mpich: {
		program: "mpirun.mpich",
		args: func(n int) []string {
			return []string{"-np", strconv.Itoa(n)}
		},
		// All ranks are on this host. UCX's network transports would only add
		// threads that wake up now and then.
		env: []string{"UCX_TLS=self,sm"},
	},
}

// lingering runs a worker below a shell that outlives it for a second when it
// fails. The programs that start MPI ranks kill all of them as soon as one dies;
// the second is for finding out which one it was.
var lingering = []string{"/bin/sh", "-c", `"$@" || { s=$?; sleep 1; exit $s; }`, "mixdown"}

// process is a started child: a worker, or the launcher of all workers.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // of Wait, valid after done
}

// start starts the workers with the given launcher. Their output goes to files
// in dir.
func (w Worker) start(name, dir, experiment, controlFile string, n int) ([]*process, error) {
	args := []string{"--experiment", experiment, "--control", controlFile, "--out", dir}
	if name != direct {
		l := launchers[name]
		argv := slices.Concat(l.args(n), lingering, []string{w.Path}, args)
		env := environmentFor(name)
		if name == mpich {
			env = w.inOneSession(env)
		}
		p, err := spawn(exec.Command(l.program, argv...), filepath.Join(dir, "stderr."+name), env)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", l.program, err)
		}
		return []*process{p}, nil
	}
	var list []*process
	for i := range n {
		cmd := exec.Command(w.Path, append(args, "--index", strconv.Itoa(i))...)
		p, err := spawn(cmd, filepath.Join(dir, fmt.Sprintf("stderr.%d", i)), environmentFor(name))
		if err != nil {
			return list, fmt.Errorf("start worker %d: %w", i, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// spawn starts a command in a process group of its own, so that it and all its
// children can be ended together, and a Ctrl-C of the user reaches mixdown alone.
func spawn(cmd *exec.Cmd, output string, env []string) (*process, error) {
	f, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the child has its own
	cmd.Stdout, cmd.Stderr = f, f
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the whole process group.
func (p *process) kill(sig syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, sig) }

// alive says whether a worker's process runs. A zombie does not.
func alive(pid int64) bool { return lives(processState(pid)) }

func lives(state byte) bool { return state != 0 && state != 'Z' && state != 'X' }

// processState is the state of a process as Linux writes it, 0 when there is none.
func processState(pid int64) byte {
	if pid <= 0 {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The state follows the command's name, which is in parentheses and may
	// hold any character.
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' && i+2 < len(stat) {
			return stat[i+2]
		}
	}
	return 0
}
