// Package critical finds what bounds a training step over all ranks, and how
// much shorter the step would be if communication cost nothing.
//
// The traces of a step become one graph. Its nodes are moments: the host of a
// rank launching something, beginning to wait or going on; a kernel or copy
// ended; a rank arriving at a communication, the last of its members there, its
// transfer done. An edge says that a moment cannot come before another one: the
// program's order, a launch and what it launched, the order of a stream, a call
// that blocks until the device is done, a stream that waits for communication,
// all members of a collective for its last one, a receive for its send. Every
// node has a weight, its own time: how much later it came than the last of what
// it depends on. So
//
//	end(n) = max over its dependencies d of (end(d) + lag) + own(n)
//
// gives exactly the recorded times, and the longest path is the step. A lag is
// 0, or negative by the rounding or clock conversion that the trace shows.
// Dependencies that the times contradict by more than that are rejected and
// counted: a false one would lead back in time and make a circle.
//
// The path, walked back from the last moment of the step, shows rank by rank
// what the step was made of (path.go). Evaluated again with the transfers of
// one kind of communication at 0, the graph tells the most that a faster backend
// for it could gain (free.go): everything else keeps its length and its order,
// ranks still wait for the last one, and launching communication still takes
// what it took. It is a bound for changes of communication
// alone. It does not know that kernels run faster without communication beside
// them, and a dependency which the trace does not show and nothing here infers
// is not in it.
//
// Ranks are joined only when their clocks can be compared (clock.go). Else every
// rank's graph stands for itself, and a collective's transfer is taken to be as
// long as on the member on which it was shortest, the rest being the wait.
//
// The graph is made of what the traces say alone, so that package replay/plan
// can make its programs of it: a rank's nodes in order of their index within
// Graph.Order are a valid order of tasks; a node's own time is the span before
// its task, Arrival and Transfer are the two sides of a communication task, and
// a run of Compute nodes with one dependency each beside the launches can be
// made shorter without changing its end.
package critical
