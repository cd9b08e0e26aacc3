// Package auto chooses a mix for a job from what its operations cost on each
// backend.
//
// Choosing the best backend for each operation alone is not enough: an operation
// that overlaps with computation or waits for a straggler is worth nothing, and
// a mix must be stated as rules that every member of a group decides alike. So
// Choose works on the step: operations that a mix can tell apart (by operation
// and size) are one class; a choice is a backend for each class, and it is
// judged by playing the whole step with the costs of the table (package sim).
// It begins with the best single backend, and gives one class after the other,
// the most expensive first, to another backend where that makes the step
// shorter, until nothing does.
//
// The step keeps the traced backend unless another choice gains more than the
// noise, and a mix of several must gain more than that on the best of them alone.
// The noise is what the intervals of the measurements leave open. Costs that were
// measured within a step come before those of operations in a row: libraries
// differ in how they wait, which shows only where there is something to wait for. Every rule comes with its reason. Sizes are those on which all members
// agree (mix.SizeOf): nothing is chosen by what members could see differently.
package auto
