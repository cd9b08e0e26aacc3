// The one header a communication backend needs.
//
// A backend is a shared library `libmixdown_NAME.so` that exports
//
//     extern "C" const mixdown::Module* mixdown_module();
//
// The worker loads it, makes one Backend, and asks that for one Communicator
// per process group. All ranks ask for the same groups in the same order.
//
// Conventions that hold everywhere below:
//  - ranks are positions: in the job for Backend, in the group for Communicator;
//  - counts are elements of the dtype given beside them, never bytes;
//  - buffers are host memory, never overlap, hold at least the elements that the
//    call reads or writes, and may be null when that is none of them;
//  - every call blocks until this rank's part is done and its output readable;
//  - errors are thrown as std::exception, with a message for people. After an
//    error the process ends, so a backend needs no clean-up of half-done calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mixdown {

/// Version of this header. A module built against another one is refused.
inline constexpr uint32_t kBackendAbi = 1;

/// Element type. The numbers are those of the plan's protobuf.
enum class DType : int32_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kFloat16 = 3,   ///< IEEE 754 binary16
  kBFloat16 = 4,  ///< upper half of a float32
  kInt8 = 5,
  kUInt8 = 6,
  kInt16 = 7,
  kInt32 = 8,
  kInt64 = 9,
  kBool = 10,  ///< one byte, treated as kUInt8
};

/// Size of one element in bytes.
constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
      return 2;
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

/// Reduction. The numbers are those of the plan's protobuf.
enum class ReduceOp : int32_t {
  kSum = 1,
  kAvg = 2,  ///< sum divided by the group's size; integers are cut towards zero
  kMin = 3,
  kMax = 4,
  kProd = 5,
};

/// One direction of point-to-point communication.
struct Transfer {
  bool send;       ///< else a receive
  int peer;        ///< rank in the group; may be the calling rank itself
  void* buffer;    ///< `count` elements; only read when `send`
  int64_t count;   ///< elements, the same on both sides
  int64_t match;   ///< 0 <= match < 2^62, equal on both sides, unique for this direction among what is in flight
};

/// One process group on one backend.
///
/// Collectives of one communicator are called by one thread at a time and in
/// the same order on all members. `batch` may be called by several threads at
/// once, and while a collective runs. Destroyed in the order of creation on all
/// members, after everything has ended.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Announces, before anything is timed, the largest `bytes` of input that a
  /// collective will have, so that work space need not be allocated later.
  virtual void reserve(int64_t /*bytes*/) {}

  /// out[i] = reduction over all members of in[i], for i < count, on all members.
  virtual void all_reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op) = 0;

  /// As all_reduce, but only `root` gets `out`; null elsewhere.
  virtual void reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op, int root) = 0;

  /// Copies `buffer` of `root` into `buffer` of every other member. The root's
  /// buffer is only read.
  virtual void broadcast(void* buffer, int64_t count, DType dtype, int root) = 0;

  /// `count` elements of each member, in group order: `out` holds count * size.
  virtual void all_gather(const void* in, void* out, int64_t count, DType dtype) = 0;

  /// As all_gather with counts[m] elements from member m; `counts` has one entry
  /// for each member and is the same on all.
  virtual void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) = 0;

  /// `in` holds size blocks of `count` elements; member m gets in `out` the
  /// reduction of all members' block m.
  virtual void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op) = 0;

  /// As reduce_scatter with blocks of counts[m] elements; the same on all.
  virtual void reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype, ReduceOp op) = 0;

  /// Block m of `in` (`count` elements) goes to member m; block m of `out` comes
  /// from member m.
  virtual void all_to_all(const void* in, void* out, int64_t count, DType dtype) = 0;

  /// As all_to_all with in_counts[m] elements to and out_counts[m] elements from
  /// member m, blocks without gaps in group order.
  virtual void all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                           DType dtype) = 0;

  /// `count` elements of each member to `root`, in group order; `out` is null
  /// elsewhere.
  virtual void gather(const void* in, void* out, int64_t count, DType dtype, int root) = 0;

  /// Block m (`count` elements) of the root's `in` to member m; `in` is null
  /// elsewhere.
  virtual void scatter(const void* in, void* out, int64_t count, DType dtype, int root) = 0;

  /// Returns when all members have called it.
  virtual void barrier() = 0;

  /// Starts all `n` transfers together and returns when all have ended. A send
  /// and a receive with the same match pair up, in whichever order and batch
  /// they are.
  virtual void batch(const Transfer* transfers, size_t n, DType dtype) = 0;
};

/// What a backend is told about the job.
struct World {
  int rank = 0;             ///< position of this worker
  int size = 1;             ///< number of workers
  std::string rendezvous;   ///< an empty folder that all workers share, for backends without a launcher of their own
  std::string interface;    ///< network interface to use, "" for the backend's choice (loopback where it has none)
};

/// A communication library, one for each process.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Name in plans, for example "gloo". Works before init.
  virtual std::string name() const = 0;

  /// The library's version as the library itself reports it, one line. Works
  /// before init.
  virtual std::string version() const = 0;

  /// Sentences on what a reader of measurements must know: which operations are
  /// composed of others, which settings are not the library's defaults. Works
  /// before init.
  virtual std::vector<std::string> notes() const = 0;

  /// Connects to the job. Called once, on all workers.
  virtual void init(const World& world) = 0;

  /// Makes the communicator of a group. `members` are positions in the job, in
  /// group order, this worker's among them. `id` tells groups apart and is the
  /// same on all members, unique in the job. Only the members call it.
  virtual std::unique_ptr<Communicator> group(const std::string& id, const std::vector<int>& members) = 0;

  /// Leaves the job. All communicators are gone by then.
  virtual void finalize() = 0;
};

/// What a module exports.
struct Module {
  uint32_t abi;        ///< kBackendAbi of the header it was built with
  const char* name;    ///< as Backend::name
  const char* family;  ///< of several modules of one family a process can hold only one; "" for none
  bool global;         ///< the library loads plug-ins that look for its symbols: make them global
  Backend* (*create)();  ///< a new Backend, owned by the caller; may throw
};

}  // namespace mixdown

/// Entry point of a module; must not throw and not initialise the library.
extern "C" __attribute__((visibility("default"))) const mixdown::Module* mixdown_module();
