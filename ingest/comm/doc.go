// Package comm holds the vocabulary of communication: what one operation of
// torch.distributed is, independent of the file it was read from.
//
// Sizes are kept the one way that every other convention can be derived from:
// the elements this rank contributes (In) and the elements it receives (Out).
// For an all_gather over n ranks Out = n x In, for a reduce_scatter In = n x
// Out, for an all_reduce both are the full vector, for a send Out is zero.
// What a trace does not say stays unknown; no field is filled by a guess.
package comm
