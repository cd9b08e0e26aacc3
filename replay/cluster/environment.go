package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"mixdown/ingest/share"
)

// Task is what an engine tells a task about itself.
type Task struct {
	Engine string // as package share names it
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

// local is how engines tell a task its place on its host, and its job.
var local = map[string]struct{ rank, size, job string }{
	share.Torchrun: {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
	share.OpenMPI:  {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
	share.Slurm:    {"SLURM_LOCALID", "", "SLURM_JOB_ID"},
	share.MPICH:    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""},
}

// FromEnvironment reads what the engine that started this process says; getenv is
// os.Getenv. ErrNoEngine when none did.
func FromEnvironment(getenv func(string) string) (Task, error) {
	lookup := func(name string) (string, bool) {
		v := getenv(name)
		return v, v != ""
	}
	found, ok, err := share.Find(lookup)
	switch {
	case err != nil:
		return Task{}, fmt.Errorf("%w: %w", ErrEnvironment, err)
	case !ok:
		return Task{}, fmt.Errorf("%w: none of RANK and WORLD_SIZE, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID, JOB_COMPLETION_INDEX is set", ErrNoEngine)
	}
	t := Task{Engine: found.Engine, Rank: found.Index, Size: found.Count, LocalRank: -1, Leader: leaderOf(getenv)}
	if t.Engine == share.MPICH && getenv("PMI_RANK") == getenv("SLURM_PROCID") && getenv("PMI_SIZE") == getenv("SLURM_STEP_NUM_TASKS") {
		t.Engine = share.Slurm // srun, which speaks PMI too
	}
	names := local[t.Engine]
	t.Job = getenv(names.job)
	for _, x := range []struct {
		name string
		to   *int
	}{{names.rank, &t.LocalRank}, {names.size, &t.LocalSize}, {"TORCHELASTIC_RESTART_COUNT", &t.Restarts}} {
		if x.name == "" || getenv(x.name) == "" {
			continue
		}
		if *x.to, err = number(getenv, x.name); err != nil {
			return Task{}, err
		}
	}
	if t.Engine == share.Slurm {
		t.LocalSize = slurmTasksHere(getenv)
	}
	return t, nil
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
