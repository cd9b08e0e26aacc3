// NCCL's own collectives, and the others composed as PyTorch's ProcessGroupNCCL
// composes them: all_to_all(v), gather and scatter of grouped messages, the v
// forms of all_gather and reduce_scatter of grouped broadcasts and reductions.
//
// Calls are queued on the stream of use_stream and return at once; buffers are
// device memory.
#include "modules/nccl_communicator.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "arith/half.h"
#include "device/api.h"

namespace mixdown {
namespace {

using nccl::check;

const char* at(const void* buffer, int64_t index, DType dtype) {
  return static_cast<const char*>(buffer) + index * size_of(dtype);
}
char* at(void* buffer, int64_t index, DType dtype) { return static_cast<char*>(buffer) + index * size_of(dtype); }

// How NCCL names elements that it reduces, -1 for those it does not know.
nccl::DataType type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return nccl::kFloat32;
    case DType::kFloat64:
      return nccl::kFloat64;
    case DType::kFloat16:
      return nccl::kFloat16;
    case DType::kBFloat16:
      return nccl::kBfloat16;
    case DType::kInt8:
      return nccl::kInt8;
    case DType::kUInt8:
      return nccl::kUint8;
    case DType::kInt32:
      return nccl::kInt32;
    case DType::kUInt32:
      return nccl::kUint32;
    case DType::kInt64:
      return nccl::kInt64;
    case DType::kUInt64:
      return nccl::kUint64;
    default:
      return -1;
  }
}

// What moves elements without looking at them: those that NCCL does not know go
// as bytes.
struct Moved {
  nccl::DataType type;
  size_t count;
};
Moved moved(DType dtype, int64_t count) {
  const nccl::DataType type = type_of(dtype);
  if (type >= 0) return {type, static_cast<size_t>(count)};
  return {nccl::kUint8, static_cast<size_t>(count * size_of(dtype))};
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(nccl::Comm comm, int rank, int size, const Arithmetic& arithmetic)
      : Communicator(rank, size, arithmetic), comm_(comm), nccl_(nccl::load()), device_(device::load(nccl::kPlatform)) {
    allocate(token_, sizeof(int32_t));
  }

  ~NcclCommunicator() override {
    for (const auto& [key, op] : premul_) nccl_.op_destroy(op, comm_);
    nccl_.comm_destroy(comm_);
    device_.memory_free(token_);
    if (space_ != 0) device_.memory_free(space_);
  }

  void use_stream(void* stream) override { stream_ = stream; }

  void reserve(int64_t) override {}

  // It needs its input aside, each copy from a multiple of 16 bytes on.
  void reserve_in_place(int64_t bytes) override {
    if (bytes == 0) return;
    space_bytes_ = bytes;
    allocate(space_, bytes);
  }

  void group_start() override {
    ++depth_;
    check(nccl_.group_start(), "ncclGroupStart");
  }

  void group_end() override {
    check(nccl_.group_end(), "ncclGroupEnd");
    if (--depth_ == 0) space_used_ = 0;
  }

  void batch(const Transfer* transfers, size_t n, DType dtype) override {
    // NCCL knows no tags: between two members messages pair up by their order, so
    // both sides take them in the same.
    order_.resize(n);
    for (size_t i = 0; i < n; ++i) order_[i] = &transfers[i];
    std::stable_sort(order_.begin(), order_.end(), [](const Transfer* a, const Transfer* b) {
      return std::pair(a->peer, a->match) < std::pair(b->peer, b->match);
    });
    group_start();
    for (const Transfer* t : order_) {
      if (t->send) {
        send(t->buffer, t->count, dtype, t->peer);
      } else {
        receive(t->buffer, t->count, dtype, t->peer);
      }
    }
    group_end();
  }

  void all_reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) override {
    const nccl::RedOp op = op_of(dtype, reduction);
    check(nccl_.all_reduce(in, out, static_cast<size_t>(count), type_of(dtype), op, comm_, stream_), "ncclAllReduce");
  }

  void reduce(const void* in, void* out, int64_t count, DType dtype, Reduction reduction, int root) override {
    const nccl::RedOp op = op_of(dtype, reduction);
    check(nccl_.reduce(in, out, static_cast<size_t>(count), type_of(dtype), op, root, comm_, stream_), "ncclReduce");
  }

  void broadcast(void* buffer, int64_t count, DType dtype, int root) override {
    const Moved m = moved(dtype, count);
    check(nccl_.broadcast(buffer, buffer, m.count, m.type, root, comm_, stream_), "ncclBroadcast");
  }

  void all_gather(const void* in, void* out, int64_t count, DType dtype) override {
    const Moved m = moved(dtype, count);
    check(nccl_.all_gather(in, out, m.count, m.type, comm_, stream_), "ncclAllGather");
  }

  void all_gatherv(const void* in, void* out, const int64_t* counts, DType dtype) override {
    group_start();
    int64_t offset = 0;
    for (int member = 0; member < size(); ++member) {
      if (counts[member] > 0) {
        const Moved m = moved(dtype, counts[member]);
        char* place = at(out, offset, dtype);
        const void* from = member == rank() ? in : place;
        check(nccl_.broadcast(from, place, m.count, m.type, member, comm_, stream_), "ncclBroadcast");
      }
      offset += counts[member];
    }
    group_end();
  }

  void reduce_scatter(const void* in, void* out, int64_t count, DType dtype, Reduction reduction) override {
    const nccl::RedOp op = op_of(dtype, reduction);
    check(nccl_.reduce_scatter(in, out, static_cast<size_t>(count), type_of(dtype), op, comm_, stream_),
          "ncclReduceScatter");
  }

  void reduce_scatterv(const void* in, void* out, const int64_t* counts, DType dtype, Reduction reduction) override {
    const nccl::RedOp op = op_of(dtype, reduction);
    group_start();
    int64_t offset = 0;
    for (int member = 0; member < size(); ++member) {
      if (counts[member] > 0) {
        const char* from = at(in, offset, dtype);
        void* to = member == rank() ? out : nullptr;
        check(nccl_.reduce(from, to, static_cast<size_t>(counts[member]), type_of(dtype), op, member, comm_, stream_),
              "ncclReduce");
      }
      offset += counts[member];
    }
    group_end();
  }

  void all_to_all(const void* in, void* out, int64_t count, DType dtype) override {
    counts_.assign(static_cast<size_t>(size()), count);
    all_to_allv(in, counts_.data(), out, counts_.data(), dtype);
  }

  void all_to_allv(const void* in, const int64_t* in_counts, void* out, const int64_t* out_counts,
                   DType dtype) override {
    group_start();
    if (in == out) in = aside(in, in_counts, dtype);
    int64_t from = 0;
    int64_t to = 0;
    for (int member = 0; member < size(); ++member) {
      send(at(in, from, dtype), in_counts[member], dtype, member);
      receive(at(out, to, dtype), out_counts[member], dtype, member);
      from += in_counts[member];
      to += out_counts[member];
    }
    group_end();
  }

  void gather(const void* in, void* out, int64_t count, DType dtype, int root) override {
    counts_.assign(static_cast<size_t>(size()), count);
    gatherv(in, out, counts_.data(), dtype, root);
  }

  void gatherv(const void* in, void* out, const int64_t* counts, DType dtype, int root) override {
    group_start();
    if (rank() != root) send(in, counts[rank()], dtype, root);
    int64_t offset = 0;
    for (int member = 0; member < size() && rank() == root; ++member) {
      if (member == root) {
        move(at(out, offset, dtype), in, counts[member], dtype);
      } else {
        receive(at(out, offset, dtype), counts[member], dtype, member);
      }
      offset += counts[member];
    }
    group_end();
  }

  void scatter(const void* in, void* out, int64_t count, DType dtype, int root) override {
    counts_.assign(static_cast<size_t>(size()), count);
    scatterv(in, out, counts_.data(), dtype, root);
  }

  void scatterv(const void* in, void* out, const int64_t* counts, DType dtype, int root) override {
    group_start();
    if (rank() != root) receive(out, counts[rank()], dtype, root);
    int64_t offset = 0;
    for (int member = 0; member < size() && rank() == root; ++member) {
      if (member == root) {
        move(out, at(in, offset, dtype), counts[member], dtype);
      } else {
        send(at(in, offset, dtype), counts[member], dtype, member);
      }
      offset += counts[member];
    }
    group_end();
  }

  // As PyTorch: a reduction of one element.
  void barrier() override {
    void* token = reinterpret_cast<void*>(token_);
    check(nccl_.all_reduce(token, token, 1, nccl::kInt32, nccl::kSum, comm_, stream_), "ncclAllReduce");
  }

 private:
  void allocate(device::Pointer& pointer, int64_t bytes) const {
    device_.check(device_.memory_allocate(&pointer, static_cast<size_t>(bytes)), "allocating");
    device_.check(device_.set_bytes(pointer, 0, static_cast<size_t>(bytes), nullptr), "clearing memory");
    device_.check(device_.stream_synchronize(nullptr), "waiting for a stream");
  }

  // Messages without elements are left out, on both sides.
  void send(const void* in, int64_t count, DType dtype, int peer) {
    if (count == 0) return;
    const Moved m = moved(dtype, count);
    check(nccl_.send(in, m.count, m.type, peer, comm_, stream_), "ncclSend");
  }

  void receive(void* out, int64_t count, DType dtype, int peer) {
    if (count == 0) return;
    const Moved m = moved(dtype, count);
    check(nccl_.recv(out, m.count, m.type, peer, comm_, stream_), "ncclRecv");
  }

  // A copy on the device. Within a group it comes before the group's messages,
  // which touch other memory.
  void move(void* to, const void* from, int64_t count, DType dtype) {
    if (count == 0 || to == from) return;
    device_.check(device_.copy_on_device(reinterpret_cast<device::Pointer>(to), reinterpret_cast<device::Pointer>(from),
                                     static_cast<size_t>(count * size_of(dtype)), static_cast<device::Stream>(stream_)),
                "copying on the device");
  }

  // A copy of the input. What one group copies lies side by side: its messages
  // start together when it ends.
  const void* aside(const void* in, const int64_t* counts, DType dtype) {
    int64_t count = 0;
    for (int member = 0; member < size(); ++member) count += counts[member];
    const int64_t bytes = count * size_of(dtype);
    if (space_used_ + bytes > space_bytes_) throw std::runtime_error(std::string(nccl::kName) + ": no space reserved for an all_to_all in place");
    void* copy = reinterpret_cast<void*>(space_ + static_cast<device::Pointer>(space_used_));
    space_used_ += (bytes + 15) / 16 * 16;
    move(copy, in, count, dtype);
    return copy;
  }

  nccl::RedOp op_of(DType dtype, Reduction reduction) {
    if (type_of(dtype) < 0) throw std::runtime_error(std::string(nccl::kName) + " reduces no 16-bit integers");
    switch (reduction.op) {
      case ReduceOp::kSum:
        return nccl::kSum;
      case ReduceOp::kAvg:
        return nccl::kAvg;
      case ReduceOp::kMin:
        return nccl::kMin;
      case ReduceOp::kMax:
        return nccl::kMax;
      case ReduceOp::kProd:
        return nccl::kProd;
      case ReduceOp::kPremulSum:
        return premul_sum(dtype, reduction.factor);
      default:
        throw std::runtime_error(std::string(nccl::kName) + " has no bitwise reductions");
    }
  }

  // Made at its first use, which is while data is checked or in the warm-up.
  nccl::RedOp premul_sum(DType dtype, double factor) {
    const auto [entry, fresh] = premul_.try_emplace({dtype, factor}, 0);
    if (!fresh) return entry->second;
    union {
      float f32;
      double f64;
      uint16_t bits;
    } scalar = {};
    switch (dtype) {
      case DType::kFloat32:
        scalar.f32 = static_cast<float>(factor);
        break;
      case DType::kFloat64:
        scalar.f64 = factor;
        break;
      case DType::kFloat16:
        scalar.bits = half_of_float(static_cast<float>(factor));
        break;
      default:
        scalar.bits = bfloat_of_float(static_cast<float>(factor));
    }
    check(nccl_.premul_sum(&entry->second, &scalar, type_of(dtype), nccl::kScalarHostImmediate, comm_),
          "ncclRedOpCreatePreMulSum");
    return entry->second;
  }

  nccl::Comm comm_;
  const nccl::Api& nccl_;
  const device::Api& device_;
  void* stream_ = nullptr;
  int depth_ = 0;  // of groups within groups
  device::Pointer token_ = 0;
  device::Pointer space_ = 0;
  int64_t space_bytes_ = 0;
  int64_t space_used_ = 0;
  std::vector<int64_t> counts_;
  std::vector<const Transfer*> order_;
  std::map<std::pair<DType, double>, nccl::RedOp> premul_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(nccl::Comm comm, int rank, int size, const Arithmetic& arithmetic) {
  return std::make_unique<NcclCommunicator>(comm, rank, size, arithmetic);
}

}  // namespace mixdown
