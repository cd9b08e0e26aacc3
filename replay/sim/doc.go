// Package sim plays plans without hardware: pipeline orders with recorded
// durations, and whole workloads with recorded or tabulated costs.
//
// # Pipeline orders
//
// Package schedule says what an order costs when every task of a stage takes the
// same time. A recorded step is not like that: micro-batches differ, messages
// take time, the host needs a while between two tasks. Calibrate takes all of it
// from the recorded steps of a pipeline into a Model; Play runs any order of the
// same model through it:
//
//   - a task takes what it took in the trace, the same stage and micro-batch,
//     whatever the order; where stages are cut differently, its share of the
//     stages it is made of;
//   - before a task starts, its place needs the gap that was seen between tasks
//     of those kinds when nothing was left to wait for: launches, the
//     interpreter, the framework;
//   - a message takes the time that was seen from when both its ends were there,
//     one at a time for each direction between two places;
//   - gradient reductions and weight gathers run one at a time beside the tasks,
//     where the order has them;
//   - a step begins and ends with what came before the first task and after the
//     last.
//
// Nothing is fitted: every figure is a mean or a median of recorded ones. How
// well they describe the run is for Baseline to say, which plays the recorded
// order and compares. Search plays every schedule that fits.
//
// # Workloads
//
// A Graph is the programs of all ranks, joined where operations meet. Played, spans
// last what they lasted, and an operation moves when its last member is there. What
// it then takes is for a CommunicationCost to say: what it took in the trace
// (TracedCosts), or that scaled by what a tuning table says of another backend
// (Scaled). What the trace shows of one rank alone, before it arrived and after the
// others left, stays its own. Waiting is never kept and never scaled: it comes out
// of the play.
//
// Communication slows the kernels beside it. Where a workload knows by how much
// (Contend), a span of kernels is what it takes alone, and more for as long as
// communication runs beside it in the play: which is played until both agree.
package sim
