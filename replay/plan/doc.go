// Package plan makes the workload of a traced run and the plans that replay it.
//
// plan.proto is the contract between analysis, simulator and worker. A workload
// is what the traces say one training step did; a plan is a workload with its
// decisions made.
//
// Every rank's program has a stream for its host, one for each device stream
// that computes, and one for each that communicates. Threads of the host share a
// stream as long as they only hand over to each other; those that work at the same
// time have streams of their own (hosts.go). A stream's tasks run in
// order. A span is measured time in which the rank worked:
//
//   - on the host, the time between two points at which it launched something
//     or began to wait, less the time it was blocked;
//   - on the device, from the moment a kernel could have run (launched, the
//     previous one of its stream done, the communication it waits for done) to
//     its end.
//
// What streams wait for of each other is taken from the profiler's records of events
// where the trace has them, and inferred from the order and the times of launches and
// kernels where it has not (infer.go). What threads wait for of each other is inferred
// from when they are idle (turns.go). Workload.Dependencies counts both.
//
// So a job that is bound by its launches stays so when its communication gets
// faster, and what overlapped in the trace may overlap in the plan. Runs of
// kernels become one or two spans without changing when their last one ends
// (compact.go).
//
// Operations that could not be matched on all their ranks, or whose sizes are
// not known, are left out on every member, with a diagnostic, and so is what the program
// waited for them. Workloads that are only simulated (Options.Simulate) keep those of
// unknown size, and the waits as long as they were: the unchanged run then takes what it
// took.
package plan
