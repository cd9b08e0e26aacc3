// Package schedule makes pipeline orders and says exactly what they cost.
//
// A pipeline cuts a model into stages, and a batch into micro-batches. Rank r
// holds one or more stages, its chunks. Every stage runs every micro-batch
// forward once and backward once; which of them a rank runs when is the order.
// The package goes from words to figures in four steps:
//
//  1. Parse reads "breadth-first:ranks=4,microbatches=8,loops=4" into a Spec.
//  2. Spec.Order makes the Order: for each rank a list of Actions, written as
//     PyTorch writes them (0F3 is stage 0, forward, micro-batch 3). ReadCSV and
//     Order.WriteCSV exchange orders with PyTorch.
//  3. Evaluate plays an order with the durations in Costs and returns a
//     Timeline, or a BlockedError naming who waits for whom when the order can
//     never finish.
//  4. Timeline gives makespan, bubbles, memory, messages and the time at which
//     each chunk's gradient is complete; NewResult puts them in the form that
//     scripts read. Package gantt draws it.
//
// The way back is Recognise: it says which known schedule an observed order is.
//
// # Time
//
// Durations are exact numbers (Rational) in any unit, the same for all of them.
// Nothing is rounded: 3/35 is a bubble of 3/35, not of 0.0857.
//
// A rank runs one action at a time, in its order, each as soon as what it needs
// has arrived: a forward needs the same micro-batch's forward on the stage
// before, a backward its own forward and the backward of the stage after, a
// weight gradient the input gradient of its stage. What comes from another rank
// takes a hop longer; sends don't occupy the sender. All ranks start at 0.
//
// An overlapped pair, (0F5;7B3)OVERLAP_F_B, starts when both halves can and takes
// as long as both: what running them together saves depends on the hardware.
//
// Where an order names its transfers (2SEND_F0, 3RECV_F0), they take no time on
// the rank but their place in the order counts: a transfer starts when both
// sides have reached it.
//
// Where it names collectives over data-parallel ranks (0UNSHARD, 0REDUCE_GRAD),
// these run on a stream of each rank beside its passes, one at a time, each from
// when the rank has reached it. A pass waits until its stage's weights are
// gathered, 0WAIT_REDUCE_GRAD until its gradient is reduced. Package sharding
// puts them into an order.
//
// # Two bubbles
//
// Bubble is the idle share of ranks × makespan. BubbleLongestSpan divides by
// ranks × the longest span from a rank's first start to its last end instead:
// the measure of the zero-bubble papers, in which ranks need not end together.
//
// # Where the orders come from
//
// Each generator has its file, which names its source. Known lists them. The
// order of Hanayo is left out: no description at hand reproduces its published
// figures.
package schedule
