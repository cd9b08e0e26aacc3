// The one header a communication backend needs.
//
// A backend is a shared library `libmixdown_NAME.so` that exports
//
//     extern "C" const mixdown::Module* mixdown_module();
//
// The worker loads it, makes one Backend, and asks that for one Communicator
// per process group. All ranks ask for the same groups in the same order.
//
// A communicator must only have `batch`; every collective that it does not
// override is composed of that, as torch.distributed composes what a library
// lacks. README.md walks through an example.
//
// Conventions that hold everywhere below:
//  - ranks are positions: in the job for Backend, in the group for Communicator;
//  - counts are elements of the dtype given beside them, never bytes, and may be
//    more than an int holds;
//  - buffers are host memory (of a stream-ordered backend device memory, see
//    Backend::stream_ordered), hold at least the elements that the call reads or
//    writes, and may be null when that is none of them;
//  - input and output do not overlap, but for the forms in place: all_reduce,
//    reduce and all_to_all(v) with out == in; all_gather(v) and gather(v) with
//    `in` this rank's block of `out`; reduce_scatter(v) and scatter(v) with `out`
//    this rank's block of `in`. All members then call in place (of rooted
//    operations the root alone);
//  - every call blocks until this rank's part is done and its output readable
//    (of a stream-ordered backend it only queues);
//  - errors are thrown as std::exception, with a message for people. After an
//    error the process ends, so a backend needs no clean-up of half-done calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace mixdown {

/// Version of this header. A module built against another one is refused, so it goes
/// up with each change of what is laid out here, also of one that sources need not follow.
inline constexpr uint32_t kBackendAbi = 6;

/// Element type. The numbers are those of the plan's protobuf, which has more:
/// the worker sends bool and 8-bit floats as kUInt8 and complex numbers as pairs.
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
  kUInt16 = 11,
  kUInt32 = 12,
  kUInt64 = 13,
};

/// Size of one element in bytes.
constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
    case DType::kUInt16:
      return 2;
    case DType::kInt8:
    case DType::kUInt8:
      return 1;
  }
  return 0;
}

/// How elements are combined. The numbers are those of the plan's protobuf.
enum class ReduceOp : int32_t {
  kSum = 1,
  kAvg = 2,  ///< sum divided by the group's size; integers are cut towards zero
  kMin = 3,
  kMax = 4,
  kProd = 5,
  kBitAnd = 6,  ///< the bitwise ones come with integers alone
  kBitOr = 7,
  kBitXor = 8,
  kPremulSum = 9,  ///< sum of contributions times a factor; comes with floats alone
};

/// A reduction.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  double factor = 1;  ///< of kPremulSum, the same on all members
};

/// Element-wise arithmetic on host memory that the worker lends to backends
/// whose library has none.
struct Arithmetic {
  /// out[i] = a[i] op b[i] for i < count; kAvg and kPremulSum add. `out` may be
  /// `a` or `b`.
  void (*combine)(DType dtype, ReduceOp op, void* out, const void* a, const void* b, int64_t count);

  /// data[i] = data[i] / divisor: the second half of kAvg. Integers are cut
  /// towards zero.
  void (*divide)(DType dtype, void* data, int64_t count, int64_t divisor);

  /// out[i] = in[i] * factor: the first half of kPremulSum. `out` may be `in`.
  void (*scale)(DType dtype, void* out, const void* in, int64_t count, double factor);
};

/// One direction of point-to-point communication.
struct Transfer {
  bool send;       ///< else a receive
  int peer;        ///< rank in the group; may be the calling rank itself
  void* buffer;    ///< `count` elements; only read when `send`
  int64_t count;   ///< elements, the same on both sides
  int64_t match;   ///< 0 <= match < kComposedMatch, equal on both sides, unique for this direction among what is in flight
};

/// Matches from here on, below 2^63, belong to collectives composed of transfers.
inline constexpr int64_t kComposedMatch = int64_t{1} << 62;

/// One process group on one backend.
///
/// Collectives of one communicator are called by one thread at a time and in
/// the same order on all members. `batch` may be called by several threads at
/// once, and while a collective runs. Destroyed in the order of creation on all
/// members, after everything has ended.
class Communicator {
 public:
  /// `rank` is this worker's position in the group of `size` members.
  Communicator(int rank, int size, const Arithmetic& arithmetic)
      : rank_(rank), size_(size), arithmetic_(arithmetic), equal_(size) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Starts all `n` transfers together and returns when all have ended. A send
  /// and a receive with the same match pair up, in whichever order and batch
  /// they are.
  virtual void batch(const Transfer* transfers, size_t n, DType dtype) = 0;

  /// Of a stream-ordered backend: calls from now on are queued on this stream (a
  /// CUstream or hipStream_t) in the order in which they are made. All calls come from one thread.
  virtual void use_stream(void* /*stream*/) {}

  /// Called once, before anything else, on all members: announces the largest
  /// `bytes` of input or output that a collective of this member will have, so that
  /// work space need not be allocated later.
  virtual void reserve(int64_t bytes) { scratch(bytes < kReserved ? bytes : kReserved); }

  /// Called after `reserve`: the largest input, in bytes, of an all_to_all(v) in
  /// place, all those of one coalesced operation together.
  virtual void reserve_in_place(int64_t /*bytes*/) {}

  /// Says which operation of a plan the collectives are that follow, up to the next
  /// such call. All members name it alike, and in the same order. Whenever the same
  /// number, from 0 on, comes again, each member makes the calls again that it made
  /// then, with the same arguments, buffers included. -1, as before the first such
  /// call: what may never come again. A library that can make an operation ready
  /// once may keep it under this number.
  virtual void identify(int64_t /*operation*/) {}

  /// The collectives between these two calls are one coalesced operation: a
  /// library that can launch several at once may hold them back until
  /// `group_end`, which returns when all are done. Otherwise they run in turn.
  virtual void group_start() {}
  virtual void group_end() {}

  /// out[i] = reduction over all members of in[i], for i < count, on all members.
  virtual void all_reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction);

  /// As all_reduce, but only `root` gets `out`; null elsewhere.
  virtual void reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction, int root);

  /// Copies `buffer` of `root` into `buffer` of every other member. The root's
  /// buffer is only read.
  virtual void broadcast(void* buffer, int64_t count, DType dtype, int root);

  /// `count` elements of each member, in group order: `out` holds count * size.
  virtual void all_gather(const void* in, void* out, int64_t count, DType dtype);

  /// As all_gather with counts[m] elements from member m; `counts` has one entry
  /// for each member and is the same on all.
  virtual void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype);

  /// `in` holds size blocks of `count` elements; member m gets in `out` the
  /// reduction of all members' block m.
  virtual void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, Reduction reduction);

  /// As reduce_scatter with blocks of counts[m] elements; the same on all.
  virtual void reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype, Reduction reduction);

  /// Block m of `in` (`count` elements) goes to member m; block m of `out` comes
  /// from member m.
  virtual void all_to_all(const void* in, void* out, int64_t count, DType dtype);

  /// As all_to_all with in_counts[m] elements to and out_counts[m] elements from
  /// member m, blocks without gaps in group order. In place they are the same.
  virtual void all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                           DType dtype);

  /// `count` elements of each member to `root`, in group order; `out` is null
  /// elsewhere.
  virtual void gather(const void* in, void* out, int64_t count, DType dtype, int root);

  /// As gather with counts[m] elements from member m; the same on all.
  virtual void gatherv(const void* in, void* out, const int64_t* counts, DType dtype, int root);

  /// Block m (`count` elements) of the root's `in` to member m; `in` is null
  /// elsewhere.
  virtual void scatter(const void* in, void* out, int64_t count, DType dtype, int root);

  /// As scatter with blocks of counts[m] elements; the same on all.
  virtual void scatterv(const void* in, void* out, const int64_t* counts, DType dtype, int root);

  /// Returns when all members have called it.
  virtual void barrier();

 protected:
  int rank() const { return rank_; }
  int size() const { return size_; }
  const Arithmetic& arithmetic() const { return arithmetic_; }

  /// Work space for one collective, kept for the next; 16-byte aligned.
  char* scratch(int64_t bytes) {
    if (static_cast<int64_t>(scratch_.size()) < bytes) scratch_.resize(bytes);
    return scratch_.data();
  }

  /// Reduces `size` blocks of `count` elements, in group order, into `out`. The
  /// blocks may change.
  void fold(char* blocks, void* out, int64_t count, DType dtype, Reduction reduction) const;

  /// Copies elements unless they are there already.
  static void copy(const void* in, void* out, int64_t count, DType dtype) {
    if (count > 0 && in != out) std::memcpy(out, in, count * size_of(dtype));
  }

 private:
  // Work space that is made ahead. What needs more is so slow that making it does
  // not count, and may never be asked for.
  static constexpr int64_t kReserved = int64_t{64} << 20;

  const int64_t* equal(int64_t count) {
    equal_.assign(size_, count);
    return equal_.data();
  }
  void run_transfers(DType dtype) {
    if (!transfers_.empty()) batch(transfers_.data(), transfers_.size(), dtype);
  }

  const int rank_;
  const int size_;
  const Arithmetic& arithmetic_;
  int64_t composed_ = 0;  // collectives composed so far
  std::vector<char> scratch_;
  std::vector<int64_t> equal_;
  std::vector<Transfer> transfers_;
};

/// What a backend is told about the job.
struct World {
  int rank = 0;             ///< position of this worker
  int size = 1;             ///< number of workers
  std::string rendezvous;   ///< an empty folder that all workers share, for backends without a launcher of their own
  std::string interface;    ///< network interface to use, "" for the backend's choice (loopback where it has none)
  const Arithmetic* arithmetic = nullptr;  ///< lives as long as the process
  bool threads = true;      ///< several threads may call the library at once; else one at a time
  int local_size = 1;       ///< number of workers on this host, which share its cores
};

/// How a backend does one operation.
struct Support {
  const char* op;    ///< as torch.distributed writes it: "all_reduce", "all_gatherv", "batch"
  bool native;       ///< a call of the library; else composed
  const char* how;   ///< what a composed one is composed of, "" for a native one
};

/// A variable of the environment that, set to 1, changes how a backend does operations.
struct Switch {
  std::string name;
  std::vector<std::string> operations;  ///< that it changes, named as in Support
  std::vector<DType> except;            ///< dtypes of which it changes none
};

/// A communication library. A process has one instance for each combination of
/// settings that its plans use.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Name in plans, for example "gloo". Works before init.
  virtual std::string name() const = 0;

  /// The library's version as the library itself reports it, one line. Works
  /// before init.
  virtual std::string version() const = 0;

  /// Sentences on what a reader of measurements must know: which settings are not
  /// the library's defaults, which dtypes it does not reduce itself. Works before
  /// init.
  virtual std::vector<std::string> notes() const = 0;

  /// The operations that its communicators override. All others are composed of
  /// `batch`. Works before init.
  virtual std::vector<Support> support() const = 0;

  /// What can be asked of it by the environment: each is a contender of its own for
  /// those who compare. Works before init.
  virtual std::vector<Switch> switches() const { return {}; }

  /// Whether it keeps the library's state of operations by Communicator::identify. The
  /// data check then runs them twice, on different numbers.
  virtual bool keeps() const { return false; }

  /// Whether the library queues its operations on a GPU's streams. Its buffers are
  /// then device memory, calls return before anything is done, and batch is never
  /// called by several threads. Such a backend overrides every operation: what is
  /// composed here works on host memory. The worker has made the context of its GPU
  /// current in all threads that call it.
  virtual bool stream_ordered() const { return false; }

  /// Of a stream-ordered backend, whose GPUs: "cuda" or "hip". Works before init.
  virtual std::string device() const { return "host"; }

  /// What follows the colon in a plan's "nccl:ring/ll128": settings of all
  /// communicators of this instance. Called at most once, before init. Throws when
  /// there are no such settings.
  virtual void configure(const std::string& settings) {
    throw std::runtime_error("backend " + name() + " has no settings, \"" + settings + "\" can't be applied");
  }

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

// What a communicator does that overrides nothing but `batch`.

inline void Communicator::fold(char* blocks, void* out, int64_t count, DType dtype, Reduction reduction) const {
  if (count == 0) return;
  const int64_t bytes = count * size_of(dtype);
  if (reduction.op == ReduceOp::kPremulSum) arithmetic_.scale(dtype, blocks, blocks, count * size_, reduction.factor);
  if (size_ == 1) return copy(blocks, out, count, dtype);
  arithmetic_.combine(dtype, reduction.op, out, blocks, blocks + bytes, count);
  for (int m = 2; m < size_; ++m) arithmetic_.combine(dtype, reduction.op, out, out, blocks + m * bytes, count);
  if (reduction.op == ReduceOp::kAvg) arithmetic_.divide(dtype, out, count, size_);
}

inline void Communicator::all_reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) {
  reduce(in, rank_ == 0 ? out : nullptr, count, dtype, reduction, 0);
  broadcast(out, count, dtype, 0);
}

inline void Communicator::reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction, int root) {
  char* blocks = rank_ == root ? scratch(count * size_of(dtype) * size_) : nullptr;
  gather(in, blocks, count, dtype, root);
  if (rank_ == root) fold(blocks, out, count, dtype, reduction);
}

inline void Communicator::broadcast(void* buffer, int64_t count, DType dtype, int root) {
  const int64_t match = kComposedMatch + composed_++;
  transfers_.clear();
  if (rank_ != root) transfers_.push_back({false, root, buffer, count, match});
  for (int m = 0; m < size_ && rank_ == root; ++m) {
    if (m != root) transfers_.push_back({true, m, buffer, count, match});
  }
  run_transfers(dtype);
}

inline void Communicator::all_gather(const void* in, void* out, int64_t count, DType dtype) {
  all_gatherv(in, out, equal(count), dtype);
}

inline void Communicator::all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) {
  const int64_t match = kComposedMatch + composed_++;
  transfers_.clear();
  auto* place = static_cast<char*>(out);
  for (int m = 0; m < size_; ++m) {
    if (m == rank_) {
      copy(in, place, counts[m], dtype);
    } else {
      transfers_.push_back({false, m, place, counts[m], match});
      transfers_.push_back({true, m, const_cast<void*>(in), counts[rank_], match});
    }
    place += counts[m] * size_of(dtype);
  }
  run_transfers(dtype);
}

inline void Communicator::reduce_scatter(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) {
  char* blocks = scratch(count * size_of(dtype) * size_);
  all_to_all(in, blocks, count, dtype);
  fold(blocks, out, count, dtype, reduction);
}

inline void Communicator::reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype,
                                          Reduction reduction) {
  const int64_t count = counts[rank_];
  char* blocks = scratch(count * size_of(dtype) * size_);
  all_to_allv(in, counts, blocks, equal(count), dtype);
  fold(blocks, out, count, dtype, reduction);
}

inline void Communicator::all_to_all(const void* in, void* out, int64_t count, DType dtype) {
  const int64_t* counts = equal(count);
  all_to_allv(in, counts, out, counts, dtype);
}

inline void Communicator::all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                                      DType dtype) {
  if (in == out) {
    const int64_t total = std::accumulate(in_counts, in_counts + size_, int64_t{0});
    char* input = scratch(total * size_of(dtype));
    copy(in, input, total, dtype);
    in = input;
  }
  const int64_t match = kComposedMatch + composed_++;
  transfers_.clear();
  auto* from = const_cast<char*>(static_cast<const char*>(in));
  auto* place = static_cast<char*>(out);
  for (int m = 0; m < size_; ++m) {
    if (m == rank_) {
      copy(from, place, in_counts[m], dtype);
    } else {
      transfers_.push_back({true, m, from, in_counts[m], match});
      transfers_.push_back({false, m, place, out_counts[m], match});
    }
    from += in_counts[m] * size_of(dtype);
    place += out_counts[m] * size_of(dtype);
  }
  run_transfers(dtype);
}

inline void Communicator::gather(const void* in, void* out, int64_t count, DType dtype, int root) {
  gatherv(in, out, equal(count), dtype, root);
}

inline void Communicator::gatherv(const void* in, void* out, const int64_t* counts, DType dtype, int root) {
  const int64_t match = kComposedMatch + composed_++;
  transfers_.clear();
  if (rank_ != root) transfers_.push_back({true, root, const_cast<void*>(in), counts[rank_], match});
  auto* place = static_cast<char*>(out);
  for (int m = 0; m < size_ && rank_ == root; ++m) {
    if (m == root) {
      copy(in, place, counts[m], dtype);
    } else {
      transfers_.push_back({false, m, place, counts[m], match});
    }
    place += counts[m] * size_of(dtype);
  }
  run_transfers(dtype);
}

inline void Communicator::scatter(const void* in, void* out, int64_t count, DType dtype, int root) {
  scatterv(in, out, equal(count), dtype, root);
}

inline void Communicator::scatterv(const void* in, void* out, const int64_t* counts, DType dtype, int root) {
  const int64_t match = kComposedMatch + composed_++;
  transfers_.clear();
  if (rank_ != root) transfers_.push_back({false, root, out, counts[rank_], match});
  auto* from = const_cast<char*>(static_cast<const char*>(in));
  for (int m = 0; m < size_ && rank_ == root; ++m) {
    if (m == root) {
      copy(from, out, counts[m], dtype);
    } else {
      transfers_.push_back({true, m, from, counts[m], match});
    }
    from += counts[m] * size_of(dtype);
  }
  run_transfers(dtype);
}

inline void Communicator::barrier() {
  char in = 0;
  std::vector<char> out(size_);
  all_gather(&in, out.data(), 1, DType::kUInt8);
}

}  // namespace mixdown

/// Entry point of a module; must not throw and not initialise the library.
extern "C" __attribute__((visibility("default"))) const mixdown::Module* mixdown_module();
