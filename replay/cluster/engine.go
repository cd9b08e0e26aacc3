package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mixdown/replay/launch"
)

// ErrEngine: the engine can't start the run's tasks.
var ErrEngine = errors.New("the engine can't start the run")

// Engine starts the tasks of a run, one for each worker, each with "mixdown join".
type Engine struct {
	// Name is "slurm", which starts by srun within an allocation, or "mpirun".
	Name string
	// Hosts for mpirun, each as "HOST" or "HOST:TASKS"; empty leaves it to mpirun, which
	// knows the hosts of an allocation.
	Hosts []string
	// Leader is the name or address of this host, as the others reach it.
	Leader string
	// Mixdown is the program, at the same path on all hosts.
	Mixdown string
	// Interface is what members are to use, "" for that of their way to the leader.
	Interface string
	// Args are given to srun or mpirun before all others.
	Args []string
}

// tokenVariable carries the job's secret to its tasks: command lines are for all to see.
const tokenVariable = "MIXDOWN_JOIN_TOKEN"

// Command is the command line that starts n tasks for workers that need a launcher
// ("direct", "openmpi" or "mpich") which join at the leader's port.
func (e Engine) Command(launcher string, n, port int) ([]string, error) {
	join := []string{e.Mixdown, "join", net.JoinHostPort(e.Leader, strconv.Itoa(port))}
	if e.Interface != "" {
		join = append(join, "--interface", e.Interface)
	}
	switch e.Name {
	case "slurm":
		if len(e.Hosts) > 0 {
			return nil, fmt.Errorf("%w: srun takes the hosts of the allocation; choose them with salloc or sbatch, not with --hosts", ErrEngine)
		}
		args := []string{"srun", "--ntasks", strconv.Itoa(n), "--kill-on-bad-exit=0", "--mpi=" + slurmMPI(launcher)}
		return slices.Concat(args, e.Args, join), nil
	case "mpirun":
		if launcher == "mpich" {
			args := []string{"mpirun.mpich", "-np", strconv.Itoa(n)}
			if len(e.Hosts) > 0 {
				hosts, err := e.slots(n)
				if err != nil {
					return nil, err
				}
				args = append(args, "-hosts", strings.Join(hosts, ","))
			}
			return slices.Concat(args, e.Args, join), nil
		}
		// Workers of other libraries need nothing of it but to be started.
		args := []string{"mpirun.openmpi", "-np", strconv.Itoa(n), "--oversubscribe", "--bind-to", "none", "-x", tokenVariable}
		if len(e.Hosts) > 0 {
			hosts, err := e.slots(n)
			if err != nil {
				return nil, err
			}
			args = append(args, "--host", strings.Join(hosts, ","))
		}
		if e.Interface != "" {
			args = append(args, "--mca", "btl_tcp_if_include", e.Interface, "--mca", "oob_tcp_if_include", e.Interface)
		}
		return slices.Concat(args, e.Args, join), nil
	}
	return nil, fmt.Errorf("%w: %q is neither slurm nor mpirun", ErrEngine, e.Name)
}

// slurmMPI is the wire-up that an MPI library of Debian understands.
func slurmMPI(launcher string) string {
	switch launcher {
	case "openmpi":
		return "pmix"
	case "mpich":
		return "pmi2"
	}
	return "none"
}

// slots gives every host its number of tasks: as many as it takes, in order, else an even
// share of what those with a number leave.
func (e Engine) slots(n int) ([]string, error) {
	counts, names := make([]int, len(e.Hosts)), make([]string, len(e.Hosts))
	left, open := n, 0
	for i, h := range e.Hosts {
		name, count, given := strings.Cut(h, ":")
		names[i] = name
		if !given {
			open++
			continue
		}
		k, err := strconv.Atoi(count)
		if err != nil || k < 1 {
			return nil, fmt.Errorf("%w: host %q: expected HOST or HOST:RANKS", ErrEngine, h)
		}
		counts[i] = min(k, left)
		left -= counts[i]
	}
	if open == 0 && left > 0 {
		return nil, fmt.Errorf("%w: %d ranks don't fit on the hosts %s", ErrEngine, n, strings.Join(e.Hosts, ", "))
	}
	var list []string
	for i, h := range e.Hosts {
		if !strings.Contains(h, ":") {
			counts[i] = (left + open - 1) / open
			left -= counts[i]
			open--
		}
		if counts[i] > 0 {
			list = append(list, fmt.Sprintf("%s:%d", names[i], counts[i]))
		}
	}
	return list, nil
}

// tasks is an engine's command at work.
type tasks struct {
	cmd    *exec.Cmd
	name   string
	output string
	done   chan struct{}
	err    error // valid after done
}

func (e Engine) start(job launch.Job, port int, token string) (*tasks, error) {
	argv, err := e.Command(job.Launcher, job.Workers, port)
	if err != nil {
		return nil, err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %s is not on PATH", ErrEngine, argv[0])
	}
	t := &tasks{cmd: exec.Command(path, argv[1:]...), name: argv[0], output: filepath.Join(job.Dir, "stderr."+e.Name), done: make(chan struct{})}
	f, err := os.Create(t.output)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the child has its own
	t.cmd.Stdout, t.cmd.Stderr = f, f
	t.cmd.Env = append(os.Environ(), tokenVariable+"="+token, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_mpi_yield_when_idle=1")
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := t.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: start %s: %w", ErrEngine, t.name, err)
	}
	go func() {
		t.err = t.cmd.Wait()
		close(t.done)
	}()
	return t, nil
}

// fault says that the engine ended its tasks, with what it said; nil while it runs.
func (t *tasks) fault() error {
	select {
	case <-t.done:
		return fmt.Errorf("%w: %s: %v%s", ErrEngine, t.name, t.err, launch.OutputOf(filepath.Dir(t.output), strings.TrimPrefix(filepath.Base(t.output), "stderr.")))
	default:
		return nil
	}
}

// end waits for the tasks, which were told to go, and ends them when they do not.
func (t *tasks) end() {
	for _, sig := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL} {
		if sig != 0 {
			_ = syscall.Kill(-t.cmd.Process.Pid, sig)
		}
		select {
		case <-t.done:
			return
		case <-time.After(5 * time.Second):
		}
	}
}
