// Package executiontrace reads PyTorch execution traces and joins what they
// say about communication to a run read from profiler traces.
//
// An execution trace is the graph of the operators that one rank ran, with
// their arguments and without times. Profiler traces have the times, but those
// of PyTorch before 2.2 have no communication arguments: how an all_to_all cut
// its tensors, for one, is only in the execution trace of the same run.
//
//  1. The file is a stream of nodes, and often a damaged one (commas missing,
//     nodes cut in half, no end). A node whose structure is broken is lost and
//     counted; reading goes on at the next place that looks like a node
//     (scanner.go, grammar.go).
//  2. One communication shows as up to three nodes, in two forms of JSON: the
//     c10d operator, record_param_comms in it, and the annotation of the
//     backend. Each is read into a record (node.go, tensor.go) and the records
//     of one communication become one [Call] (assemble.go).
//  3. Lists of splits count rows and are believed only where they add up to the
//     tensors (splits.go).
//  4. [Apply] joins calls to the operations of a run: by record function id
//     where the profiler wrote one, else by order, and only where the whole
//     sequences agree in operation, type and size (join.go). It adds what the
//     run lacks and changes nothing that it has (apply.go).
package executiontrace
