// Package mix decides which backend runs which operation, and checks that the
// resulting plan can run: that it can't deadlock, that everyone who takes part in
// an operation agrees on it, and that the backends can do what they are to do.
//
// # Mixes
//
// A mix is a list of rules in order, the first that matches decides:
//
//	all_to_all=openmpi,all_reduce@>=1MiB=nccl,*=gloo
//
// A rule's left side is an operation or *, with conditions behind @: a size
// (@>=1MiB, @<64KiB, @4KiB-1MiB) and a group (@group:tp, by name or
// description). The size of an operation is one that all who take part know
// (size.go), so that all decide alike: a choice by a rank's own size would send
// members of one all_to_allv to different libraries, and hang.
//
// A backend is a library, for nccl with settings if wanted: nccl:ring/ll128/ch=8.
// Each combination of settings has communicators of its own; the check takes it for
// another backend with the abilities of its library.
//
// # The check
//
// Inspect reasons about the worker (native/README.md), which runs a plan so:
//
//   - A stream is a thread. Its tasks run in order; a task begins when the one
//     before it on its stream and all its dependencies have ended. (On a GPU one
//     thread queues for all streams, such that none holds up another.)
//   - Every call into a library blocks its stream, and no other, until this
//     rank's part is done. Libraries wait by polling inside their calls.
//   - A group on a backend is one communicator. Its collectives take turns on each
//     rank, in the order of seq, on whatever streams they are. Point-to-point
//     takes no turns and may run beside them.
//   - Messages are told apart by group, ranks and match, except on backends whose
//     Capability says Untagged.
//   - Communicators are made in one order on all ranks, and each is used once by
//     all its members, all pairs that send to each other among them, before
//     anything is timed.
//
// It assumes the worst of libraries: that none buffers. A collective ends on no
// member before all have begun it, a transfer on neither side before both have
// begun. And one good thing: once a call has returned, other ranks need no
// further call of that rank for it. So a rank that waits in one library can hold
// up another rank's call in another library only by not making its own.
//
// From that follows what must happen before what (graph.go). Where that has a
// circle the plan hangs, always; where it has none the plan ends, always. Tests
// hold that against an executor that knows nothing of graphs.
//
// On GPUs a communication is a kernel that holds resources while it waits for
// other ranks, and CUDA does not promise that two streams progress side by side.
// So of communications on one GPU that no stream, dependency or turn of that rank
// orders, either may be the one that waits for the other to end; on another rank
// it may be the other way round. The plan is refused where that could close a
// circle (share.go, blocks.go). This looks at who waits for whom, not at when,
// and therefore refuses some plans that could not hang. A backend whose
// Capability says Concurrent is trusted. Each rank is taken to have a GPU of its
// own.
//
// # What a plan may say, and need not
//
// Some causes show only in plans that say more than the worker needs: the memory
// of operations (buffers.go), when communicators are made and destroyed
// (lifecycle.go), the environment of each rank (settings.go), the channels of
// kernels and the SMs of GPUs (share.go). What is unset is not known, is listed as
// not checked, and is never taken to be right. Plans from traces have channels,
// hosts and GPUs where the profiler wrote them; the launcher adds the environment
// before it checks a plan that it is to run. Traces say nothing of buffers and of
// communicators' ends: there the worker is what catches it. It has memory of its
// own for each stream, makes and destroys all communicators in one order on all
// ranks, and where a library hangs for another reason, the launcher ends the run
// when no rank makes progress and says what each was in.
//
// The order of making and destroying is checked against itself and against the
// operations of the same communicator, not against operations of others that run
// beside it.
package mix
