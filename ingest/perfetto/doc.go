// Package perfetto reads Perfetto protobuf traces as events of the shape that
// package chrome has, so that what is written for Chrome JSON can read them.
//
//  1. A trace is a stream of packets, each with its length in front (stream.go).
//     A packet whose inside is broken costs that packet.
//  2. Packets of one writer form a sequence, with tables of names that later
//     packets refer to, and defaults, until the writer clears them (sequence.go).
//     Time stamps are in one of several clocks, some of which count from the
//     packet before (clock.go).
//  3. A track event begins or ends a slice, or is an instant, on a track
//     (event.go). Its debug annotations become the JSON of [chrome.Args]
//     (annotation.go). Tracks tell process and thread, themselves or through
//     their parents (track.go).
//  4. Begins and ends are joined once the whole trace is read (pair.go): packets
//     are in no order of time, and PyTorch writes all begins of a kind before
//     all of their ends. So a Reader holds the events of a file, in a compact
//     form, within the limits of its Options.
//
// Events come in file order, process and thread names first. Categories are
// those in the file. PyTorch's writers give track events none: Kineto's
// PerfettoTraceBuilder puts the arguments, as JSON, into one annotation called
// "metadata" (which is taken apart here), the CUPTI monitor of torch.profiler
// writes annotations; neither says which track event is a kernel and which an
// operator, nor writes the metadata that JSON traces have around their events.
// The newest CUPTI monitor writes what a GPU does as render stages
// (renderstage.go); their category is the name of the stage, such as "Kernel".
//
// Not read: counters, ftrace and samples, which are counted, and the typed
// arguments that Chrome and Android have.
//
// Sources: protos/perfetto/trace in the Perfetto repository, by file in
// fields.go; libkineto/src/PerfettoTraceBuilder.cpp in Kineto;
// torch/csrc/profiler/cupti/monitor_pftrace.cpp in PyTorch.
package perfetto
