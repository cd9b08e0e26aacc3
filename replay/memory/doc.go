// Package memory says what a pipeline order makes each rank hold, in bytes, and
// what one order wins in time and loses in memory against another.
//
// A rank holds two kinds of things. Its state (weights, gradients, optimizer
// state) follows from its parameters, the optimizer and how both are sharded
// over data-parallel ranks; the order changes it only where it keeps weights
// twice. Its activations follow from the order: so many chunks and micro-batches
// at once, each with the same number of bytes, which the model and its
// recomputation decide.
//
// With P parameters on a rank, N data-parallel ranks and Adam in mixed
// precision (2 bytes of weight, 2 of gradient, 12 of optimizer state):
//
//	none     16·P
//	partial  (2 + 14/N)·P + gradient buffers of one stage each
//	full     16·P/N + weight and gradient buffers of one stage each
//
// What is not known is left out: a field that needs it is nil, and so is every
// sum that it belongs to. Fragmentation, temporary buffers and what libraries
// keep for themselves are never part of a figure.
package memory
