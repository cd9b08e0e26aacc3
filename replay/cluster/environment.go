package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Task is what an engine tells a task about itself.
type Task struct {
	Engine string // "slurm", "openmpi", "mpich", "torchrun" or "kubernetes"
	Rank   int    // of Size tasks
	Size   int
	// LocalRank of the LocalSize tasks of its host; -1 and 0 when the engine does not
	// say.
	LocalRank, LocalSize int
	// Leader is where the task of rank 0 listens, "" when the engine does not say.
	Leader string
	// Job tells jobs apart that run at the same time, "" when the engine does not say.
	Job string
	// Restarts is how often the engine has started the tasks again.
	Restarts int
}

var (
	// ErrNoEngine: the environment is that of no known engine.
	ErrNoEngine = errors.New("no task of a cluster's engine")
	// ErrEnvironment: an engine's variables contradict each other, or are not numbers.
	ErrEnvironment = errors.New("the engine's environment is not usable")
)

// defaultPort is where a leader listens when the engine names its host alone.
const defaultPort = 29430

// engines in the order in which they are looked for: an inner one, that started the
// process itself, before an outer one that it may run below.
var engines = []struct {
	name                             string
	rank, size, localRank, localSize string
	job                              string
}{
	{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
	{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
	{"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", "SLURM_JOB_ID"},
	{"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""},
	{"kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", "", "", ""},
}

// FromEnvironment reads what the engine that started this process says; getenv is
// os.Getenv. ErrNoEngine when none did.
func FromEnvironment(getenv func(string) string) (Task, error) {
	for _, e := range engines {
		if getenv(e.rank) == "" {
			continue
		}
		if getenv(e.size) == "" && e.name != "kubernetes" {
			continue // another's variable of the same name
		}
		t := Task{Engine: e.name, LocalRank: -1, Job: getenv(e.job)}
		var err error
		if t.Rank, err = number(getenv, e.rank); err != nil {
			return Task{}, err
		}
		if getenv(e.size) == "" {
			return Task{}, fmt.Errorf("%w: %s is set, but not %s: set it to the job's completions", ErrEnvironment, e.rank, e.size)
		}
		if t.Size, err = number(getenv, e.size); err != nil {
			return Task{}, err
		}
		if t.Rank >= t.Size {
			return Task{}, fmt.Errorf("%w: %s=%d, but %s=%d", ErrEnvironment, e.rank, t.Rank, e.size, t.Size)
		}
		if e.localRank != "" && getenv(e.localRank) != "" {
			if t.LocalRank, err = number(getenv, e.localRank); err != nil {
				return Task{}, err
			}
		}
		if e.localSize != "" && getenv(e.localSize) != "" {
			if t.LocalSize, err = number(getenv, e.localSize); err != nil {
				return Task{}, err
			}
		}
		if e.name == "slurm" {
			t.LocalSize = slurmTasksHere(getenv)
		}
		if v := getenv("TORCHELASTIC_RESTART_COUNT"); v != "" {
			if t.Restarts, err = number(getenv, "TORCHELASTIC_RESTART_COUNT"); err != nil {
				return Task{}, err
			}
		}
		t.Leader = leaderOf(getenv)
		return t, nil
	}
	return Task{}, fmt.Errorf("%w: none of RANK and WORLD_SIZE, OMPI_COMM_WORLD_RANK, SLURM_PROCID, PMI_RANK, JOB_COMPLETION_INDEX is set", ErrNoEngine)
}

func number(getenv func(string) string, name string) (int, error) {
	n, err := strconv.Atoi(getenv(name))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s=%q: expected a number from 0", ErrEnvironment, name, getenv(name))
	}
	return n, nil
}

// leaderOf is where rank 0 listens: as the user says, beside torchrun's own port, or on
// the first node that Slurm names.
func leaderOf(getenv func(string) string) string {
	if at := getenv("MIXDOWN_RENDEZVOUS"); at != "" {
		return at
	}
	if host := getenv("MASTER_ADDR"); host != "" {
		port := defaultPort
		if p, err := strconv.Atoi(getenv("MASTER_PORT")); err == nil && p > 0 && p < 65535 {
			port = p + 1 // MASTER_PORT itself is taken by the engine's own store
		}
		return net.JoinHostPort(host, strconv.Itoa(port))
	}
	nodes := getenv("SLURM_STEP_NODELIST")
	if nodes == "" {
		nodes = getenv("SLURM_JOB_NODELIST")
	}
	if host := firstNode(nodes); host != "" {
		port := defaultPort
		if job, err := strconv.Atoi(getenv("SLURM_JOB_ID")); err == nil {
			port += job % 1000 // jobs may share a host
		}
		return net.JoinHostPort(host, strconv.Itoa(port))
	}
	return ""
}

// firstNode is the first host of a Slurm list as "gpu[07-09,12],login1".
func firstNode(list string) string {
	prefix, rest, bracket := strings.Cut(list, "[")
	if name, _, comma := strings.Cut(prefix, ","); comma || !bracket {
		return name
	}
	inner, after, closed := strings.Cut(rest, "]")
	if !closed {
		return ""
	}
	first := strings.FieldsFunc(inner, func(r rune) bool { return r == '-' || r == ',' })
	if len(first) == 0 {
		return ""
	}
	suffix, _, _ := strings.Cut(after, ",")
	if i := strings.IndexByte(suffix, '['); i >= 0 { // a name of several ranges
		return firstNode(prefix + first[0] + suffix)
	}
	return prefix + first[0] + suffix
}

// slurmTasksHere reads SLURM_STEP_TASKS_PER_NODE, as "4(x2),3", for the node of
// SLURM_NODEID; 0 when they do not say.
func slurmTasksHere(getenv func(string) string) int {
	node, err := strconv.Atoi(getenv("SLURM_NODEID"))
	if err != nil || node < 0 {
		return 0
	}
	for _, part := range strings.Split(getenv("SLURM_STEP_TASKS_PER_NODE"), ",") {
		text, times, repeated := strings.Cut(part, "(x")
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0
		}
		count := 1
		if repeated {
			if count, err = strconv.Atoi(strings.TrimSuffix(times, ")")); err != nil {
				return 0
			}
		}
		if node < count {
			return n
		}
		node -= count
	}
	return 0
}

// bootID identifies the running kernel: hosts that are the same have one clock.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// placement is where this process may run and have its memory, as Linux lists it.
func placement() (cpus, numa string) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", ""
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "Cpus_allowed_list":
			cpus = strings.TrimSpace(value)
		case "Mems_allowed_list":
			numa = strings.TrimSpace(value)
		}
	}
	return cpus, numa
}
