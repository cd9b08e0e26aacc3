// Package kineto gives the events of PyTorch's profiler their meaning.
//
// It reads the files of a run into the event store of package trace and finds
// the communication in them:
//
//  1. every event is stored with its category, the spellings of all profiler
//     generations mapped to one (category.go);
//  2. CPU records of communication (record_param_comms, c10d operators, the
//     nccl:, gloo:, mpi: annotations) are read with their arguments (record.go);
//  3. device events are joined to their launch by correlation, and the launch
//     to the record that encloses it on its thread; kernel names alone decide
//     only where nothing else does, because they lie (devicecomm.go);
//  4. runs without a device take the annotations of the worker threads as the
//     communication's time (hostcomm.go).
//
// What can't be known (a size, a group) is left unknown and counted in the
// run's diagnostics.
package kineto
