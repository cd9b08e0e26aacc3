// Package fold makes a job smaller by keeping one of several ranks that do the
// same, and larger by supposing more replicas of it.
//
// # Folding
//
// Ranks are alike when their programs communicate alike: the same operations, in
// the same order and of the same sizes, in groups that play the same part. Ranks
// that exchange messages belong together, as a pipeline does: such a unit is kept
// whole or left out. Of units that are alike Fold keeps as many as there is room
// for, the slowest first, since operations wait for it, and of unlike units those
// that share groups.
//
// What is kept runs in groups of those that are kept. Cost gives an operation its
// group's full size back, so that what a table or the trace says of 512 ranks is
// what is played; Shrink makes the workload one that workers can really run, with
// sizes that suit the smaller groups. Those left out come as much later than those
// kept as they did in the trace (Late), whatever else is changed: they are not played.
// Their traffic on shared links is in no cost but the trace's.
//
// # Scaling
//
// Scale supposes more data-parallel replicas: the groups over replicas grow, all
// else stays.
package fold
