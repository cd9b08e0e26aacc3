// Package synthetic makes traces of runs whose truth is known, for the tests and
// benchmarks of what other packages conclude from traces. Nothing of it can be
// reached from the command line.
//
// # The run
//
// All ranks run the same program: in every step some computation, a
// communication, computation again, and so on. Time is true time, in ns, which
// no trace shows. A rank arrives at a collective when its program has launched
// it, the computation before it is done and the stream of its group is free. The
// collective runs on each member from that member's arrival; on all of them it
// ends when the last has arrived, plus the transfer, plus a small skew of each
// member's own:
//
//	end(rank) = max over members of arrival + transfer + skew(rank),  0 <= skew <= EndSkewNs
//
// That is what separates waiting (until the last arrival) from transfer, and why
// the ends of collectives can be used to align clocks. Unless Async is set, the
// next computation waits for the end.
//
// With Options.Contention a kernel on a device gets on that many times more slowly
// while communication runs there, waiting for other ranks or not.
//
// With Engine the program sleeps from the middle of a step on while another thread
// works for it, as in backward(). With Beside each rank has a second thread that works
// while the program does, has streams of its own, and stands still for its copies and
// collectives; the program starts it with each step and waits for it at the end.
//
// A straggler computes longer before one collective of one step. A dropped event
// is the kernel (or the worker's annotation, on the host) of one member that the
// file lacks, as when the profiler ran out of buffers: what the CPU recorded of
// it stays.
//
// # The trace
//
// Every rank sees true time t through its own clock:
//
//	local(t) = t + Offset + DriftPPB x (t - Start) / 1e9
//
// in integers, and its file is Kineto's JSON with times in microseconds with
// three decimals relative to baseTimeNanoseconds, so that no ns is lost. The
// forms written are those that package kineto documents for a device with NCCL,
// with and without arguments of communication, and for Gloo on the host.
//
// The same Options make the same bytes and the same Truth.
package synthetic
