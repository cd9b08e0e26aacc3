// Package flightrecorder reads the dumps of PyTorch's flight recorder: what a
// rank's process groups had enqueued, started and completed when the dump was
// written, most often because a collective timed out.
//
//  1. A dump is a Python pickle (the default) or JSON (_dump_nccl_trace_json).
//     Both are read into the same plain values (value.go, json.go). The pickle
//     reader (pickle.go, opcode.go) knows dict, list, tuple, str, bytes, int,
//     float, bool and None and nothing else: it has no way to look up a name,
//     call, or build an object. Every opcode that asks for one is refused with
//     its name and offset.
//  2. Values become a [Dump] with typed entries (dump.go, entry.go, group.go).
//     What a dump does not say stays unknown: JSON writes 0 for a time that was
//     not seen, a pickle None.
//  3. [Dump.TraceRank] makes operations of the entries (rank.go): grouped
//     point-to-point becomes one batch, sizes become elements.
//
// The recorder is a ring: the first entries of a long run are gone, and two
// ranks' dumps may begin at different operations. Match them by group and
// sequence number, and leave unmatched what has no partner. Sequence numbers
// count launches, collectives and point-to-point apart; OpID counts operations.
//
// Sources: torch/csrc/distributed/c10d/FlightRecorder.hpp and
// FlightRecorderDetail.hpp, versions 2.4 and 2.10 of the format; real dumps of
// Gloo by PyTorch 2.15. What is older is read as far as it has the same keys.
package flightrecorder
