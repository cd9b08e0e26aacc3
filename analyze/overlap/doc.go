// Package overlap splits the time of one rank into computation, communication,
// memory traffic and idleness, and says how much communication is exposed.
//
// Every quantity is the length of a union of intervals, so streams that overlap
// are never counted twice. On a rank with a device the intervals are its kernels
// and copies; on a rank without one they are the CPU's operators, less the time
// the program stood still for communication (package waiting).
package overlap
