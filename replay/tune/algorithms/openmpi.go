// Package algorithms knows the algorithms that communication libraries let their
// users choose, by the names and numbers that the libraries' own files use.
package algorithms

import (
	"slices"

	"mixdown/ingest/comm"
)

// OpenMPICollective is a collective as Open MPI's component tuned knows it.
type OpenMPICollective struct {
	Op   comm.Op
	Name string // in parameters: coll_tuned_NAME_algorithm
	ID   int    // in classic rule files
	// Algorithms by their number, from 0 = its own fixed rules.
	Algorithms []string
}

// openMPI is from Open MPI 6.1 (ompi/mca/coll/tuned and docs/tuning-apps/
// collectives/tuned.rst); older releases know less, and ask ompi_info.
var openMPI = []OpenMPICollective{
	{comm.AllGather, "allgather", 0, []string{"ignore", "linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc", "sparbit", "direct-messaging"}},
	{comm.AllGatherV, "allgatherv", 1, []string{"ignore", "default", "bruck", "ring", "neighbor", "two_proc", "sparbit"}},
	{comm.AllReduce, "allreduce", 2, []string{"ignore", "basic_linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring", "rabenseifner", "allgather_reduce"}},
	{comm.AllToAll, "alltoall", 3, []string{"ignore", "linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"}},
	{comm.AllToAllV, "alltoallv", 4, []string{"ignore", "basic_linear", "pairwise"}},
	{comm.Barrier, "barrier", 6, []string{"ignore", "linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"}},
	{comm.Broadcast, "bcast", 7, []string{"ignore", "basic_linear", "chain", "pipeline", "split_binary_tree", "binary_tree", "binomial", "knomial", "scatter_allgather", "scatter_allgather_ring"}},
	{comm.Gather, "gather", 9, []string{"ignore", "basic_linear", "binomial", "linear_sync"}},
	{comm.Reduce, "reduce", 11, []string{"ignore", "linear", "chain", "pipeline", "binary", "binomial", "in-order_binary", "rabenseifner", "knomial"}},
	{comm.ReduceScatterV, "reduce_scatter", 12, []string{"ignore", "non-overlapping", "recursive_halving", "ring", "butterfly"}},
	{comm.ReduceScatter, "reduce_scatter_block", 13, []string{"ignore", "basic_linear", "recursive_doubling", "recursive_halving", "butterfly"}},
	{comm.Scatter, "scatter", 15, []string{"ignore", "basic_linear", "binomial", "linear_nb"}},
}

// OpenMPI returns what Open MPI calls an operation, false for what it does not
// tune. The even reduce_scatter is its reduce_scatter_block.
func OpenMPI(op comm.Op) (OpenMPICollective, bool) {
	i := slices.IndexFunc(openMPI, func(c OpenMPICollective) bool { return c.Op == op })
	if i < 0 {
		return OpenMPICollective{}, false
	}
	return openMPI[i], true
}

// OpenMPICollectives lists all, by their numbers.
func OpenMPICollectives() []OpenMPICollective { return slices.Clone(openMPI) }

// Number is the number of an algorithm, false when the collective has none of
// that name.
func (c OpenMPICollective) Number(algorithm string) (int, bool) {
	i := slices.Index(c.Algorithms, algorithm)
	return i, i >= 0
}
