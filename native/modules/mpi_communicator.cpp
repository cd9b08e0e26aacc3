// Blocking collectives, so that what is measured is the algorithms that the
// library chooses for them; nonblocking point-to-point.
//
// MPI 3 counts and displacements are ints. What does not fit is cut: reductions
// and broadcast into several calls, everything else into messages by what the
// base class composes of `batch`.
#include "modules/mpi_communicator.h"

#include <algorithm>
#include <climits>
#include <numeric>

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
// for each call, allocated once.
struct Blocks {
  std::vector<int> counts;
  std::vector<int> displacements;

  explicit Blocks(int size) : counts(size), displacements(size) {}

  void set(const int64_t* from) {
    int64_t offset = 0;
    for (size_t m = 0; m < counts.size(); ++m) {
      counts[m] = int_of(from[m]);
      displacements[m] = int_of(offset);
      offset += from[m];
    }
  }
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MPI_Comm comm, const MpiTypes& types, const Arithmetic& arithmetic)
      : Communicator(query(comm, MPI_Comm_rank), query(comm, MPI_Comm_size), arithmetic),
        comm_(comm),
        types_(types),
        in_(size()),
        out_(size()) {
    void* upper = nullptr;
    int found = 0;
    mpi_check(MPI_Comm_get_attr(comm, MPI_TAG_UB, &upper, &found), "MPI_Comm_get_attr");
    tags_ = (found ? int64_t{*static_cast<int*>(upper)} + 1 : 32768) / 2;
  }

  ~MpiCommunicator() override { MPI_Comm_free(&comm_); }

  void reserve(int64_t bytes) override {
    int64_t largest = 0;
    mpi_check(MPI_Allreduce(&bytes, &largest, 1, MPI_INT64_T, MPI_MAX, comm_), "MPI_Allreduce");
    large_ = !fits(largest);
  }

  void all_reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) override {
    if (reduction.op == ReduceOp::kPremulSum) {
      arithmetic().scale(dtype, out, in, count, reduction.factor);
      in = out;
    }
    pieces(count, [&](int64_t first, int n) {
      const void* input = in == out ? MPI_IN_PLACE : at(in, first, dtype);
      mpi_check(MPI_Allreduce(input, at(out, first, dtype), n, types_.datatype(dtype),
                              types_.op(dtype, reduction.op), comm_),
                "MPI_Allreduce");
    });
    if (reduction.op == ReduceOp::kAvg) arithmetic().divide(dtype, out, count, size());
  }

  void reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction, int root) override {
    const bool is_root = rank() == root;
    if (reduction.op == ReduceOp::kPremulSum) {
      void* scaled = is_root ? out : scratch(count * size_of(dtype));
      arithmetic().scale(dtype, scaled, in, count, reduction.factor);
      in = scaled;
    }
    if (is_root && in == out && root != 0 && !kReducesInPlaceAnywhere) {
      char* input = scratch(count * size_of(dtype));
      copy(in, input, count, dtype);
      in = input;
    }
    pieces(count, [&](int64_t first, int n) {
      const void* input = is_root && in == out ? MPI_IN_PLACE : at(in, first, dtype);
      void* output = is_root ? at(out, first, dtype) : nullptr;
      mpi_check(MPI_Reduce(input, output, n, types_.datatype(dtype), types_.op(dtype, reduction.op), root, comm_),
                "MPI_Reduce");
    });
    if (reduction.op == ReduceOp::kAvg && is_root) arithmetic().divide(dtype, out, count, size());
  }

  void broadcast(void* buffer, int64_t count, DType dtype, int root) override {
    pieces(count, [&](int64_t first, int n) {
      mpi_check(MPI_Bcast(at(buffer, first, dtype), n, types_.datatype(dtype), root, comm_), "MPI_Bcast");
    });
  }

  void all_gather(const void* in, void* out, int64_t count, DType dtype) override {
    if (!fits(count * size())) return Communicator::all_gather(in, out, count, dtype);
    const MPI_Datatype type = types_.datatype(dtype);
    if (in == at(out, rank() * count, dtype)) in = MPI_IN_PLACE;
    mpi_check(MPI_Allgather(in, int_of(count), type, out, int_of(count), type, comm_), "MPI_Allgather");
  }

  void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) override {
    if (!fits(total(counts, size()))) return Communicator::all_gatherv(in, out, counts, dtype);
    const MPI_Datatype type = types_.datatype(dtype);
    out_.set(counts);
    if (in == at(out, total(counts, rank()), dtype)) in = MPI_IN_PLACE;
    mpi_check(MPI_Allgatherv(in, out_.counts[rank()], type, out, out_.counts.data(), out_.displacements.data(), type,
                             comm_),
              "MPI_Allgatherv");
  }

  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) override {
    if (!fits(count * size())) return Communicator::reduce_scatter(in, out, count, dtype, reduction);
    const bool in_place = out == at(in, rank() * count, dtype);
    in = scaled(in, count * size(), dtype, reduction, in_place ? std::max<int64_t>(count, 1) : 0);
    // MPI's own form in place leaves the result at the start of the input.
    void* result = in_place ? scratch(count * size_of(dtype)) : out;
    mpi_check(MPI_Reduce_scatter_block(in, result, int_of(count), types_.datatype(dtype),
                                       types_.op(dtype, reduction.op), comm_),
              "MPI_Reduce_scatter_block");
    finish(result, out, count, dtype, reduction);
  }

  void reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype, Reduction reduction) override {
    const int64_t all = total(counts, size());
    if (!fits(all)) return Communicator::reduce_scatterv(in, out, counts, dtype, reduction);
    const int64_t count = counts[rank()];
    out_.set(counts);
    const bool in_place = out == at(in, total(counts, rank()), dtype);
    in = scaled(in, all, dtype, reduction, in_place ? std::max<int64_t>(count, 1) : 0);
    void* result = in_place ? scratch(count * size_of(dtype)) : out;
    mpi_check(MPI_Reduce_scatter(in, result, out_.counts.data(), types_.datatype(dtype),
                                 types_.op(dtype, reduction.op), comm_),
              "MPI_Reduce_scatter");
    finish(result, out, count, dtype, reduction);
  }

  void all_to_all(const void* in, void* out, int64_t count, DType dtype) override {
    if (!fits(count * size())) return Communicator::all_to_all(in, out, count, dtype);
    const MPI_Datatype type = types_.datatype(dtype);
    if (in == out) in = MPI_IN_PLACE;
    mpi_check(MPI_Alltoall(in, int_of(count), type, out, int_of(count), type, comm_), "MPI_Alltoall");
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
    mpi_check(MPI_Alltoallv(in, in_.counts.data(), in_.displacements.data(), type, out, out_.counts.data(),
                            out_.displacements.data(), type, comm_),
              "MPI_Alltoallv");
  }

  void gather(const void* in, void* out, int64_t count, DType dtype, int root) override {
    if (!fits(count * size())) return Communicator::gather(in, out, count, dtype, root);
    const MPI_Datatype type = types_.datatype(dtype);
    if (rank() == root && in == at(out, rank() * count, dtype)) in = MPI_IN_PLACE;
    mpi_check(MPI_Gather(in, int_of(count), type, out, int_of(count), type, root, comm_), "MPI_Gather");
  }

  void gatherv(const void* in, void* out, const int64_t* counts, DType dtype, int root) override {
    if (!fits(total(counts, size()))) return Communicator::gatherv(in, out, counts, dtype, root);
    const MPI_Datatype type = types_.datatype(dtype);
    out_.set(counts);
    if (rank() == root && in == at(out, total(counts, rank()), dtype)) in = MPI_IN_PLACE;
    mpi_check(MPI_Gatherv(in, out_.counts[rank()], type, out, out_.counts.data(), out_.displacements.data(), type,
                          root, comm_),
              "MPI_Gatherv");
  }

  void scatter(const void* in, void* out, int64_t count, DType dtype, int root) override {
    if (!fits(count * size())) return Communicator::scatter(in, out, count, dtype, root);
    const MPI_Datatype type = types_.datatype(dtype);
    if (rank() == root && out == at(in, rank() * count, dtype)) out = MPI_IN_PLACE;
    mpi_check(MPI_Scatter(in, int_of(count), type, out, int_of(count), type, root, comm_), "MPI_Scatter");
  }

  void scatterv(const void* in, void* out, const int64_t* counts, DType dtype, int root) override {
    if (!fits(total(counts, size()))) return Communicator::scatterv(in, out, counts, dtype, root);
    const MPI_Datatype type = types_.datatype(dtype);
    in_.set(counts);
    if (rank() == root && out == at(in, total(counts, rank()), dtype)) out = MPI_IN_PLACE;
    mpi_check(MPI_Scatterv(in, in_.counts.data(), in_.displacements.data(), type, out, in_.counts[rank()], type, root,
                           comm_),
              "MPI_Scatterv");
  }

  void barrier() override { mpi_check(MPI_Barrier(comm_), "MPI_Barrier"); }

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
    void* copy = at(scratch((reserved + count) * size_of(dtype)), reserved, dtype);
    arithmetic().scale(dtype, copy, in, count, reduction.factor);
    return copy;
  }

  void finish(void* result, void* out, int64_t count, DType dtype, const Reduction& reduction) const {
    if (reduction.op == ReduceOp::kAvg) arithmetic().divide(dtype, result, count, size());
    copy(result, out, count, dtype);
  }

  MPI_Comm comm_;
  const MpiTypes& types_;
  int64_t tags_ = 0;  // of one half
  bool large_ = false;  // a member has an operation that ints may not count
  Blocks in_;
  Blocks out_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm comm, const MpiTypes& types,
                                                    const Arithmetic& arithmetic) {
  return std::make_unique<MpiCommunicator>(comm, types, arithmetic);
}

}  // namespace mixdown
