// A communication made ready to run: nothing is looked up or allocated any more.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mixdown/backend.h"
#include "plan.pb.h"
#include "worker/compressed.h"

namespace mixdown {

namespace pb = ::mixdown::plan::v1;

/// Where input and output share memory.
enum class Overlap {
  kNone,
  kInputInOutput,  ///< the input is at Operation::overlap_offset of the output
  kOutputInInput,  ///< the other way round
};

/// One communication of this rank. Counts and ranks are as Communicator wants
/// them.
struct Operation {
  pb::Op op = pb::OP_UNSPECIFIED;
  DType dtype = DType::kUInt8;
  Reduction reduction;
  bool premultiplies = false;  ///< the library averages floats by multiplying before it adds: more is rounded
  int communicator = -1;  ///< index into the worker's communicators
  int64_t turn = -1;      ///< position among this rank's collectives of the communicator; -1 for point-to-point
  int64_t identity = -1;  ///< as Communicator::identify; of a whole operation with a turn
  int64_t count = 0;
  int root = -1;  ///< position in the group
  std::vector<int64_t> in_counts;
  std::vector<int64_t> out_counts;
  std::vector<Transfer> transfers;  ///< buffers are null until bound
  int64_t in_bytes = 0;             ///< that it reads
  int64_t out_bytes = 0;            ///< that it writes
  Overlap overlap = Overlap::kNone;
  int64_t overlap_offset = 0;       ///< bytes

  /// Of a coalesced operation that needs several calls: its calls, each at an
  /// offset, in bytes, of the whole's input and output.
  std::vector<Operation> parts;

  /// Null where the payload goes as it is. Of an operation with parts each of those
  /// has its own.
  std::shared_ptr<Compressed> compressed;
  int codec = -1;  ///< index into Program::codecs, -1 for none; of the whole operation

  int64_t in_offset = 0;
  int64_t out_offset = 0;

  /// Bytes of the stream's input and output buffers that it needs.
  int64_t input_buffer() const { return overlap == Overlap::kInputInOutput ? 0 : in_bytes; }
  int64_t output_buffer() const { return overlap == Overlap::kOutputInInput ? 0 : out_bytes; }
};

/// Where an operation's data is.
struct Pointers {
  char* in;
  char* out;
};

/// The data of an operation whose buffers are at `in` and `out`; for one in place
/// only one of them counts.
inline Pointers pointers_of(const Operation& o, char* in, char* out) {
  switch (o.overlap) {
    case Overlap::kInputInOutput:
      return {out + o.overlap_offset, out};
    case Overlap::kOutputInInput:
      return {in, in + o.overlap_offset};
    default:
      return {in, out};
  }
}

/// Points the transfers into the stream's buffers: sends and receives each lie one
/// after the other.
inline void bind(Operation& operation, char* in, char* out) {
  for (Transfer& t : operation.transfers) {
    char*& place = t.send ? in : out;
    t.buffer = place;
    place += t.count * size_of(operation.dtype);
  }
}

/// Runs it. `in` and `out` are the buffers.
inline void execute(const Operation& o, Communicator& c, char* in, char* out) {
  if (o.turn >= 0) c.identify(o.identity);
  if (!o.parts.empty()) {
    // What is held back can't be decompressed yet.
    const bool grouped = o.codec < 0;
    if (grouped) c.group_start();
    for (const Operation& part : o.parts) execute(part, c, in + part.in_offset, out + part.out_offset);
    if (grouped) c.group_end();
    return;
  }
  const Pointers data = pointers_of(o, in, out);
  in = data.in;
  out = data.out;
  if (o.compressed != nullptr) return o.compressed->execute(o, c, in, out);
  switch (o.op) {
    case pb::OP_ALL_REDUCE:
      return c.all_reduce(in, out, o.count, o.dtype, o.reduction);
    case pb::OP_REDUCE:
      return c.reduce(in, o.out_bytes > 0 ? out : nullptr, o.count, o.dtype, o.reduction, o.root);
    case pb::OP_BROADCAST:
      // In place: the root's input is what the others get.
      return c.broadcast(o.in_bytes > 0 ? in : out, o.count, o.dtype, o.root);
    case pb::OP_ALL_GATHER:
      return c.all_gather(in, out, o.count, o.dtype);
    case pb::OP_ALL_GATHERV:
      return c.all_gatherv(in, out, o.out_counts.data(), o.dtype);
    case pb::OP_REDUCE_SCATTER:
      return c.reduce_scatter(in, out, o.count, o.dtype, o.reduction);
    case pb::OP_REDUCE_SCATTERV:
      return c.reduce_scatterv(in, out, o.in_counts.data(), o.dtype, o.reduction);
    case pb::OP_ALL_TO_ALL:
      return c.all_to_all(in, out, o.count, o.dtype);
    case pb::OP_ALL_TO_ALLV:
      return c.all_to_allv(in, o.in_counts.data(), out, o.out_counts.data(), o.dtype);
    case pb::OP_GATHER:
      return c.gather(in, o.out_bytes > 0 ? out : nullptr, o.count, o.dtype, o.root);
    case pb::OP_GATHERV:
      return c.gatherv(in, o.out_bytes > 0 ? out : nullptr, o.out_counts.data(), o.dtype, o.root);
    case pb::OP_SCATTER:
      return c.scatter(o.in_bytes > 0 ? in : nullptr, out, o.count, o.dtype, o.root);
    case pb::OP_SCATTERV:
      return c.scatterv(o.in_bytes > 0 ? in : nullptr, out, o.in_counts.data(), o.dtype, o.root);
    case pb::OP_BARRIER:
      return c.barrier();
    default:
      return c.batch(o.transfers.data(), o.transfers.size(), o.dtype);
  }
}

/// Calls f(Compressed&) for the operation's payloads that are compressed.
template <typename F>
void each_compressed(const Operation& o, F f) {
  if (o.compressed != nullptr) f(*o.compressed);
  for (const Operation& part : o.parts) each_compressed(part, f);
}

}  // namespace mixdown
