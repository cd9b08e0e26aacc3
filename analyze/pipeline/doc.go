// Package pipeline finds the pipeline that the steps of a run ran.
//
// A pipeline is a set of ranks that hand activations and gradients to each other
// point-to-point. Find returns it as tasks: which rank ran which micro-batch
// through which stage, forward or backward, from when to when, and what it had
// to wait for. In a job with data parallelism there is one pipeline for each
// replica.
//
// Where labels say what ran (PyTorch's "PP:0F3", "Forward 3", the functions of
// DeepSpeed's engine, the spans of Megatron's tracers) they are taken. Without
// them the structure decides: who sends to whom, which work stands between a
// receive and the next send, and whether it is autograd's backward. Evidence
// says which it was. What neither tells stays unknown, with a diagnostic.
//
// # Evidence
//
// In this order: "PP:..." says everything, the messages of a task included.
// "Forward 3" says the micro-batch; the stage follows from who sends to whom
// within such labels. Ranks without labels that form a chain run one stage each:
// what a rank gets from the one before are activations, what it gets from the one
// after are gradients, and the n-th of them are micro-batch n. A task is what ran
// between its input and its output, which must be of its kind: in autograd's
// engine for a backward, outside for a forward. Functions that run tasks, where a
// trace with stacks has them, give better times. Three ranks or more without
// labels that form a ring run several stages each: a pass of the first rank
// without an input begins a micro-batch, and one with an input continues what the
// last rank sent on.
//
// What neither tells is not guessed: several stages on two ranks without labels,
// which chunk of a V, of which micro-batch a weight gradient is, and whether a
// last stage that saw all micro-batches before it took the first one back did so in
// their order or the opposite one.
//
// Which ranks belong together is told by peers, else by a process group that
// holds every stage once. A chain of two ranks of which the trace names no peer
// is found by the groups of two that the ranks share.
//
// # Time
//
// The time of a task is the work itself. Waiting for a message is never part of
// it, nor is the length of a send or receive a cost: a transfer takes the time
// from when both its ends were there.
//
// On a device a task lasts from the first to the last computing kernel that was
// launched for it. On a host it starts when the wait for its input returned, or
// with its label where it had nothing to wait for, and ends with its label or
// its last operator. In the sets of testdata that is within 0.1 ms of what the
// programs measured themselves, in the median; a busy machine puts up to some ms
// between any two statements.
//
// A program on a host that asks for a message learns only that it is there. Where
// it did not have to wait, Arrived is the earliest it can have been, and the
// transfer is not Timed.
package pipeline
