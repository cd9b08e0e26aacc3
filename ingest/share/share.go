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

// engine is what starts processes, and how it tells them their share.
type engine struct {
	name         string
	index, count string
	// present, when set, must be there as well: the others alone say nothing.
	present string
}

// engines, innermost first.
var engines = []engine{
	// https://docs.pytorch.org/docs/stable/elastic/run.html
	{name: "torchrun", index: "RANK", count: "WORLD_SIZE"},
	// https://docs.open-mpi.org: environment variables set by mpirun
	{name: "Open MPI", index: "OMPI_COMM_WORLD_RANK", count: "OMPI_COMM_WORLD_SIZE"},
	// MPICH's Hydra, Intel MPI, and Slurm's PMI plugins
	{name: "MPICH", index: "PMI_RANK", count: "PMI_SIZE"},
	// https://slurm.schedmd.com/srun.html. A batch script has SLURM_PROCID=0 and
	// SLURM_NTASKS too and is not one of the tasks; only steps have SLURM_STEP_ID
	// and SLURM_STEP_NUM_TASKS.
	{name: "Slurm", index: "SLURM_PROCID", count: "SLURM_STEP_NUM_TASKS", present: "SLURM_STEP_ID"},
	// https://kubernetes.io/docs/concepts/workloads/controllers/job/: an indexed
	// Job says nothing of its completions, so its manifest has to.
	{name: "Kubernetes", index: "JOB_COMPLETION_INDEX", count: "JOB_COMPLETIONS"},
}

// FromEnvironment reads the share that an engine gave this process; everything
// when there is none.
func FromEnvironment(lookup func(string) (string, bool)) (Share, error) {
	for _, e := range engines {
		index, ok := lookup(e.index)
		if !ok || index == "" {
			continue
		}
		if e.present != "" {
			if v, ok := lookup(e.present); !ok || v == "" {
				continue
			}
		}
		count, ok := lookup(e.count)
		if !ok || count == "" {
			if e.name == "Slurm" {
				continue // no step of srun
			}
			return Share{}, fmt.Errorf("%w: %s sets %s=%s, and %s is not set: set it to the number of tasks, or use --share I/N or --share all",
				ErrSyntax, e.name, e.index, index, e.count)
		}
		i, err := strconv.Atoi(index)
		n, countErr := strconv.Atoi(count)
		if err != nil || countErr != nil || i < 0 || n < 1 || i >= n {
			return Share{}, fmt.Errorf("%w: %s=%s and %s=%s (%s): expected a number from 0, and a larger one: use --share I/N or --share all",
				ErrSyntax, e.index, index, e.count, count, e.name)
		}
		return Share{Index: i, Count: n, From: e.index + ", " + e.count}, nil
	}
	return Share{}, nil
}
