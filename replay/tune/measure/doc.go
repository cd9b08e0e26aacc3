// Package measure makes tables of measurements by running generated plans on the
// project's own worker.
//
//  1. A Point is what is measured: an operation, a size, a group. Points come from
//     ranges (grid.go) or from a traced workload (traced.go).
//  2. For each point and contender a plan is made (program.go): the operation again
//     and again, so that the start of the workers does not count. Those with a root
//     have another root each time, so that no rank can run ahead.
//  3. Plans that can share workers run in one start, in an order that the worker
//     draws anew for each iteration (campaign.go). Settings of a library, its
//     variants, are variables of the environment and need a start of their own
//     (variant.go).
//  4. The time of an operation is from the end of what came before it on its last
//     rank to its own end on its last rank: the slowest rank's (samples.go); with a root
//     it is the mean of those of an iteration. What a row has is the median over
//     iterations of each iteration's median (statistics.go).
//  5. A traced step is not measured in parts but run as a whole (within.go): an
//     operation then begins cold, its members come when they come in the job, others
//     run beside it, and its time has all of that (step.go). What follows is for
//     points.
//  6. First comes a coarse grid of sizes; then sizes between neighbours where the
//     winner changes (refine.go); then more iterations for what is not known well
//     enough. After each start of workers the table is whole.
package measure
