// Package share says which part of a job's files one of its processes reads.
//
// Whoever starts many processes tells each its number and how many there are, in
// variables of its own: srun, mpirun, torchrun, an indexed Job of Kubernetes.
// [Find] knows them. The innermost one counts: a torchrun inside srun
// is asked, not srun. The files are dealt like cards, in the order that all
// processes find them in: neighbours, which are of one pipeline stage or node and
// alike in size, go to different processes.
package share
