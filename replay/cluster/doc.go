// Package cluster runs an experiment on several hosts.
//
// The engine of the cluster (srun, mpirun, torchrun, a Kubernetes job) starts one
// task for each rank; mixdown brings no scheduler of its own. The task that plans
// is the leader: it listens on TCP, and every task, its own too, joins it as a
// member. A member starts one worker and stands between it and the leader:
//
//   - it carries the workers' barrier: when all have arrived the leader names a
//     start a little ahead, on each host's own clock ([Clock]);
//   - it carries the files by which libraries find their peers, so that no shared
//     folder is needed;
//   - it tells what its worker is doing, and sends its results as they are written:
//     what was measured before a host was lost is with the leader.
//
// Who falls silent is lost: the leader ends the run with an account of every rank,
// and a member whose leader is silent ends its worker. The number of tasks is fixed
// from the start; a member that comes later, or again, is refused.
//
// What a task is told by its engine is read in [FromEnvironment]; how a leader asks
// an engine for tasks is in [Engine].
package cluster
