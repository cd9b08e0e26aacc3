// Blocking collectives, so that what is measured is the algorithms that the
// library chooses for them; nonblocking point-to-point.
#include "modules/mpi_communicator.h"

#include <climits>
#include <stdexcept>

#include "arith/arith.h"

namespace mixdown {
namespace {

// MPI-3 counts are ints.
int int_of(int64_t count) {
  if (count < 0 || count > INT_MAX) {
    throw std::runtime_error("mpi: " + std::to_string(count) +
                             " elements in one operation; MPI 3 takes at most 2147483647, use another backend for it");
  }
  return static_cast<int>(count);
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
  MpiCommunicator(MPI_Comm comm, const MpiTypes& types)
      : comm_(comm), types_(types), rank_(query(comm, MPI_Comm_rank)), size_(query(comm, MPI_Comm_size)), in_(size_),
        out_(size_) {
    void* upper = nullptr;
    int found = 0;
    mpi_check(MPI_Comm_get_attr(comm, MPI_TAG_UB, &upper, &found), "MPI_Comm_get_attr");
    tags_ = found ? int64_t{*static_cast<int*>(upper)} + 1 : 32768;
  }

  ~MpiCommunicator() override { MPI_Comm_free(&comm_); }

  void all_reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op) override {
    mpi_check(MPI_Allreduce(in, out, int_of(count), types_.datatype(dtype), types_.op(dtype, op), comm_),
              "MPI_Allreduce");
    if (op == ReduceOp::kAvg) divide(dtype, out, count, size_);
  }

  void reduce(const void* in, void* out, int64_t count, DType dtype, ReduceOp op, int root) override {
    mpi_check(MPI_Reduce(in, out, int_of(count), types_.datatype(dtype), types_.op(dtype, op), root, comm_),
              "MPI_Reduce");
    if (op == ReduceOp::kAvg && rank_ == root) divide(dtype, out, count, size_);
  }

  void broadcast(void* buffer, int64_t count, DType dtype, int root) override {
    mpi_check(MPI_Bcast(buffer, int_of(count), types_.datatype(dtype), root, comm_), "MPI_Bcast");
  }

  void all_gather(const void* in, void* out, int64_t count, DType dtype) override {
    const MPI_Datatype type = types_.datatype(dtype);
    mpi_check(MPI_Allgather(in, int_of(count), type, out, int_of(count), type, comm_), "MPI_Allgather");
  }

  void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) override {
    const MPI_Datatype type = types_.datatype(dtype);
    out_.set(counts);
    mpi_check(MPI_Allgatherv(in, out_.counts[rank_], type, out, out_.counts.data(), out_.displacements.data(), type,
                             comm_),
              "MPI_Allgatherv");
  }

  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, ReduceOp op) override {
    mpi_check(MPI_Reduce_scatter_block(in, out, int_of(count), types_.datatype(dtype), types_.op(dtype, op), comm_),
              "MPI_Reduce_scatter_block");
    if (op == ReduceOp::kAvg) divide(dtype, out, count, size_);
  }

  void reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype, ReduceOp op) override {
    out_.set(counts);
    mpi_check(MPI_Reduce_scatter(in, out, out_.counts.data(), types_.datatype(dtype), types_.op(dtype, op), comm_),
              "MPI_Reduce_scatter");
    if (op == ReduceOp::kAvg) divide(dtype, out, counts[rank_], size_);
  }

  void all_to_all(const void* in, void* out, int64_t count, DType dtype) override {
    const MPI_Datatype type = types_.datatype(dtype);
    mpi_check(MPI_Alltoall(in, int_of(count), type, out, int_of(count), type, comm_), "MPI_Alltoall");
  }

  void all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                   DType dtype) override {
    const MPI_Datatype type = types_.datatype(dtype);
    in_.set(in_counts);
    out_.set(out_counts);
    mpi_check(MPI_Alltoallv(in, in_.counts.data(), in_.displacements.data(), type, out, out_.counts.data(),
                            out_.displacements.data(), type, comm_),
              "MPI_Alltoallv");
  }

  void gather(const void* in, void* out, int64_t count, DType dtype, int root) override {
    const MPI_Datatype type = types_.datatype(dtype);
    mpi_check(MPI_Gather(in, int_of(count), type, out, int_of(count), type, root, comm_), "MPI_Gather");
  }

  void scatter(const void* in, void* out, int64_t count, DType dtype, int root) override {
    const MPI_Datatype type = types_.datatype(dtype);
    mpi_check(MPI_Scatter(in, int_of(count), type, out, int_of(count), type, root, comm_), "MPI_Scatter");
  }

  void barrier() override { mpi_check(MPI_Barrier(comm_), "MPI_Barrier"); }

  void batch(const Transfer* transfers, size_t n, DType dtype) override {
    // One for each thread that calls: grows to the largest batch and stays.
    thread_local std::vector<MPI_Request> requests;
    requests.assign(n, MPI_REQUEST_NULL);
    const MPI_Datatype type = types_.datatype(dtype);
    for (const bool sends : {false, true}) {
      for (size_t i = 0; i < n; ++i) {
        const Transfer& t = transfers[i];
        if (t.send != sends) continue;
        const int tag = static_cast<int>(t.match % tags_);
        if (t.send) {
          mpi_check(MPI_Isend(t.buffer, int_of(t.count), type, t.peer, tag, comm_, &requests[i]), "MPI_Isend");
        } else {
          mpi_check(MPI_Irecv(t.buffer, int_of(t.count), type, t.peer, tag, comm_, &requests[i]), "MPI_Irecv");
        }
      }
    }
    mpi_check(MPI_Waitall(static_cast<int>(n), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }

 private:
  static int query(MPI_Comm comm, int (*call)(MPI_Comm, int*)) {
    int value = 0;
    mpi_check(call(comm, &value), "MPI_Comm_rank or MPI_Comm_size");
    return value;
  }

  MPI_Comm comm_;
  const MpiTypes& types_;
  const int rank_;
  const int size_;
  int64_t tags_ = 0;
  Blocks in_;
  Blocks out_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm comm, const MpiTypes& types) {
  return std::make_unique<MpiCommunicator>(comm, types);
}

}  // namespace mixdown
