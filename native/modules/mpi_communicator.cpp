// Blocking collectives, so that what is measured is the algorithms that the
// library chooses for them, or on demand persistent ones; nonblocking point-to-point.
//
// MPI 3 counts and displacements are ints. What does not fit is cut: reductions
// and broadcast into several calls, everything else into messages by what the
// base class composes of `batch`.
#include "modules/mpi_communicator.h"

#include <algorithm>
#include <climits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "modules/mpi_persistent.h"

namespace mixdown {
namespace {

constexpr int64_t kPiece = int64_t{1} << 30;  // elements of one call, bytes of one message

// MPICH 4.0.2 crashes in MPI_Reduce in place beyond about 2 KiB when the root is
// not member 0. All of MPICH is spared it: which version mends it is not known.
#ifdef MPICH_VERSION
constexpr bool kReducesInPlaceAnywhere = false;
#else
constexpr bool kReducesInPlaceAnywhere = true;
#endif

int int_of(int64_t count) { return static_cast<int>(count); }

int64_t total(const int64_t* counts, int size) { return std::accumulate(counts, counts + size, int64_t{0}); }

void* at(const void* buffer, int64_t index, DType dtype) {
  return const_cast<char*>(static_cast<const char*>(buffer)) + index * size_of(dtype);
}

// Counts and displacements of a vector collective in MPI's types. Filled anew
// for each call, allocated once, or once for each persistent request.
struct Blocks {
  std::vector<int> counts;
  std::vector<int> displacements;

  explicit Blocks(int size) : counts(size), displacements(size), size_(size) {}

  void set(const int64_t* from) {
    counts.resize(size_);  // a persistent request may have kept them
    displacements.resize(size_);
    int64_t offset = 0;
    for (size_t m = 0; m < counts.size(); ++m) {
      counts[m] = int_of(from[m]);
      displacements[m] = int_of(offset);
      offset += from[m];
    }
  }

 private:
  size_t size_;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MPI_Comm comm, const MpiTypes& types, const Arithmetic& arithmetic, bool persistent)
      : Communicator(query(comm, MPI_Comm_rank), query(comm, MPI_Comm_size), arithmetic),
        comm_(comm),
        types_(types),
        persistent_(persistent ? std::make_unique<PersistentCollectives>() : nullptr),
        in_(size()),
        out_(size()) {
    void* upper = nullptr;
    int found = 0;
    mpi_check(MPI_Comm_get_attr(comm, MPI_TAG_UB, &upper, &found), "MPI_Comm_get_attr");
    tags_ = (found ? int64_t{*static_cast<int*>(upper)} + 1 : 32768) / 2;
  }

  ~MpiCommunicator() override {
    persistent_.reset();
    MPI_Comm_free(&comm_);
  }

  void reserve(int64_t bytes) override {
    int64_t largest = 0;
    mpi_check(MPI_Allreduce(&bytes, &largest, 1, MPI_INT64_T, MPI_MAX, comm_), "MPI_Allreduce");
    large_ = !fits(largest);
    room_ = 2 * bytes + 16;
  }

  void identify(int64_t operation) override {
    if (persistent_ != nullptr) persistent_->identify(operation);
  }

  void all_reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) override {
    if (reduction.op == ReduceOp::kPremulSum) {
      arithmetic().scale(dtype, out, in, count, reduction.factor);
      in = out;
    }
    pieces(count, [&](int64_t first, int n) {
      const void* input = in == out ? MPI_IN_PLACE : at(in, first, dtype);
      call(MIXDOWN_COLLECTIVE(Allreduce), dtype, input, at(out, first, dtype), n, types_.datatype(dtype),
           types_.op(dtype, reduction.op));
    });
    if (reduction.op == ReduceOp::kAvg) arithmetic().divide(dtype, out, count, size());
  }

  void reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction, int root) override {
    const bool is_root = rank() == root;
    if (reduction.op == ReduceOp::kPremulSum) {
      void* scaled = is_root ? out : work(count * size_of(dtype));
      arithmetic().scale(dtype, scaled, in, count, reduction.factor);
      in = scaled;
    }
    if (is_root && in == out && root != 0 && !kReducesInPlaceAnywhere) {
      char* input = work(count * size_of(dtype));
      copy(in, input, count, dtype);
      in = input;
    }
    pieces(count, [&](int64_t first, int n) {
      const void* input = is_root && in == out ? MPI_IN_PLACE : at(in, first, dtype);
      void* output = is_root ? at(out, first, dtype) : nullptr;
      call(MIXDOWN_COLLECTIVE(Reduce), dtype, input, output, n, types_.datatype(dtype), types_.op(dtype, reduction.op),
           root);
    });
    if (reduction.op == ReduceOp::kAvg && is_root) arithmetic().divide(dtype, out, count, size());
  }

  void broadcast(void* buffer, int64_t count, DType dtype, int root) override {
    pieces(count, [&](int64_t first, int n) {
      call(MIXDOWN_COLLECTIVE(Bcast), dtype, at(buffer, first, dtype), n, types_.datatype(dtype), root);
    });
  }

  void all_gather(const void* in, void* out, int64_t count, DType dtype) override {
    if (!fits(count * size())) return Communicator::all_gather(in, out, count, dtype);
    const MPI_Datatype type = types_.datatype(dtype);
    if (in == at(out, rank() * count, dtype)) in = MPI_IN_PLACE;
    call(MIXDOWN_COLLECTIVE(Allgather), dtype, in, int_of(count), type, out, int_of(count), type);
  }

  void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) override {
    if (!fits(total(counts, size()))) return Communicator::all_gatherv(in, out, counts, dtype);
    const MPI_Datatype type = types_.datatype(dtype);
    out_.set(counts);
    if (in == at(out, total(counts, rank()), dtype)) in = MPI_IN_PLACE;
    callv(MIXDOWN_COLLECTIVE(Allgatherv), dtype, in, out_.counts[rank()], type, out, out_.counts.data(),
          out_.displacements.data(), type);
  }

  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) override {
    if (!fits(count * size())) return Communicator::reduce_scatter(in, out, count, dtype, reduction);
    const bool in_place = out == at(in, rank() * count, dtype);
    in = scaled(in, count * size(), dtype, reduction, in_place ? std::max<int64_t>(count, 1) : 0);
    // MPI's own form in place leaves the result at the start of the input.
    void* result = in_place ? work(count * size_of(dtype)) : out;
    call(MIXDOWN_COLLECTIVE(Reduce_scatter_block), dtype, in, result, int_of(count), types_.datatype(dtype),
         types_.op(dtype, reduction.op));
    finish(result, out, count, dtype, reduction);
  }

  void reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype, Reduction reduction) override {
    const int64_t all = total(counts, size());
    if (!fits(all)) return Communicator::reduce_scatterv(in, out, counts, dtype, reduction);
    const int64_t count = counts[rank()];
    out_.set(counts);
    const bool in_place = out == at(in, total(counts, rank()), dtype);
    in = scaled(in, all, dtype, reduction, in_place ? std::max<int64_t>(count, 1) : 0);
    void* result = in_place ? work(count * size_of(dtype)) : out;
    callv(MIXDOWN_COLLECTIVE(Reduce_scatter), dtype, in, result, out_.counts.data(), types_.datatype(dtype),
          types_.op(dtype, reduction.op));
    finish(result, out, count, dtype, reduction);
  }

  void all_to_all(const void* in, void* out, int64_t count, DType dtype) override {
    if (!fits(count * size())) return Communicator::all_to_all(in, out, count, dtype);
    const MPI_Datatype type = types_.datatype(dtype);
    if (in == out) in = MPI_IN_PLACE;
    call(MIXDOWN_COLLECTIVE(Alltoall), dtype, in, int_of(count), type, out, int_of(count), type);
  }

  void all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                   DType dtype) override {
    if (!all_fit(std::max(total(in_counts, size()), total(out_counts, size())))) {
      return Communicator::all_to_allv(in, in_counts, out, out_counts, dtype);
    }
    const MPI_Datatype type = types_.datatype(dtype);
    in_.set(in_counts);
    out_.set(out_counts);
    if (in == out) in = MPI_IN_PLACE;
    callv(MIXDOWN_COLLECTIVE(Alltoallv), dtype, in, in_.counts.data(), in_.displacements.data(), type, out,
          out_.counts.data(), out_.displacements.data(), type);
  }

  void gather(const void* in, void* out, int64_t count, DType dtype, int root) override {
    if (!fits(count * size())) return Communicator::gather(in, out, count, dtype, root);
    const MPI_Datatype type = types_.datatype(dtype);
    if (rank() == root && in == at(out, rank() * count, dtype)) in = MPI_IN_PLACE;
    call(MIXDOWN_COLLECTIVE(Gather), dtype, in, int_of(count), type, out, int_of(count), type, root);
  }

  void gatherv(const void* in, void* out, const int64_t* counts, DType dtype, int root) override {
    if (!fits(total(counts, size()))) return Communicator::gatherv(in, out, counts, dtype, root);
    const MPI_Datatype type = types_.datatype(dtype);
    out_.set(counts);
    if (rank() == root && in == at(out, total(counts, rank()), dtype)) in = MPI_IN_PLACE;
    callv(MIXDOWN_COLLECTIVE(Gatherv), dtype, in, out_.counts[rank()], type, out, out_.counts.data(),
          out_.displacements.data(), type, root);
  }

  void scatter(const void* in, void* out, int64_t count, DType dtype, int root) override {
    if (!fits(count * size())) return Communicator::scatter(in, out, count, dtype, root);
    const MPI_Datatype type = types_.datatype(dtype);
    if (rank() == root && out == at(in, rank() * count, dtype)) out = MPI_IN_PLACE;
    call(MIXDOWN_COLLECTIVE(Scatter), dtype, in, int_of(count), type, out, int_of(count), type, root);
  }

  void scatterv(const void* in, void* out, const int64_t* counts, DType dtype, int root) override {
    if (!fits(total(counts, size()))) return Communicator::scatterv(in, out, counts, dtype, root);
    const MPI_Datatype type = types_.datatype(dtype);
    in_.set(counts);
    if (rank() == root && out == at(in, total(counts, rank()), dtype)) out = MPI_IN_PLACE;
    callv(MIXDOWN_COLLECTIVE(Scatterv), dtype, in, in_.counts.data(), in_.displacements.data(), type, out,
          in_.counts[rank()], type, root);
  }

  void barrier() override { call(MIXDOWN_COLLECTIVE(Barrier), DType::kUInt8); }

  void batch(const Transfer* transfers, size_t n, DType dtype) override {
    // Waiting for one request is what the blocking calls do without making one.
    if (n == 1 && transfers[0].count <= kPiece / size_of(dtype)) {
      const Transfer& t = transfers[0];
      const MPI_Datatype type = types_.datatype(dtype);
      if (t.send) {
        mpi_check(MPI_Send(t.buffer, int_of(t.count), type, t.peer, tag_of(t.match), comm_), "MPI_Send");
      } else {
        mpi_check(MPI_Recv(t.buffer, int_of(t.count), type, t.peer, tag_of(t.match), comm_, MPI_STATUS_IGNORE),
                  "MPI_Recv");
      }
      return;
    }
    // One for each thread that calls: grows to the largest batch and stays.
    thread_local std::vector<MPI_Request> requests;
    requests.clear();
    const MPI_Datatype type = types_.datatype(dtype);
    const int64_t piece = kPiece / size_of(dtype);
    for (const bool sends : {false, true}) {
      for (size_t i = 0; i < n; ++i) {
        const Transfer& t = transfers[i];
        if (t.send != sends) continue;
        // Messages of one tag arrive in order: so do the pieces.
        const int tag = tag_of(t.match);
        int64_t first = 0;
        do {
          const int count = int_of(std::min(piece, t.count - first));
          requests.push_back(MPI_REQUEST_NULL);
          void* buffer = at(t.buffer, first, dtype);
          if (t.send) {
            mpi_check(MPI_Isend(buffer, count, type, t.peer, tag, comm_, &requests.back()), "MPI_Isend");
          } else {
            mpi_check(MPI_Irecv(buffer, count, type, t.peer, tag, comm_, &requests.back()), "MPI_Irecv");
          }
          first += count;
        } while (first < t.count);
      }
    }
    mpi_check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }

 private:
  static int query(MPI_Comm comm, int (*call)(MPI_Comm, int*)) {
    int value = 0;
    mpi_check(call(comm, &value), "MPI_Comm_rank or MPI_Comm_size");
    return value;
  }

  // Whether a request is made for a collective. All members decide alike: it depends on
  // what they have in common.
  template <typename C>
  bool restarts(const C& what, DType dtype) const {
    return persistent_ != nullptr && what.restarts && (PersistentCollectives::kOwnTypes || !types_.own(dtype));
  }

  // Runs a collective of MPI. `arguments` are all but the communicator.
  template <typename C, typename... Arguments>
  void call(const C& what, DType dtype, Arguments... arguments) {
    if (restarts(what, dtype)) return persistent_->call(what, comm_, {}, arguments...);
    mpi_check(what.plain(arguments..., comm_), what.name);
  }

  // As call, with arrays of in_ and out_ among the arguments.
  template <typename C, typename... Arguments>
  void callv(const C& what, DType dtype, Arguments... arguments) {
    if (!restarts(what, dtype)) return mpi_check(what.plain(arguments..., comm_), what.name);
    persistent_->call(what, comm_, {&in_.counts, &in_.displacements, &out_.counts, &out_.displacements}, arguments...);
  }

  // Work space for one collective. Requests keep its address: of what repeats it has
  // room for the largest from the start, and memory as it is written.
  char* work(int64_t bytes) {
    if (persistent_ == nullptr || !persistent_->repeats()) return scratch(bytes);
    if (bytes > room_) throw std::logic_error("an operation is larger than what was reserved");
    if (fixed_ == nullptr) fixed_.reset(new char[room_]);
    return fixed_.get();
  }

  // Calls f(first, n) for consecutive ranges that ints can count, once when there
  // are no elements.
  template <typename F>
  static void pieces(int64_t count, F f) {
    if (fits(count)) return f(0, int_of(count));
    for (int64_t first = 0; first < count; first += kPiece) f(first, int_of(std::min(kPiece, count - first)));
  }

  static bool fits(int64_t elements) { return elements <= INT_MAX; }

  // Whether this many elements fit on all members, which must choose alike. They
  // ask each other only where one ever has that many.
  bool all_fit(int64_t elements) const {
    if (!large_) return true;
    int64_t largest = 0;
    mpi_check(MPI_Allreduce(&elements, &largest, 1, MPI_INT64_T, MPI_MAX, comm_), "MPI_Allreduce");
    return fits(largest);
  }

  // The lower half of the tags is for the plan's transfers, the upper for
  // collectives that are composed of transfers.
  int tag_of(int64_t match) const {
    return static_cast<int>(match >= kComposedMatch ? tags_ + (match - kComposedMatch) % tags_ : match % tags_);
  }

  // The input of a scattered reduction, times the factor where there is one. The
  // first `reserved` elements of the work space stay free: MPI wants two buffers to
  // differ even when one has no elements.
  const void* scaled(const void* in, int64_t count, DType dtype, const Reduction& reduction, int64_t reserved) {
    if (reduction.op != ReduceOp::kPremulSum) return in;
    void* copy = at(work((reserved + count) * size_of(dtype)), reserved, dtype);
    arithmetic().scale(dtype, copy, in, count, reduction.factor);
    return copy;
  }

  void finish(void* result, void* out, int64_t count, DType dtype, const Reduction& reduction) const {
    if (reduction.op == ReduceOp::kAvg) arithmetic().divide(dtype, result, count, size());
    copy(result, out, count, dtype);
  }

  MPI_Comm comm_;
  const MpiTypes& types_;
  std::unique_ptr<PersistentCollectives> persistent_;  // null where they are not wanted
  int64_t room_ = 0;                                   // bytes of fixed_
  std::unique_ptr<char[]> fixed_;                      // null before it is needed
  int64_t tags_ = 0;  // of one half
  bool large_ = false;  // a member has an operation that ints may not count
  Blocks in_;
  Blocks out_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm comm, const MpiTypes& types,
                                                    const Arithmetic& arithmetic, bool persistent) {
  return std::make_unique<MpiCommunicator>(comm, types, arithmetic, persistent);
}

}  // namespace mixdown
