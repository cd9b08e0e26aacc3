// Package trace is the event store: what was read of each rank, in columns.
//
// A Run is a set of ranks; a Rank holds the events of one file in file order,
// one column for each field, with names interned. Times are int64 nanoseconds
// on the clock of the rank's host. What an event means (which are kernels, what
// they communicate) is decided in package kineto, which fills the store.
package trace
