// Package sharding says what data parallelism adds to a pipeline order: which
// collectives run between which passes, how many, and how much of the gradients'
// reduction is left over when the pipeline is done.
//
// A stage's weights, gradients and optimizer state exist once on each of the
// data-parallel ranks that hold the stage, or in shards over them. Three ways,
// after the paper on breadth-first pipelines (arXiv 2211.05953):
//
//   - None (DP0): all is held whole; gradients are all-reduced once a step.
//   - Partial (DP_PS): gradients and optimizer state are sharded, weights are
//     held whole. The weights are gathered once a step; a gradient is reduced
//     and its buffer given to another stage as often as the backward moves on.
//   - Full (DP_FS): weights are sharded too, and gathered into a buffer whenever
//     another stage than the one in it is to run.
//
// The collectives go where Fast-LLM, the author's own trainer, launches them: a
// gather right after the last use of the buffer that it fills, a reduction right
// after the last backward before its buffer changes hands.
//
// Shard puts them into an order; schedule.Evaluate then plays them on a stream
// beside each rank's passes, for the durations in schedule.Costs, and Exposed is
// what is left of them after the last pass.
//
// In a loop with one buffer of each kind, breadth-first gathers 2v-1 times and
// reduces v times on every rank, however many micro-batches there are;
// depth-first reduces v·m/p times and gathers for nearly every pass. That is why
// breadth-first goes with full sharding.
package sharding
