package share

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrSyntax: a share, or what an environment says of it, makes no sense.
var ErrSyntax = errors.New("bad share")

// Share is the part of one process. The zero value is everything.
type Share struct {
	// Index is the number of this process, from 0, and Count how many there are.
	Index, Count int
	// From says who says so: "SLURM_PROCID, SLURM_STEP_NUM_TASKS"; "" when
	// nobody did.
	From string
}

// Alone tells that one process reads everything.
func (s Share) Alone() bool { return s.Count <= 1 }

// Has tells whether file i of the list is in the share.
func (s Share) Has(i int) bool { return s.Alone() || i%s.Count == s.Index }

// Of is how many of n files are in the share.
func (s Share) Of(n int) int {
	if s.Alone() {
		return n
	}
	return (n + s.Count - 1 - s.Index) / s.Count
}

// String is the share as Parse reads it.
func (s Share) String() string {
	if s.Alone() {
		return "all"
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Count)
}

// Parse reads "all", "I/N" or "auto", which asks the environment.
func Parse(text string, lookup func(string) (string, bool)) (Share, error) {
	switch text {
	case "", "auto":
		return FromEnvironment(lookup)
	case "all":
		return Share{}, nil
	}
	index, count, ok := strings.Cut(text, "/")
	i, err := strconv.Atoi(index)
	n, countErr := strconv.Atoi(count)
	if !ok || err != nil || countErr != nil || i < 0 || n < 1 || i >= n {
		return Share{}, fmt.Errorf("%w: %q: expected auto, all, or I/N with I from 0 to N-1", ErrSyntax, text)
	}
	return Share{Index: i, Count: n, From: "--share"}, nil
}

// Task is what an engine tells a process about itself.
type Task struct {
	Engine       string // Torchrun, OpenMPI, MPICH, Slurm or Kubernetes
	Index, Count int
	From         string // the variables that say so
}

// Engines that start processes.
const (
	Torchrun   = "torchrun"
	OpenMPI    = "openmpi"
	MPICH      = "mpich"
	Slurm      = "slurm"
	Kubernetes = "kubernetes"
)

// engines, innermost first, and how they tell processes their number.
var engines = []struct{ name, index, count string }{
	// https://docs.pytorch.org/docs/stable/elastic/run.html
	{Torchrun, "RANK", "WORLD_SIZE"},
	// https://docs.open-mpi.org: environment variables set by mpirun
	{OpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	// MPICH's Hydra, Intel MPI, and Slurm's PMI plugins. Within Slurm, Hydra starts one
	// process on each node with srun, whose variables its ranks then have too.
	{MPICH, "PMI_RANK", "PMI_SIZE"},
	// https://slurm.schedmd.com/srun.html. A batch script has SLURM_PROCID=0 and
	// SLURM_NTASKS too and is not one of the tasks; only steps have
	// SLURM_STEP_NUM_TASKS.
	{Slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
	// https://kubernetes.io/docs/concepts/workloads/controllers/job/: an indexed
	// Job says nothing of its completions, so its manifest has to.
	{Kubernetes, "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"},
}

// Find reads what the engine that started this process says, false when none did.
// Where one says half of it and none says all, that is an error.
func Find(lookup func(string) (string, bool)) (Task, bool, error) {
	var half error
	for _, e := range engines {
		index, _ := lookup(e.index)
		count, _ := lookup(e.count)
		switch {
		case index == "":
			continue
		case count == "":
			// That of Slurm alone is a batch script's, and of others may be anybody's.
			if e.name != Slurm && half == nil {
				half = fmt.Errorf("%s sets %s=%s, and %s is not set: set it to the number of tasks", e.name, e.index, index, e.count)
			}
			continue
		}
		i, err := strconv.Atoi(index)
		n, countErr := strconv.Atoi(count)
		if err != nil || countErr != nil || i < 0 || n < 1 || i >= n {
			return Task{}, false, fmt.Errorf("%s=%s and %s=%s (%s): expected a number from 0, and a larger one", e.index, index, e.count, count, e.name)
		}
		return Task{Engine: e.name, Index: i, Count: n, From: e.index + ", " + e.count}, true, nil
	}
	return Task{}, false, half
}

// FromEnvironment reads the share that an engine gave this process; everything
// when there is none.
func FromEnvironment(lookup func(string) (string, bool)) (Share, error) {
	t, _, err := Find(lookup)
	if err != nil {
		return Share{}, fmt.Errorf("%w: %w, or use --share I/N or --share all", ErrSyntax, err)
	}
	return Share{Index: t.Index, Count: t.Count, From: t.From}, nil
}
