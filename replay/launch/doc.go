// Package launch starts the workers of an experiment, watches them, and reads
// their results.
//
// A backend needs its own launcher: Gloo's workers are started directly, those
// of an MPI library through its mpirun. Launcher and workers share one control
// file (plan/control.md): the workers publish there what each of them is doing,
// so that a rank that was killed, or hangs, can be named. Whatever happens, no
// worker is left running.
package launch
