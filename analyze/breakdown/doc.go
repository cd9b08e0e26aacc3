// Package breakdown says where the time of a run went by more than one key at
// once: communication per process group, operation, size class, phase and step
// over all ranks, and the time of every rank in every step. It goes through a
// rank's events once, whatever the number of steps.
//
// # Rows
//
// A Row adds up operations, each counted on every rank that took part, so rows
// can be added in any way: By keeps some of the keys, Sum groups by any function
// of them, and every grouping has the same totals. An operation's total is the
// length of the union of its own events; two operations that run at once on one
// rank both have their full time, as in the communication table of package
// report, so rows can add up to more than the rank's communication time.
//
// # Steps
//
// Device work belongs to the step whose launch it was, wherever it ran; without a
// launch in the trace, to the step in which it began. Communication belongs to
// the step in which it was issued. On a rank without a device an operator belongs
// to the step in which it began. What was launched outside all steps is kept as
// "outside", so that nothing is lost.
//
// # Times
//
// A rank's times are those of package overlap, dealt out to the steps so that
// they add up to the whole rank's exactly: where work of the same kind from two
// steps runs at once, the moment belongs to the work that began first. Exposed
// communication has no computation of any step beside it. For idle time and span
// the rank's time line is cut into windows that do not overlap: from the first
// work of a step to the first work of what was launched next, which on a rank
// without a device is the step itself. A step's work may lie in another one's
// window (an asynchronous optimizer's), so that within one step the parts need
// not make the span.
package breakdown
