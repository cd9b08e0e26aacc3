package algorithms

import (
	"slices"

	"mixdown/ingest/comm"
)

// MPICHCollective is a collective as MPICH's selection trees know it.
type MPICHCollective struct {
	Op   comm.Op
	Name string // in the tree, collective=NAME, and in MPIR_CVAR_NAME_INTRA_ALGORITHM
	// Algorithms that work on every communicator, as in MPIR_Name_intra_ALGORITHM.
	Algorithms []string
	// PowerOfTwo lists those among them that are for 2, 4, 8, ... ranks only.
	PowerOfTwo []string
}

// mpich is from MPICH's src/mpi/coll/coll_algorithms.txt and maint/tuning/coll/
// mpir/generic.json; those that need several nodes (smp) or fall back to
// non-blocking ones (nb) are left out.
var mpich = []MPICHCollective{
	{comm.Broadcast, "bcast", []string{"binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather"}, []string{"scatter_recursive_doubling_allgather"}},
	{comm.AllReduce, "allreduce", []string{"recursive_doubling", "reduce_scatter_allgather"}, nil},
	{comm.AllGather, "allgather", []string{"brucks", "recursive_doubling", "ring"}, []string{"recursive_doubling"}},
	{comm.AllGatherV, "allgatherv", []string{"brucks", "recursive_doubling", "ring"}, []string{"recursive_doubling"}},
	{comm.Reduce, "reduce", []string{"binomial", "reduce_scatter_gather"}, nil},
	{comm.ReduceScatterV, "reduce_scatter", []string{"pairwise", "recursive_doubling", "recursive_halving"}, nil},
	{comm.ReduceScatter, "reduce_scatter_block", []string{"pairwise", "recursive_doubling", "recursive_halving"}, nil},
	{comm.AllToAll, "alltoall", []string{"brucks", "pairwise", "scattered"}, nil},
	{comm.Gather, "gather", []string{"binomial"}, nil},
	{comm.Scatter, "scatter", []string{"binomial"}, nil},
}

// MPICH returns what MPICH calls an operation, false for what has no choice.
func MPICH(op comm.Op) (MPICHCollective, bool) {
	i := slices.IndexFunc(mpich, func(c MPICHCollective) bool { return c.Op == op })
	if i < 0 {
		return MPICHCollective{}, false
	}
	return mpich[i], true
}

// Has says whether the collective has an algorithm that works for so many ranks.
func (c MPICHCollective) Has(algorithm string, ranks int) bool {
	powerOfTwo := ranks > 0 && ranks&(ranks-1) == 0
	return slices.Contains(c.Algorithms, algorithm) && (powerOfTwo || !slices.Contains(c.PowerOfTwo, algorithm))
}

// Leaf is the key of an algorithm in a selection tree.
func (c MPICHCollective) Leaf(algorithm string) string {
	name := string(c.Name[0]-'a'+'A') + c.Name[1:]
	return "algorithm=MPIR_" + name + "_intra_" + algorithm
}

// NeedsElements says whether an algorithm needs at least one element for each rank
// and a built-in operation: those of Rabenseifner.
func NeedsElements(algorithm string) bool {
	return algorithm == "reduce_scatter_allgather" || algorithm == "reduce_scatter_gather"
}
